//! A raw counter beside a clock that was set.

use super::*;
use crate::scripted::EPOCH;

const S: u64 = 1_000 * MS;
/// The clock was set back by so much between these two, CLOCK_MONOTONIC.
const STEP_NS: u64 = 5 * S;
const UNTIL: u64 = 6 * S;
const FROM: u64 = 7 * S;

fn set_back(mut history: History) -> History {
    for sample in &mut history.samples {
        if sample.mono.0 > UNTIL {
            sample.real.0 -= STEP_NS;
            sample.real_after = sample.real_after.map(|real| RealNs(real.0 - STEP_NS));
        }
    }
    let mut before = history.segments[0];
    let step_ns = -STEP_NS.cast_signed();
    let offset = before.mono_to_real;
    let after = Segment {
        after: Some(MonoNs(UNTIL)),
        from: MonoNs(FROM),
        mono_to_real: Bounds {
            low: offset.low + step_ns,
            high: offset.high + step_ns,
        },
        step_ns,
        ..before
    };
    before.until = MonoNs(UNTIL);
    history.segments = vec![before, after];
    history
}

#[test]
fn each_side_of_a_step_back_has_its_own_readings() {
    let host = Host {
        hertz: 2_596_130_000,
        slews: vec![(0, 12_000)],
    };
    let (stamps, history, _) = capture(&host, 10 * MS, 12);
    let fit = Fit::new(&set_back(history));
    for (truth, stamp, _) in stamps {
        let mono = truth - EPOCH;
        let real = match mono {
            ..FROM => truth,
            FROM.. => truth - STEP_NS,
        };
        match fit.allowed(stamp) {
            Some([low, high]) => {
                assert!((low.0..=high.0).contains(&real), "{mono}");
                assert!(!(UNTIL + MS..FROM - MS).contains(&mono), "{mono}");
            }
            // Within the bounds of the offset, a stamp may be of the time between.
            None => assert!((UNTIL - MS..FROM + MS).contains(&mono), "{mono}"),
        }
    }
}

/// The offset of TAI changed between 100 and 200: the clock went on. At 300 to 400 it was set.
#[test]
fn only_a_step_leaves_a_hole_between_segments() {
    let segment = |after: Option<u64>, from, step_ns| Segment {
        after: after.map(MonoNs),
        from: MonoNs(from),
        until: MonoNs(from + 100),
        mono_to_real: Bounds {
            low: 990,
            high: 1_010,
        },
        tai_offset_s: 37,
        step_ns,
        cause: None,
        counter_jump_ns: None,
        samples: 9,
    };
    let fit = Fit::new(&History {
        segments: vec![
            segment(None, 0, 0),
            segment(Some(100), 200, 0),
            segment(Some(300), 400, 5),
        ],
        ..History::new(StampSource::Ktime)
    });
    for (stamp, is_reported) in [
        (100, true),
        (101, true),
        (300, true),
        (301, false),
        (399, false),
        (400, true),
    ] {
        assert_eq!(
            fit.allowed(RawStamp(stamp)).is_some(),
            is_reported,
            "{stamp}"
        );
    }
    // 400 of 500.
    let share = fit.coverage(RawStamp(0), RawStamp(500));
    assert!((0.79..0.81).contains(&share), "{share}");
}
