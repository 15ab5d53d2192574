//! Of files whose every frame is known.

use std::io::Cursor;

use proptest::prelude::*;
use tscap_common::stream::{STAMP_MASK, StreamHeader};

use super::*;
use crate::fixtures::{Headers, header};
use crate::{Counts, StreamId};
use tscap_clock::{StampPath, TscPath};
use tscap_file::pcapng::{Hooks, InterfaceOption, StampOption};

use crate::fixtures::capture::{Capture, NOW, S, TAI_OFFSET_S, stream};

fn sent(frames: &[(u16, u64)]) -> Sent {
    let id = |flow| StreamId { run: 0x1234, flow };
    frames
        .iter()
        .map(|(flow, frames)| (id(*flow), *frames))
        .collect()
}

#[test]
fn every_figure_of_a_stream() {
    let mut capture = Capture::ours();
    // 2 comes after 3 and 4; 3 twice; 5 and 6 are lost, and 9 at the end.
    for (seq, delay) in [
        (0, 200),
        (1, 230),
        (3, 210),
        (4, 190),
        (2, 9_000),
        (3, 9_500),
        (7, 200),
        (8, 205),
    ] {
        capture.stream(Headers::V4, seq, u64::from(seq) * 10_000, delay);
    }
    capture.packet(0, NOW, &[0; 60], 60, None);
    capture.packet(0, NOW, &Headers::V4.frame(&stream(9, 0)), 50, None);
    capture.statistics(0, StampPath::Ktime, &[TAI_OFFSET_S]);
    let report = capture.read(&sent(&[(0, 10)]));
    let interface = &report.interfaces[0];
    assert_eq!(
        interface.counts,
        Counts {
            frames: 10,
            streams: 8,
            others: 1,
            malformed: 1,
            checksum_right: 8,
            cut: 1,
            ..Counts::default()
        }
    );
    assert_eq!(
        interface.delay_basis,
        DelayBasis::Clocks {
            tai_offsets_s: vec![TAI_OFFSET_S],
            host_bound_ns: 20,
            utc_bound_ns: None,
            reference: None,
        }
    );
    let stream = &interface.streams[0];
    assert_eq!((stream.id.run, stream.id.flow), (0x1234, 0));
    let loss = &stream.loss;
    assert_eq!((loss.received, loss.distinct, loss.duplicates), (8, 7, 1));
    assert_eq!((loss.sent, loss.lost, loss.longest_loss), (Some(10), 3, 2));
    assert_eq!(stream.reordering.reordered, 1);
    assert_eq!(stream.reordering.extent.as_ref().unwrap().max, 2);
    let path = stream.delay.path_ns.as_ref().unwrap();
    assert_eq!(
        (path.n, path.min, path.max, path.negative),
        (7, 190, 9_000, 0)
    );
    let variation = stream.delay.variation_ns.as_ref().unwrap();
    assert_eq!((variation.n, variation.min, variation.max), (3, -20, 30));
}

#[test]
fn the_snaplen_decides_what_can_be_told() {
    for (made, snaplen, is_enough) in [
        (Headers::V4, 64, true),
        (Headers::V6, 64, false),
        (Headers::TaggedV6, 64, false),
        (Headers::TaggedV6, 96, true),
    ] {
        let mut capture = Capture::ours();
        for seq in 0..3 {
            capture.packet(0, NOW, &made.frame(&stream(seq, 0)), snaplen, None);
        }
        let counts = capture.read(&Sent::new()).interfaces[0].counts;
        let expected = if is_enough { (3, 3, 0) } else { (0, 0, 3) };
        assert_eq!(
            (counts.streams, counts.checksum_unknown, counts.cut),
            expected
        );
    }
}

#[test]
fn interfaces_are_kept_apart() {
    let mut capture = Capture::ours();
    capture.our_interface("vc");
    capture.stream(Headers::V4, 0, 0, 100);
    capture.stream(Headers::V4, 1, 0, 100);
    capture.packet(1, NOW, &Headers::V4.frame(&stream(0, 0)), usize::MAX, None);
    capture.packet(1, NOW, &Headers::V4.frame(&header(3, 0)), usize::MAX, None);
    capture.statistics(1, StampPath::Ktime, &[TAI_OFFSET_S]);
    // Nothing came of flow 1; of another run, nothing anywhere.
    let mut sent = sent(&[(0, 2), (1, 2), (3, 1)]);
    sent.insert(StreamId { run: 1, flow: 0 }, 5);
    let report = capture.read(&sent);
    let lost = |interface: usize| -> Vec<(u16, u16, u64)> {
        let streams = report.interfaces[interface].streams.iter();
        streams
            .map(|stream| (stream.id.run, stream.id.flow, stream.loss.lost))
            .collect()
    };
    let run = 0x1234;
    assert_eq!(lost(0), [(1, 0, 5), (run, 0, 0), (run, 1, 2), (run, 3, 1)]);
    assert_eq!(lost(1), [(1, 0, 5), (run, 0, 1), (run, 1, 2), (run, 3, 0)]);
    let [first, second] = &report.interfaces[..] else {
        panic!("two interfaces");
    };
    assert_eq!(
        (first.name.as_deref(), second.name.as_deref()),
        (Some("vb"), Some("vc"))
    );
    assert!(
        matches!(&first.delay_basis, DelayBasis::Unavailable { why } if why.contains("killed"))
    );
    assert!(second.streams[1].delay.path_ns.is_some());
}

#[test]
fn the_file_of_another_program_has_no_path_delay() {
    let mut capture = Capture::empty();
    capture.interface(DataLink::ETHERNET, Vec::new());
    capture.stream(Headers::V4, 0, 0, 5_000);
    capture.stream(Headers::V4, 1, 10_000, 7_000);
    let report = capture.read(&Sent::new());
    let interface = &report.interfaces[0];
    assert_eq!(interface.stamp_resolution_ns, 1_000);
    assert!(
        matches!(&interface.delay_basis, DelayBasis::Unavailable { why } if why.contains("not a file of tscap"))
    );
    let delay = &interface.streams[0].delay;
    assert_eq!(delay.path_ns, None);
    assert_eq!(delay.variation_ns.as_ref().unwrap().max, 2_000);
}

#[test]
fn frames_that_are_not_ethernet_are_others() {
    let mut capture = Capture::empty();
    capture.interface(DataLink::RAW, Vec::new());
    capture.stream(Headers::V4, 0, 0, 0);
    let report = capture.read(&Sent::new());
    assert_eq!(report.interfaces[0].counts.others, 1);
    assert_eq!(report.warnings.len(), 1);
    assert!(report.warnings[0].contains("not Ethernet"));
}

#[test]
fn a_torn_or_broken_file_is_read_up_to_there() {
    let mut capture = Capture::ours();
    capture.stream(Headers::V4, 0, 0, 100);
    let whole = capture.0.get_ref().len();
    capture.stream(Headers::V4, 1, 0, 100);
    let bytes = capture.0.into_inner();
    for end in whole + 1..bytes.len() {
        let report = read(&mut Cursor::new(&bytes[..end]), &Sent::new()).unwrap();
        assert_eq!(report.interfaces[0].counts.streams, 1);
        assert!(!report.is_whole);
        assert!(
            report.warnings[0].contains("killed"),
            "{:?}",
            report.warnings
        );
    }
    let mut broken = bytes.clone();
    broken[whole + 4] = 1;
    let report = read(&mut Cursor::new(&broken), &Sent::new()).unwrap();
    assert_eq!(report.interfaces[0].counts.streams, 1);
    assert!(
        report.warnings[0].contains("left out: 1 part"),
        "{:?}",
        report.warnings
    );
    let report = read(&mut Cursor::new(&bytes), &Sent::new()).unwrap();
    assert_eq!((report.is_whole, report.warnings.len()), (true, 0));
}

#[test]
fn a_changed_offset_of_tai_is_warned_of() {
    let mut capture = Capture::ours();
    // From one second on TAI is right; before, it was REALTIME.
    let before = StreamHeader {
        tai: NOW & STAMP_MASK,
        ..header(0, 0)
    };
    capture.packet(0, NOW + 100, &Headers::V4.frame(&before), usize::MAX, None);
    capture.stream(Headers::V4, 1, 2 * S, 150);
    capture.statistics(0, StampPath::Ktime, &[0, TAI_OFFSET_S]);
    let report = capture.read(&Sent::new());
    let path = report.interfaces[0].streams[0]
        .delay
        .path_ns
        .clone()
        .unwrap();
    assert_eq!((path.min, path.max), (100, 150));
    assert!(
        report.warnings[0].contains("was changed"),
        "{:?}",
        report.warnings
    );
}

#[test]
fn raw_tsc_stamps_give_the_intervals() {
    for (path, tsc_pairs) in [(StampPath::Tsc(TscPath::Module), 1), (StampPath::Ktime, 0)] {
        let mut capture = Capture::ours();
        for (seq, cycles, delay) in [(0, 0, 400), (1, 20_000, 460)] {
            let sent = StreamHeader {
                tsc: 1_000_000 + cycles,
                ..stream(seq, cycles / 2)
            };
            let raw = 1_000_000 + cycles + delay;
            // The wall clock was slewed by 5 ns.
            let time = NOW + cycles / 2 + delay / 2 + u64::from(seq) * 5;
            capture.packet(0, time, &Headers::V4.frame(&sent), usize::MAX, Some(raw));
        }
        capture.statistics(0, path, &[TAI_OFFSET_S]);
        let delay = capture.only_stream().delay;
        assert_eq!(delay.intervals.tsc_pairs, tsc_pairs);
        let expected = if tsc_pairs == 1 { 30 } else { 35 };
        assert_eq!(delay.interval_error_ns.unwrap().max, expected);
    }
}

/// A sender with the receiving host's TSC, or another one that may be as far on by chance.
#[test]
fn interfaces_of_one_name_have_their_numbers() {
    let mut capture = Capture::empty();
    for boot in ["here-1", "there-2"] {
        let stamp = StampOption::new(StampPath::Ktime);
        let option = InterfaceOption::new(Hooks::default(), stamp, Default::default());
        let boot_id = Some(boot.into());
        capture.described("eth0", &InterfaceOption { boot_id, ..option });
    }
    let report = capture.read(&Sent::new());
    let names: Vec<_> = report
        .interfaces
        .iter()
        .map(|it| it.name.as_deref())
        .collect();
    assert_eq!(
        names,
        [
            Some("eth0, interface 0 (the host of boot here-1)"),
            Some("eth0, interface 1 (the host of boot there-2)")
        ]
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Whatever the frames are, each is counted once.
    #[test]
    fn every_frame_is_counted_once(
        frames in prop::collection::vec(
            (
                0u32..2,
                prop::sample::select(Headers::each_kind()),
                (0u16..3, 0u32..20),
                prop::option::weighted(0.2, (0usize..132, any::<u8>())),
                prop_oneof![4 => Just(usize::MAX), 1 => 0usize..120],
            ),
            0..60,
        )
    ) {
        let mut capture = Capture::ours();
        capture.our_interface("vc");
        for (interface, made, (flow, seq), noise, snaplen) in &frames {
            let mut frame = made.frame(&header(*flow, *seq));
            if let Some((at, byte)) = noise
                && let Some(place) = frame.get_mut(*at)
            {
                *place = *byte;
            }
            capture.packet(*interface, NOW, &frame, *snaplen, None);
        }
        capture.statistics(0, StampPath::Ktime, &[0]);
        let report = capture.read(&Sent::new());
        let total: u64 = report.interfaces.iter().map(|interface| interface.counts.frames).sum();
        prop_assert_eq!(total, frames.len() as u64);
        for interface in &report.interfaces {
            let counts = interface.counts;
            prop_assert_eq!(counts.frames, counts.streams + counts.others + counts.malformed);
            prop_assert_eq!(
                counts.streams,
                counts.checksum_right + counts.checksum_absent + counts.checksum_unknown
            );
            prop_assert_eq!(
                counts.malformed,
                counts.cut + counts.length_wrong + counts.checksum_wrong + counts.port_wrong
            );
            let received = interface.streams.iter().map(|stream| stream.loss.received);
            prop_assert_eq!(counts.streams, received.sum::<u64>());
        }
    }

    #[test]
    fn a_damaged_file_does_no_harm(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)
    ) {
        let mut capture = Capture::ours();
        for seq in 0..3 {
            capture.stream(Headers::V4, seq, u64::from(seq), 100);
        }
        capture.statistics(0, StampPath::Tsc(TscPath::Perf), &[TAI_OFFSET_S]);
        let mut bytes = capture.0.into_inner();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(report) = read(&mut Cursor::new(&bytes), &Sent::new()) {
            prop_assert!(report.interfaces.iter().all(|interface| interface.counts.frames <= 3));
        }
    }
}
