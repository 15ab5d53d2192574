use std::collections::VecDeque;

use tscap_clock::scripted::{EPOCH, Host, Random};
use tscap_clock::{Bracket, OffsetNs, RealNs, Reference, StampSource};
use tscap_clock_reader::calculation::{self, Interval, Refused, Witness};
use tscap_clock_reader::layout::{COPY_WORDS, RATE_FRACTION};

use super::*;

const MS: u64 = 1_000_000;

/// A host whose clock is slewed, and set, and whose counter jumps.
#[derive(Clone)]
struct World {
    host: Host,
    /// From when, and by how much in all, the clock was set, ns.
    steps: Vec<(u64, i64)>,
    /// From when, and by how much in all, the counter jumped.
    jumps: Vec<(u64, i64)>,
    random: Random,
    now: u64,
    /// When it was asked last whether the clock was set.
    asked: u64,
}

fn latest_of(changes: &[(u64, i64)], t: u64) -> i64 {
    let before = changes.iter().rev().find(|(from, _)| *from <= t);
    before.map_or(0, |(_, by)| *by)
}

impl World {
    fn real(&self, t: u64) -> u64 {
        self.host
            .real(t)
            .wrapping_add_signed(latest_of(&self.steps, t))
    }

    fn counter(&self, t: u64) -> u64 {
        self.host
            .cycles(t)
            .0
            .wrapping_add_signed(latest_of(&self.jumps, t))
    }

    fn mono(&self, t: u64) -> u64 {
        self.host.mono(t).0
    }

    /// UTC is the true time, to which the script's time is added.
    fn utc(t: u64) -> u64 {
        EPOCH + t
    }

    fn statement(&self, t: u64) -> Utc {
        Utc {
            offset_ns: 0,
            bound_ns: Some(self.real(t).abs_diff(Self::utc(t)) + 1_000),
            is_holdover: false,
        }
    }

    fn witness(&self, t: u64) -> Witness {
        Witness {
            raw: self.counter(t),
            real_ns: self.real(t),
            mono_ns: [self.mono(t); 2],
            lag_ns: 0,
        }
    }
}

impl Reference for World {
    fn read(&mut self) -> CrossTimestamp {
        let long = self.random.uniform() < 0.03;
        let gap = if long { 20_000 } else { 20 };
        let gaps = [20 + (self.random.uniform() * 20.0) as u64, gap, 25];
        let t = self.now;
        self.now += gaps.iter().sum::<u64>() + 60;
        let mut cross = self.host.cross(t, gaps);
        let [first, second] = [t + gaps[0], t + gaps[0] + gaps[1]];
        let end = t + gaps.iter().sum::<u64>();
        cross.tsc = Some([t, end].map(|t| TscCycles(self.counter(t))));
        cross.real = [first, second].map(|t| RealNs(self.real(t)));
        cross.tai.0 = cross
            .tai
            .0
            .wrapping_add_signed(latest_of(&self.steps, first));
        let offset = |t| self.real(t).wrapping_sub(self.mono(t)).cast_signed();
        cross.offset = (offset(t) == offset(end)).then(|| OffsetNs(offset(t)));
        cross
    }

    fn raw(&mut self) -> Option<Bracket> {
        let [from, until] = [self.now, self.now + 60];
        self.now = until;
        // CLOCK_MONOTONIC_RAW is the true time.
        Some(Bracket {
            tsc: [from, until].map(|t| TscCycles(self.counter(t))),
            real: [RealNs(from + 30); 2],
        })
    }

    fn was_set(&mut self) -> bool {
        let asked = std::mem::replace(&mut self.asked, self.now);
        self.steps
            .iter()
            .any(|(at, _)| (asked..self.now).contains(at))
    }
}

#[derive(Debug, Default)]
struct Found {
    asked: u64,
    refused: u64,
}

impl Found {
    /// What is given must hold the truth.
    fn take(
        &mut self,
        times: Result<(Option<Interval>, Option<Interval>), Refused>,
        (real, utc): (u64, u64),
        what: &str,
    ) {
        self.asked += 1;
        let Ok((host, of_utc)) = times else {
            self.refused += 1;
            return;
        };
        for (interval, truth) in [(host, real), (of_utc, utc)] {
            let Some(Interval {
                earliest_ns,
                latest_ns,
            }) = interval
            else {
                panic!("no bound {what}");
            };
            let off = i128::from(truth) - i128::from(earliest_ns.midpoint(latest_ns));
            let half = (latest_ns - earliest_ns) / 2;
            assert!(
                (earliest_ns..=latest_ns).contains(&truth),
                "{off} ns off, ± {half}, {what}"
            );
        }
    }
}

/// Runs for some seconds; gives what was found of the present, of raw stamps, and of the host's.
fn run(mut world: World, seconds: u64, seed: u64) -> [Found; 3] {
    let mut found = [Found::default(), Found::default(), Found::default()];
    world.now = 10 * MS;
    let first = world.read();
    let mut tracker = Tracker::new(StampSource::Tsc, &first).unwrap();
    let mut publisher = Publisher::default();
    let mut random = Random(seed);
    let mut stamps: VecDeque<u64> = VecDeque::new();
    let mut page: Option<Page> = None;
    for turn in 2..seconds * 100 {
        let until = turn * 10 * MS + (random.uniform() * 2e6) as u64;
        while let Some(page) = &page {
            let step = (random.uniform() * 6e6) as u64 + 1;
            if world.now + step >= until {
                break;
            }
            world.now += step;
            let t = world.now;
            stamps.push_back(t);
            let what = format!("at {t} of {world:?}", world = (&world.steps, &world.jumps));
            let confirmed = calculation::confirm(&page.latest, &world.witness(t));
            let now = world.counter(t);
            let times = confirmed.and_then(|()| calculation::at_or_behind(&page.latest, now));
            let truth = (world.real(t), World::utc(t));
            found[0].take(times.map(|it| (it.host, it.utc)), truth, &what);
            for _ in 0..2 {
                let index = (random.uniform() * stamps.len() as f64) as usize;
                let past = stamps[index];
                // Values of a counter come again after it went back.
                if latest_of(&world.jumps, past) != latest_of(&world.jumps, t) {
                    continue;
                }
                let truth = (world.real(past), World::utc(past));
                let what = format!("{} ns ago, {what}", t - past);
                let raw = world.counter(past);
                let times = confirmed.and_then(|()| calculation::of_raw(page, now, raw));
                found[1].take(times.map(|it| (it.host, it.utc)), truth, &what);
                let times = confirmed.and_then(|()| calculation::of_real(page, now, truth.0));
                found[2].take(times.map(|it| (it.host, it.utc)), truth, &what);
                let difference = calculation::between(&page.latest, now, raw, now);
                if let Ok(difference) = difference {
                    let off = difference.ns.abs_diff((t - past).cast_signed());
                    assert!(
                        off <= difference.bound_ns,
                        "{off} ns, {difference:?} {what}"
                    );
                }
            }
            if stamps.len() > 600 {
                stamps.pop_front();
            }
        }
        world.now = until;
        let (cross, seen) = tracker.look(&mut world);
        tracker.look_at_raw(cross.mono[1], &mut world);
        let utc = world.statement(world.now);
        page = publisher
            .observe(&mut tracker, &cross, seen, &utc)
            .map(|page| {
                let words: [u64; COPY_WORDS] = page.to_words();
                Page::from_words(&words)
            });
    }
    found
}

fn world(seed: u64) -> World {
    let mut random = Random(seed ^ 0x5eed);
    let hertz = 1_000_000_000 + (random.uniform() * 3e9) as u64;
    World {
        host: Host {
            hertz,
            slews: vec![(0, (random.uniform() * 2e4) as i64)],
        },
        steps: Vec::new(),
        jumps: Vec::new(),
        random,
        now: 0,
        asked: 0,
    }
}

fn seeds(quick: u64) -> std::ops::Range<u64> {
    let wanted = std::env::var("TSCAP_SHARED_CLOCK_SEEDS").ok();
    0..wanted.and_then(|it| it.parse().ok()).unwrap_or(quick)
}

fn share(found: &Found) -> f64 {
    found.refused as f64 / found.asked as f64
}

#[test]
fn each_time_is_within_its_bounds() {
    for seed in seeds(20) {
        let found = run(world(seed), 6, seed);
        for of_kind in &found {
            assert!(
                of_kind.asked > 500 && of_kind.refused == 0,
                "{seed}: {found:?}"
            );
        }
    }
}

/// As a daemon that corrects the frequency, up to 8 times a second.
#[test]
fn slews_stay_within_the_bounds() {
    for seed in seeds(20) {
        let mut world = world(seed);
        let mut t = 0;
        while t < 6_000 * MS {
            t += 125 * MS + (world.random.uniform() * 1e9) as u64;
            let ppb = (world.random.uniform() * 8e5 - 4e5) as i64;
            world.host.slews.push((t, ppb));
        }
        let found = run(world, 6, seed);
        assert!(found.iter().all(|it| it.refused == 0), "{seed}: {found:?}");
    }
}

#[test]
fn no_stamp_is_of_the_wrong_side_of_a_step() {
    for seed in seeds(40) {
        let mut world = world(seed);
        let (mut t, mut sum) = (0, 0);
        for _ in 0..3 {
            t += 1_500 * MS + (world.random.uniform() * 1e9) as u64;
            let scale = 10f64.powf(2.0 + world.random.uniform() * 8.0);
            sum += ((world.random.uniform() - 0.5) * scale) as i64;
            world.steps.push((t, sum));
        }
        let found = run(world, 8, seed);
        // Ambiguous are the two readings about each step, and what the clock shows twice.
        assert!(share(&found[0]) < 0.05, "{seed}: {found:?}");
        assert!(share(&found[1]) < 0.1, "{seed}: {found:?}");
    }
}

#[test]
fn a_counter_that_jumps_leaves_no_wrong_times() {
    for seed in seeds(40) {
        let mut world = world(seed);
        let t = 3_000 * MS + (world.random.uniform() * 1e9) as u64;
        let scale = 10f64.powf(6.0 + world.random.uniform() * 4.0);
        let by = ((world.random.uniform() - 0.5) * scale) as i64;
        world.jumps.push((t, by));
        let found = run(world, 8, seed);
        assert!(share(&found[0]) < 0.05, "{seed} {by}: {found:?}");
    }
}

#[test]
fn bounds_are_as_narrow_as_a_capture_s() {
    let seed = 5;
    let mut world = world(seed);
    world.now = 10 * MS;
    let first = world.read();
    let mut tracker = Tracker::new(StampSource::Tsc, &first).unwrap();
    let mut publisher = Publisher::default();
    let mut page = None;
    for turn in 2..1_000 {
        world.now = turn * 10 * MS;
        let (cross, seen) = tracker.look(&mut world);
        tracker.look_at_raw(cross.mono[1], &mut world);
        page = publisher.observe(&mut tracker, &cross, seen, &Utc::default());
    }
    let page = page.unwrap();
    assert_eq!(page.latest.state, state::UNSYNCHRONISED);
    assert!(page.latest.host_bound_ns < 100, "{:?}", page.latest);
    assert!(page.latest.difference_bound_ppb < 30, "{:?}", page.latest);
    assert!((8..=12).contains(&page.past.len()), "{}", page.past.len());
    assert!(
        page.past[1..].iter().all(|it| it.host_bound_ns < 250),
        "{:?}",
        page.past
    );
    assert!(page.latest.rate < 1 << (RATE_FRACTION + 1));
}
