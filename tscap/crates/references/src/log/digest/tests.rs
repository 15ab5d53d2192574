use super::*;
use crate::log::Recorder;
use tscap_clock::scripted::Host;
use tscap_clock::{MonoNs, StampSource, Tracker};

const S: u64 = 1_000_000_000;
const DAY: u64 = 86_400 * S;
const EVERY: u64 = 10 * S;
const GAPS: [u64; 3] = [15, 35, 15];

/// The first entry of a log, of a counter whose cycles are ns.
fn first() -> Entry {
    let host = Host {
        hertz: S,
        slews: vec![],
    };
    let mut tracker = Tracker::new(StampSource::Tsc, &host.cross(0, GAPS)).unwrap();
    let mut recorder = Recorder::default();
    for turn in 1..=100 {
        let cross = host.cross(turn * S / 100, GAPS);
        let seen = tracker.observe(&cross);
        recorder.observe(&cross, seen, &tracker);
    }
    let tsc = host.cycles(S);
    recorder.entry(&mut tracker, tsc, None).unwrap()
}

/// The same `t` ns later, with 10 s of phases, each of which is the day.
fn later(first: &Entry, t: u64) -> Entry {
    let mut entry = first.clone();
    entry.status.tsc.0 += t;
    entry.status.real.0 += t;
    let day = t / DAY;
    // In the first ten days it is set each day, which begins a series.
    let step = day.min(10) * S;
    let every = S / 10;
    entry.phases = vec![Phases {
        from: TscCycles(t + step),
        every,
        ns: vec![Some(day.cast_signed()); (EVERY / every) as usize],
    }];
    entry.segments[0].after = Some(MonoNs(t));
    entry.segments[0].from = MonoNs(t + 1);
    entry
}

#[test]
fn thirty_days_take_the_memory_of_seven() {
    let first = first();
    let mut digest = Digest::default();
    for t in (0..30 * DAY).step_by(EVERY as usize) {
        digest.take(Line::Entry(Box::new(later(&first, t))));
        let last = digest.points.back().expect("it was taken").real.0;
        let since = last - digest.points[0].real.0;
        assert!(since < 7 * DAY, "{since}");
        assert!(since == 7 * DAY - EVERY || t < 7 * DAY, "{since}");
        let phases = digest
            .against_counter
            .series
            .iter()
            .map(|series| series.ns.len());
        assert_eq!(phases.clone().sum::<usize>(), digest.against_counter.phases);
        let days = digest.against_counter.phases as f64 * EVERY_S / 86_400.0;
        assert!(days <= 7.875 && (days >= 7.0 || t < 7 * DAY), "{days}");
        assert!(phases.count() <= 9 && digest.changes.len() <= MOST_SEGMENTS);
    }
    // The elder are gone, and their memory.
    assert!(
        digest
            .against_counter
            .series
            .iter()
            .flat_map(|series| &series.ns)
            .all(|day| *day >= 22.0)
    );
    let room = digest
        .against_counter
        .series
        .iter()
        .map(|series| series.ns.capacity());
    assert!(room.sum::<usize>() <= 2 * (MOST_PHASES + MOST_PHASES / 8));
    assert!(digest.points.capacity() <= 2 * MOST_POINTS);
    assert_eq!(digest.changes.len(), MOST_SEGMENTS);
}

#[test]
fn an_eighth_more_than_seven_days_of_phases_is_cut_to_seven() {
    let phases = |from: usize, length: usize| Phases {
        from: TscCycles(from as u64 * 3),
        every: 3,
        ns: (from..from + length)
            .map(|ns| Some(ns.cast_signed() as i64))
            .collect(),
    };
    let full = MOST_PHASES + MOST_PHASES / 8;
    let mut digest = Digest::default();
    digest.against_counter.take(&phases(0, full));
    assert_eq!(
        (
            digest.against_counter.phases,
            digest.against_counter.series.len()
        ),
        (full, 1)
    );
    digest.against_counter.take(&phases(full, 1));
    let [series] = digest.against_counter.series.make_contiguous() else {
        panic!("they follow on one another");
    };
    assert_eq!(
        (digest.against_counter.phases, series.ns.len()),
        (MOST_PHASES, MOST_PHASES)
    );
    assert_eq!(series.ns.last(), Some(&(full as f64)));
    assert_eq!(series.ns[0], (full + 1 - MOST_PHASES) as f64);
}

#[test]
fn a_second_process_adds_to_the_first_and_has_its_own_difference_clock() {
    let entry = |count: u64, t: u64| {
        let mut entry = later(&first(), t);
        let status = &mut entry.status;
        (status.wide, status.steps) = (2 * count, 3 * count);
        let readings = &mut status.readings;
        (readings.used, readings.torn, readings.implausible) = (count, 4 * count, 5 * count);
        status.absolute_less_difference_ns = 7;
        Line::Entry(Box::new(entry))
    };
    let header = || Line::Header(Header::new("boot-1"));
    let mut digest = Digest::default();
    // The counts are those of a process so far.
    for line in [header(), entry(1, 0), entry(10, EVERY), header()] {
        digest.take(line);
    }
    assert_eq!((digest.totals().used, digest.totals().steps), (10, 30));
    digest.take(entry(100, 2 * EVERY));
    let expected = Totals {
        used: 110,
        wide: 220,
        torn: 440,
        implausible: 550,
        steps: 330,
    };
    assert_eq!((digest.continued, digest.totals()), (1, expected));
    let points = digest.points.iter();
    let of = |point: &Point| (point.process, point.absolute_less_difference_ns);
    assert_eq!(
        points.clone().map(of).collect::<Vec<_>>(),
        [(0, 7), (0, 14), (1, 7)]
    );
    let elapsed: Vec<u64> = points.map(|point| point.elapsed_ns).collect();
    assert_eq!(elapsed, [0, EVERY, 2 * EVERY]);
}

#[test]
fn the_beginnings_of_segments_are_kept_once() {
    let mut digest = Digest::default();
    let mut entry = first();
    // The first segment of a process began because of nothing.
    let [begun] = entry.segments[..] else {
        panic!("one segment: {:?}", entry.segments);
    };
    let after = |ns| Segment {
        after: Some(MonoNs(ns)),
        from: MonoNs(ns + 1),
        tai_offset_s: 38,
        ..begun
    };
    for segments in [vec![begun], vec![begun, after(1)], vec![after(1), after(2)]] {
        entry.segments = segments;
        digest.take(Line::Entry(Box::new(entry.clone())));
    }
    assert_eq!(digest.changes, [after(1), after(2)]);
    assert_eq!(digest.tai_offset_s, 38);
}

/// A series goes on where the one before it ends, with bins of the same length.
#[test]
fn phases_of_both_kinds_are_put_together() {
    let mut entry = first();
    let phases = |from, every| Phases {
        from: TscCycles(from),
        every,
        ns: (0..60).map(|ns| Some(ns % 7)).collect(),
    };
    let all = [(0, 3), (180, 3), (360, 4), (600, 4), (900, 4)];
    entry.phases = all.map(|(from, every)| phases(from, every)).to_vec();
    let reference = ReferencePhases {
        device: "/dev/ptp0".into(),
        ahead_ns: 7,
        bound_ns: 50,
        phases: Vec::new(),
    };
    entry.reference = Some(ReferencePhases {
        phases: vec![phases(0, 3)],
        ..reference.clone()
    });
    let mut digest = Digest::default();
    assert_eq!(digest.against_counter(), digest.against_reference());
    digest.take(Line::Entry(Box::new(entry)));
    let series = digest.against_counter.series.iter();
    let lengths: Vec<_> = series.map(|series| series.ns.len()).collect();
    assert_eq!(lengths, [120, 120, 60]);
    assert_eq!(digest.reference, Some(reference));
    let series = digest.against_reference.series.iter();
    assert_eq!(series.map(|series| series.ns.len()).sum::<usize>(), 60);
    for allan in [digest.against_counter(), digest.against_reference()] {
        assert!(!allan.is_empty());
    }
}
