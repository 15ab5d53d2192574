//! The feed-forward clock of a server's exchanges (Ridoux, Veitch, Broomhead: The Case for
//! Feed-Forward Clock Synchronization): raw stamps of the counter at the client, the server's
//! clock in between.
//!
//! The ways there and back may be of any lengths: the clock is nowhere but inside of what all
//! exchanges allow. Ways that differ by A shift it by A/2, which nobody can see from here, so
//! that half of the round trip is in the bound, and never in the clock.

use serde::{Deserialize, Serialize};

use super::Exchange;
use crate::peer::{FARTHEST_RATE_PPB, PeerClock, PeerVerdict, share_up};
use tscap_clock::{Counts, Estimate, FeedForward, RealNs, Tracker, TscCycles};

/// PHI (RFC 5905, section 7.2): a server's error grows by so much of the time since it has
/// told it, parts per billion.
pub(crate) const PHI_PPB: u64 = 15_000;

/// An exchange, and the clocks beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NtpPoint {
    /// The counter in the middle.
    pub at: TscCycles,
    /// How far CLOCK_REALTIME was ahead of the server by this exchange alone, ns: as if both
    /// ways were of one length.
    pub alone_ns: i64,
    /// The server's time then, by the clock of all exchanges so far.
    pub ntp: RealNs,
    /// Greatest error of that against the server, ns.
    pub ntp_bound_ns: u64,
    /// Greatest error of the server against UTC, by its own account, ns.
    pub root_distance_ns: u64,
    /// How far CLOCK_REALTIME was ahead of that clock, ns.
    pub ahead_ns: i64,
    /// Greatest error of that, ns.
    pub bound_ns: u64,
    /// Time on the way, without that at the server, ns.
    pub rtt_ns: u64,
    /// What that is more than the least, ns.
    pub point_error_ns: u64,
    /// How far the middle of the exchange was ahead of what the clock had expected, ns; `None`
    /// before there was a clock.
    pub off_ns: Option<i64>,
    /// What became of it.
    pub verdict: PeerVerdict,
}

/// What is known of a server's clock at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NtpStatus {
    /// The server's time by the feed-forward clock.
    pub ntp: RealNs,
    /// How far CLOCK_REALTIME is ahead of it, ns.
    pub host_ahead_ns: i64,
    /// Greatest error of that, of both clocks, ns: whatever the shares of the ways there and
    /// back. It grows while nobody answers.
    pub bound_ns: u64,
    /// Greatest error of the feed-forward clock against UTC, ns: against the server, and the
    /// server's own root distance, which grows with its age.
    pub utc_bound_ns: u64,
    /// The server's part of that, ns: half of its root delay, its root dispersion, and 15 ppm
    /// of their age.
    pub root_distance_ns: u64,
    /// How much faster than the server the host's clock runs, by p̂ of each, parts per
    /// billion.
    pub host_rate_ppb: i64,
    /// Greatest error of that.
    pub rate_bound_ppb: u64,
    /// Time on the way at the latest exchange, ns.
    pub rtt_ns: u64,
    /// The least, ns; as wide as stamps and the server's precision make it.
    pub least_width_ns: u64,
    /// Since the latest exchange of use, ns.
    pub age_ns: u64,
    /// The server's stratum.
    pub stratum: u8,
    /// What became of the exchanges.
    pub readings: Counts,
}

/// A server's time at a counter value, as well as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NtpKnown {
    /// The server's time.
    pub real: RealNs,
    /// Greatest error of that against the server, ns.
    pub bound_ns: u64,
    /// Greatest error of the server against UTC, by its own account, ns.
    pub root_distance_ns: u64,
    /// The counter at the latest exchange of use.
    pub used_at: TscCycles,
}

/// The clock of one server.
#[derive(Clone, Debug, Default)]
pub struct NtpClock {
    peer: PeerClock,
    /// The latest that was used: its time on the way, and what the server said of itself.
    latest: Option<Latest>,
    /// The latest exchange before there was a model: what it tells alone.
    alone: Option<(TscCycles, Estimate)>,
}

#[derive(Clone, Copy, Debug)]
struct Latest {
    at: TscCycles,
    rtt_ns: u64,
    root_distance_ns: u64,
    stratum: u8,
}

impl NtpClock {
    /// Takes in an exchange. `None` before the host's clock has settled.
    pub fn take(&mut self, exchange: &Exchange, host: &Tracker) -> Option<NtpPoint> {
        let stamp_error_ns = exchange.stamp_error_ns;
        let counter = host.counter()?;
        let rate = counter.rate();
        let [sent, received] = exchange.tsc;
        let [arrived, left] = exchange.real;
        let away = received.0.saturating_sub(sent.0);
        let bracket = exchange.bracket(self.peer.error_cycles(away, stamp_error_ns, rate));
        let at = TscCycles(sent.0 + away / 2);
        let rtt_ns = rate
            .duration_ns(away)
            .saturating_sub(left.0.saturating_sub(arrived.0));
        let middle = RealNs(arrived.0 + left.0.saturating_sub(arrived.0) / 2);
        let expected = self.peer.estimate(at).map(|it| it.real);
        let verdict = self.peer.take(&bracket, rate);
        if matches!(
            verdict,
            PeerVerdict::First | PeerVerdict::Used | PeerVerdict::Jumped
        ) {
            self.latest = Some(Latest {
                at: bracket.tsc[1],
                rtt_ns,
                root_distance_ns: exchange.packet.root_distance_ns(),
                stratum: exchange.packet.stratum,
            });
        }
        let here = counter.model().estimate(at);
        let host_bound_ns = here.bound_ns.max(counter.bound_ns());
        // Before there is a clock, the exchange alone, with the host's rate for the server's.
        let alone = Estimate {
            real: middle,
            bound_ns: rtt_ns.div_ceil(2)
                + share_up(rate.duration_ns(away), FARTHEST_RATE_PPB)
                + stamp_error_ns
                + 1
                + exchange.packet.precision_ns,
        };
        self.alone = self.peer.model().is_none().then_some((at, alone));
        let there = self.estimate(at).unwrap_or(alone);
        let model = self.peer.model();
        let least_ns = model.map_or(rtt_ns, FeedForward::least_width_ns);
        Some(NtpPoint {
            at,
            alone_ns: ahead(here.real, middle),
            ntp: there.real,
            ntp_bound_ns: there.bound_ns,
            root_distance_ns: exchange.packet.root_distance_ns(),
            ahead_ns: ahead(here.real, there.real),
            bound_ns: there.bound_ns.saturating_add(host_bound_ns),
            rtt_ns,
            point_error_ns: rtt_ns.saturating_sub(least_ns),
            off_ns: expected.map(|expected| ahead(middle, expected)),
            verdict,
        })
    }

    /// The server's time at a counter value, with its bound against the server; `None` before
    /// two exchanges.
    pub fn estimate(&self, at: TscCycles) -> Option<Estimate> {
        self.peer.estimate(at)
    }

    /// The server's time from its first exchange on: by the host's rate until there are two,
    /// which may be off by 0.1 %.
    pub fn known(&self, at: TscCycles, host: &Tracker) -> Option<NtpKnown> {
        let latest = self.latest?;
        let rate = host.counter()?.rate();
        let Estimate { real, bound_ns } = match (self.peer.model(), self.alone) {
            (Some(model), _) => model.estimate(at),
            (None, Some((from, alone))) => {
                let ns = rate.duration_ns(at.0.saturating_sub(from.0));
                Estimate {
                    real: RealNs(alone.real.0.saturating_add(ns)),
                    bound_ns: (alone.bound_ns).saturating_add(share_up(ns, FARTHEST_RATE_PPB)),
                }
            }
            (None, None) => return None,
        };
        let age_ns = rate.duration_ns(at.0.saturating_sub(latest.at.0));
        Some(NtpKnown {
            real,
            bound_ns,
            root_distance_ns: (latest.root_distance_ns).saturating_add(share_up(age_ns, PHI_PPB)),
            used_at: latest.at,
        })
    }

    /// At a counter value; `None` before two exchanges.
    pub fn status(&self, at: TscCycles, host: &Tracker) -> Option<NtpStatus> {
        let (model, latest) = (self.peer.model()?, self.latest?);
        let counter = host.counter()?;
        let (here, there) = (counter.model().estimate(at), model.estimate(at));
        let host_bound_ns = here.bound_ns.max(counter.bound_ns());
        let since = |tsc: TscCycles| model.rate().duration_ns(at.0.saturating_sub(tsc.0));
        let age_ns = since(latest.at);
        let root_distance_ns = latest
            .root_distance_ns
            .saturating_add(share_up(age_ns, PHI_PPB));
        Some(NtpStatus {
            ntp: there.real,
            host_ahead_ns: ahead(here.real, there.real),
            bound_ns: host_bound_ns.saturating_add(there.bound_ns),
            utc_bound_ns: there.bound_ns.saturating_add(root_distance_ns),
            root_distance_ns,
            host_rate_ppb: counter.rate().ppb_from(model.rate()),
            rate_bound_ppb: counter.rate_bound_ppb() + model.rate_bound_ppb() + 1,
            rtt_ns: latest.rtt_ns,
            least_width_ns: model.least_width_ns(),
            age_ns,
            stratum: latest.stratum,
            readings: model.counts(),
        })
    }
}

/// How far a time is ahead of another, ns.
fn ahead(of: RealNs, other: RealNs) -> i64 {
    of.0.wrapping_sub(other.0).cast_signed()
}

#[cfg(test)]
mod tests;
