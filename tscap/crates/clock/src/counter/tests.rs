use proptest::prelude::*;

use super::*;
use crate::scripted::Host;

mod few;

const USED: CounterOutcome = CounterOutcome::Used { unknown: None };

fn clock_of(host: &Host) -> CounterClock {
    let gaps = [20, 40, 20];
    CounterClock::new(&host.bracket(0, gaps), &host.bracket(100_000_000, gaps)).unwrap()
}

fn gaps() -> impl Strategy<Value = [u64; 3]> {
    prop_oneof![
        19 => [15u64..30, 30u64..60, 15u64..30],
        1 => [15u64..5_000, 30u64..2_000_000, 15u64..5_000],
    ]
}

proptest! {
    /// Whatever the counter's rate and the gaps between reads: a stamp between
    /// two cross-timestamps is off by no more than the bound.
    #[test]
    fn stamps_lie_within_the_bound(
        hertz in 500_000_000u64..5_000_000_000,
        ppm in -400i64..400,
        reads in prop::collection::vec((100_000u64..10_000_000, gaps(), 0.0..1.0), 1..200),
    ) {
        let host = Host { hertz, slews: vec![(0, 1000 * ppm)] };
        let mut clock = clock_of(&host);
        let mut t = 100_001_000;
        for (gap, gaps, part) in reads {
            let stamp = t + (gap as f64 * part) as u64;
            t += gap;
            let bracket = host.bracket(t, gaps);
            clock.observe(&bracket);
            let at = clock.conversion().to_real(host.cycles(stamp));
            let error = at.0.abs_diff(host.real(stamp));
            prop_assert!(error <= clock.bound_ns() + 1, "{error} > {}", clock.bound_ns());
        }
    }

    /// Where a line ends: the distance from it, and from where the next one begins, to the
    /// farther end of the reading.
    #[test]
    fn the_bound_has_what_each_reading_shows(
        slews in prop::collection::vec((1u64..50_000_000, -500i64..500), 1..4),
        reads in prop::collection::vec((200_000u64..10_000_000, 10u64..70), 1..20),
    ) {
        let mut from = 100_000_000;
        let slews = slews.into_iter().map(|(after, ppm)| { from += after; (from, 1000 * ppm) }).collect();
        let host = Host { hertz: 2_596_130_000, slews };
        let mut clock = clock_of(&host);
        let mut t = 100_001_000;
        for (gap, width) in reads {
            t += gap;
            let bracket = host.bracket(t, [20, width, 20]);
            let reading = Reading::new(&bracket, clock.model.rate()).unwrap();
            let line = clock.latest().real_at(reading.at).0;
            if clock.observe(&bracket) == USED {
                let value = clock.latest().real.0;
                let shown = reading.farther_ns(line).max(reading.farther_ns(value));
                prop_assert!(clock.bound_ns() >= shown, "{} < {shown}", clock.bound_ns());
                prop_assert!(clock.bound_ns() >= line.abs_diff(value));
            }
        }
    }

    /// Wherever in a reading the clocks were read.
    #[test]
    fn the_bound_reaches_the_farther_end_of_each_reading(
        reads in prop::collection::vec((0u64..40, 1u64..20, 0u64..40), 1..30),
    ) {
        let host = Host { hertz: 3_000_000_000, slews: vec![] };
        let gaps = [10, 10, 10];
        let first = [host.bracket(0, gaps), host.bracket(100_000_000, gaps)];
        let mut clock = CounterClock::new(&first[0], &first[1]).unwrap();
        for (turn, (before, width, after)) in (1..).zip(reads) {
            let bracket = host.bracket(100_000_000 + turn * 1_000_000, [before, width, after]);
            let reading = Reading::new(&bracket, clock.model.rate()).unwrap();
            if clock.observe(&bracket) == USED {
                let farther = reading.farther_ns(clock.latest().real.0);
                prop_assert!(clock.bound_ns() >= farther, "{} < {farther}", clock.bound_ns());
            }
        }
    }

    /// The clock never runs backwards, also while the host's clock is slewed.
    #[test]
    fn it_never_runs_backwards(
        slews in prop::collection::vec((1u64..500_000_000, -500i64..500), 1..8),
        reads in prop::collection::vec((200_000u64..10_000_000, gaps()), 1..200),
    ) {
        let mut from = 100_000_000;
        let slews = slews.into_iter().map(|(after, ppm)| { from += after; (from, 1000 * ppm) }).collect();
        let host = Host { hertz: 2_596_130_000, slews };
        let mut clock = clock_of(&host);
        let (mut t, mut latest) = (100_001_000, RealNs(0));
        for (gap, gaps) in reads {
            let bracket = host.bracket(t + gap, gaps);
            clock.observe(&bracket);
            let conversion = clock.conversion();
            for part in 0..10 {
                let at = conversion.to_real(host.cycles(t + gap * part / 10));
                prop_assert!(at >= latest);
                latest = at;
            }
            t += gap;
        }
    }
}

#[test]
fn a_slew_is_followed_within_the_bound_and_the_bend() {
    let host = Host {
        hertz: 2_596_130_000,
        slews: vec![(0, 0), (500_000_000, 500_000), (900_000_000, -500_000)],
    };
    let mut clock = clock_of(&host);
    let step = 200_000;
    for t in (100_200_000u64..1_500_000_000).step_by(step) {
        let bracket = host.bracket(t, [20, 40, 20]);
        assert_eq!(clock.observe(&bracket), USED);
        let middle = t - step as u64 / 2;
        let at = clock.conversion().to_real(host.cycles(middle));
        let error = at.0.abs_diff(host.real(middle));
        assert!(error <= clock.bound_ns(), "{error} at {t}");
    }
    assert!(clock.bound_ns() < 300, "{}", clock.bound_ns());
}

#[test]
fn the_bound_of_a_second_is_that_of_its_own_readings() {
    let host = Host {
        hertz: 3_000_000_000,
        slews: vec![(0, 0), (555_000_000, 500_000)],
    };
    let mut clock = clock_of(&host);
    let mut bound_of = |from: u64, until: u64| {
        for t in (from..until).step_by(10_000_000) {
            clock.observe(&host.bracket(t, [20, 40, 20]));
        }
        (clock.take_recent_bound_ns(), clock.bound_ns())
    };
    let (before, _) = bound_of(110_000_000, 550_000_000);
    let (meanwhile, most) = bound_of(550_000_000, 1_000_000_000);
    let (after, most_after) = bound_of(1_000_000_000, 2_000_000_000);
    // 10 ms of 500 ppm: the rate is known anew at the second reading after the bend.
    assert!(
        before < 100 && (5_000..5_100).contains(&meanwhile),
        "{before} {meanwhile}"
    );
    assert!(after < 200, "{after}");
    assert_eq!((most, most_after), (meanwhile - 1, meanwhile - 1));
}

/// Of bends that the width of the readings hides.
#[test]
fn the_bound_covers_bends_within_a_bracket() {
    for (ppm, part) in (1..30).flat_map(|ppm| (1..10).map(move |part| (ppm, part))) {
        let bend = 1_000_000_000 + part * 1_000_000;
        let host = Host {
            hertz: 2_596_130_000,
            slews: vec![(0, 0), (bend, 1000 * ppm)],
        };
        let mut clock = clock_of(&host);
        for t in (110_000_000u64..1_100_000_000).step_by(10_000_000) {
            let gaps = if t > bend { [20, 10, 60] } else { [60, 10, 20] };
            clock.observe(&host.bracket(t, gaps));
            if t < bend {
                continue;
            }
            for at in (t - 10_000_000..t).step_by(1_000_000) {
                let error = clock.conversion().to_real(host.cycles(at)).0;
                let error = error.abs_diff(host.real(at));
                assert!(error <= clock.bound_ns(), "{error} at {at}, {ppm} ppm");
            }
        }
    }
}

#[test]
fn the_rate_becomes_exact_and_stays_so() {
    let host = Host {
        hertz: 2_596_130_000,
        slews: vec![(0, 12_000)],
    };
    let mut clock = clock_of(&host);
    // Readings as wide as 41 ns, 100 ms apart.
    assert!((400..500).contains(&clock.rate_bound_ppb()));
    for second in 1..3_000u64 {
        let bracket = host.bracket(second * 1_000_000_000, [20, 40, 20]);
        clock.observe(&bracket);
    }
    assert_eq!(clock.rate_bound_ppb(), 1);
    // A thousand seconds of cycles: 12 ppm more than a thousand seconds.
    let duration = clock.rate().duration_ns(1_000 * 2_596_130_000);
    assert!(duration.abs_diff(1_000_012_000_000) < 1_000, "{duration}");
}

#[test]
fn wide_readings_are_passed_over() {
    let host = Host {
        hertz: 3_000_000_000,
        slews: vec![],
    };
    let mut clock = clock_of(&host);
    let bound = clock.bound_ns();
    let bracket = host.bracket(110_000_000, [9_000, 40, 20]);
    assert_eq!(clock.observe(&bracket), CounterOutcome::PassedOver);
    assert_eq!(clock.observe(&bracket), CounterOutcome::PassedOver);
    assert_eq!(clock.wide(), 2);
    // Twice as wide as the narrowest and 20 ns is not.
    let of = |gaps| host.bracket(120_000_000, gaps);
    assert!(clock.is_wide(&of([60, 40, 60])) && !clock.is_wide(&of([40; 3])));
    // 10 ms by p̂ alone.
    assert!(clock.bound_ns() <= bound + 10);
    // But not without end. It was not followed for as long before, so that its course is not known.
    let bracket = host.bracket(400_000_000, [9_000, 40, 20]);
    let seen = clock.observe(&bracket);
    assert!(
        matches!(seen, CounterOutcome::Used { unknown: Some(_) }),
        "{seen:?}"
    );
}

/// While the clock is slewed its rate is known by the last few readings only.
#[test]
fn the_bound_of_a_wide_reading_is_that_of_the_local_rate() {
    let host = Host {
        hertz: 3_000_000_000,
        slews: vec![(0, 0), (200_000_000, 500_000)],
    };
    for slewed_ms in 1..20 {
        let mut clock = clock_of(&host);
        let until = 200 + slewed_ms;
        for ms in 101..=until {
            // The readings' middles are off by all that they can be.
            let gaps = if ms == until {
                [60, 40, 0]
            } else {
                [0, 40, 60]
            };
            clock.observe(&host.bracket(ms * 1_000_000, gaps));
        }
        let t = (until + 99) * 1_000_000;
        let seen = clock.observe(&host.bracket(t, [9_000, 40, 20]));
        assert_eq!(seen, CounterOutcome::PassedOver);
        let error = clock.conversion().to_real(host.cycles(t)).0;
        let error = error.abs_diff(host.real(t));
        assert!(error <= clock.bound_ns(), "{error} > {}", clock.bound_ns());
    }
}

/// A virtual machine that moves to another host, or a counter that starts again.
#[test]
fn a_counter_that_jumps_is_noticed_and_followed() {
    let host = Host {
        hertz: 2_596_130_000,
        slews: vec![],
    };
    for jump in [5_000_000_000i64, -5_000_000_000] {
        let mut clock = clock_of(&host);
        for t in (100_500_000..110_000_000).step_by(500_000) {
            assert_eq!(clock.observe(&host.bracket(t, [20, 40, 20])), USED);
        }
        let moved = |t: u64| {
            let mut bracket = host.bracket(t, [20, 40, 20]);
            for tsc in &mut bracket.tsc {
                tsc.0 = tsc.0.wrapping_add_signed(jump);
            }
            bracket
        };
        let seen = clock.observe(&moved(110_000_000));
        let CounterOutcome::Jumped { by_ns } = seen else {
            panic!("{seen:?}");
        };
        let error = |clock: &CounterClock, t: u64, jump: i64| {
            let at = TscCycles(host.cycles(t).0.wrapping_add_signed(jump));
            clock.conversion().to_real(at).0.abs_diff(host.real(t))
        };
        // What was stamped before it; and after it, where the counter went back.
        let of_before = [90_000_000, 99_000_000, 105_000_000].map(|t| (t, 0));
        let after = Some((109_900_000, jump)).filter(|_| jump < 0);
        let stamps = of_before.into_iter().chain(after);
        let check = |clock: &CounterClock| {
            for (t, jump) in stamps.clone() {
                let error = error(clock, t, jump);
                assert!(error <= clock.bound_ns() + 10, "{error} at {t}, {jump}");
            }
        };
        check(&clock);
        let expected = -jump * 1_000_000_000 / 2_596_130_000;
        assert!(by_ns.abs_diff(expected) < 2_000, "{by_ns} {expected}");
        for t in (111_000_000u64..2_000_000_000).step_by(1_000_000) {
            assert_eq!(clock.observe(&moved(t)), USED);
            if t < 120_000_000 {
                check(&clock);
            }
            let error = error(&clock, t - 500_000, jump);
            assert!(error <= clock.bound_ns(), "{error} at {t}, {jump}");
        }
        for t in (1_998_500_000u64..4_000_000_000).step_by(1_000_000) {
            let at = TscCycles(host.cycles(t).0.wrapping_add_signed(jump));
            let error = clock.conversion().to_real(at).0.abs_diff(host.real(t));
            assert!(error <= clock.bound_ns(), "{error} at {t}");
            clock.observe(&moved(t + 500_000));
        }
    }
}

#[test]
fn a_counter_that_stands_is_of_no_use() {
    let host = Host {
        hertz: 2_596_130_000,
        slews: vec![],
    };
    // Also read so fast that the host's clock shows the same time twice.
    for gaps in [[20, 40, 20], [0; 3]] {
        let mut clock = clock_of(&host);
        let stopped = host.cycles(110_000_000);
        for ms in 0..90u64 {
            let mut bracket = host.bracket((110 + ms) * 1_000_000, gaps);
            bracket.tsc = [stopped; 2];
            let seen = clock.observe(&bracket);
            assert!(seen != USED || ms == 0, "{ms}");
            // Each stamp is one of then.
            assert!(clock.bound_ns() + 100 >= ms * 1_000_000, "{ms}");
        }
    }
}

/// The bound never falls: one would stay as wide as that.
#[test]
fn it_begins_with_no_reading_that_was_interrupted() {
    let host = Host {
        hertz: 2_596_130_000,
        slews: vec![],
    };
    let (narrow, wide) = ([20, 40, 20], [500, 40, 20]);
    let new = |first, second| {
        CounterClock::new(&host.bracket(0, first), &host.bracket(100_000_000, second))
    };
    assert!(new(narrow, narrow).is_some());
    assert!(new(narrow, wide).is_none());
    assert!(new(wide, narrow).is_none());
}
