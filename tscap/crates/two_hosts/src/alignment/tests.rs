//! Two hosts whose true time is known: this host's counter has 1 ns, its clock is the truth; the
//! peer's clock is scripted.

use super::*;

const EPOCH: u64 = 1_795_564_800_000_000_000;
const S: u64 = 1_000_000_000;
const MS: u64 = 1_000_000;
const US: u64 = 1_000;

/// The peer's clock: straight between the knots, each a true time since the start, ns, by how far
/// it is ahead from there on, ns, and its rate from there on, parts per billion.
#[derive(Clone, Debug)]
struct Script(Vec<(u64, i64, i64)>);

impl Script {
    fn read(&self, at: u64) -> RealNs {
        let knot = self.0.iter().rev().find(|it| it.0 <= at).unwrap();
        let since = (at - knot.0) as i128;
        let ahead = i128::from(knot.1) + since * i128::from(knot.2) / 1_000_000_000;
        RealNs((i128::from(EPOCH + at) + ahead) as u64)
    }

    /// Goes on with another rate, without a step.
    fn bend(&mut self, at: u64, ppb: i64) {
        let ahead = self.read(at).0.wrapping_sub(EPOCH + at).cast_signed();
        self.0.push((at, ahead, ppb));
    }

    fn step(&mut self, at: u64, by_ns: i64) {
        let (ahead, ppb) = {
            let ahead = self.read(at).0.wrapping_sub(EPOCH + at).cast_signed();
            (ahead + by_ns, self.0.last().unwrap().2)
        };
        self.0.push((at, ahead, ppb));
    }
}

/// A path: least delays there and back, and what is usually more, ns.
#[derive(Clone, Copy, Debug)]
struct Path {
    least: [u64; 2],
    noise: [u64; 2],
}

#[derive(Debug, Default)]
struct Found {
    known: u64,
    unknown: u64,
    contradictions: u64,
    /// Delays outside of their bound, and by how much the worst.
    broken: u64,
    worst_ns: u64,
    /// Bounds of the alignment in the order of the exchanges.
    bounds: Vec<u64>,
    /// Errors of the delays there.
    errors: Vec<i64>,
    least_rtt_ns: u64,
    changes: u64,
}

struct Plan {
    script: Script,
    path: Path,
    /// Between two packets, ns.
    every: u64,
    exchanges: u64,
    by: AlignBy,
    utc_bound_ns: Option<u64>,
    max_drift_ppb: u64,
    max_asymmetry_ns: Option<u64>,
}

/// By exchanges alone, with the drift that clocks have by default.
fn exchanges() -> Plan {
    Plan {
        script: Script(Vec::new()),
        path: Path {
            least: [0; 2],
            noise: [0; 2],
        },
        every: 10 * MS,
        exchanges: 0,
        by: AlignBy::Exchange,
        utc_bound_ns: None,
        max_drift_ppb: 600_000,
        max_asymmetry_ns: None,
    }
}

fn delay(random: &mut fastrand::Rng, least: u64, noise: u64) -> u64 {
    let more = -(1.0 - random.f64()).ln() * noise as f64;
    // One of a hundred meets a queue.
    let more = if random.u8(..100) == 0 {
        more * 30.0
    } else {
        more
    };
    least + more as u64
}

fn run(plan: &Plan, random: &mut fastrand::Rng) -> Found {
    let mut alignment = Alignment::new(plan.by, plan.max_drift_ppb, plan.max_asymmetry_ns);
    let mut found = Found {
        least_rtt_ns: u64::MAX,
        ..Found::default()
    };
    let tell =
        |truth: [u64; 2], exchange: &Exchange, aligned: Aligned, found: &mut Found| match aligned {
            Aligned::Unknown => found.unknown += 1,
            Aligned::Contradiction => found.contradictions += 1,
            Aligned::Known(way) => {
                found.known += 1;
                let bound = way.alignment_ns + exchange.own_error_ns + exchange.peer_error_ns + 2;
                let errors = [
                    way.forward_ns - truth[0] as i64,
                    way.back_ns - truth[1] as i64,
                ];
                for error in errors {
                    if error.unsigned_abs() > bound {
                        found.broken += 1;
                        found.worst_ns = found.worst_ns.max(error.unsigned_abs() - bound);
                    }
                }
                found.bounds.push(way.alignment_ns);
                found.errors.push(errors[0]);
            }
        };
    let mut replies = Vec::new();
    for turn in 0..plan.exchanges {
        let sent = S + turn * plan.every;
        let there = delay(random, plan.path.least[0], plan.path.noise[0]);
        let held = delay(random, 20 * US, 20 * US);
        let back = delay(random, plan.path.least[1], plan.path.noise[1]);
        let received = sent + there + held + back;
        found.least_rtt_ns = found.least_rtt_ns.min(there + back);
        let exchange = Exchange {
            own: [RawStamp(sent), RawStamp(received)],
            own_real: [RealNs(EPOCH + sent), RealNs(EPOCH + received)],
            peer: [
                plan.script.read(sent + there),
                plan.script.read(sent + there + held),
            ],
            own_error_ns: 5,
            peer_error_ns: 5,
            utc_bound_ns: plan.utc_bound_ns,
        };
        replies.push((received, exchange, [there, back]));
    }
    replies.sort_by_key(|it| it.0);
    for (_, exchange, truth) in replies {
        alignment.take(
            exchange,
            NsPerCycle::ONE,
            truth,
            &mut |truth, exchange, aligned| tell(truth, exchange, aligned, &mut found),
        );
    }
    alignment.finish(&mut |truth, exchange, aligned| tell(truth, exchange, aligned, &mut found));
    found.changes = alignment.changes();
    found
}

fn straight(random: &mut fastrand::Rng, most_ppb: i64) -> Script {
    let ahead = random.i64(-5_000_000_000..5_000_000_000);
    Script(vec![(0, ahead, random.i64(-most_ppb..=most_ppb))])
}

fn path(random: &mut fastrand::Rng) -> Path {
    let way = |random: &mut fastrand::Rng| 2 * US * 10u64.pow(random.u32(0..4)) * random.u64(1..8);
    Path {
        least: [way(random), way(random)],
        noise: [way(random) / 4, way(random) / 4],
    }
}

fn seeds(least: u64) -> u64 {
    std::env::var("TSCAP_SCENARIOS").map_or(least, |it| it.parse().expect("a number"))
}

/// The clock of the peer is off by seconds and runs up to 100 ppm faster or slower.
#[test]
fn no_delay_is_outside_of_its_bound() {
    let mut delays = 0;
    for seed in 0..seeds(260) {
        let mut random = fastrand::Rng::with_seed(seed);
        let plan = Plan {
            script: straight(&mut random, 100_000),
            path: path(&mut random),
            every: [US * 300, MS, 10 * MS, 100 * MS][random.usize(..4)],
            exchanges: 2_000,
            ..exchanges()
        };
        let found = run(&plan, &mut random);
        assert_eq!(found.broken, 0, "seed {seed}: by {} ns", found.worst_ns);
        assert!(found.known > 1_900, "seed {seed}: {found:?}");
        delays += 2 * found.known;
    }
    assert!(delays > 1_000_000);
}

/// Half of the least round trip, what the stamps are off, and 1 µs.
#[test]
fn ten_exchanges_align_to_half_of_the_least_round_trip() {
    for seed in 0..100 {
        let mut random = fastrand::Rng::with_seed(seed);
        let plan = Plan {
            script: straight(&mut random, 100_000),
            path: Path {
                least: [3 * US, 2 * US],
                noise: [US, US],
            },
            every: MS,
            exchanges: 10,
            max_drift_ppb: 100_000,
            ..exchanges()
        };
        let found = run(&plan, &mut random);
        let last = *found.bounds.last().unwrap();
        let most = found.least_rtt_ns / 2 + 2 * (5 + 5) + 1_000;
        assert!(last <= most, "seed {seed}: {last} of {most} ns");
    }
}

/// The middle of what exchanges allow is off by half of what the least ways differ.
#[test]
fn an_asymmetry_is_off_by_half_of_it() {
    let mut random = fastrand::Rng::with_seed(7);
    for (there, back) in [(100 * US, 20 * US), (20 * US, 300 * US)] {
        let plan = Plan {
            script: straight(&mut random, 100_000),
            path: Path {
                least: [there, back],
                noise: [US, US],
            },
            every: 10 * MS,
            exchanges: 3_000,
            ..exchanges()
        };
        let found = run(&plan, &mut random);
        assert_eq!(found.broken, 0);
        let half = (back as i64 - there as i64) / 2;
        let errors = &found.errors[1_000..];
        assert!(errors.iter().all(|it| (it - half).abs() < 2_000), "{half}");
    }
}

#[test]
fn both_are_never_worse_than_either() {
    let run_by = |by, utc_bound_ns| {
        let mut random = fastrand::Rng::with_seed(3);
        let plan = Plan {
            script: Script(vec![(0, 40_000, 0)]),
            path: Path {
                least: [2 * MS, 2 * MS],
                noise: [100 * US, 100 * US],
            },
            every: 10 * MS,
            exchanges: 500,
            by,
            utc_bound_ns,
            ..exchanges()
        };
        run(&plan, &mut random)
    };
    let exchange = run_by(AlignBy::Exchange, Some(50 * US));
    let utc = run_by(AlignBy::Utc, Some(50 * US));
    let both = run_by(AlignBy::Both, Some(50 * US));
    for ((both, exchange), utc) in both.bounds.iter().zip(&exchange.bounds).zip(&utc.bounds) {
        assert!(
            both <= exchange && *both <= 2 * utc,
            "{both} {exchange} {utc}"
        );
    }
    assert_eq!(both.broken + utc.broken + exchange.broken, 0);
    assert_eq!(run_by(AlignBy::Both, None).bounds, exchange.bounds);
    // A clock that says that it is within 10 µs of UTC, and is 3 ms off.
    let liar = |ahead| {
        let mut random = fastrand::Rng::with_seed(3);
        let plan = Plan {
            script: Script(vec![(0, ahead, 0)]),
            path: Path {
                least: [200 * US; 2],
                noise: [20 * US; 2],
            },
            every: 10 * MS,
            exchanges: 500,
            by: AlignBy::Both,
            utc_bound_ns: Some(10 * US),
            ..exchanges()
        };
        run(&plan, &mut random)
    };
    let lies = liar(3 * MS as i64);
    assert!(lies.contradictions > 400, "{lies:?}");
    assert_eq!(liar(5_000).contradictions, 0);
}

/// The peer's daemon sets its clock by more than a round trip, while packets are on their way.
#[test]
fn a_peer_that_is_set_is_followed() {
    for seed in 0..seeds(40) {
        let mut random = fastrand::Rng::with_seed(seed);
        let path = path(&mut random);
        let round_trip: u64 = path.least.iter().chain(&path.noise).sum();
        let by_ns = (round_trip * random.u64(8..1_000)) as i64;
        let mut script = straight(&mut random, 100_000);
        let at = 5 * S + random.u64(..S);
        script.step(at, if random.bool() { by_ns } else { -by_ns });
        let plan = Plan {
            script,
            path,
            exchanges: 1_000,
            ..exchanges()
        };
        let found = run(&plan, &mut random);
        let (broken, worst_ns) = (found.broken, found.worst_ns);
        assert_eq!(
            broken, 0,
            "seed {seed}: by {worst_ns} ns of {by_ns}, {path:?}"
        );
        assert!(
            found.unknown < 10 && found.known > 980,
            "seed {seed}: {found:?}"
        );
        assert!(found.changes > 0, "seed {seed}");
    }
}

/// The peer's daemon slews its clock every few seconds.
#[test]
fn a_peer_that_is_slewed_is_followed() {
    for seed in 0..seeds(40) {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut script = straight(&mut random, 20_000);
        let mut at = S;
        for _ in 0..5 {
            at += random.u64(S..4 * S);
            script.bend(at, random.i64(-500_000..500_000));
        }
        let plan = Plan {
            script,
            path: path(&mut random),
            every: [MS, 10 * MS][random.usize(..2)],
            exchanges: 2_000,
            ..exchanges()
        };
        let found = run(&plan, &mut random);
        assert_eq!(
            found.broken, 0,
            "seed {seed}: by {} ns of {}",
            found.worst_ns, found.known
        );
    }
}

/// Whoever knows by how much the ways differ has half of that for a bound.
#[test]
fn an_asymmetry_that_somebody_vouches_for_bounds_the_alignment() {
    let mut random = fastrand::Rng::with_seed(11);
    let plan = Plan {
        script: straight(&mut random, 100_000),
        path: Path {
            least: [500 * US, 490 * US],
            noise: [0, 0],
        },
        exchanges: 1_000,
        max_asymmetry_ns: Some(20 * US),
        ..exchanges()
    };
    let found = run(&plan, &mut random);
    assert_eq!(found.broken, 0, "by {} ns", found.worst_ns);
    let last = *found.bounds.last().unwrap();
    assert!(last < 12 * US, "{last}");
}

/// This host's wall clock is set while a packet is on its way: its stamps go on.
#[test]
fn a_step_of_the_own_clock_is_in_no_delay() {
    let mut alignment = Alignment::new(AlignBy::Exchange, 100_000, None);
    let mut found = Vec::new();
    for turn in 0..200 {
        let sent = S + turn * 10 * MS;
        let (is_set, after) = (turn >= 100, 7 * S);
        let real = |at: u64, is_set: bool| RealNs(EPOCH + at + if is_set { after } else { 0 });
        let exchange = Exchange {
            own: [RawStamp(sent), RawStamp(sent + 100 * US)],
            own_real: [real(sent, is_set), real(sent + 100 * US, turn >= 99)],
            peer: [
                RealNs(EPOCH + sent + 40 * US),
                RealNs(EPOCH + sent + 50 * US),
            ],
            own_error_ns: 5,
            peer_error_ns: 5,
            utc_bound_ns: None,
        };
        let tell = &mut |(), _: &Exchange, aligned: Aligned| found.push(aligned);
        alignment.take(exchange, NsPerCycle::ONE, (), tell);
    }
    alignment.finish(&mut |(), _: &Exchange, aligned: Aligned| found.push(aligned));
    assert_eq!(found.len(), 200);
    for aligned in found {
        let Aligned::Known(way) = aligned else {
            panic!("{aligned:?}");
        };
        let bound = way.alignment_ns + 20;
        assert!(way.forward_ns.abs_diff(40_000) <= bound, "{way:?}");
        assert!(way.back_ns.abs_diff(50_000) <= bound, "{way:?}");
    }
    assert_eq!(alignment.changes(), 0);
}

/// Exchanges whose round trip is longer than the step of the clock may be of before or behind it:
/// what the fast ones behind it allow is not theirs.
#[test]
fn slow_exchanges_around_a_step_tell_nothing_of_each_other() {
    for seed in 0..seeds(200) {
        let mut random = fastrand::Rng::with_seed(seed);
        let by_ns = [-5_000_000, 5_000_000][random.usize(..2)];
        let mut script = Script(vec![(0, 0, 0)]);
        let set_at = S + 500 * MS;
        script.step(set_at, by_ns);
        let mut alignment = Alignment::new(AlignBy::Exchange, 1_000, None);
        let mut broken = 0;
        let mut tell = |truth: u64, exchange: &Exchange, aligned: Aligned| {
            if let Aligned::Known(way) = aligned {
                let bound = way.alignment_ns + exchange.own_error_ns + exchange.peer_error_ns + 2;
                broken += u64::from(way.forward_ns.abs_diff(truth as i64) > bound);
            }
        };
        for number in 0..100 {
            let sent = S + number * 10 * MS;
            // A queue before and behind the step, whichever way.
            let is_slow = sent.abs_diff(set_at) < 50 * MS;
            let slow = |random: &mut fastrand::Rng| {
                let more = if is_slow && random.bool() { 9_000 } else { 50 };
                random.u64(100..100 + more) * US
            };
            let (there, back) = (slow(&mut random), slow(&mut random));
            let arrived = sent + there;
            let exchange = Exchange {
                own: [RawStamp(sent), RawStamp(arrived + back)],
                own_real: [RealNs(EPOCH + sent), RealNs(EPOCH + arrived + back)],
                peer: [script.read(arrived), script.read(arrived)],
                own_error_ns: 1,
                peer_error_ns: 1,
                utc_bound_ns: None,
            };
            alignment.take(exchange, NsPerCycle::ONE, there, &mut tell);
        }
        alignment.finish(&mut tell);
        assert!(alignment.changes() > 0, "seed {seed}");
        assert_eq!(broken, 0, "seed {seed}, by {by_ns}");
    }
}
