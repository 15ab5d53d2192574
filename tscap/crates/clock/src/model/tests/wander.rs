//! The counter's rate wanders, as with the warmth of a day.

use super::*;

/// Of a day, whose warmth moves the counter's rate by 30 ppb: its average would carry the
/// readings of the last 17 minutes 30 µs off.
#[test]
fn the_counters_wander_is_followed() {
    let mut run = Run::new(&LAN);
    for turn in 1..5_400 {
        let second = turn * 16;
        run.look(second * S, &LAN, truth);
        let (error, _) = run.error((second + 15) * S, truth);
        assert!(turn < 300 || error.abs() < 15_000, "{error} at {second}");
        if turn == 4_050 {
            it_goes_on_at_the_rate_of_late(&run, second);
        }
    }
}

/// For two hours in which nobody answers, and for the time that readings by way of full
/// queues are not used: the average would be 260 µs and 50 µs off.
fn it_goes_on_at_the_rate_of_late(run: &Run, second: u64) {
    let jam = Path {
        congested: 1.0,
        congestion_ns: 5_000_000.0,
        least_ns: [1_000_000; 2],
        ..LAN
    };
    for (polls, later, most) in [(0, 7_200, 120_000), (87, 1_400, 25_000)] {
        let mut run = run.clone();
        for poll in 1..=polls {
            let verdict = run.look((second + poll * 16) * S, &jam, truth);
            assert_eq!(verdict, Verdict::Used);
        }
        let (error, bound) = run.error((second + later) * S, truth);
        assert!(error.abs() < most, "{error} after {polls}");
        assert!(error.unsigned_abs() <= bound, "{error} {bound}");
    }
}

/// It follows the local rate, from which it is within the wander.
#[test]
fn the_rate_of_late_is_one_that_the_readings_allow() {
    let mut run = Run::new(&LAN);
    let local = run.clock.local.rate;
    let ppb = |rate: NsPerCycle| rate.ppb_from(local);
    for (part, expected) in [(1_000_000, 100), (20_000_000, 50), (100_000_000, 10)] {
        for sign in [1, -1] {
            let more = sign * (local.0 / part).cast_signed();
            run.clock.carrying = NsPerCycle(local.0.saturating_add_signed(more));
            let found = ppb(run.clock.rate_of_late());
            assert!((found - sign * expected).abs() <= 1, "{found} {expected}");
        }
    }
}

/// In two days the averages of a counter's rate differ by more than its readings allow them
/// to: that is the counter, and no change of the reference.
#[test]
fn the_counters_wander_is_no_bend() {
    let mut run = Run::new(&LAN);
    let polls = (1..700).filter(|turn| !(600..628).contains(turn));
    for second in polls.map(|turn| turn * 256) {
        assert_eq!(run.look(second * S, &LAN, truth), Verdict::Used);
        let (error, bound) = run.error((second + 255) * S, truth);
        assert!(error.unsigned_abs() <= bound, "{error} {bound} at {second}");
    }
    assert_eq!(run.clock.counts().bends, 0);
}
