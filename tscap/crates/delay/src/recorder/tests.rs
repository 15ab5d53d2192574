//! Of packets that are known.

use super::*;
use crate::schema::Certificate as Certified;

fn packet(number: u64, delay_ns: i64) -> Matched<'static> {
    Matched {
        at_ns: number * 1_000,
        delay_ns,
        entered: RealNs(1_800_000_000_000_000_000 + number * 1_000),
        cpu_in: Some(0),
        cpu_out: Some(1),
        length: 192,
        key: number,
        bytes: &[],
    }
}

#[test]
fn of_nothing_there_are_no_delays() {
    let mut recorder = DelayRecorder::new();
    assert_eq!(recorder.take_latest(), None);
    assert_eq!(recorder.finish(Some(1)), None);
}

#[test]
fn every_part_is_of_the_same_packets() {
    let mut recorder = DelayRecorder::new();
    let mut random = fastrand::Rng::with_seed(1);
    let delays: Vec<i64> = (0..20_000).map(|_| random.i64(900..1_100)).collect();
    for (number, delay) in delays.iter().enumerate() {
        recorder.add(&packet(number as u64, *delay));
    }
    let delays = recorder.finish(Some(12)).unwrap();
    assert_eq!((delays.summary.n, delays.bound_ns), (20_000, Some(12)));
    let rfc8219 = delays.rfc8219.unwrap();
    assert_eq!(Some(rfc8219.typical_ns), delays.summary.p50);
    assert_eq!(Some(rfc8219.worst_case_ns), delays.summary.p99_9);
    let pdv_ns = rfc8219.worst_case_ns - delays.summary.min;
    assert_eq!(rfc8219.pdv_ns, pdv_ns);
    let Certified::Holds {
        n,
        bound_ns,
        blocks,
        ..
    } = delays.certificate
    else {
        panic!("there are enough of them");
    };
    assert_eq!((n, bound_ns, blocks), (20_000, 12, 20_000));
    let total = |counts: Vec<u64>| counts.into_iter().sum::<u64>();
    assert_eq!(
        total(delays.histogram.iter().map(|it| it.n).collect()),
        20_000
    );
    assert_eq!(total(delays.series.iter().map(|it| it.n).collect()), 20_000);
    let least = delays.series.iter().map(|it| it.min_ns).min();
    let greatest = delays.series.iter().map(|it| it.max_ns).max();
    let summary = &delays.summary;
    assert_eq!((least, greatest), (Some(summary.min), Some(summary.max)));
    assert!((1_000..=4_096).contains(&delays.first.len()));
}

#[test]
fn the_ten_slowest_are_named() {
    let mut recorder = DelayRecorder::new();
    let delays = [5, 9, 1, 9, 7, 3, 2, 8, 6, 4, 10, 0, 11];
    for (number, delay) in delays.into_iter().enumerate() {
        recorder.add(&packet(number as u64, delay));
    }
    let slowest = recorder.finish(Some(0)).unwrap().slowest;
    let found: Vec<_> = slowest.iter().map(|it| it.delay_ns).collect();
    assert_eq!(found, [11, 10, 9, 9, 8, 7, 6, 5, 4, 3]);
    // Of equal ones the first one.
    let expected = Slow {
        delay_ns: 9,
        entered_ns: 1_800_000_000_000_001_000,
        cpu_in: Some(0),
        cpu_out: Some(1),
        length: 192,
        key: "0000000000000001".into(),
        flow: None,
    };
    assert_eq!(slowest[2], expected);
}

#[test]
fn a_look_is_at_those_since_the_last_one() {
    let mut recorder = DelayRecorder::new();
    (0..5).for_each(|number| recorder.add(&packet(number, 10)));
    assert_eq!(
        recorder.take_latest().map(|it| (it.n, it.max_ns)),
        Some((5, 10))
    );
    assert_eq!(recorder.take_latest(), None);
    recorder.add(&packet(5, 30));
    assert_eq!(
        recorder.take_latest().map(|it| (it.n, it.mean_ns)),
        Some((1, 30.0))
    );
    assert_eq!(recorder.finish(Some(0)).unwrap().summary.n, 6);
}
