//! Random days of servers: honest ones, ones that lie by little or by much, that fall silent, come
//! back or die, and whose name moves to another server. Fewer than half of those that answer lie.
//! Every stated bound is held against the true time.

use super::*;
use crate::followed::Steered;
use tscap_clock::MonoNs;
use tscap_clock::scripted::Random;

/// On every push; by night `TSCAP_DAYS` says how many.
const DAYS: u64 = 4;
const DAY_S: u64 = 86_400;
const POLL_S: u64 = 16;

/// A server as its follower knows it.
struct Server {
    /// How far its clock is off UTC, ns, within its own bound.
    off_ns: f64,
    own_ns: f64,
    /// The way to it: half of a round trip.
    half_ns: f64,
    /// Of the latest answer: when, error, bound, and error of the rate.
    answered_s: Option<u64>,
    error_ns: f64,
    bound_ns: f64,
    rate_ppb: f64,
    lie_ns: f64,
    silent_until_s: u64,
    turn: u64,
    set_after: Option<TscCycles>,
}

/// What follows keeps: a drift of 0.1 ppm is assumed, and 15 ppm for the server.
const GROWTH_PPB: f64 = 200.0;
const OWN_GROWTH_PPB: u64 = 15_000;

fn within(random: &mut Random, most: f64) -> f64 {
    most * (2.0 * random.uniform() - 1.0)
}

/// Between two values, each order of magnitude as often.
fn about(random: &mut Random, least: f64, most: f64) -> f64 {
    least * (most / least).powf(random.uniform())
}

impl Server {
    fn new(random: &mut Random) -> Self {
        let own_ns = about(random, 20_000.0, 50e6);
        Self {
            off_ns: within(random, own_ns),
            own_ns,
            half_ns: about(random, 10_000.0, 50e6),
            answered_s: None,
            error_ns: 0.0,
            bound_ns: 0.0,
            rate_ppb: 0.0,
            lie_ns: 0.0,
            silent_until_s: 0,
            turn: 0,
            set_after: None,
        }
    }

    /// An answer comes.
    fn answers(&mut self, s: u64, random: &mut Random) {
        self.bound_ns = self.half_ns * (1.0 + random.uniform());
        self.error_ns = within(random, self.bound_ns);
        self.rate_ppb = within(random, GROWTH_PPB - 1.0);
        self.answered_s = Some(s);
    }

    fn age_s(&self, s: u64) -> Option<u64> {
        self.answered_s.map(|answered| s - answered)
    }

    fn vote(&self, s: u64) -> Vote {
        let age = self.age_s(s);
        let known = age.map(|age| {
            let age = age as f64;
            let off = self.off_ns + self.error_ns + self.rate_ppb * age + self.lie_ns;
            Known {
                bound_ns: (self.bound_ns + GROWTH_PPB * age) as u64 + 2,
                growth_ppb: GROWTH_PPB as u64,
                own_bound_ns: Some((self.own_ns + OWN_GROWTH_PPB as f64 * age) as u64 + 2),
                own_growth_ppb: OWN_GROWTH_PPB,
                used_at: TscCycles((s - age as u64) * S),
                turn: self.turn,
                set_after: self.set_after,
                ..known(s * S, off as i64, 0)
            }
        });
        let is_older = |polls: u64| age.is_some_and(|age| age > polls * POLL_S);
        Vote {
            known,
            is_late: is_older(2),
            is_silent: is_older(8),
        }
    }

    fn has_vote(&self, s: u64) -> bool {
        self.age_s(s).is_some_and(|age| age <= 8 * POLL_S)
    }
}

/// What a day has seen.
#[derive(Debug, Default)]
struct Found {
    lies: u64,
    falsetickers: u64,
    leaders: u64,
    silences: u64,
    moves: u64,
    widest_ns: u64,
}

#[track_caller]
fn day(seed: u64, found: &mut Found) {
    let mut random = Random(seed);
    let count = 2 + (random.uniform() * 4.0) as usize;
    let mut servers: Vec<_> = (0..count).map(|_| Server::new(&mut random)).collect();
    let mut combined = Combined::default();
    let mut clock: Option<Steered> = None;
    let mut leader = None;
    for s in 1..DAY_S {
        events(&mut servers, s, &mut random, found);
        let votes: Vec<_> = servers.iter().map(|it| it.vote(s)).collect();
        let at = TscCycles(s * S);
        let Some(said) = combined.judge(&votes, at) else {
            continue;
        };
        assert!(holds(&said.known), "day {seed}, {s} s: {said:?}");
        // Both what was said before and what is said now hold the truth.
        assert_eq!(said.known.turn, 0, "day {seed}, {s} s: {said:?}");
        let leads = said
            .states
            .iter()
            .position(|it| *it == ReferenceState::Leads);
        found.leaders += u64::from(leads != leader);
        leader = leads;
        let false_ones = said
            .states
            .iter()
            .filter(|it| **it == ReferenceState::Falseticker);
        found.falsetickers += u64::from(false_ones.count() > 0);
        let clock = clock.get_or_insert_with(|| Steered::new(said.known, at, MonoNs(0)));
        for is_steered in [false, true] {
            if is_steered {
                clock.steer(said.known, at);
            }
            let bounds = clock.bounds_at(at);
            let off = clock.real_at(at).0.abs_diff(EPOCH + at.0);
            let bound = bounds.utc_ns().expect("servers say it");
            assert!(
                off <= bound,
                "day {seed}, {s} s: {off} > {bound} ns: {said:?}"
            );
            found.widest_ns = found.widest_ns.max(bound);
        }
    }
}

/// What happens in a second.
fn events(servers: &mut [Server], s: u64, random: &mut Random, found: &mut Found) {
    for it in 0..servers.len() {
        let chance = random.uniform();
        let server = &mut servers[it];
        // Some times a day.
        if chance < 5.0 / DAY_S as f64 {
            server.silent_until_s = s + about(random, 20.0, 20_000.0) as u64;
            found.silences += 1;
        } else if chance < 6.0 / DAY_S as f64 {
            // It dies, and its name moves to another one that is as honest.
            *server = Server {
                silent_until_s: s + about(random, 40.0, 4_000.0) as u64,
                ..Server::new(random)
            };
            found.moves += 1;
        } else if chance < 16.0 / DAY_S as f64 {
            server.lie_ns = 0.0;
            let liars = servers.iter().filter(|it| it.lie_ns != 0.0).count();
            if 2 * (liars + 1) < servers.len() {
                let lie = about(random, 1_000.0, 5e9);
                let sign = if random.uniform() < 0.5 { -1.0 } else { 1.0 };
                servers[it].lie_ns = sign * lie;
                servers[it].turn += 1;
                servers[it].set_after = Some(TscCycles((s - 1) * S));
                found.lies += 1;
            }
        }
        let server = &mut servers[it];
        if s >= server.silent_until_s && s % POLL_S == it as u64 {
            server.answers(s, random);
        }
    }
    // The assumption.
    let voters = servers.iter().filter(|it| it.has_vote(s)).count();
    let lies = |it: &Server| it.lie_ns != 0.0;
    let liars = servers
        .iter()
        .filter(|it| it.has_vote(s) && lies(it))
        .count();
    if 2 * liars >= voters {
        // Also where all are silent, and the latest that led goes on.
        for server in servers.iter_mut().filter(|it| lies(it)) {
            server.lie_ns = 0.0;
        }
    }
}

#[test]
fn bounds_hold_on_random_days_of_several_servers() {
    let days = std::env::var("TSCAP_DAYS").map(|it| it.parse().expect("TSCAP_DAYS is a number"));
    let days = days.unwrap_or(DAYS);
    let mut found = Found::default();
    for seed in 0..days {
        day(seed, &mut found);
    }
    println!("{days} days: {found:?}");
    // It has seen what it is about.
    assert!(
        found.lies * 4 >= days && found.silences >= days && found.leaders >= days,
        "{found:?}"
    );
    assert!(found.falsetickers * 4 >= days, "{found:?}");
}
