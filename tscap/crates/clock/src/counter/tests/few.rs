//! What a few readings come to.

use super::*;

/// As long as nobody knows how the clock went meanwhile.
#[test]
fn what_a_wide_reading_hides_is_within_the_bound_after_a_stall() {
    let host = Host {
        hertz: 3_000_000_000,
        slews: vec![],
    };
    let wide = [9_000, 40, 20];
    for (reads, is_hidden) in [
        // Followed by one that shows that the clock has kept to its line.
        (
            vec![(110, wide), (111, [20, 40, 20]), (300, [20, 40, 20])],
            false,
        ),
        (vec![(110, wide), (300, [20, 40, 20])], true),
    ] {
        let mut clock = clock_of(&host);
        let seen = reads
            .iter()
            .map(|(ms, gaps)| clock.observe(&host.bracket(ms * 1_000_000, *gaps)));
        let last = seen.last().unwrap();
        assert!(matches!(last, CounterOutcome::Used { unknown: Some(_) }));
        assert_eq!(clock.bound_ns() >= 9_000, is_hidden, "{}", clock.bound_ns());
    }
}

#[test]
fn a_step_is_taken_in_with_a_reading_of_any_width() {
    let host = Host {
        hertz: 3_000_000_000,
        slews: vec![],
    };
    let mut clock = clock_of(&host);
    let mut bracket = host.bracket(110_000_000, [9_000, 40, 20]);
    bracket.real = bracket.real.map(|real| RealNs(real.0 + 1_000_000_000));
    assert_eq!(clock.observe_step(&bracket, false, 0), USED);
    for t in [110_000_000, 110_020_000] {
        let at = clock.conversion().to_real(host.cycles(t)).0;
        let error = at.abs_diff(host.real(t) + 1_000_000_000);
        assert!(error <= clock.bound_ns(), "{error}");
    }
    assert!(
        (4_500..4_600).contains(&clock.bound_ns()),
        "{}",
        clock.bound_ns()
    );
}

#[test]
fn the_first_rate_needs_10_ms_and_is_good_to_10_ppm() {
    let host = Host {
        hertz: 3_000_000_000,
        slews: vec![],
    };
    for (ms, gaps, is_enough) in [
        (9, [5, 10, 5], false),
        (11, [5, 10, 5], true),
        // As wide as 201 ns.
        (19, [100, 60, 100], false),
        (21, [100, 60, 100], true),
    ] {
        let [first, second] = [0, ms].map(|ms| host.bracket(ms * 1_000_000, gaps));
        assert_eq!(
            CounterClock::new(&first, &second).is_some(),
            is_enough,
            "{ms} ms"
        );
    }
}

#[test]
fn a_clock_keeps_as_many_lines_as_its_conversion() {
    let host = Host {
        hertz: 3_000_000_000,
        slews: vec![],
    };
    let mut clock = clock_of(&host);
    for ms in 101..200 {
        clock.observe(&host.bracket(ms * 1_000_000, [20, 40, 20]));
    }
    assert_eq!(clock.pieces.len(), PIECES);
}

/// However the host's clock was slewed meanwhile: no stamp jumps.
#[test]
fn a_line_ends_where_the_next_one_begins() {
    let host = Host {
        hertz: 1_000_000_000,
        slews: vec![(0, 0), (150_000_000, 500_000), (250_000_000, -500_000)],
    };
    let mut clock = clock_of(&host);
    for ms in (105..400).step_by(5) {
        let bracket = host.bracket(ms * 1_000_000, [20, 40, 20]);
        assert_eq!(clock.observe(&bracket), USED);
        let at = clock.latest().from;
        let conversion = clock.conversion();
        let [before, there] = [at.0 - 1, at.0].map(|at| conversion.to_real(TscCycles(at)).0);
        assert!((there - 2..=there).contains(&before), "{before} {there}");
    }
}
