//! Of streams of `tscap gen` whose every frame is known.

use proptest::prelude::*;
use tscap_common::stream::{STAMP_MASK, StreamHeader};

use super::*;
use crate::schema::StreamFrames;
use tscap_streams::fixtures::capture::{Capture, NOW, S, TAI_OFFSET_S, stream};
use tscap_streams::fixtures::{Headers, header};

fn read(bytes: &[u8]) -> FileResult {
    measure_file(&mut Cursor::new(bytes), &plan(FlowBy::Gen)).unwrap()
}

fn measure(capture: Capture) -> FileResult {
    read(&capture.bytes())
}

fn only_flow(capture: Capture) -> FlowReport {
    let mut flows = measure(capture).flows;
    assert_eq!(flows.len(), 1);
    flows.remove(0)
}

fn frames(result: &FileResult, place: usize) -> StreamFrames {
    result.places[place].streams.expect("streams")
}

#[test]
fn every_figure_of_a_stream() {
    let mut capture = Capture::ours();
    // 2 comes after 3 and 4; 3 twice; 5 and 6 are lost.
    for (seq, delay) in [
        (0, 200),
        (1, 230),
        (3, 210),
        (4, 190),
        (2, 9_000),
        (3, 9_500),
        (7, -5),
        (8, 5),
    ] {
        capture.stream(Headers::V4, seq, u64::from(seq) * 10_000, delay);
    }
    capture.packet(0, NOW, &[0; 60], 60, None);
    capture.packet(0, NOW, &Headers::V4.frame(&stream(9, 0)), 50, None);
    capture.statistics(0, StampPath::Ktime, &[TAI_OFFSET_S]);
    let result = measure(capture);
    assert!(result.account.adds_up(), "{:?}", result.account);
    assert_eq!(
        frames(&result, 0),
        StreamFrames {
            frames: 10,
            streams: 8,
            others: 1,
            malformed: 1,
            checksum_right: 8,
            cut: 1,
            ..StreamFrames::default()
        }
    );
    assert_eq!(frames(&result, 1), StreamFrames::default());
    assert_eq!(
        result.places[0].delays,
        DelayBasis::Clocks {
            tai_offsets_s: vec![TAI_OFFSET_S],
            host_bound_ns: 20,
            utc_bound_ns: None,
            reference: None,
        }
    );
    let flow = &result.flows[0];
    assert_eq!(flow.name, "run 4660 flow 0");
    let (loss, reordering) = (flow.loss.unwrap(), flow.reordering.unwrap());
    assert_eq!((loss.received, loss.distinct, loss.duplicates), (8, 7, 1));
    assert_eq!((loss.lost, loss.longest_loss), (2, 2));
    let extent = reordering.extent.unwrap();
    assert_eq!((reordering.reordered, extent.max), (1, 2));
    assert_eq!(extent.of_all.unwrap().min, 2);
    let delay = flow.delay.unwrap();
    assert_eq!(
        (delay.n, delay.min_ns, delay.max_ns, delay.negative),
        (7, -5, 9_000, 1)
    );
    let ipdv = flow.ipdv.unwrap().figures;
    assert_eq!((ipdv.n, ipdv.min_ns, ipdv.max_ns), (3, -20, 30));
    let error = flow.interval_error.unwrap();
    assert_eq!((error.n, error.min_ns, error.max_ns), (3, 10, 30));
}

/// A frame that comes late is none that is lost, however late it is; and quantiles are those of
/// the values.
#[test]
fn all_numbers_are_kept() {
    let mut capture = Capture::ours();
    for seq in (0..5_000).filter(|seq| *seq != 7).chain([7]) {
        capture.stream(
            Headers::V4,
            seq,
            u64::from(seq) * 1_000,
            100_000 + i64::from(seq),
        );
    }
    capture.statistics(0, StampPath::Ktime, &[TAI_OFFSET_S]);
    let flow = only_flow(capture);
    let (loss, reordering) = (flow.loss.unwrap(), flow.reordering.unwrap());
    assert_eq!((loss.lost, loss.too_late, loss.distinct), (0, 0, 5_000));
    let extent = reordering.extent.unwrap();
    assert_eq!((extent.max, extent.cut), (4_992, 0));
    let median = flow.delay.unwrap().p50_ns.unwrap();
    assert!(median.abs_diff(102_499) < 102_499 / 2_000 + 1, "{median}");
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
        let result = measure(capture);
        let of = frames(&result, 0);
        let expected = if is_enough { (3, 3, 0) } else { (0, 0, 3) };
        assert_eq!((of.streams, of.checksum_unknown, of.cut), expected);
        let asks = result.warnings.iter().any(|it| {
            it.contains("no stream of `tscap gen`: cut before a stream header could be seen: 3")
        });
        assert_eq!(asks, !is_enough, "{:?}", result.warnings);
    }
}

#[test]
fn interfaces_are_kept_apart() {
    let mut capture = Capture::ours();
    capture.our_interface("vc");
    capture.stream(Headers::V4, 0, 0, 100);
    capture.stream(Headers::V4, 1, 0, 100);
    let frame = |flow| Headers::V4.frame(&header(flow, 0));
    capture.packet(1, NOW, &frame(0), usize::MAX, None);
    capture.packet(1, NOW, &frame(3), usize::MAX, None);
    capture.statistics(1, StampPath::Ktime, &[TAI_OFFSET_S]);
    let result = measure(capture);
    let flows = result.flows.iter();
    let flows: Vec<_> = flows
        .map(|it| (it.place, it.name.as_str(), it.packets))
        .collect();
    let [zero, three] = ["run 4660 flow 0", "run 4660 flow 3"];
    assert_eq!(flows, [(0, zero, 2), (2, zero, 1), (2, three, 1)]);
    let names: Vec<_> = result
        .places
        .iter()
        .map(|it| it.interface.as_deref())
        .collect();
    assert_eq!(names, [Some("vb"), Some("vb"), Some("vc"), Some("vc")]);
    assert!(
        matches!(&result.places[0].delays, DelayBasis::Unavailable { why } if why.contains("killed"))
    );
    let delays: Vec<_> = result.flows.iter().map(|it| it.delay.is_some()).collect();
    assert_eq!(delays, [false, true, true]);
}

#[test]
fn the_file_of_another_program_has_no_delay() {
    let mut capture = Capture::empty();
    capture.interface(DataLink::ETHERNET, Vec::new());
    capture.stream(Headers::V4, 0, 0, 5_000);
    capture.stream(Headers::V4, 1, 10_000, 7_000);
    let result = measure(capture);
    let place = &result.places[0];
    assert_eq!(place.intervals.step_ns, 1_000);
    assert!(
        matches!(&place.delays, DelayBasis::Unavailable { why } if why.contains("not a file of tscap"))
    );
    let flow = &result.flows[0];
    assert_eq!(flow.delay, None);
    assert_eq!(flow.ipdv.unwrap().figures.max_ns, 2_000);
}

#[test]
fn frames_that_are_not_ethernet_are_others() {
    let mut capture = Capture::empty();
    capture.interface(DataLink::RAW, Vec::new());
    capture.stream(Headers::V4, 0, 0, 0);
    let result = measure(capture);
    assert_eq!(
        (frames(&result, 0).others, result.account.not_ethernet),
        (1, 1)
    );
    assert!(result.warnings[0].contains("not Ethernet"));
}

#[test]
fn a_torn_or_broken_file_is_read_up_to_there() {
    let mut capture = Capture::ours();
    capture.stream(Headers::V4, 0, 0, 100);
    let whole = capture.0.get_ref().len();
    capture.stream(Headers::V4, 1, 0, 100);
    let bytes = capture.bytes();
    let is_said = |result: &FileResult, what: &str| {
        assert_eq!(frames(result, 0).streams, 1);
        assert!(!result.is_whole);
        let is_said = result.warnings.iter().any(|it| it.contains(what));
        assert!(is_said, "{:?}", result.warnings);
    };
    for end in whole + 1..bytes.len() {
        is_said(&read(&bytes[..end]), "as that of a killed capture may");
    }
    let mut broken = bytes.clone();
    broken[whole + 4] = 1;
    is_said(&read(&broken), "left out: 1 part");
    assert!(read(&bytes).is_whole);
}

#[test]
fn statistics_that_cannot_be_read_may_hide_a_step() {
    let mut capture = Capture::ours();
    capture.stream(Headers::V4, 0, 0, 100);
    let whole = capture.0.get_ref().len();
    capture.statistics(0, StampPath::Ktime, &[TAI_OFFSET_S]);
    let mut broken = capture.bytes();
    broken[whole + 4] = 1;
    let of = |by| measure_file(&mut Cursor::new(&broken), &plan(by)).unwrap();
    let warns = |by| {
        let warnings = of(by).warnings;
        warnings
            .iter()
            .any(|it| it.contains("times may be off by more than is said"))
    };
    assert!(warns(FlowBy::Gen));
    assert!(!warns(FlowBy::FiveTuple), "intervals have no bound then");
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
    let result = measure(capture);
    let delay = result.flows[0].delay.unwrap();
    assert_eq!((delay.min_ns, delay.max_ns), (100, 150));
    let warnings = &result.warnings;
    assert!(
        warnings.iter().any(|it| it.contains("was changed")),
        "{warnings:?}"
    );
}

#[test]
fn raw_tsc_stamps_give_the_intervals() {
    let path = StampPath::Tsc(TscPath::Module);
    for (keeps_raw, tsc_pairs, error_ns) in [(true, 1, 30), (false, 0, 35)] {
        let mut capture = Capture::empty();
        capture.described("vb", &ours(path));
        for (seq, cycles, delay) in [(0, 0, 400), (1, 20_000, 460)] {
            let sent = StreamHeader {
                tsc: 1_000_000 + cycles,
                ..stream(seq, cycles / 2)
            };
            let raw = keeps_raw.then_some(1_000_000 + cycles + delay);
            // The wall clock was slewed by 5 ns.
            let time = NOW + cycles / 2 + delay / 2 + u64::from(seq) * 5;
            capture.packet(0, time, &Headers::V4.frame(&sent), usize::MAX, raw);
        }
        capture.statistics(0, path, &[TAI_OFFSET_S]);
        let flow = only_flow(capture);
        assert_eq!(flow.ipdv.unwrap().tsc_pairs, tsc_pairs);
        assert_eq!(flow.interval_error.unwrap().max_ns, error_ns);
    }
}

/// The sender has the receiving host's clocks, or those of another one; or arrivals are by
/// another clock than the host's.
#[test]
fn a_delay_has_a_bound_where_the_sender_has_the_receivers_clocks() {
    let module = StampPath::Tsc(TscPath::Module);
    let by_reference = InterfaceOption {
        reference: Some("ntp:time".into()),
        ..ours(module)
    };
    for (option, ahead_ns, bound_ns, tsc_pairs) in [
        (ours(module), 0, Some(20), 4),
        // Another host.
        (ours(module), 5_000_000, None, 0),
        (ours(module), -5_000_000, None, 0),
        // The server is ahead of the host.
        (by_reference, 0, None, 4),
    ] {
        let mut capture = Capture::empty();
        capture.described("vb", &option);
        for seq in 0..5u64 {
            let sent_ns = seq * 10_000;
            let sent = StreamHeader {
                tsc: 1_000_000 + 2 * sent_ns,
                ..stream(seq as u32, sent_ns)
            };
            let time = (NOW + sent_ns + 300).wrapping_add_signed(ahead_ns);
            let raw = 1_000_000 + 2 * sent_ns + 600;
            capture.packet(0, time, &Headers::V4.frame(&sent), usize::MAX, Some(raw));
        }
        capture.statistics(0, module, &[TAI_OFFSET_S]);
        let flow = only_flow(capture);
        let delay = flow.delay.unwrap();
        assert_eq!(delay.min_ns, 300 + ahead_ns);
        assert_eq!(delay.bound_ns, bound_ns, "{ahead_ns}");
        assert_eq!(flow.ipdv.unwrap().tsc_pairs, tsc_pairs, "{ahead_ns}");
    }
}

#[test]
fn interfaces_of_one_name_have_their_numbers() {
    let mut capture = Capture::empty();
    for boot in ["here-1", "there-2"] {
        let boot_id = Some(boot.into());
        let option = ours(StampPath::Ktime);
        capture.described("eth0", &InterfaceOption { boot_id, ..option });
    }
    let result = measure(capture);
    let names = result.places.iter().step_by(2);
    let names: Vec<_> = names.map(|it| it.interface.as_deref()).collect();
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
        came in prop::collection::vec(
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
        for (interface, made, (flow, seq), noise, snaplen) in &came {
            let mut frame = made.frame(&header(*flow, *seq));
            if let Some((at, byte)) = noise
                && let Some(place) = frame.get_mut(*at)
            {
                *place = *byte;
            }
            capture.packet(*interface, NOW, &frame, *snaplen, None);
        }
        capture.statistics(0, StampPath::Ktime, &[0]);
        let result = measure(capture);
        prop_assert!(result.account.adds_up());
        prop_assert_eq!(result.account.seen, came.len() as u64);
        let all = (0..result.places.len()).map(|place| frames(&result, place).frames);
        prop_assert_eq!(all.sum::<u64>(), came.len() as u64);
        for place in 0..result.places.len() {
            let of = frames(&result, place);
            prop_assert_eq!(of.frames, of.streams + of.others + of.malformed);
            prop_assert_eq!(
                of.streams,
                of.checksum_right + of.checksum_absent + of.checksum_unknown
            );
            prop_assert_eq!(
                of.malformed,
                of.cut + of.length_wrong + of.checksum_wrong + of.port_wrong
            );
            let flows = result.flows.iter().filter(|it| usize::from(it.place) == place);
            let received: Vec<_> = flows.map(|it| it.loss.unwrap().received).collect();
            prop_assert_eq!(of.streams, received.iter().sum::<u64>());
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
        let mut bytes = capture.bytes();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(result) = measure_file(&mut Cursor::new(&bytes), &plan(FlowBy::Gen)) {
            prop_assert!(result.account.seen <= 3 && result.account.adds_up());
        }
    }
}
