//! A server's time at any counter value, from both sides: by the exchanges that a log kept.

use super::NtpPoint;
use super::clock::PHI_PPB;
use crate::peer::{FARTHEST_RATE_PPB, PeerVerdict, share_up};
use tscap_clock::{NsPerCycle, RealNs, Scale, TscCycles};

/// A server's time at a counter value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerTime {
    /// Its clock.
    pub real: RealNs,
    /// Greatest error of that against the server, ns.
    pub bound_ns: u64,
    /// Greatest error of the server against UTC, by its own account, ns.
    pub root_distance_ns: u64,
    /// To the nearest exchange, ns.
    pub away_ns: u64,
    /// The server was set between the exchanges on either side, or its clock began anew:
    /// nobody knows whether before or after.
    pub is_ambiguous: bool,
}

impl ServerTime {
    /// Greatest error against UTC, ns.
    pub fn utc_bound_ns(&self) -> u64 {
        self.bound_ns.saturating_add(self.root_distance_ns)
    }
}

/// Why exchanges make no lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoLines {
    /// There is none of use.
    #[error("none of its exchanges is of use")]
    NoExchange,
    /// Its values come twice.
    #[error("the counter went back between two exchanges")]
    CounterWentBack,
}

/// A server's clock as straight lines from exchange to exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NtpLines {
    knots: Vec<Knot>,
    /// The counter's, by the host's clock.
    host_rate: NsPerCycle,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Knot {
    at: TscCycles,
    real: RealNs,
    bound_ns: u64,
    root_distance_ns: u64,
    /// No line leads to it from the one before.
    begins: bool,
    /// By how much the line before misses it, carried on to it, ns.
    missed_ns: u64,
}

impl NtpLines {
    /// By exchanges in the order of a log; `host_rate` serves where there is only one.
    ///
    /// # Errors
    /// [`NoLines`]
    pub fn new<'a>(
        points: impl IntoIterator<Item = &'a NtpPoint>,
        host_rate: NsPerCycle,
    ) -> Result<Self, NoLines> {
        let mut lines = Self {
            knots: Vec::new(),
            host_rate,
        };
        for point in points {
            let begins = match point.verdict {
                PeerVerdict::First | PeerVerdict::Used => false,
                PeerVerdict::Jumped => true,
                PeerVerdict::Torn | PeerVerdict::Implausible => continue,
            };
            let latest = lines.knots.last();
            if latest.is_some_and(|latest| point.at <= latest.at) {
                return Err(NoLines::CounterWentBack);
            }
            let begins = begins || latest.is_none_or(|latest| latest.real >= point.ntp);
            let expected = if begins {
                None
            } else {
                lines.carried(point.at)
            };
            lines.knots.push(Knot {
                at: point.at,
                real: point.ntp,
                bound_ns: point.ntp_bound_ns,
                root_distance_ns: point.root_distance_ns,
                begins,
                missed_ns: expected.map_or(0, |expected| expected.0.abs_diff(point.ntp.0)),
            });
        }
        if lines.knots.is_empty() {
            Err(NoLines::NoExchange)
        } else {
            Ok(lines)
        }
    }

    /// Exchanges that it is made of.
    pub fn exchanges(&self) -> usize {
        self.knots.len()
    }

    /// The server's time.
    ///
    /// Between two exchanges it is on the line that joins them. The bound is the greater one of
    /// both ends, with what the line before missed the second one by, as far as the server's rate
    /// was changed once in between, and what the rate can wander. Outside of them, and where the
    /// server was set, the nearest line is carried on.
    pub fn at(&self, at: TscCycles) -> ServerTime {
        let after = self.knots.partition_point(|knot| knot.at <= at);
        let (before, next) = (after.checked_sub(1), self.knots.get(after));
        match (before, next) {
            (Some(index), Some(next)) if !next.begins => self.between(index, at),
            (Some(index), next) => {
                let rate = self.rate_before(index);
                ServerTime {
                    is_ambiguous: next.is_some(),
                    ..self.outside(index, rate, at)
                }
            }
            (None, _) => {
                let has_line = self.knots.get(1).is_some_and(|second| !second.begins);
                let rate = self.rate_before(usize::from(has_line));
                self.outside(0, rate, at)
            }
        }
    }

    /// The greatest bounds between two counter values: against the server, and the server's
    /// own.
    pub fn greatest(&self, from: TscCycles, until: TscCycles) -> (u64, u64) {
        let looks = self.knots.windows(2).flat_map(|pair| {
            let middle = pair[0].at.0 + (pair[1].at.0 - pair[0].at.0) / 2;
            [pair[0].at, TscCycles(middle), pair[1].at]
        });
        let within = looks.filter(|at| (from..=until).contains(at));
        let times = within.chain([from, until]).map(|at| self.at(at));
        times.fold((0, 0), |(bound_ns, root_ns), time| {
            (
                time.bound_ns.max(bound_ns),
                time.root_distance_ns.max(root_ns),
            )
        })
    }

    fn between(&self, index: usize, at: TscCycles) -> ServerTime {
        let [before, next] = [self.knots[index], self.knots[index + 1]];
        let rate = self.rate_before(index + 1).rate;
        let [since, left] = [at.0 - before.at.0, next.at.0 - at.0].map(|it| rate.duration_ns(it));
        let away_ns = since.min(left);
        let wander_ns = share_up(away_ns, 2 * Scale::NETWORK.wander_ppb(rate));
        let roots = [(before, since), (next, left)];
        let roots = roots.map(|(knot, ns)| knot.root_distance_ns + share_up(ns, PHI_PPB));
        ServerTime {
            real: RealNs(before.real.0.saturating_add(since)),
            bound_ns: (before.bound_ns.max(next.bound_ns))
                .saturating_add(next.missed_ns)
                .saturating_add(wander_ns + 1),
            root_distance_ns: roots[0].min(roots[1]),
            away_ns,
            is_ambiguous: false,
        }
    }

    fn outside(&self, index: usize, rate: Carried, at: TscCycles) -> ServerTime {
        let knot = self.knots[index];
        let away_ns = rate.rate.duration_ns(at.0.abs_diff(knot.at.0));
        let real = if at >= knot.at {
            knot.real.0.saturating_add(away_ns)
        } else {
            knot.real.0.saturating_sub(away_ns)
        };
        ServerTime {
            real: RealNs(real),
            bound_ns: (knot.bound_ns)
                .saturating_add(share_up(away_ns, rate.error_ppb))
                .saturating_add(1),
            root_distance_ns: knot
                .root_distance_ns
                .saturating_add(share_up(away_ns, PHI_PPB)),
            away_ns,
            is_ambiguous: false,
        }
    }

    /// Where the latest line leads to.
    fn carried(&self, at: TscCycles) -> Option<RealNs> {
        let latest = self.knots.len().checked_sub(1)?;
        if latest == 0 || self.knots[latest].begins {
            return None;
        }
        let knot = self.knots[latest];
        let since = at.0.saturating_sub(knot.at.0);
        let ns = self.rate_before(latest).rate.duration_ns(since);
        Some(RealNs(knot.real.0.saturating_add(ns)))
    }

    /// The rate of the line that leads to an exchange, with its error; the host's if there is
    /// none.
    fn rate_before(&self, index: usize) -> Carried {
        let knot = self.knots[index];
        let before = index.checked_sub(1).map(|index| self.knots[index]);
        let line = before.filter(|_| !knot.begins).and_then(|before| {
            let ns = knot.real.0.checked_sub(before.real.0)?;
            let rate = NsPerCycle::of(ns, knot.at.0 - before.at.0)?;
            let both = u128::from(before.bound_ns) + u128::from(knot.bound_ns);
            let ends_ppb = (both * 1_000_000_000).div_ceil(u128::from(ns.max(1)));
            let ends_ppb = u64::try_from(ends_ppb).unwrap_or(u64::MAX);
            let wander_ppb = 2 * Scale::NETWORK.wander_ppb(rate);
            Some(Carried {
                rate,
                error_ppb: ends_ppb.saturating_add(wander_ppb),
            })
        });
        line.unwrap_or(Carried {
            rate: self.host_rate,
            error_ppb: FARTHEST_RATE_PPB,
        })
    }
}

/// A rate, and how far it may be off.
#[derive(Clone, Copy, Debug)]
struct Carried {
    rate: NsPerCycle,
    error_ppb: u64,
}

#[cfg(test)]
mod tests;
