//! What a few readings that are known exactly come to.

use super::*;

/// A counter of cycles of 1 ns that has run for 11 days.
const BASE: u64 = 1_000_000_000_000_000;
/// Half of a usual reading over a network, ns.
const HALF: u64 = 100_000;

/// At `t`, of a reference that is ahead by so much; its middle is there.
fn bracket(t: u64, ahead: i64, half: u64) -> Bracket {
    Bracket {
        tsc: [TscCycles(BASE + t - half), TscCycles(BASE + t + half)],
        real: [RealNs((EPOCH + t).strict_add_signed(ahead)); 2],
    }
}

/// After readings of 0 to 10 s whose reference is ahead by so much.
fn followed(scale: Scale, ahead: i64, half: u64) -> FeedForward {
    let look = |second: u64| bracket(second * S, ahead, half);
    let mut clock = FeedForward::new(scale, &look(0), &look(1)).unwrap();
    for second in 2..=10 {
        assert_eq!(clock.observe(&look(second)), Verdict::Used);
    }
    clock
}

/// How far the clock's estimate is ahead at `t`.
fn ahead(clock: &FeedForward, t: u64) -> i64 {
    let real = clock.estimate(TscCycles(BASE + t)).real.0;
    real.wrapping_sub(EPOCH + t).cast_signed()
}

#[test]
fn the_uncorrected_clock_begins_at_the_first_reading() {
    // The rate by their beginnings is 100 ppm off that by their middles.
    let readings = [bracket(0, 0, HALF), bracket(S, 0, 2 * HALF)];
    let clock = FeedForward::new(Scale::NETWORK, &readings[0], &readings[1]).unwrap();
    let at_first = clock.uncorrected(TscCycles(BASE)).0;
    assert!(at_first.abs_diff(EPOCH) <= 1, "{at_first}");
}

/// E is 60 µs: a reading has no weight beside one that is narrower by 200 µs.
#[test]
fn each_reading_has_the_weight_of_its_width_from_the_first_on() {
    let look = |second: u64, ahead| bracket(second * S, ahead, HALF);
    let mut clock = FeedForward::new(Scale::NETWORK, &look(0, 0), &look(1, 0)).unwrap();
    assert_eq!(clock.observe(&look(2, 30_000)), Verdict::Used);
    let mean = ahead(&clock, 2 * S);
    assert!(mean.abs_diff(10_000) < 100, "{mean}");

    let mut clock = followed(Scale::NETWORK, 50_000, 2 * HALF);
    assert_eq!(clock.observe(&bracket(11 * S, 0, HALF)), Verdict::Used);
    let best = ahead(&clock, 11 * S);
    assert!(best.abs() < 100, "{best}");
}

/// By 500 ppm from 10 s on.
#[test]
fn a_slew_is_believed_with_the_fourth_reading_and_followed_from_there() {
    let slewed = |second: u64| (second - 10).cast_signed() * 500_000;
    let mut clock = followed(Scale::NETWORK, 0, HALF);
    let mut look = |second: u64| {
        let verdict = clock.observe(&bracket(second * S, slewed(second), HALF));
        (verdict, ahead(&clock, second * S), clock.straight_ns())
    };
    for second in 11..14 {
        assert_eq!(look(second).0, Verdict::Implausible);
    }
    for (second, straight) in [(14, 0), (15, S), (16, 2 * S)] {
        let (verdict, found, straight_ns) = look(second);
        assert_eq!(verdict, Verdict::Used);
        assert!(found.abs_diff(slewed(second)) < 1_000, "{found}");
        assert!(straight_ns.abs_diff(straight) < S / 1_000, "{straight_ns}");
    }
    assert_eq!(clock.counts().bends, 1);
    // Once it is set nobody knows its rate.
    assert_ne!(clock.local_rate(), clock.rate());
    assert!(clock.restart(&bracket(17 * S, 1_000_000_000, HALF), false));
    assert_eq!(clock.local_rate(), clock.rate());
}

/// Of before nothing but the rate is left.
#[test]
fn the_clock_begins_anew_with_the_reading_after_a_step() {
    const STEP: i64 = 1_000_000_000;
    let mut clock = followed(Scale::NETWORK, 0, HALF);
    let mut look = |second: u64, ahead| clock.observe(&bracket(second * S, STEP + ahead, HALF));
    for second in 11..14 {
        assert_eq!(look(second, 0), Verdict::Implausible);
    }
    assert!(matches!(look(14, 0), Verdict::Jumped { .. }));
    assert!(ahead(&clock, 14 * S).abs_diff(STEP) <= 1);
    clock.observe(&bracket(15 * S, STEP + 30_000, HALF));
    let mean = ahead(&clock, 15 * S);
    assert!(mean.abs_diff(STEP + 15_000) < 100, "{mean}");
    // Two brackets of 200 µs over 10 s: 20 ppm.
    let later = clock.estimate(TscCycles(BASE + 1_015 * S));
    assert!((20_000_000..21_000_000).contains(&later.bound_ns));
}

/// As on another machine: its crystal may be another.
#[test]
fn a_counter_that_jumps_leaves_its_rate_in_doubt() {
    const DOUBT_PPB: u64 = 100_000;
    let back = |second: u64| {
        let mut bracket = bracket(second * S, 0, HALF);
        bracket.tsc = bracket.tsc.map(|tsc| TscCycles(tsc.0 - 60 * S));
        bracket
    };
    let set = |second: u64| bracket(second * S, 3_600_000_000_000, HALF);
    let of_network = |look: &dyn Fn(u64) -> Bracket| {
        let mut clock = followed(Scale::NETWORK, 0, HALF);
        let verdicts = (11..15).map(|second| clock.observe(&look(second)));
        assert!(matches!(verdicts.last(), Some(Verdict::Jumped { .. })));
        clock.rate_bound_ppb()
    };
    assert_eq!(of_network(&back), DOUBT_PPB);
    assert!(of_network(&set) < DOUBT_PPB);

    let restarted = |look: Bracket| {
        let mut clock = followed(Scale::NETWORK, 0, HALF);
        assert!(clock.restart(&look, false));
        clock.rate_bound_ppb()
    };
    assert_eq!(restarted(back(11)), DOUBT_PPB);
    assert!(restarted(set(11)) < DOUBT_PPB);

    // Whoever reads the host's own clocks is told when they are set.
    let mut clock = followed(Scale::HOST, 0, 50);
    let jumped = clock.observe(&bracket(11 * S, 3_600_000_000_000, 50));
    assert!(matches!(jumped, Verdict::Jumped { .. }));
    assert_eq!(clock.rate_bound_ppb(), DOUBT_PPB);
}
