//! What no reading shows at once: the bound covers it, or stamps are ambiguous.

use super::*;
use crate::scripted::{EPOCH, Host};

fn set(truth: Truth, ns: i64) -> Truth {
    Truth {
        mono_to_real: truth.mono_to_real + ns,
        ..truth
    }
}

/// How far off the stamps of the time between two readings are that are converted after
/// the second one, unless they are ambiguous; all are within the bound of then.
fn farthest(tracker: &mut Tracker, times: Range<u64>, real: impl Fn(u64) -> u64) -> u64 {
    let source = tracker.source();
    let conversion = tracker.convert();
    let step = (times.end - times.start) as usize / 50;
    let stamps = times.step_by(step).filter_map(|mono| {
        let stamp = Truth::START.stamp(source, mono);
        let off = conversion.to_real(stamp).0.abs_diff(real(mono));
        (!conversion.is_ambiguous(stamp)).then_some(off)
    });
    let farthest = stamps.max().unwrap_or(0);
    assert!(farthest <= tracker.host_bound_ns(), "{farthest}");
    farthest
}

proptest! {
    /// By less than the readings show, or more: brackets of 110 ns.
    #[test]
    fn a_set_clock_of_any_size_is_within_the_bound_or_ambiguous(
        source in prop_oneof![Just(StampSource::Ktime), Just(StampSource::Tsc)],
        step in -400i64..400,
        at in 0u64..10_000_000,
        early in prop::collection::vec(0u64..=100, 60),
        is_exact in any::<bool>(),
    ) {
        let (before, after) = (Truth::START, set(Truth::START, step));
        let then = 300 * MS + at;
        let real = |mono| if mono < then { before.real(mono) } else { after.real(mono) };
        let read = |ms: u64| {
            let truth = if ms * MS < then { before } else { after };
            let early = early[(ms / 10) as usize % 60];
            let mut cross = truth.cross_of(source, ms * MS, [5 + early, 0, 0, 105 - early]);
            cross.offset = is_exact.then_some(OffsetNs(truth.mono_to_real));
            cross
        };
        let mut tracker = Tracker::new(source, &read(0)).unwrap();
        let (mut most, mut steps) = (0, 0);
        for ms in (10..600).step_by(10) {
            let seen = tracker.observe(&read(ms));
            steps += u32::from(matches!(seen, Observation::Stepped { .. }));
            if tracker.is_settled() {
                let off = farthest(&mut tracker, (ms - 10) * MS + 200..ms * MS, real);
                most = most.max(off);
            }
        }
        prop_assert!(most <= tracker.host_bound_ns());
        if is_exact {
            prop_assert_eq!(steps, u32::from(step != 0));
            prop_assert!(source == StampSource::Tsc || tracker.host_bound_ns() == 1);
        }
    }
}

/// By 847 ns, while every reading was interrupted for a microsecond.
#[test]
fn a_step_that_hides_in_a_wide_reading_is_within_the_bound() {
    let source = StampSource::Tsc;
    let (before, after) = (Truth::START, set(Truth::START, -847));
    let mut tracker = followed(source, 0..100, |at| before.cross(at, [20; 4]));
    let bound = tracker.host_bound_ns();
    let wide = after.cross(100 * MS, [1_000, 20, 20, 20]);
    assert_eq!(tracker.observe(&wide), Observation::Agrees);
    let real = |mono| {
        if mono < 95 * MS {
            before.real(mono)
        } else {
            after.real(mono)
        }
    };
    let off = farthest(&mut tracker, 99 * MS + 80..100 * MS, real);
    assert!(off > bound, "{off} {bound}");
    assert_eq!(tracker.bound_raised(), 1);
    // Proof that nobody set the clock keeps the bound as it was.
    let mut tracker = followed(source, 0..100, |at| before.cross(at, [20; 4]));
    let wide = CrossTimestamp {
        offset: Some(OffsetNs(before.mono_to_real)),
        ..before.cross(100 * MS, [1_000, 20, 20, 20])
    };
    tracker.observe(&wide);
    tracker.observe(&before.cross(101 * MS, [20; 4]));
    assert!(tracker.host_bound_ns() < bound + 10);
    assert_eq!(tracker.bound_raised(), 0);
}

/// The proof that nobody set the clock does not tell whether it bent. The bound that is stated
/// meanwhile has that in it, and falls back where it did not.
#[test]
fn a_bend_while_readings_are_wide_is_within_the_bound_of_then() {
    for ppm in [0, 400] {
        let host = Host {
            hertz: 3_000_000_000,
            slews: vec![(0, 0), (991 * MS, 1_000 * ppm)],
        };
        let exact = |ms: u64, gaps| CrossTimestamp {
            offset: Some(OffsetNs(EPOCH.cast_signed())),
            ..host.cross(ms * MS, gaps)
        };
        let narrow = |ms| exact(ms, [20; 3]);
        let mut tracker = Tracker::new(StampSource::Tsc, &narrow(0)).unwrap();
        for ms in (10..=990).step_by(10) {
            tracker.observe(&narrow(ms));
        }
        let before = tracker.host_bound_ns();
        let off = |tracker: &mut Tracker, ms: u64| {
            let real = tracker.convert().to_real(RawStamp(host.cycles(ms * MS).0));
            real.0.abs_diff(host.real(ms * MS))
        };
        // The second ends with the second one.
        for ms in [999, 1_004] {
            let wide = exact(ms, [15_000, 20, 15_000]);
            assert_eq!(tracker.observe(&wide), Observation::Agrees);
            let (off, bound) = (off(&mut tracker, ms), tracker.host_bound_ns());
            assert!(off <= bound, "{off} {bound} at {ms} ms");
            assert!(ppm == 0 || off > 2_000 + before, "{off}");
        }
        assert!(tracker.wants_last_look(&mut 0) && !tracker.wants_last_look(&mut { LAST_LOOKS }));
        let samples = tracker.take_samples();
        let ended = samples.iter().filter_map(|sample| sample.live_bound_ns);
        assert!(ended.max() > Some(9_000), "{samples:?}");
        tracker.observe(&narrow(1_010));
        assert!(!tracker.wants_last_look(&mut 0));
        let after = tracker.host_bound_ns();
        match ppm {
            0 => assert!(after < before + 10, "{after} {before}"),
            _ => assert!(after > 7_000, "{after}"),
        }
        assert_eq!(tracker.bound_raised(), 0);
    }
}

/// The proof that nobody set the clock does not tell when the counter did.
#[test]
fn a_jump_that_hid_in_a_wide_reading_is_within_the_bound() {
    let truth = Truth::START;
    let mut tracker = followed(StampSource::Tsc, 0..100, |at| truth.cross(at, [20; 4]));
    let jumped = |mut cross: CrossTimestamp, ns: u64| {
        cross.offset = Some(OffsetNs(truth.mono_to_real));
        let tsc = cross.tsc.as_mut().expect("it was read");
        *tsc = tsc.map(|TscCycles(at)| TscCycles(at + 3 * ns));
        cross
    };
    // Forward by 847 ns, and by 30 ms after it.
    let wide = jumped(truth.cross(100 * MS, [1_000, 20, 20, 20]), 847);
    assert_eq!(tracker.observe(&wide), Observation::Agrees);
    let seen = tracker.observe(&jumped(truth.cross(101 * MS, [20; 4]), 30 * MS));
    assert!(
        matches!(seen, Observation::CounterJumped { .. }),
        "{seen:?}"
    );
    let bound = tracker.host_bound_ns();
    assert!(bound > 847, "{bound}");
    assert_eq!(tracker.bound_raised(), 1);
}

/// By 7.9 ms between two readings 10 ms apart: the counter seems to have gone on by
/// 2.1 ms.
#[test]
fn stamps_of_before_a_counter_that_jumps_back_by_less_than_a_drain_are_ambiguous() {
    let truth = Truth::START;
    let back = |mut cross: CrossTimestamp| {
        let tsc = cross.tsc.as_mut().expect("it was read");
        *tsc = tsc.map(|TscCycles(at)| TscCycles(at - 3 * 7_900_000));
        cross
    };
    let read = |ms: u64| truth.cross(ms * MS, [20; 4]);
    let mut tracker = Tracker::new(StampSource::Tsc, &read(0)).unwrap();
    for ms in (10..500).step_by(10) {
        tracker.observe(&read(ms));
    }
    let seen = tracker.observe(&back(read(500)));
    assert!(
        matches!(seen, Observation::CounterJumped { .. }),
        "{seen:?}"
    );
    for next in [None, Some(510)] {
        if let Some(ms) = next {
            tracker.observe(&back(read(ms)));
        }
        let conversion = tracker.convert();
        let is_ambiguous = |ns: u64| conversion.is_ambiguous(RawStamp(3 * ns));
        // From before the jump, which was just before the reading.
        let old = (490 * MS + 100..500 * MS).step_by(100_000);
        assert!(old.clone().all(is_ambiguous), "{next:?}");
        assert!(!is_ambiguous(482 * MS));
        // Once it has come as far again its stamps are its own.
        assert!(!is_ambiguous(500 * MS + 10_000));
    }
}

/// By 12 ms between readings 10 ms apart: at the next one the counter is beyond the latest
/// reading before the jump, and stamps from after that one may still wait.
#[test]
fn stamps_of_before_a_counter_that_jumps_back_by_more_than_a_drain_stay_ambiguous() {
    let truth = Truth::START;
    let back = |mut cross: CrossTimestamp| {
        let tsc = cross.tsc.as_mut().expect("it was read");
        *tsc = tsc.map(|TscCycles(at)| TscCycles(at - 3 * 12_000_000));
        cross
    };
    let mut tracker = followed(StampSource::Tsc, 0..500, |at| truth.cross(at, [20; 4]));
    for ms in [509, 519] {
        tracker.observe(&back(truth.cross(ms * MS, [20; 4])));
        let conversion = tracker.convert();
        let mut old = (499 * MS + 1_000..509 * MS).step_by(100_000);
        assert!(
            old.all(|ns| conversion.is_ambiguous(RawStamp(3 * ns))),
            "{ms}"
        );
    }
    let conversion = tracker.convert();
    assert!(!conversion.is_ambiguous(RawStamp(3 * 498 * MS)));
    assert!(!conversion.is_ambiguous(RawStamp(3 * 510 * MS)));
}

/// A stall of 90 ms, in which the rate changed twice; another after the clock ran straight.
#[test]
fn stamps_of_a_stall_that_may_hide_several_bends_are_ambiguous() {
    let slews = vec![
        (0, 0),
        (500 * MS, 50_000),
        (620 * MS, -50_000),
        (660 * MS, 0),
    ];
    let host = Host {
        hertz: 3_000_000_000,
        slews,
    };
    let cross = |at: u64| host.cross(at, [20, 40, 20]);
    let mut tracker = followed(StampSource::Tsc, 0..600, cross);
    let mut is_ambiguous = |ms: u64, stamp: u64| {
        tracker.observe(&cross(ms * MS));
        let stamp = RawStamp(host.cycles(stamp * MS).0);
        tracker.convert().is_ambiguous(stamp)
    };
    assert!(is_ambiguous(690, 640));
    assert!(is_ambiguous(700, 640));
    assert!((710..=900).step_by(10).all(|ms| !is_ambiguous(ms, ms - 5)));
    assert!(!is_ambiguous(990, 950));
}

/// TAI goes back by a second: its stamps of that second come twice.
#[test]
fn stamps_of_a_second_that_tai_repeats_are_ambiguous() {
    let (before, after) = (
        Truth::START,
        Truth {
            tai_offset_s: 36,
            ..Truth::START
        },
    );
    let source = StampSource::Tai;
    let mut tracker = followed(source, 0..100, |at| before.cross(at, [20; 4]));
    let seen = tracker.observe(&after.cross(100 * MS, [20; 4]));
    let cause = StepCause::Tai;
    let counter_jump_ns = None;
    assert_eq!(
        seen,
        Observation::Stepped {
            step_ns: 0,
            cause,
            counter_jump_ns
        }
    );
    let conversion = tracker.convert();
    for mono in (99 * MS + 1_000..100 * MS).step_by(50_000) {
        for truth in [before, after] {
            assert!(conversion.is_ambiguous(truth.stamp(source, mono)), "{mono}");
        }
    }
    let later = after.stamp(source, 1_101 * MS);
    assert!(!conversion.is_ambiguous(later));
    assert_eq!(conversion.to_real(later).0, after.real(1_101 * MS));
}
