use std::ops::Range;

use proptest::prelude::*;

use super::observing::is_leap;
use super::*;
use crate::{BootNs, NsPerCycle, OffsetNs, RealNs, TaiNs};
use tscap_time::NS_PER_S;

mod hidden;
mod steps;
mod survived;
mod together;

const MS: u64 = 1_000_000;

/// A host whose clocks are known exactly: what the tracker must find out.
#[derive(Clone, Copy, Debug)]
struct Truth {
    mono_to_real: i64,
    tai_offset_s: i64,
}

impl Truth {
    const START: Self = Self {
        mono_to_real: 1_700_000_000_000_000_000,
        tai_offset_s: 37,
    };

    fn real(self, mono: u64) -> u64 {
        mono.wrapping_add_signed(self.mono_to_real)
    }

    fn tai(self, mono: u64) -> u64 {
        self.real(mono)
            .wrapping_add_signed(self.tai_offset_s * NS_PER_S)
    }

    fn stamp(self, source: StampSource, mono: u64) -> RawStamp {
        RawStamp(match source {
            StampSource::Ktime => mono,
            StampSource::Tai => self.tai(mono),
            StampSource::Tsc => 3 * mono,
        })
    }

    /// Five reads, `gaps` ns apart.
    fn cross(self, at: u64, gaps: [u64; 4]) -> CrossTimestamp {
        let mut times = [at; 5];
        for i in 0..4 {
            times[i + 1] = times[i] + gaps[i];
        }
        CrossTimestamp {
            mono: [MonoNs(times[0]), MonoNs(times[4])],
            tsc: Some([TscCycles(3 * times[0]), TscCycles(3 * times[4])]),
            real: [RealNs(self.real(times[1])), RealNs(self.real(times[3]))],
            tai: TaiNs(self.tai(times[2])),
            boot: None,
            offset: None,
        }
    }

    /// As stamps of a source need it: others than the counter's are converted by the
    /// offset alone.
    fn cross_of(self, source: StampSource, at: u64, gaps: [u64; 4]) -> CrossTimestamp {
        let cross = self.cross(at, gaps);
        CrossTimestamp {
            tsc: cross.tsc.filter(|_| source == StampSource::Tsc),
            ..cross
        }
    }
}

/// One that has followed a host, read each ms.
fn followed(
    source: StampSource,
    mut ms: Range<u64>,
    cross: impl Fn(u64) -> CrossTimestamp,
) -> Tracker {
    let first = cross(ms.next().expect("some") * MS);
    let mut tracker = Tracker::new(source, &first).expect("not torn");
    for ms in ms {
        assert_eq!(tracker.observe(&cross(ms * MS)), Observation::Agrees);
    }
    tracker
}

fn gaps() -> impl Strategy<Value = [u64; 4]> {
    prop_oneof![
        9 => prop::array::uniform4(15u64..60),
        1 => prop::array::uniform4(15u64..2_000_000),
    ]
}

fn source() -> impl Strategy<Value = StampSource> {
    prop_oneof![
        Just(StampSource::Ktime),
        Just(StampSource::Tai),
        Just(StampSource::Tsc)
    ]
}

fn truth() -> impl Strategy<Value = Truth> {
    (0i64..4_000_000_000_000_000_000, 0i64..40).prop_map(|(mono_to_real, tai_offset_s)| Truth {
        mono_to_real,
        tai_offset_s,
    })
}

proptest! {
    #[test]
    fn every_stamp_lies_within_the_bound(
        truth in truth(),
        source in source(),
        reads in prop::collection::vec((1u64..5_000_000, gaps()), 1..40),
        stamps in prop::collection::vec(0.0..1.0, 1..20),
    ) {
        let mut at = 1_000_000;
        let mut tracker = Tracker::new(source, &truth.cross_of(source, at, [20; 4])).unwrap();
        let mut before = at;
        let mut written = Vec::new();
        for (after, gaps) in reads {
            before = at;
            at += after + 10_000_000;
            let seen = tracker.observe(&truth.cross_of(source, at, gaps));
            prop_assert_eq!(seen, Observation::Agrees);
            if tracker.is_settled() {
                let real = tracker.convert().to_real(truth.stamp(source, at));
                written.push(real.0.abs_diff(truth.real(at)));
            }
        }
        // A counter read only between interruptions has no rate yet.
        prop_assume!(tracker.is_settled());
        let conversion = tracker.conversion();
        for part in stamps {
            let mono = before + ((at - before) as f64 * part) as u64;
            let real = conversion.to_real(truth.stamp(source, mono));
            prop_assert!(real.0.abs_diff(truth.real(mono)) <= tracker.host_bound_ns());
        }
        // What was converted when less was known.
        for off in written {
            prop_assert!(off <= tracker.host_bound_ns(), "{off}");
        }
        prop_assert_eq!(tracker.segments().len(), 1);
    }

    #[test]
    fn a_step_is_found_and_both_sides_convert(
        before in truth(),
        source in source(),
        step in prop_oneof![-2_000_000_000i64..-1_000, 1_000i64..2_000_000_000],
        window in 1_000u64..10_000_000,
    ) {
        let after = Truth { mono_to_real: before.mono_to_real + step, ..before };
        let mut tracker = Tracker::new(source, &before.cross_of(source, 900_000_000, [20; 4])).unwrap();
        for i in 1..50 {
            tracker.observe(&before.cross_of(source, 1_000_000_000 + i * 100_000, [20, 25, 22, 30]));
        }
        let last = 1_000_000_000 + 49 * 100_000;
        let first = last + window;
        let seen = tracker.observe(&after.cross_of(source, first - 80, [20; 4]));
        let Observation::Stepped { step_ns, .. } = seen else {
            return Err(TestCaseError::fail("the step was missed"));
        };
        prop_assert!(step_ns.abs_diff(step) < 100);
        for i in 1..10 {
            let seen = tracker.observe(&after.cross_of(source, first + i * 100_000, [20, 25, 22, 30]));
            prop_assert_eq!(seen, Observation::Agrees);
        }

        let conversion = tracker.conversion();
        let bound = tracker.host_bound_ns();
        for mono in [last - 500_000, last - 1] {
            let stamp = before.stamp(source, mono);
            prop_assert!(conversion.to_real(stamp).0.abs_diff(before.real(mono)) <= bound);
            prop_assert!(!conversion.is_ambiguous(stamp));
        }
        for mono in [first, first + 850_000] {
            let stamp = after.stamp(source, mono);
            prop_assert!(conversion.to_real(stamp).0.abs_diff(after.real(mono)) <= bound);
            prop_assert!(!conversion.is_ambiguous(stamp));
        }
        let between = conversion.is_ambiguous(before.stamp(source, last + window / 2));
        prop_assert_eq!(between, source != StampSource::Tai);
    }
}

/// A stamp was converted, and the offset is known closer only then.
#[test]
fn the_bound_holds_for_what_was_converted_before() {
    let truth = Truth::START;
    let source = StampSource::Ktime;
    let read = |at, gaps| truth.cross_of(source, at, gaps);
    let mut tracker = Tracker::new(source, &read(0, [400, 20, 20, 20])).unwrap();
    let early = tracker.convert();
    tracker.observe(&read(MS, [20, 20, 20, 400]));
    tracker.convert();
    let off = early.to_real(RawStamp(500)).0.abs_diff(truth.real(500));
    let closer = tracker.current().mono_to_real.half_width();
    assert!(off > closer, "{off} {closer}");
    assert!((off..=500).contains(&tracker.host_bound_ns()));
    // For the next segment it is told too.
    let set = Truth {
        mono_to_real: truth.mono_to_real + NS_PER_S,
        ..truth
    };
    tracker.observe(&set.cross_of(source, 2 * MS, [20; 4]));
    tracker.convert();
    assert!(tracker.host_bound_ns() >= off);
    // Of what converts nothing only the latest readings count.
    let mut idle = Tracker::new(source, &read(0, [400, 20, 20, 20])).unwrap();
    let mut used = idle.clone();
    used.convert();
    for ms in 1..5 {
        for tracker in [&mut idle, &mut used] {
            tracker.observe(&read(ms * MS, [20; 4]));
        }
    }
    assert!(idle.host_bound_ns() <= 60 && used.host_bound_ns() >= off);
}

#[test]
fn the_bound_of_a_counter_has_the_stamps_own_error_and_the_rounding() {
    let cross = |at| Truth::START.cross_of(StampSource::Tsc, at, [20; 4]);
    let mut tracker = followed(StampSource::Tsc, 1..200, cross);
    let of_clock = tracker.counter().expect("settled").bound_ns();
    for error in [0, 55] {
        tracker.set_stamp_error_ns(error);
        assert_eq!(tracker.host_bound_ns(), of_clock + error + 1);
    }
}

/// It would narrow the segment that begins by an offset that may be of before a small
/// step.
#[test]
fn a_wide_reading_begins_no_segment_for_another_tai() {
    let truth = Truth::START;
    let reported = Truth {
        tai_offset_s: 38,
        ..truth
    };
    let mut tracker = followed(StampSource::Ktime, 0..100, |at| truth.cross(at, [20; 4]));
    let bounds = tracker.current().mono_to_real;
    tracker.observe(&reported.cross(100 * MS, [20, 20, 20, MS]));
    assert_eq!(tracker.segments().len(), 1);
    tracker.observe(&reported.cross(101 * MS, [20; 4]));
    let [_, segment] = tracker.segments() else {
        panic!("{:?}", tracker.segments());
    };
    assert_eq!(segment.tai_offset_s, 38);
    assert_eq!(segment.mono_to_real, bounds);
    assert_eq!(segment.from, MonoNs(101 * MS + 80));
}

#[test]
fn a_torn_reading_changes_nothing() {
    let truth = Truth {
        mono_to_real: 1_000_000,
        tai_offset_s: 0,
    };
    let mut tracker = Tracker::new(StampSource::Ktime, &truth.cross(1_000, [20; 4])).unwrap();
    let mut torn = truth.cross(2_000, [20; 4]);
    torn.real[1].0 += 5_000;
    assert_eq!(tracker.observe(&torn), Observation::Torn);
    assert_eq!((tracker.segments().len(), tracker.torn()), (1, 1));
}

#[test]
fn samples_for_the_file_are_one_a_second_and_the_narrowest() {
    let truth = Truth {
        mono_to_real: 7,
        tai_offset_s: 0,
    };
    let mut tracker = Tracker::new(StampSource::Ktime, &truth.cross(0, [50; 4])).unwrap();
    for i in 1..3_500u64 {
        let gap = if i % 1000 == 500 { 10 } else { 50 };
        tracker.observe(&truth.cross(i * 1_000_000, [gap; 4]));
    }
    let samples = tracker.take_samples();
    assert_eq!(samples.len(), 4);
    assert!(samples[..3].iter().all(|sample| sample.width_ns == 40));
    assert!(tracker.take_samples().is_empty());
}

/// As when a virtual machine moves: the clock goes on, the counter does not.
#[test]
fn a_counter_that_jumps_begins_a_segment() {
    let truth = Truth::START;
    let mut tracker = followed(StampSource::Tsc, 0..2_000, |at| truth.cross(at, [20; 4]));
    tracker.take_samples();
    let moved = |ms: u64| {
        let mut cross = truth.cross(ms * 1_000_000, [20; 4]);
        cross.tsc = cross
            .tsc
            .map(|tsc| tsc.map(|tsc| TscCycles(tsc.0 + 30_000_000_000)));
        cross
    };
    let seen = tracker.observe(&moved(2_000));
    let Observation::CounterJumped { jump_ns } = seen else {
        panic!("{seen:?}");
    };
    assert!((jump_ns + 10_000_000_000).abs() < 1_000, "{jump_ns}");
    assert_eq!(tracker.observe(&moved(2_001)), Observation::Agrees);
    let [before, after] = tracker.segments() else {
        panic!("{:?}", tracker.segments());
    };
    assert!(before.until < after.from && after.after == Some(before.until));
    assert_eq!((after.step_ns, after.counter_jump_ns), (0, Some(jump_ns)));
    assert_eq!(tracker.steps(), 0);
    // The file has what is on either side.
    let kept = tracker.take_samples();
    let tsc = kept.iter().filter_map(|sample| sample.tsc);
    let (old, new): (Vec<_>, Vec<_>) = tsc.partition(|tsc| tsc[0].0 < 30_000_000_000);
    assert!(!old.is_empty() && !new.is_empty());
}

/// As when a machine slept and its counter begins at zero again.
#[test]
fn stamps_around_a_counter_that_goes_back_are_told_apart() {
    let truth = Truth::START;
    const START: u64 = 100_000;
    let read = |at| truth.cross(at, [20; 4]);
    let mut tracker = followed(StampSource::Tsc, START..START + 1_000, read);
    // Since the restart.
    let restarted = (START + 1_000) * 1_000_000;
    let back = 3 * (restarted - 5_000_000);
    let stamp = |ns: u64| RawStamp(3 * ns - back);
    let moved = |ns: u64| {
        let mut cross = truth.cross(ns, [20; 4]);
        cross.tsc = cross.tsc.map(|tsc| tsc.map(|tsc| TscCycles(tsc.0 - back)));
        cross
    };
    let seen = tracker.observe(&moved(restarted));
    assert!(
        matches!(seen, Observation::CounterJumped { .. }),
        "{seen:?}"
    );
    let conversion = tracker.conversion();
    let off = |stamp: RawStamp, ns: u64| conversion.to_real(stamp).0.abs_diff(truth.real(ns));
    for (ago, is_ambiguous) in [(5_000_000, false), (1_500_000, false), (900_000, true)] {
        let ns = restarted - ago;
        let old = truth.stamp(StampSource::Tsc, ns);
        assert!(off(old, ns) <= tracker.host_bound_ns(), "{ago}");
        assert_eq!(conversion.is_ambiguous(old), is_ambiguous, "{ago}");
    }
    assert!(conversion.is_ambiguous(stamp(restarted - 1_000_000)));
    assert!(!conversion.is_ambiguous(stamp(restarted + 1_000)));
    assert!(off(stamp(restarted + 1_000), restarted + 1_000) <= tracker.host_bound_ns());
    // When it has come as far again, its stamps are as any others.
    for ms in 1..102_000u64 {
        tracker.observe(&moved(restarted + ms * 1_000_000));
    }
    let conversion = tracker.conversion();
    let ns = restarted + 101_999_000_000 + 500_000;
    assert!(!conversion.is_ambiguous(stamp(ns)));
    let off = conversion.to_real(stamp(ns)).0.abs_diff(truth.real(ns));
    assert!(off <= tracker.host_bound_ns(), "{off}");
}

#[test]
fn the_usual_width_is_learnt() {
    let truth = Truth::START;
    let first = truth.cross(0, [MS; 4]);
    let mut tracker = Tracker::new(StampSource::Tsc, &first).unwrap();
    assert!(!tracker.usual.is_exceeded_by(MS));
    for ms in 10..20 {
        tracker.observe(&truth.cross(ms * MS, [20; 4]));
    }
    assert!(tracker.usual.is_exceeded_by(1_000));
}

/// The first reading was interrupted: the clock does not wait until it is narrow enough for
/// a rate.
#[test]
fn a_wide_first_reading_is_replaced() {
    let truth = Truth::START;
    let first = truth.cross(0, [20, 20, 20, 2 * MS]);
    let mut tracker = Tracker::new(StampSource::Tsc, &first).unwrap();
    for ms in 5..40 {
        tracker.observe(&truth.cross(ms * MS, [20; 4]));
    }
    assert!(tracker.is_settled());
    assert!(
        tracker.host_bound_ns() < 1_000,
        "{}",
        tracker.host_bound_ns()
    );
}

/// The first rate is not of readings on both sides of a step.
#[test]
fn a_step_before_the_first_rate_is_not_in_it() {
    let before = Truth::START;
    let after = Truth {
        mono_to_real: before.mono_to_real + 50_000,
        ..before
    };
    let mut tracker = Tracker::new(StampSource::Tsc, &before.cross(0, [20; 4])).unwrap();
    for ms in 9..60 {
        tracker.observe(&after.cross(ms * MS, [20; 4]));
        if let Some(counter) = tracker.counter() {
            let off_ppb = counter.rate().ppb_from(NsPerCycle::of(1, 3).unwrap());
            assert!(off_ppb.abs() < 20_000, "{off_ppb}");
        }
    }
    assert!(tracker.is_settled());
}

#[test]
fn samples_have_the_live_bound_and_both_sides_of_a_step() {
    let before = Truth::START;
    let after = Truth {
        mono_to_real: before.mono_to_real + NS_PER_S,
        ..before
    };
    let mut tracker = followed(StampSource::Tsc, 0..2_500, |at| before.cross(at, [20; 4]));
    let samples = tracker.take_samples();
    assert!(samples.len() >= 2 && samples.iter().all(|it| it.live_bound_ns.is_some()));
    tracker.observe(&before.cross(2_600 * MS, [20; 4]));
    tracker.observe(&after.cross(2_601 * MS, [20; 4]));
    let samples = tracker.take_samples();
    let sides = [2_600, 2_601].map(|ms| {
        let is_of = |it: &&Sample| it.mono.0.abs_diff(ms * MS) < 1_000;
        samples.iter().filter(is_of).count()
    });
    assert!(sides.iter().all(|it| *it >= 1), "{samples:?}");
}
