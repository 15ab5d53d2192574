use super::*;
use crate::scripted::{EPOCH, Oscillator, Path, Random};

mod few;
mod wander;

const S: u64 = 1_000_000_000;
/// A server on the same network, as in figure 2 of the paper.
const LAN: Path = Path {
    least_ns: [100_000, 100_000],
    served_ns: 0,
    jitter_ns: 15_000.0,
    congested: 0.0,
    congestion_ns: 0.0,
};

fn oscillator() -> Oscillator {
    Oscillator {
        hertz: 2_596_130_000,
        skew_ppb: 23_000.0,
        // A cooled room, figure 12: the air conditioning, and a day.
        wander: vec![(80.0, 200.0), (30.0, 86_400.0)],
    }
}

/// A clock and what it follows.
#[derive(Clone)]
struct Run {
    clock: FeedForward,
    counter: Oscillator,
    random: Random,
}

impl Run {
    fn new(path: &Path) -> Self {
        let counter = oscillator();
        let mut random = Random(7);
        let mut look = |t| path.bracket(t, &counter, |t| EPOCH + t, &mut random);
        let (first, second) = (look(0), look(S));
        let clock = FeedForward::new(Scale::NETWORK, &first, &second).unwrap();
        Self {
            clock,
            counter,
            random,
        }
    }

    fn look(&mut self, t: u64, path: &Path, reference: impl Fn(u64) -> u64) -> Verdict {
        let bracket = path.bracket(t, &self.counter, reference, &mut self.random);
        self.clock.observe(&bracket)
    }

    /// Estimate less truth at `t`, and the bound.
    fn error(&self, t: u64, reference: impl Fn(u64) -> u64) -> (i64, u64) {
        let estimate = self.clock.estimate(self.counter.counter(t));
        let error = estimate.real.0.wrapping_sub(reference(t)).cast_signed();
        (error, estimate.bound_ns)
    }
}

fn truth(t: u64) -> u64 {
    EPOCH + t
}

#[test]
fn every_estimate_lies_within_its_bound() {
    let congested = Path {
        congested: 0.5,
        congestion_ns: 2_000_000.0,
        ..LAN
    };
    let mut run = Run::new(&LAN);
    for second in 2..20_000 {
        let path = if second % 2000 < 700 {
            &congested
        } else {
            &LAN
        };
        run.look(second * S, path, truth);
        for t in [second * S + S / 3, second * S + 40 * S] {
            let (error, bound) = run.error(t, truth);
            assert!(error.unsigned_abs() <= bound, "{error} {bound} at {second}");
        }
    }
    let counts = run.clock.counts();
    assert_eq!((counts.jumps, counts.torn), (0, 0));
}

/// Round trips of 0.1 to 40 ms, of which any part is the way there, polled every 1 to 256 s;
/// congestion, a way that becomes longer, no answers for hours; a counter whose rate is never
/// farther than 0.1 ppm from its average.
#[test]
fn the_bound_holds_on_paths_at_random() {
    for seed in 0..40 {
        let mut random = Random(seed);
        let mut between = |low: f64, high: f64| low * (high / low).powf(random.uniform());
        let (round_trip, share) = (between(1e5, 4e7), between(1.0, 2.0) - 1.0);
        let usual = Path {
            least_ns: [share, 1.0 - share].map(|share| (round_trip * share) as u64),
            served_ns: between(1e3, 1e6) as u64,
            jitter_ns: between(1e3, 1e6),
            ..LAN
        };
        let congestion_ns = between(1e4, 1e7);
        let longer = [usual.least_ns[0] + congestion_ns as u64, usual.least_ns[1]];
        let counter = Oscillator {
            wander: vec![(50.0, between(100.0, 20_000.0))],
            ..oscillator()
        };
        let period = [1, 16, 64, 256][seed as usize % 4] * S;
        let path = |turn| match turn / 30 {
            1 => Path {
                congested: 0.7,
                congestion_ns,
                ..usual
            },
            3.. => Path {
                least_ns: longer,
                ..usual
            },
            _ => usual,
        };
        let mut look = |turn| path(turn).bracket(turn * period, &counter, truth, &mut random);
        let mut clock = FeedForward::new(Scale::NETWORK, &look(0), &look(1)).unwrap();
        for turn in 2..180 {
            if turn / 30 != 4 {
                clock.observe(&look(turn));
            }
            for t in [turn * period + period / 2, (turn + 1) * period - 1] {
                let estimate = clock.estimate(counter.counter(t));
                let error = estimate.real.0.abs_diff(truth(t));
                assert!(
                    error <= estimate.bound_ns,
                    "{estimate:?} {error} {seed} {turn}"
                );
            }
        }
    }
}

/// Half of the asymmetry is in each estimate, and nobody can know: the bound has it.
#[test]
fn an_asymmetric_path_is_within_the_bound() {
    let asymmetric = Path {
        least_ns: [100_000, 400_000],
        ..LAN
    };
    let mut run = Run::new(&asymmetric);
    for second in 2..5_000 {
        run.look(second * S, &asymmetric, truth);
        for t in [second * S + S / 3, second * S + 40 * S] {
            let (error, bound) = run.error(t, truth);
            assert!(error.unsigned_abs() <= bound, "{error} {bound} at {second}");
            assert!(second < 10 || error < -100_000, "{error} at {second}");
        }
    }
}

/// As by `adjtime`: 500 ppm for 100 s. Until the first reading after it is believed nobody
/// knows how fast it is; from then on the bound holds, and after its end alike.
#[test]
fn a_slew_is_followed_within_the_bound() {
    const SLEW: [u64; 2] = [1_000, 1_100];
    let slewed = |t: u64| {
        let since = t.clamp(SLEW[0] * S, SLEW[1] * S) - SLEW[0] * S;
        truth(t) + since / 2_000
    };
    let mut run = Run::new(&LAN);
    let confirmations = u64::from(Scale::NETWORK.slew_confirmations);
    let mut untold = 0;
    for second in 2..2_000 {
        run.look(second * S, &LAN, slewed);
        let (error, bound) = run.error(second * S + S / 3, slewed);
        let is_reported = error.unsigned_abs() <= bound;
        untold += u64::from(!is_reported);
        let is_new = |change| (0..=confirmations + 1).contains(&second.wrapping_sub(change));
        assert!(
            is_reported || SLEW.into_iter().any(is_new),
            "{error} {bound} at {second}"
        );
    }
    assert!(untold >= confirmations, "{untold}");
    let counts = run.clock.counts();
    assert!(counts.jumps == 0 && counts.bends >= 2, "{counts:?}");
}

#[test]
fn it_is_settled_within_ten_samples() {
    let mut run = Run::new(&LAN);
    for second in 2..10 {
        run.look(second * S, &LAN, truth);
    }
    for second in 10..200 {
        let (error, _) = run.error(second * S + S / 2, truth);
        assert!(error.abs() < 30_000, "{error} at {second}");
        run.look(second * S, &LAN, truth);
    }
}

/// Two hours without the reference: within a bound that grows, and back at once.
#[test]
fn two_hours_without_the_reference() {
    let mut run = Run::new(&LAN);
    for second in 2..2_000 {
        run.look(second * S, &LAN, truth);
    }
    let mut before = 0;
    for second in (2_000..9_200).step_by(100) {
        let (error, bound) = run.error(second * S, truth);
        assert!(error.unsigned_abs() <= bound, "{error} {bound} at {second}");
        assert!(bound > before);
        before = bound;
    }
    assert!(before < 2_000_000, "{before}");
    assert_eq!(run.look(9_200 * S, &LAN, truth), Verdict::Used);
    let (error, bound) = run.error(9_200 * S + S / 2, truth);
    assert!(error.abs() < 60_000 && bound < 400_000, "{error} {bound}");
}

/// C is continuous, whatever p̂ does and the reference says.
#[test]
fn the_uncorrected_clock_never_jumps() {
    let mut run = Run::new(&LAN);
    let stepped = |t: u64| {
        if t < 500 * S {
            EPOCH + t
        } else {
            EPOCH + t + S
        }
    };
    let mut rates = 0;
    for second in 2..1_000 {
        let t = second * S;
        let rate = run.clock.rate();
        // As soon as p̂ has changed: at the counter value of that very reading.
        let bracket = LAN.bracket(t, &run.counter, stepped, &mut run.random);
        let reading = Reading::new(&bracket, rate).unwrap();
        let before = run.clock.uncorrected(reading.at);
        run.clock.observe(&bracket);
        let after = run.clock.uncorrected(reading.at);
        rates += u32::from(run.clock.rate() != rate);
        assert!(before.0.abs_diff(after.0) <= 1, "at {second}");
    }
    assert!(rates > 10);
    assert_eq!(run.clock.counts().jumps, 1);
    let ahead = run.clock.offset_ns() + i64::try_from(S).unwrap();
    assert!(ahead.abs() < 40_000_000, "{ahead}");
}

#[test]
fn a_lie_is_not_believed_and_a_step_is() {
    let mut run = Run::new(&LAN);
    for second in 2..300 {
        run.look(second * S, &LAN, truth);
    }
    let years_ago = |t: u64| EPOCH + t - 10 * 365 * 86_400 * S;
    for second in 300..303 {
        let verdict = run.look(second * S, &LAN, years_ago);
        assert_eq!(verdict, Verdict::Implausible);
        let (error, bound) = run.error(second * S + S / 2, truth);
        assert!(error.unsigned_abs() <= bound && error < 30_000, "{error}");
    }
    assert_eq!(run.look(303 * S, &LAN, truth), Verdict::Used);
    for second in 304..307 {
        run.look(second * S, &LAN, years_ago);
    }
    let verdict = run.look(307 * S, &LAN, years_ago);
    let Verdict::Jumped { by_ns } = verdict else {
        panic!("{verdict:?}");
    };
    assert_eq!(run.clock.carrying, run.clock.local.rate);
    assert!(by_ns.abs_diff(-10 * 365 * 86_400 * S.cast_signed()) < 100_000);
    let (error, bound) = run.error(308 * S, years_ago);
    assert!(error.unsigned_abs() <= bound, "{error} {bound}");
    let expected = Counts {
        used: 302,
        implausible: 6,
        jumps: 1,
        ..run.clock.counts()
    };
    assert_eq!(run.clock.counts(), expected);
    // The way back is doubted as long.
    for second in 308..311 {
        let verdict = run.look(second * S, &LAN, truth);
        assert_eq!(verdict, Verdict::Implausible);
    }
    let verdict = run.look(311 * S, &LAN, truth);
    assert!(matches!(verdict, Verdict::Jumped { .. }), "{verdict:?}");
}

/// A longer way both ways: after a while its width is the usual one.
#[test]
fn a_level_shift_is_followed_both_ways() {
    let longer = Path {
        least_ns: [400_000, 400_000],
        ..LAN
    };
    let mut run = Run::new(&LAN);
    for second in 2..12_000 {
        let path = if (3_000..9_000).contains(&second) {
            &longer
        } else {
            &LAN
        };
        run.look(second * S, path, truth);
        let (error, bound) = run.error(second * S + S / 2, truth);
        assert!(error.unsigned_abs() <= bound, "{error} {bound} at {second}");
        assert!(error.abs() < 60_000, "{error} at {second}");
        if second == 8_999 {
            assert_eq!(run.clock.counts().level_shifts, 1);
            assert!(run.clock.least_width_ns() > 800_000);
        }
    }
    assert!(run.clock.least_width_ns() < 250_000);
}

/// A week of readings takes no more memory than an hour of them, and p̂ is then good
/// to far less than the wander.
#[test]
fn a_week_in_bounded_memory() {
    let mut run = Run::new(&LAN);
    for turn in 1..40_000u64 {
        run.look(turn * 16 * S, &LAN, truth);
    }
    let bound = run.clock.rate_bound_ppb();
    assert!(bound <= 1, "{bound}");
    // 23 ppm fast: its period is 23 ppm short of the nominal one.
    let nominal = NsPerCycle::of(1_000_000_000, 2_596_130_000).unwrap();
    let skew = run.clock.rate().ppb_from(nominal);
    assert!((skew + 23_000).abs() <= 5, "{skew}");
}

#[test]
fn a_reading_of_no_use_is_counted_and_changes_nothing() {
    let mut run = Run::new(&LAN);
    let mut look = |t| LAN.bracket(t, &run.counter, truth, &mut run.random);
    let good = look(2 * S);
    let mut torn = look(3 * S);
    torn.tsc.reverse();
    assert_eq!(run.clock.observe(&good), Verdict::Used);
    assert!((good.tsc[0]..=good.tsc[1]).contains(&run.clock.latest()));
    assert!(run.clock.rate_bound_ppb() > 1_000, "after two seconds");
    let (before, there) = (run.clock.counts(), good.tsc[1]);
    let estimate = run.clock.estimate(there);
    assert_eq!(run.clock.observe(&torn), Verdict::Torn);
    assert!(!run.clock.restart(&torn, false));
    // The counter stands.
    assert_eq!(run.clock.observe(&good), Verdict::Torn);
    let torn = before.torn + 3;
    assert_eq!(run.clock.counts(), Counts { torn, ..before });
    assert_eq!(run.clock.estimate(there), estimate);
}

/// A server that has a reply on its way for 9 ms, on either side of it, and answers at once 200 ms
/// later: by the middles of both its clock runs 2.3 % too slow or too fast, and that is how well
/// the width of the first reading is known.
#[test]
fn the_first_rate_is_within_its_bound_by_the_true_width_of_readings() {
    let bracket = |t: u64, [there, back]: [u64; 2]| Bracket {
        tsc: [t, t + there + back].map(TscCycles),
        real: [RealNs(EPOCH + t + there); 2],
    };
    for ways in [[9_000_000, 0], [0, 9_000_000]] {
        let first = bracket(0, ways);
        let second = bracket(S / 5, [33_000, 34_000]);
        let clock = FeedForward::new(Scale::NETWORK, &first, &second).unwrap();
        let truth = NsPerCycle::of(S, S).unwrap();
        let off_ppb = truth.ppb_from(clock.rate()).unsigned_abs();
        let bound_ppb = clock.rate_bound_ppb();
        assert!(
            off_ppb > 22_000_000 && off_ppb <= bound_ppb,
            "{off_ppb} {bound_ppb}"
        );
        for t in [0, S / 5, S / 5 + 39_000_000, S] {
            let at = clock.estimate(TscCycles(t));
            let off = at.real.0.abs_diff(EPOCH + t);
            assert!(off <= at.bound_ns, "{off} {} at {t}", at.bound_ns);
        }
    }
    // Widths that allow any rate are none to begin with.
    let (first, second) = (
        bracket(0, [9_000_000, 0]),
        bracket(9_000_000, [9_000_000, 0]),
    );
    assert!(FeedForward::new(Scale::NETWORK, &first, &second).is_none());
}
