//! Several references as one: the interval that the majority of them allows, after Marzullo and
//! Owicki ("Maintaining the time in a distributed system", 1983), as NTP selects its truechimers
//! (RFC 5905, section 11.2.1).
//!
//! Each reference says that UTC is within its bounds of its time. If fewer than half of these
//! intervals are wrong, UTC is where more than half of them overlap: in the hull of all such
//! places. NTP begins with the intersection of all, and takes more only if that is empty; a
//! reference that lies by less than the bounds of the others would get through there.
//!
//! The time in that interval is that of one of the references, which leads, as far as it is inside.
//! Another one takes its place when it contradicts the others, is late, or is much worse; that
//! changes neither the interval nor the assumption.

use tscap_clock::{RealNs, TscCycles};

use crate::{Known, ReferenceState};

/// A reference that leads goes on to, unless another one is known so many times better.
const MUCH_BETTER: i128 = 2;

/// What a reference says now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vote {
    /// What is known of it; `None` before it has told its time.
    pub known: Option<Known>,
    /// It has not answered for more than two polls: it leads no more if another one can.
    pub is_late: bool,
    /// It has not answered for so long that it has no vote if another one has.
    pub is_silent: bool,
}

/// What all of them say together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consensus {
    /// The time, whose bounds hold as long as the assumption does.
    pub known: Known,
    /// What each reference is to it.
    pub states: Vec<ReferenceState>,
    /// No place is in the intervals of more than half of them: the bounds are around all.
    pub is_split: bool,
}

/// Keeps which reference leads, and what was said last.
#[derive(Clone, Debug, Default)]
pub struct Combined {
    leader: Option<usize>,
    before: Option<Known>,
    turn: u64,
    set_after: Option<TscCycles>,
    /// Of each reference, its turn when it agreed last.
    agreed: Vec<Option<u64>>,
}

/// Where UTC is by a reference, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Interval {
    low: i128,
    high: i128,
}

impl Interval {
    /// What a reference says of UTC; of one that says nothing of it, what is known of its time.
    fn of(known: &Known, at: TscCycles) -> Self {
        let real = i128::from(known.real_at(at).0);
        let bounds = known.bounds_at(at);
        let bound = bounds.bound_ns.saturating_add(known.doubt_ns);
        let bound = i128::from(bound) + i128::from(bounds.own_bound_ns.unwrap_or(0));
        Self {
            low: real - bound,
            high: real + bound,
        }
    }

    fn meets(&self, other: &Self) -> bool {
        self.low <= other.high && other.low <= self.high
    }

    fn width(&self) -> i128 {
        self.high - self.low
    }

    /// The hull of the places that are in more than half of `all`, which must be some; `None` if
    /// there is no such place.
    fn of_majority(all: &[Self]) -> Option<Self> {
        let quorum = all.len() / 2 + 1;
        // Intervals are closed: at one place they begin before others end.
        let mut ends: Vec<_> = all
            .iter()
            .flat_map(|it| [(it.low, 0), (it.high, 1)])
            .collect();
        ends.sort_unstable();
        let (mut covered, mut low, mut high) = (0, None, None);
        for (place, is_end) in ends {
            if is_end == 0 {
                covered += 1;
                if covered == quorum {
                    low.get_or_insert(place);
                }
            } else {
                if covered == quorum {
                    high = Some(place);
                }
                covered -= 1;
            }
        }
        low.zip(high).map(|(low, high)| Self { low, high })
    }

    fn hull(all: &[Self]) -> Option<Self> {
        let mut all = all.iter().copied();
        let first = all.next()?;
        Some(all.fold(first, |hull, it| Self {
            low: hull.low.min(it.low),
            high: hull.high.max(it.high),
        }))
    }
}

impl Combined {
    /// What `votes` say at a counter value, always of the same references in the same order. `None`
    /// before one of them has told its time.
    pub fn judge(&mut self, votes: &[Vote], at: TscCycles) -> Option<Consensus> {
        if let [vote] = votes {
            return alone(vote);
        }
        self.agreed.resize(votes.len(), None);
        let voters = self.voters(votes);
        let interval = |voter: &usize| {
            let known = votes[*voter].known.as_ref();
            Interval::of(known.expect("voters have told their time"), at)
        };
        // Where some say how far they are off UTC, the others have nothing to say of it.
        let says_own = |voter: &&usize| {
            let known = votes[**voter].known;
            known.is_some_and(|known| known.own_bound_ns.is_some())
        };
        let mut deciding: Vec<_> = voters.iter().filter(says_own).copied().collect();
        let is_of_utc = !deciding.is_empty();
        if !is_of_utc {
            deciding.clone_from(&voters);
        }
        let said: Vec<_> = deciding.iter().map(interval).collect();
        let majority = Interval::of_majority(&said);
        let is_split = majority.is_none();
        let utc = majority.or_else(|| Interval::hull(&said))?;
        let agreeing: Vec<_> = voters
            .iter()
            .copied()
            .filter(|voter| utc.meets(&interval(voter)))
            .collect();
        let leader = self.lead(votes, &agreeing, interval)?;
        let known = votes[leader].known?;
        let growth_ppb = deciding.iter().filter_map(|voter| votes[*voter].known);
        let growth_ppb = growth_ppb
            .map(|it| {
                let own = it.own_bound_ns.map_or(0, |_| it.own_growth_ppb);
                let apart = it.rate.ppb_from(known.rate).unsigned_abs();
                (it.growth_ppb + own).saturating_add(apart)
            })
            .max()
            .unwrap_or(0);
        let mut said = within(&known, utc, is_of_utc, growth_ppb, at);
        self.join(&mut said, utc, votes, &agreeing, at);
        self.before = Some(said);
        self.leader = Some(leader);
        let states = (0..votes.len()).map(|it| match &votes[it] {
            Vote { known: None, .. } => ReferenceState::Unknown,
            Vote {
                is_silent: true, ..
            } => ReferenceState::Silent,
            _ if it == leader => ReferenceState::Leads,
            _ if agreeing.contains(&it) => ReferenceState::Agrees,
            _ => ReferenceState::Falseticker,
        });
        Some(Consensus {
            known: said,
            states: states.collect(),
            is_split,
        })
    }

    /// The counter jumped, and this is what is known until references tell their times again.
    pub fn counter_jumped(&mut self, known: Known) {
        self.turn = known.turn;
        self.set_after = known.set_after;
        self.before = Some(known);
    }

    /// Those that have a vote: who answers, or else who led last, or else any.
    fn voters(&self, votes: &[Vote]) -> Vec<usize> {
        let has_told = |it: &usize| votes[*it].known.is_some();
        let all: Vec<_> = (0..votes.len()).filter(has_told).collect();
        let answering: Vec<_> = all
            .iter()
            .copied()
            .filter(|it| !votes[*it].is_silent)
            .collect();
        if !answering.is_empty() {
            return answering;
        }
        match self.leader.filter(has_told) {
            Some(leader) => vec![leader],
            None => all,
        }
    }

    /// Which one leads.
    fn lead(
        &self,
        votes: &[Vote],
        agreeing: &[usize],
        interval: impl Fn(&usize) -> Interval,
    ) -> Option<usize> {
        let width = |it: &usize| interval(it).width();
        let in_time: Vec<_> = agreeing
            .iter()
            .copied()
            .filter(|it| !votes[*it].is_late)
            .collect();
        let of = if in_time.is_empty() {
            agreeing
        } else {
            &in_time
        };
        let best = of.iter().copied().min_by_key(width)?;
        let current = self.leader.filter(|it| of.contains(it));
        let current = current.filter(|it| width(it) <= MUCH_BETTER * width(&best));
        current.or(Some(best))
    }

    /// Goes on from what was said last, if that can be; else the times step.
    fn join(
        &mut self,
        said: &mut Known,
        utc: Interval,
        votes: &[Vote],
        agreeing: &[usize],
        at: TscCycles,
    ) {
        if let Some(before) = self.before
            && !utc.meets(&Interval::of(&before, at))
        {
            self.turn += 1;
            let set = agreeing.iter().filter_map(|it| {
                let known = votes[*it].known?;
                let is_new = self.agreed[*it].is_some_and(|turn| turn != known.turn);
                known.set_after.filter(|_| is_new)
            });
            self.set_after = set.chain([before.at]).min();
        }
        for it in agreeing {
            self.agreed[*it] = votes[*it].known.map(|known| known.turn);
        }
        said.turn = self.turn;
        said.set_after = self.set_after;
    }
}

/// What a single reference says, whatever that is.
fn alone(vote: &Vote) -> Option<Consensus> {
    Some(Consensus {
        known: vote.known?,
        states: vec![if vote.is_silent {
            ReferenceState::Silent
        } else {
            ReferenceState::Leads
        }],
        is_split: false,
    })
}

/// The time of who leads, inside of where UTC is.
fn within(leader: &Known, utc: Interval, is_of_utc: bool, growth_ppb: u64, at: TscCycles) -> Known {
    let its = i128::from(leader.real_at(at).0);
    let real = its.clamp(utc.low, utc.high);
    let bound = (real - utc.low).max(utc.high - real);
    let ns = |ns: i128| u64::try_from(ns.max(0)).unwrap_or(u64::MAX);
    let bound_ns = ns(bound);
    // Against who leads, and of that against UTC.
    let of_leader = leader
        .bounds_at(at)
        .bound_ns
        .saturating_add(ns((real - its).abs()));
    let bounds = if is_of_utc {
        let of_leader = of_leader.min(bound_ns);
        (of_leader, Some(bound_ns - of_leader))
    } else {
        (bound_ns, None)
    };
    let growths = if is_of_utc {
        (
            leader.growth_ppb,
            growth_ppb.saturating_sub(leader.growth_ppb),
        )
    } else {
        (growth_ppb, leader.own_growth_ppb)
    };
    let moved = i64::try_from(its - real).unwrap_or(0);
    Known {
        at,
        real: RealNs(ns(real)),
        bound_ns: bounds.0,
        growth_ppb: growths.0,
        own_bound_ns: bounds.1,
        own_growth_ppb: growths.1,
        host_ahead_ns: leader.host_ahead_ns.saturating_add(moved),
        doubt_ns: 0,
        ..*leader
    }
}

#[cfg(test)]
mod tests;
