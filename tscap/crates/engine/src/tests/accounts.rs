//! What the file and the account say of stamps, rings and clocks.

use super::*;
use crate::window::WINDOW_NS;
use tscap_file::pcapng::{Record, records};
use tscap_programs::ring::FinalFrame;

#[test]
fn only_a_frame_older_than_one_written_is_late() {
    let mut bench = unlimited(2);
    let mut drain_with = |ring, mono| {
        bench.push(ring, mono, 60);
        bench.script.set(2_000_000 + mono, EPOCH);
        bench.converter.drain();
    };
    drain_with(0, 1_000_000);
    drain_with(1, 1_000_000);
    drain_with(1, 999_960);
    drain_with(0, 1_000_100);
    // By now the statistics are due.
    bench.script.set(11_000_000_000, EPOCH);
    bench.converter.drain();
    let file = bench.file();
    let statistics = records(&file[..])
        .unwrap()
        .find_map(|it| match it.unwrap() {
            Record::Statistics(_, statistics) => Some(statistics.clock.order),
            _ => None,
        });
    let order = bench.finish().order();
    assert_eq!((order.late, order.largest_lateness_ns), (1, 40));
    assert_eq!(statistics, Some(order));
}

#[test]
fn stamps_out_of_order_are_counted_in_all_files_and_in_the_current_one() {
    let mut bench = unlimited(1);
    let limits = Limits {
        bytes: None,
        frames: None,
        period: None,
    };
    for (mono, in_file) in [(900_000, 0), (899_950, 1), (900_000, 0), (899_990, 1)] {
        if in_file == 0 {
            bench.converter.writer.finisher.begin_file(limits);
        }
        bench.push(0, mono, 60);
        bench.converter.drain();
        let (finisher, tracker) = (&bench.converter.writer.finisher, &bench.converter.tracker);
        assert_eq!(finisher.order_in_file(tracker).stamp_decreases, in_file);
    }
    let order = bench.finish().order();
    assert_eq!((order.stamp_decreases, order.largest_decrease_ns), (2, 50));
}

#[test]
fn stamps_go_by_the_offsets_found_last() {
    let mut bench = unlimited(2);
    *bench.shared.recalibrated.lock().unwrap() = Some(Recalibration {
        offsets: vec![7, -30],
        stamp_error_ns: 55,
    });
    bench.push(0, 900_000, 60);
    bench.push(1, 900_035, 60);
    bench.script.set(2_000_000, EPOCH);
    bench.converter.drain();
    assert_eq!(bench.stamps(), [900_005, 900_007].map(|mono| EPOCH + mono));
    assert_eq!(bench.converter.tracker.stamp_error_ns(), 55);
    let is_left = bench.shared.recalibrated.lock().unwrap().is_some();
    assert!(!is_left, "taken once");
}

/// Frames that can wait for those before them do so however much has gone through the
/// ring; only what fills half of it does not wait.
#[test]
fn frames_are_held_back_up_to_half_a_ring() {
    let mut bench = unlimited(2);
    let mut now = 1_000_000;
    let longest = 10_000;
    for _ in 0..2 * MIN_RING_BYTES / longest {
        bench.push(0, now, longest);
        now += 2 * WINDOW_NS;
        bench.script.set(now, EPOCH);
        bench.converter.drain();
    }
    let before = bench.stamps().len();
    bench.push(0, now, longest);
    bench.converter.drain();
    assert_eq!(bench.stamps().len(), before);
    for _ in 0..MIN_RING_BYTES / 2 / longest + 1 {
        bench.push(0, now, longest);
    }
    bench.converter.drain();
    assert!(bench.stamps().len() > before);
}

#[test]
fn a_reader_that_goes_before_the_last_statistics_is_no_failure() {
    for (failure, is_ok) in [
        (io::ErrorKind::BrokenPipe, true),
        (io::ErrorKind::StorageFull, false),
    ] {
        let mut bench = bench(1, None, 92, failure);
        bench.push(0, 900_000, 60);
        bench.converter.drain();
        let mut finished = bench.finish();
        let of_each = of_each(&finished, 1);
        let last = finished.write_last_statistics(MonoNs(1), &Observed::default(), &of_each);
        assert_eq!(last.is_ok(), is_ok, "{failure}");
    }
}

#[test]
fn what_a_failed_write_has_lost_was_not_written() {
    let tracker = Tracker::new(StampSource::Ktime, &Script::new().read()).unwrap();
    for reader_gone in [false, true] {
        let mut finisher = BlockFinisher::new(1, 1, Frames::default(), &tracker);
        let counts = &mut finisher.counts[0][Direction::In];
        counts.written = 3;
        (counts.hardware.with, counts.hardware.unconverted) = (2, 1);
        let lost = [(true, false), (false, false)];
        let lost = lost.map(|(has_hardware_stamp, is_converted)| FinalFrame {
            slot: SLOT,
            has_hardware_stamp,
            is_converted,
        });
        finisher.unwrite(&lost, reader_gone);
        let counts = &finisher.counts[0][Direction::In];
        let hardware = (counts.hardware.with, counts.hardware.unconverted);
        assert_eq!((counts.written, hardware), (1, (1, 0)));
        let outcome = if reader_gone {
            Outcome::AfterStop
        } else {
            Outcome::WriteFailed
        };
        assert_eq!(counts.outcomes[outcome], 2);
    }
}
