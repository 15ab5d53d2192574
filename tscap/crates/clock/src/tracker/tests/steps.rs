//! The clock is set, wholly or by its offset to TAI: which side stamps are of.

use super::*;

/// The clock is read early or late in a reading that lasts for milliseconds, and set
/// before or after that: stamps of that time may be of either side.
#[test]
fn stamps_are_ambiguous_wherever_in_a_reading_the_clock_was_set() {
    let before = Truth::START;
    let after = Truth {
        mono_to_real: before.mono_to_real + NS_PER_S,
        ..before
    };
    let (early, late) = ([20, 20, 20, 8 * MS], [8 * MS, 20, 20, 20]);
    for source in [StampSource::Ktime, StampSource::Tsc] {
        for (last, first) in [(early, [20; 4]), ([20; 4], late), (early, late)] {
            let mut tracker = followed(source, 0..100, |at| before.cross(at, [20; 4]));
            tracker.observe(&before.cross(100 * MS, last));
            tracker.observe(&after.cross(110 * MS, first));
            tracker.observe(&after.cross(120 * MS, [20; 4]));
            let conversion = tracker.conversion();
            // A wide reading is certain of nothing.
            let start = if last == early { 99 } else { 100 } * MS;
            let end = if first == late { 118 } else { 110 } * MS;
            for mono in (95 * MS..125 * MS).step_by(500_000) {
                let stamp = before.stamp(source, mono);
                let is_between = mono > start && mono <= end;
                assert_eq!(
                    conversion.is_ambiguous(stamp),
                    is_between,
                    "{source:?} {mono}"
                );
                let truth = if mono <= 100 * MS { before } else { after };
                let off = conversion.to_real(stamp).0.abs_diff(truth.real(mono));
                assert!(is_between || off <= tracker.host_bound_ns(), "{off} {mono}");
            }
        }
    }
}

/// By less than an interrupted reading lasts, so that it agrees with either side.
#[test]
fn a_small_step_does_not_hide_in_a_wide_reading() {
    let before = Truth::START;
    let after = Truth {
        mono_to_real: before.mono_to_real + 1_000_000,
        ..before
    };
    for source in [StampSource::Ktime, StampSource::Tsc] {
        let mut tracker = followed(source, 0..100, |at| before.cross(at, [20; 4]));
        let bounds = tracker.current().mono_to_real;
        // Of the bounds until now it allows the upper ones only.
        let wide = after.cross(110 * MS, [20, 20, 20, MS - 10]);
        assert_eq!(tracker.observe(&wide), Observation::Agrees);
        assert_eq!(tracker.current().mono_to_real, bounds);
        let seen = tracker.observe(&after.cross(120 * MS, [20; 4]));
        assert!(matches!(seen, Observation::Stepped { .. }), "{seen:?}");
        let is_ambiguous = |mono| {
            let stamp = before.stamp(source, mono);
            tracker.conversion().is_ambiguous(stamp)
        };
        let between = [105, 109, 111, 119].map(|ms| is_ambiguous(ms * MS));
        assert_eq!(between, [true; 4], "{source:?}");
        assert!(!is_ambiguous(98 * MS) && !is_ambiguous(121 * MS));
    }
}

/// Another offset to TAI right after a step: frames of before that are still to be
/// converted are of before the step.
#[test]
fn a_change_of_tai_does_not_hide_the_step_before_it() {
    let before = Truth {
        mono_to_real: 1_700_000_000_000_000_000,
        tai_offset_s: 0,
    };
    let set = Truth {
        mono_to_real: before.mono_to_real + NS_PER_S,
        ..before
    };
    let reported = Truth {
        tai_offset_s: 37,
        ..set
    };
    let source = StampSource::Ktime;
    let mut tracker = Tracker::new(source, &before.cross(0, [20; 4])).unwrap();
    tracker.observe(&before.cross(1_000_000, [20; 4]));
    tracker.observe(&set.cross(2_000_000, [20; 4]));
    tracker.observe(&reported.cross(2_200_000, [20; 4]));
    let conversion = tracker.conversion();
    let stamp = before.stamp(source, 1_900_000);
    assert!(conversion.is_ambiguous(stamp));
    let stamp = before.stamp(source, 900_000);
    let off = conversion.to_real(stamp).0.abs_diff(before.real(900_000));
    assert!(off <= tracker.host_bound_ns(), "{off}");
}

#[test]
fn a_leap_second_keeps_tai_stamps_apart() {
    let before = Truth::START;
    let after = Truth {
        mono_to_real: before.mono_to_real - NS_PER_S,
        tai_offset_s: 38,
    };
    let mut tracker = Tracker::new(StampSource::Tai, &before.cross(5_000, [20; 4])).unwrap();
    tracker.observe(&after.cross(1_000_000, [20; 4]));
    let conversion = tracker.conversion();
    let early = before.stamp(StampSource::Tai, 4_000);
    let late = after.stamp(StampSource::Tai, 2_000_000);
    assert_eq!(conversion.to_real(early).0, before.real(4_000));
    assert_eq!(conversion.to_real(late).0, after.real(2_000_000));
    assert_eq!(tracker.current().step_ns, -NS_PER_S);
}

/// As when a daemon tells the kernel of TAI at last.
#[test]
fn another_offset_to_tai_is_no_step() {
    let before = Truth {
        mono_to_real: 1_700_000_000_000_000_000,
        tai_offset_s: 0,
    };
    let after = Truth {
        tai_offset_s: 37,
        ..before
    };
    for source in [StampSource::Ktime, StampSource::Tsc] {
        let mut tracker = followed(source, 0..100, |at| before.cross(at, [20; 4]));
        for ms in 100..110u64 {
            let seen = tracker.observe(&after.cross(ms * 1_000_000, [20, 3, 4, 20]));
            assert_eq!(seen, Observation::Agrees);
            let stamp = after.stamp(source, 99_500_000);
            assert!(!tracker.conversion().is_ambiguous(stamp));
        }
        assert_eq!(tracker.steps(), 0);
        let counter = tracker.counter().map(|counter| counter.model().counts());
        assert_eq!(counter.map_or(0, |counts| counts.jumps), 0);
        // Whoever reads the file has to know.
        let offsets = tracker
            .segments()
            .iter()
            .map(|segment| segment.tai_offset_s);
        assert_eq!(offsets.collect::<Vec<_>>(), [0, 37]);
    }
}

/// The first reading after a step tells nothing of the counter.
#[test]
fn stamps_are_ambiguous_until_a_reading_after_a_step_is_of_use() {
    let before = Truth::START;
    let after = Truth {
        mono_to_real: before.mono_to_real + 5_000_000,
        ..before
    };
    let mut tracker = followed(StampSource::Tsc, 0..100, |at| before.cross(at, [20; 4]));
    let mut useless = after.cross(100_000_000, [20; 4]);
    useless.tsc = useless.tsc.map(|[first, last]| [last, first]);
    let is_ambiguous = |tracker: &Tracker, ns| {
        let conversion = tracker.conversion();
        conversion.is_ambiguous(before.stamp(StampSource::Tsc, ns))
    };
    for ms in [100, 101] {
        let seen = tracker.observe(&useless);
        assert_eq!(matches!(seen, Observation::Stepped { .. }), ms == 100);
        assert!(is_ambiguous(&tracker, 99_500_000));
        assert!(is_ambiguous(&tracker, 100_500_000));
    }
    tracker.observe(&after.cross(102_000_000, [20; 4]));
    for (ns, expected) in [(98_500_000, false), (99_500_000, true), (101_500_000, true)] {
        assert_eq!(is_ambiguous(&tracker, ns), expected, "{ns}");
    }
    assert!(!is_ambiguous(&tracker, 102_500_000));
}

#[test]
fn a_leap_second_moves_both_clocks_by_a_second_to_10_ms() {
    let near = 10 * MS.cast_signed();
    for (step_ns, tai_s, expected) in [
        (-NS_PER_S, 1, true),
        (NS_PER_S, -1, true),
        (near - 1 - NS_PER_S, 1, true),
        (near - NS_PER_S, 1, false),
        (NS_PER_S, 1, false),
        (-2 * NS_PER_S, 2, false),
        (0, 1, false),
        (0, 0, false),
    ] {
        assert_eq!(is_leap(step_ns, tai_s), expected, "{step_ns} {tai_s}");
    }
}

#[test]
fn the_error_of_the_stamps_of_a_counter_adds_to_its_bound() {
    let mut tracker = followed(StampSource::Tsc, 0..100, |at| {
        Truth::START.cross(at, [20; 4])
    });
    let bound_ns = tracker.host_bound_ns();
    tracker.set_stamp_error_ns(500);
    assert_eq!(tracker.host_bound_ns(), bound_ns + 500);
    assert_eq!(tracker.stamp_error_ns(), 500);
}
