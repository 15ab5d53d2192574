//! What is told of a reference at the end.

use serde::{Deserialize, Serialize};
use tscap_base::text::numbers::{signed, span};
use tscap_clock::ReferenceBounds;
use tscap_time::tsc;

use crate::{Followed, Known};

/// What a reference is to the times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReferenceState {
    /// The times follow it.
    Leads,
    /// The times are within its bound, and follow another one.
    Agrees,
    /// What it says excludes what the majority of the references says (RFC 5905, section 11.2.1).
    Falseticker,
    /// It has not answered for so long that it has no vote. If all are silent, the times go on by
    /// the latest that led, with a growing bound.
    Silent,
    /// It has not told its time yet.
    Unknown,
}

impl ReferenceState {
    /// As in results and files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Leads => "leads",
            Self::Agrees => "agrees",
            Self::Falseticker => "falseticker",
            Self::Silent => "silent",
            Self::Unknown => "unknown",
        }
    }

    /// For people.
    pub fn words(self) -> &'static str {
        match self {
            Self::Unknown => "has told no time",
            other => other.name(),
        }
    }
}

/// A reference among those that are followed, as its follower knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReferenceMember {
    /// "ntp:" and a server, or the path of a device.
    pub name: String,
    /// What it is to the times.
    pub state: ReferenceState,
    /// What is known of it.
    pub known: Option<Known>,
}

/// A reference among those that were followed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReferenceReport {
    /// "ntp:" and a server, or the path of a device.
    pub name: String,
    /// What it was to the times at the end.
    pub state: ReferenceState,
    /// How far the times were ahead of it at the end, ns; absent if it has told no time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ahead_ns: Option<i64>,
    /// Greatest error of what is known of its time, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound_ns: Option<u64>,
    /// Its own greatest error against UTC, as it says, ns; absent if it does not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_bound_ns: Option<u64>,
    /// Since its latest time that was used, at the end, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age_ns: Option<u64>,
}

/// The reference that the times are of. Where stamps are by the host's clocks (`tscap gen`), how
/// far these were off it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReferenceSummary {
    /// "ntp:" and a server, or the path of a device; several are joined by " + ".
    pub name: String,
    /// Greatest error of the times' clock against it, and its own against UTC.
    #[serde(flatten)]
    pub bounds: ReferenceBounds,
    /// Greatest error of that clock against it at the end, ns: `bound_ns` is that of the whole
    /// time, and mostly of its first seconds.
    pub bound_at_end_ns: u64,
    /// Greatest error of a stamp against UTC, ns: `host_bound_ns` and both of these; null if the
    /// reference does not say how far it is off.
    pub stamp_utc_bound_ns: Option<u64>,
    /// Since the latest time of it that was used, at the end, ns: for so long it is carried on.
    pub age_ns: u64,
    /// How far the host's CLOCK_REALTIME was ahead of it at the end, ns.
    pub host_ahead_ns: i64,
    /// Each reference, with its state at the end. Files of early versions have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<ReferenceReport>,
}

impl ReferenceSummary {
    /// Of a reference that is followed, whose times were within `bounds`, and stamps within
    /// `host_bound_ns` of the clock that followed it.
    pub fn of(followed: &Followed, bounds: ReferenceBounds, host_bound_ns: u64) -> Self {
        let (known, now) = (followed.known(), tsc::read());
        let age_of = |known: &Known| {
            let age = now.0.saturating_sub(known.used_at.0);
            known.rate.duration_ns(age)
        };
        let real = known.real_at(now);
        let references = followed.members().into_iter().map(|member| {
            let its = member.known.as_ref();
            let bounds = its.map(|its| its.bounds_at(now));
            ReferenceReport {
                name: member.name,
                state: member.state,
                ahead_ns: its.map(|its| real.0.wrapping_sub(its.real_at(now).0).cast_signed()),
                bound_ns: bounds.map(|it| it.bound_ns),
                own_bound_ns: bounds.and_then(|it| it.own_bound_ns),
                age_ns: its.map(age_of),
            }
        });
        Self {
            name: followed.name().to_owned(),
            bounds,
            bound_at_end_ns: known.bounds_at(now).bound_ns,
            stamp_utc_bound_ns: bounds.utc_ns().map(|it| it.saturating_add(host_bound_ns)),
            age_ns: age_of(&known),
            host_ahead_ns: known.host_ahead_ns,
            references: references.collect(),
        }
    }

    /// Of a reference that no time is by: how far the host's clock is off it.
    pub fn beside(followed: &Followed) -> Self {
        let bounds = followed.known().bounds_at(tsc::read());
        Self::of(followed, bounds, 0)
    }

    /// In a sentence.
    pub fn sentence(&self) -> String {
        let own = self.bounds.own_bound_ns.map(span);
        let own = own.map_or("which does not say how far it is off UTC".into(), |own| {
            format!("which is within ±{own} of UTC, as it says")
        });
        let within = span(self.bounds.bound_ns);
        format!(
            "{} to ±{within} (±{} at the end), {own}; its latest answer was {} old, and this \
             host's clock {} ns ahead of it, at the end",
            self.name,
            span(self.bound_at_end_ns),
            span(self.age_ns),
            signed(self.host_ahead_ns)
        )
    }

    /// In lines: what `is` by it, and below that each of several references.
    pub fn lines(&self, is: &str) -> Vec<String> {
        let each = self.each().into_iter().map(|it| format!("  {it}"));
        std::iter::once(format!("{is} {}", self.sentence()))
            .chain(each)
            .collect()
    }

    /// Each of several references in a sentence.
    pub fn each(&self) -> Vec<String> {
        if self.references.len() < 2 {
            return Vec::new();
        }
        let each = self.references.iter().map(|it| {
            let off = it.ahead_ns.zip(it.bound_ns).map(|(ahead, bound)| {
                let bound = bound.saturating_add(it.own_bound_ns.unwrap_or(0));
                format!(
                    ": the times are {} ns ahead of it, and it is within ±{} of {}",
                    signed(ahead),
                    span(bound),
                    match it.own_bound_ns {
                        Some(_) => "UTC, as it says",
                        None => "its own time",
                    }
                )
            });
            format!(
                "{} {}{}",
                it.name,
                it.state.words(),
                off.unwrap_or_default()
            )
        });
        each.collect()
    }
}
