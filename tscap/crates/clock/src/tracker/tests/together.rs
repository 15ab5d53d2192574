//! Several events between readings that follow on one another, while stamps from before them
//! wait.

use super::*;

fn set(truth: Truth, ns: i64) -> Truth {
    Truth {
        mono_to_real: truth.mono_to_real + ns,
        ..truth
    }
}

/// The same with a counter that is so many ns behind.
fn behind(mut cross: CrossTimestamp, ns: u64) -> CrossTimestamp {
    cross.tsc = cross
        .tsc
        .map(|tsc| tsc.map(|TscCycles(at)| TscCycles(at - 3 * ns)));
    cross
}

fn is_ambiguous(tracker: &Tracker, source: StampSource, mono: u64) -> bool {
    let stamp = Truth::START.stamp(source, mono);
    tracker.conversion().is_ambiguous(stamp)
}

/// The clock is set by 3 s and the counter goes back by 4 ms, between two readings 10 ms apart.
#[test]
fn a_step_does_not_hide_a_counter_that_went_back() {
    let (before, after) = (Truth::START, set(Truth::START, 3 * NS_PER_S));
    let source = StampSource::Tsc;
    let mut tracker = followed(source, 0..500, |at| before.cross(at, [20; 4]));
    let cross = behind(after.cross(509 * MS, [20; 4]), 4 * MS);
    let seen = tracker.observe(&cross);
    let jump_ns = seen.counter_jump_ns().expect("it jumped");
    assert!(jump_ns.abs_diff(4 * MS as i64) < 1_000, "{seen:?}");
    assert_eq!(tracker.current().counter_jump_ns, Some(jump_ns));
    // The jump came last: the counter has shown what it will show again.
    let old = (499 * MS + 100_000..509 * MS).step_by(100_000);
    assert!(old.clone().all(|mono| is_ambiguous(&tracker, source, mono)));
    // They may wait for another reading, and no longer.
    for ms in 510..512 {
        tracker.observe(&behind(after.cross(ms * MS, [20; 4]), 4 * MS));
        assert!(
            old.clone().all(|mono| is_ambiguous(&tracker, source, mono)),
            "{ms}"
        );
    }
    tracker.observe(&behind(after.cross(512 * MS, [20; 4]), 4 * MS));
    assert!(!is_ambiguous(&tracker, source, 506 * MS), "it is of now");
    let conversion = tracker.convert();
    let off = conversion.to_real(RawStamp(3 * 507 * MS)).0;
    assert!(off.abs_diff(after.real(511 * MS)) <= tracker.host_bound_ns());
}

/// In turn: by 690 ms, and by a second.
#[test]
fn a_second_step_does_not_hide_the_first_one() {
    let once = set(Truth::START, 690_000_000);
    let twice = set(once, NS_PER_S);
    for source in [StampSource::Ktime, StampSource::Tsc] {
        let mut tracker = followed(source, 0..500, |at| {
            Truth::START.cross_of(source, at, [20; 4])
        });
        tracker.observe(&once.cross_of(source, 500 * MS, [20; 4]));
        tracker.observe(&twice.cross_of(source, 501 * MS, [20; 4]));
        let waiting = (499 * MS + 1_000..501 * MS).step_by(50_000);
        assert!(
            waiting
                .clone()
                .all(|mono| is_ambiguous(&tracker, source, mono))
        );
        tracker.observe(&twice.cross_of(source, 502 * MS, [20; 4]));
        assert!(!is_ambiguous(&tracker, source, 501 * MS + 500));
        assert!(!is_ambiguous(&tracker, source, 498 * MS));
    }
}

/// The clock is set before a reading, and again in it.
#[test]
fn stamps_before_a_torn_reading_are_ambiguous() {
    let once = set(Truth::START, NS_PER_S);
    for source in [StampSource::Ktime, StampSource::Tsc] {
        let mut tracker = followed(source, 0..500, |at| {
            Truth::START.cross_of(source, at, [20; 4])
        });
        let mut torn = once.cross_of(source, 500 * MS, [20; 4]);
        torn.real[1].0 += NS_PER_S.unsigned_abs();
        assert_eq!(tracker.observe(&torn), Observation::Torn);
        assert!(!tracker.is_resolved());
        assert!(is_ambiguous(&tracker, source, 499 * MS + 500_000));
        // It was set back: the next reading agrees with those before.
        let seen = tracker.observe(&Truth::START.cross_of(source, 501 * MS, [20; 4]));
        assert_eq!(seen, Observation::Agrees);
        assert!(tracker.is_resolved());
        for mono in [499 * MS + 500_000, 500 * MS + 500_000] {
            assert!(is_ambiguous(&tracker, source, mono), "{source:?} {mono}");
        }
        assert!(!is_ambiguous(&tracker, source, 501 * MS + 500));
    }
}

/// A reading, and whether the kernel says that the clock was set before it.
struct Told(CrossTimestamp, bool);

impl Reference for Told {
    fn read(&mut self) -> CrossTimestamp {
        self.0
    }

    fn was_set(&mut self) -> bool {
        std::mem::take(&mut self.1)
    }
}

#[test]
fn stamps_of_a_clock_that_was_set_and_set_back_between_two_readings_are_ambiguous() {
    for source in [StampSource::Ktime, StampSource::Tai, StampSource::Tsc] {
        let cross = |ms: u64| Truth::START.cross_of(source, ms * MS, [20; 4]);
        let mut tracker = followed(source, 0..500, |at| cross(at / MS));
        for ms in 500..510 {
            let read = tracker.read(&mut Told(cross(ms), ms == 503));
            assert_eq!(tracker.observe(&read), Observation::Agrees);
            let is_known = |mono: u64| !is_ambiguous(&tracker, source, mono);
            assert_eq!(is_known(502 * MS + 500_000), ms < 503, "{source:?} {ms}");
            // It may have been told of what happened while the reading before was taken.
            assert!(is_known(ms * MS + 500_000), "{source:?} {ms}");
            assert!(is_known(500 * MS + 500_000), "{source:?} {ms}");
        }
        assert_eq!(tracker.steps(), 0);
    }
}

/// TAI is set before a reading, and again before the next one. The kernel tells of both, and the
/// second time it may have been late: stamps between the two readings have values of their own.
#[test]
fn stamps_between_two_readings_before_which_tai_was_set_are_ambiguous() {
    let source = StampSource::Tai;
    let truth = |tai_offset_s| Truth {
        tai_offset_s,
        ..Truth::START
    };
    let mut tracker = followed(source, 0..500, |at| Truth::START.cross(at, [20; 4]));
    for (ms, tai_offset_s) in [(500, 48), (501, 32), (502, 32)] {
        let cross = truth(tai_offset_s).cross(ms * MS, [20; 4]);
        let read = tracker.read(&mut Told(cross, ms < 502));
        tracker.observe(&read);
        let between = truth(48).stamp(source, 500 * MS + 500_000);
        assert_eq!(tracker.conversion().is_ambiguous(between), ms > 500, "{ms}");
        let later = truth(32).stamp(source, 502 * MS + 500_000);
        assert!(!tracker.conversion().is_ambiguous(later), "{ms}");
    }
}

/// TAI goes back by 7 s: its stamps are new again as soon as no old one can wait.
#[test]
fn stamps_of_tai_that_was_set_back_are_ambiguous_only_while_old_ones_wait() {
    let source = StampSource::Tai;
    let after = Truth {
        tai_offset_s: 30,
        ..Truth::START
    };
    let mut tracker = followed(source, 0..500, |at| Truth::START.cross(at, [20; 4]));
    for ms in 500..8_000 {
        tracker.observe(&after.cross(ms * MS, [20; 4]));
        let conversion = tracker.convert();
        for mono in [498 * MS + 900_000, 499 * MS + 500_000] {
            let old = Truth::START.stamp(source, mono);
            let waits = ms <= 502;
            assert!(conversion.is_ambiguous(old) || !waits, "{ms}");
        }
        let new = after.stamp(source, ms * MS + 500_000);
        assert!(!conversion.is_ambiguous(new), "{ms}");
        assert_eq!(conversion.to_real(new).0, after.real(ms * MS + 500_000));
    }
}

/// The clock is set, and before the next reading the counter goes back by 9 of 10 ms: the two
/// readings since the step have a rate, but no clock is slewed to that.
#[test]
fn a_counter_that_goes_back_right_after_a_step_has_jumped() {
    let source = StampSource::Tsc;
    let after = set(Truth::START, -20);
    let mut tracker = Tracker::new(source, &Truth::START.cross(0, [20; 4])).unwrap();
    let exact = |truth: Truth, mut cross: CrossTimestamp| {
        cross.offset = Some(OffsetNs(truth.mono_to_real));
        cross
    };
    for ms in (10..500).step_by(10) {
        tracker.observe(&exact(Truth::START, Truth::START.cross(ms * MS, [20; 4])));
    }
    tracker.observe(&exact(after, after.cross(500 * MS, [20; 4])));
    let cross = behind(after.cross(510 * MS, [20; 4]), 9 * MS);
    let seen = tracker.observe(&exact(after, cross));
    assert!(
        matches!(seen, Observation::CounterJumped { .. }),
        "{seen:?}"
    );
    for ms in (520..600).step_by(10) {
        let cross = behind(after.cross(ms * MS, [20; 4]), 9 * MS);
        assert_eq!(tracker.observe(&exact(after, cross)), Observation::Agrees);
    }
    assert!(
        tracker.host_bound_ns() < 2_000,
        "{}",
        tracker.host_bound_ns()
    );
    let old = (501 * MS..510 * MS).step_by(100_000);
    assert!(old.clone().all(|mono| {
        let real = tracker.conversion().to_real(RawStamp(3 * mono)).0;
        is_ambiguous(&tracker, source, mono) || real.abs_diff(after.real(mono + 9 * MS)) < 1_000
    }));
}
