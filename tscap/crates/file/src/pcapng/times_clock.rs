//! Whether the stamps of two interfaces are of one clock, and how far two are off each other.
//!
//! Whoever takes the difference of two stamps, or holds one against the other, asks here. A
//! clock is that of one boot of one machine; where a reference gives the times it is that of
//! one writer of one capture.

use super::custom::{FollowerOption, InterfaceOption, StatisticsOption};
use tscap_base::text::escaped::escaped;
use tscap_clock::{Segment, StampSource};

/// Segments of a clock that are kept: as many as a capture keeps.
const MOST_SEGMENTS: usize = 1_000;

/// The clock that the times of an interface are of, by what its file says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimesClock {
    /// A number that no other interface has.
    interface: usize,
    boot: Option<String>,
    source: Option<StampSource>,
    reference: Option<String>,
    follower: Option<FollowerOption>,
    segments: Vec<Segment>,
    bounds: Option<TimesBounds>,
    /// `tscap convert` took the times from the clock of a server or of another host: its bounds are
    /// no statistics'.
    is_of_other: bool,
    /// Captures of which there are last statistics: several where another program has made
    /// one interface of those of several captures.
    captures: u32,
}

/// The greatest errors of the times of an interface, as its file states them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TimesBounds {
    /// Against the clock of the times, ns.
    clock_ns: u64,
    /// Of that clock against the reference that it follows, ns; 0 where it follows none.
    reference_ns: u64,
    /// Of that clock against UTC, ns; `None` if that is not known at some time.
    utc_ns: Option<u64>,
}

/// What two clocks have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockRelation {
    /// Both are the same clock, read by one capture or by several of one boot.
    Same,
    /// They follow one reference, each by itself.
    SameReference,
    /// No more than that both show UTC, as well as they do.
    Utc,
}

impl TimesClock {
    /// The clock of an interface, which gets a number that no other one has.
    pub fn new(interface: usize, option: Option<&InterfaceOption>) -> Self {
        let Some(option) = option else {
            return Self {
                interface,
                ..Self::default()
            };
        };
        if let Some(peer) = option.peer {
            // Raw stamps are of the host that captured, times and bounds of the other one.
            let bounds = TimesBounds {
                clock_ns: peer.bound_ns,
                reference_ns: 0,
                utc_ns: peer.utc_bound_ns.map(|ns| ns.saturating_sub(peer.bound_ns)),
            };
            return Self {
                interface,
                boot: Some(peer.boot.to_string()),
                bounds: Some(bounds),
                is_of_other: true,
                ..Self::default()
            };
        }
        Self {
            interface,
            boot: option.boot_id.clone(),
            source: Some(option.stamp.source),
            reference: match option.ntp {
                Some(ntp) => Some(format!("ntp:{}", ntp.server)),
                None => option.reference.clone(),
            },
            follower: option.follower.clone().filter(|_| option.ntp.is_none()),
            segments: Vec::new(),
            bounds: option.ntp.map(|ntp| TimesBounds {
                clock_ns: ntp.bound_ns,
                reference_ns: 0,
                utc_ns: Some(ntp.root_distance_ns),
            }),
            is_of_other: option.ntp.is_some(),
            captures: 0,
        }
    }

    /// Takes in a statistics block of the interface.
    pub fn take(&mut self, statistics: &StatisticsOption) {
        self.captures += u32::from(statistics.totals.is_some());
        if self.is_of_other {
            return;
        }
        let clock = &statistics.clock;
        let of_reference = clock.reference.map_or(0, |it| it.bound_ns);
        let bounds = self.bounds.get_or_insert(TimesBounds {
            clock_ns: 0,
            reference_ns: 0,
            utc_ns: Some(0),
        });
        bounds.clock_ns = bounds.clock_ns.max(clock.host_bound_ns);
        bounds.reference_ns = bounds.reference_ns.max(of_reference);
        let both = bounds.utc_ns.zip(clock.utc_bound_ns);
        bounds.utc_ns = both.map(|(one, other)| one.max(other));
        for segment in &clock.segments {
            // The latest one comes again when it has grown.
            self.segments.pop_if(|last| last.from == segment.from);
            if self.segments.len() < MOST_SEGMENTS {
                self.segments.push(*segment);
            }
        }
    }

    /// The reference that it follows.
    pub fn reference(&self) -> Option<&str> {
        self.reference.as_deref()
    }

    /// Whose clock it is, for people: the host by its boot, or a reference.
    pub fn whose(&self) -> String {
        // As short as is enough to tell a few apart.
        let short = |boot: &str| boot.chars().take(8).collect::<String>();
        let host = match &self.boot {
            Some(boot) => format!("the host of boot {}", escaped(&short(boot))),
            None => "an unnamed host".into(),
        };
        match &self.reference {
            Some(reference) => format!("{} on {host}", escaped(reference)),
            None => host,
        }
    }

    /// Greatest error of a time against this clock, ns, if the file states one.
    pub fn bound_ns(&self) -> Option<u64> {
        self.bounds.map(|it| it.clock_ns)
    }

    /// The same against what it follows: a reference, or else nothing more.
    pub(crate) fn followed_bound_ns(&self) -> Option<u64> {
        let bounds = self.bounds?;
        Some(bounds.clock_ns.saturating_add(bounds.reference_ns))
    }

    /// Greatest error of a time against UTC, ns, if the file states one.
    pub fn utc_bound_ns(&self) -> Option<u64> {
        let bounds = self.bounds?;
        Some(bounds.clock_ns.saturating_add(bounds.utc_ns?))
    }

    /// What the times of both interfaces have in common.
    pub fn kinship(&self, other: &Self) -> ClockRelation {
        if self.captures > 1 || other.captures > 1 {
            return ClockRelation::Utc;
        }
        let is_one_interface = self.interface == other.interface;
        match (&self.reference, &other.reference) {
            (None, None) if is_one_interface || self.is_of_one_boot(other) => ClockRelation::Same,
            (Some(one), Some(another)) => {
                let is_followed_once = |it: &FollowerOption| it.clocks == 1;
                let followers = self.follower.as_ref().zip(other.follower.as_ref());
                let follower = followers.filter(|(one, another)| one.id == another.id);
                let is_one_device = one == another && one.starts_with('/');
                match follower {
                    Some((it, _)) if is_followed_once(it) => ClockRelation::Same,
                    Some(_) => ClockRelation::SameReference,
                    // Several writers may have written it, each with a clock.
                    None if is_one_interface => ClockRelation::SameReference,
                    None if is_one_device && self.is_of_one_boot(other) => {
                        ClockRelation::SameReference
                    }
                    None => ClockRelation::Utc,
                }
            }
            _ => ClockRelation::Utc,
        }
    }

    /// Greatest error of the difference of a time of each, ns; `None` if nothing bounds it.
    pub fn apart_ns(&self, other: &Self) -> Option<u64> {
        let sum = |of: fn(&Self) -> Option<u64>| Some(of(self)?.saturating_add(of(other)?));
        match self.kinship(other) {
            ClockRelation::Same => sum(Self::bound_ns),
            ClockRelation::SameReference => sum(Self::followed_bound_ns),
            ClockRelation::Utc => sum(Self::utc_bound_ns),
        }
    }

    /// Whether raw stamps of both are of one clock: one counter of one boot.
    pub fn has_raw_stamps_of(&self, other: &Self) -> bool {
        let is_one_source = self.source.is_some() && self.source == other.source;
        let is_one_source = is_one_source && self.captures <= 1 && other.captures <= 1;
        let is_one_interface = self.interface == other.interface;
        is_one_source && (is_one_interface || self.is_of_one_boot(other))
    }

    /// Whether both are of one boot of one machine. Machines that were copied while they ran
    /// have one name for two: what their clocks showed at one time of CLOCK_MONOTONIC tells
    /// them apart.
    pub fn is_of_one_boot(&self, other: &Self) -> bool {
        let is_named_alike = self.boot.is_some() && self.boot == other.boot;
        is_named_alike && (self.interface == other.interface || !self.contradicts(other))
    }

    /// Whether CLOCK_REALTIME went differently in both. The history of a clock that follows a
    /// reference is not that of the host's.
    fn contradicts(&self, other: &Self) -> bool {
        if self.reference.is_some() || other.reference.is_some() {
            return false;
        }
        let slack = |it: &Self| it.bound_ns().unwrap_or(0);
        let slack = slack(self).saturating_add(slack(other));
        let slack = i64::try_from(slack).unwrap_or(i64::MAX);
        let differ = |one: &Segment, another: &Segment| {
            let is_meanwhile = one.from <= another.until && another.from <= one.until;
            let [one, another] = [one.mono_to_real, another.mono_to_real];
            is_meanwhile
                && (one.low > another.high.saturating_add(slack)
                    || another.low > one.high.saturating_add(slack))
        };
        let mut all = self.segments.iter();
        all.any(|one| other.segments.iter().any(|another| differ(one, another)))
    }
}

#[cfg(test)]
mod tests;
