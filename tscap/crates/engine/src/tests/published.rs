//! What the control task sees of a converter, and what it tells it at the start.

use std::path::Path;
use std::sync::atomic::Ordering;

use super::*;
use crate::converter::COUNTS_EVERY_NS;
use tscap_file::pcapng::{Record, records};

/// Length of the block of a frame of 60 bytes.
const BLOCK: u64 = 92;

#[test]
fn figures_are_of_the_latest_drain() {
    let mut bench = unlimited(1);
    let shared = Arc::clone(&bench.shared);
    assert_eq!(
        shared.ring_bytes.load(Ordering::Relaxed),
        MIN_RING_BYTES as u64
    );
    let bound = bench.converter.tracker.host_bound_ns();
    assert_eq!(shared.host_bound_ns.swap(0, Ordering::Relaxed), bound);
    bench.push(0, 900_000, 60);
    bench.converter.drain();
    assert_eq!(shared.heartbeat(), 2, "a drain and a write");
    assert_eq!(shared.written.load(Ordering::Relaxed), 1);
    assert_eq!(shared.peak_fill.load(Ordering::Relaxed), BLOCK);
    assert_eq!(shared.host_bound_ns.load(Ordering::Relaxed), bound);
    let length = bench.file().len() as u64;
    assert_eq!(shared.bytes.load(Ordering::Relaxed), length);
    bench.converter.drain();
    assert_eq!(
        shared.heartbeat(),
        3,
        "an empty drain is a sign of life too"
    );
}

#[test]
fn the_counts_of_interfaces_are_told_ten_times_a_second() {
    let mut bench = unlimited(1);
    let start = 1_000_000;
    for (now, reported) in [
        (start, 1),
        (start + COUNTS_EVERY_NS - 1, 1),
        (start + COUNTS_EVERY_NS, 3),
        (start + COUNTS_EVERY_NS + 1, 3),
        (start + 2 * COUNTS_EVERY_NS, 5),
    ] {
        bench.push(0, now, 60);
        bench.script.set(now, EPOCH);
        bench.converter.drain();
        let counts = bench.shared.counts.lock().unwrap();
        assert_eq!(counts[0].sum().written, reported, "{now}");
    }
}

#[test]
fn of_several_writers_one_tells_of_the_clock() {
    for is_first in [true, false] {
        let mut bench = unlimited(1);
        bench.converter = bench.converter.of_several("part".into(), is_first);
        let path = bench.converter.writer.path.as_deref();
        assert_eq!(path, Some(Path::new("part")));
        bench.script.set(2_000_000, EPOCH + 1_000_000_000);
        bench.converter.drain();
        assert_eq!(bench.events().len(), usize::from(is_first));
    }
}

#[test]
fn statistics_come_as_often_as_is_asked_for() {
    let mut bench = unlimited(1);
    let period = std::time::Duration::from_secs(2);
    bench.converter = bench.converter.with_statistics_every(period);
    for second in 1..=9 {
        bench.script.set(second * 1_000_000_000, EPOCH);
        bench.converter.drain();
    }
    let file = bench.file();
    let statistics = records(&file[..])
        .unwrap()
        .filter(|it| matches!(it, Ok(Record::Statistics(..))));
    assert_eq!(statistics.count(), 4, "after 3, 5, 7 and 9 s");
}
