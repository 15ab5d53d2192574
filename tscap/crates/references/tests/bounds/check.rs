//! Holds what was stated against the model's true time.

use tscap_clock::Fit;
use tscap_clock::interval_ns;
use tscap_references::PhcBase;

use super::capture::{Captured, Stamp, capture};
use super::host::{Event, Host};
use super::log::log;
use super::scenario::{S, Scenario};

/// What is held against the truth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Check {
    /// A stamp as it was converted, by the bound of that moment.
    Live,
    /// By the bound of the last statistics.
    End,
    /// By `tscap convert`.
    Converted,
    /// How far that has moved it, by the bound of the last statistics.
    Moved,
    /// By `tscap convert --clock-log`.
    Logged,
    /// How far that has moved it.
    MovedByLog,
    /// The host's clock against a PTP hardware clock.
    Device,
    /// The interval between two stamps, the difference clock, against CLOCK_MONOTONIC_RAW.
    Interval,
}

pub const CHECKS: [Check; 8] = [
    Check::Live,
    Check::End,
    Check::Converted,
    Check::Moved,
    Check::Logged,
    Check::MovedByLog,
    Check::Device,
    Check::Interval,
];

/// The one farthest outside of its bound.
#[derive(Clone, Copy, Debug)]
pub struct Worst {
    pub at_ns: u64,
    pub error_ns: u64,
    pub bound_ns: u64,
}

/// What one check found.
#[derive(Clone, Copy, Debug, Default)]
pub struct Found {
    pub checked: u64,
    pub outside: u64,
    pub worst: Option<Worst>,
}

impl Found {
    fn take(&mut self, at_ns: u64, error_ns: u64, bound_ns: u64) {
        self.checked += 1;
        if error_ns <= bound_ns {
            return;
        }
        self.outside += 1;
        let beyond = |worst: Worst| worst.error_ns - worst.bound_ns;
        if self
            .worst
            .is_none_or(|worst| error_ns - bound_ns > beyond(worst))
        {
            self.worst = Some(Worst {
                at_ns,
                error_ns,
                bound_ns,
            });
        }
    }
}

/// What one run found.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub found: [Found; CHECKS.len()],
    pub ambiguous: u64,
    /// The bound of the last statistics, ns.
    pub bound_ns: u64,
}

impl Outcome {
    pub fn of(&self, check: Check) -> &Found {
        &self.found[check as usize]
    }
}

/// Runs a scenario; `None` if its clock did not settle.
pub fn run(scenario: &Scenario) -> Option<Outcome> {
    let mut random = scenario.random.clone();
    let host = Host::new(&scenario.machine, &scenario.events, &mut random);
    let captured = capture(scenario, &host)?;
    let logged = log(scenario, &host);
    let mut found = [Found::default(); CHECKS.len()];
    let own = Fit::new(&captured.history);
    let by_log = logged.as_ref().map(|logged| Fit::new(&logged.history));
    let certain = captured.stamps.iter().filter(|stamp| !stamp.is_ambiguous);
    for stamp in certain.clone() {
        let error_ns = stamp.live.0.abs_diff(stamp.truth.0);
        found[Check::Live as usize].take(stamp.at_ns, error_ns, stamp.bound_ns);
        found[Check::End as usize].take(stamp.at_ns, error_ns, captured.bound_ns);
        convert(
            &mut found,
            [Check::Converted, Check::Moved],
            &own,
            stamp,
            &captured,
        );
        if let Some(fit) = &by_log {
            convert(
                &mut found,
                [Check::Logged, Check::MovedByLog],
                fit,
                stamp,
                &captured,
            );
        }
    }
    for look in logged.iter().flat_map(|logged| &logged.looks) {
        let error_ns = match look.base {
            _ if look.may_be_far => look.ahead_ns.abs_diff(look.truth_ns),
            PhcBase::Tai => look.ahead_ns.abs_diff(look.truth_ns),
            _ => S,
        };
        found[Check::Device as usize].take(look.at_ns, error_ns, look.bound_ns);
    }
    intervals(&mut found[Check::Interval as usize], scenario, &captured);
    let stamps = captured.stamps.len() as u64;
    Some(Outcome {
        found,
        ambiguous: stamps - certain.count() as u64,
        bound_ns: captured.bound_ns,
    })
}

fn convert(
    found: &mut [Found; CHECKS.len()],
    [converted, moved]: [Check; 2],
    fit: &Fit,
    stamp: &Stamp,
    captured: &Captured,
) {
    let live_bound_ns = captured
        .live_bounds
        .at(stamp.raw)
        .unwrap_or(captured.bound_ns);
    let Ok(again) = fit.refine(stamp.raw, stamp.live, live_bound_ns) else {
        return;
    };
    let error_ns = again.real.0.abs_diff(stamp.truth.0);
    found[converted as usize].take(stamp.at_ns, error_ns, again.bound_ns);
    let by_ns = again.real.0.abs_diff(stamp.live.0);
    found[moved as usize].take(stamp.at_ns, by_ns, captured.bound_ns);
}

/// A value of the coarsest counter, ns: an event takes place with it.
const COUNT: u64 = 100;

/// From stamp to stamp, and over many, where the counter ran on between them.
fn intervals(found: &mut Found, scenario: &Scenario, captured: &Captured) {
    let Some(raw) = captured.counter.and_then(|counter| counter.raw) else {
        return;
    };
    let jumps = unknown_rates(scenario);
    // What the kernel counts by has no parts of a count, unless the machine was moved to one
    // where the TSC runs at another rate than that.
    let is_moved = |(_, event): &(u64, Event)| matches!(event, Event::Migration { .. });
    let count_ns = if scenario.events.iter().any(is_moved) {
        scenario.machine.value_ns()
    } else {
        scenario.machine.count_ns()
    };
    for apart in [1, 100, 5_000] {
        for (from, to) in captured
            .stamps
            .iter()
            .zip(captured.stamps.iter().skip(apart))
        {
            let is_over =
                |(at, until): &(u64, u64)| from.at_ns <= *until && to.at_ns + COUNT >= *at;
            if jumps.iter().any(is_over) {
                continue;
            }
            let truth_ns = to.raw_ns - from.raw_ns;
            let said_ns = interval_ns(from.raw, to.raw, captured.counter.as_ref());
            let error_ns = said_ns.abs_diff(truth_ns.cast_signed());
            // Both ends are whole nanoseconds, or counts of a coarse counter.
            let bound_ns = (truth_ns * raw.bound_ppb).div_ceil(S) + 2 + 2 * count_ns;
            found.take(to.at_ns, error_ns, bound_ns);
        }
    }
}

/// From when until when nobody knows the counter's rate, ns, with the moments at which it jumps.
/// Where it runs at several rates, three readings of the raw clock without a jump between them tell
/// one of them. Another reading may seem to be of the time before the jump, and they come once a
/// second.
fn unknown_rates(scenario: &Scenario) -> Vec<(u64, u64)> {
    let jumps = scenario.events.iter();
    let jumps = jumps.filter(|(_, event)| event.moves_counter());
    let mut unknown: Vec<(u64, u64)> = jumps.clone().map(|(at, _)| (*at, *at)).collect();
    let is_moved = |(_, event): &&(u64, Event)| matches!(event, Event::Migration { .. });
    let moved: Vec<u64> = jumps.filter(is_moved).map(|(at, _)| *at).collect();
    if moved.is_empty() {
        return unknown;
    }
    let ends = moved.iter().copied().chain([scenario.end()]);
    for (from, until) in [0].into_iter().chain(moved.iter().copied()).zip(ends) {
        let within = unknown.iter().map(|(at, _)| *at);
        let within = within.filter(|at| (from + 1..until).contains(at));
        let edges: Vec<u64> = [from].into_iter().chain(within).chain([until]).collect();
        let is_reported = edges.windows(2).any(|edge| edge[1] - edge[0] >= 4 * S);
        unknown.push((from, if is_reported { from } else { until }));
    }
    unknown
}
