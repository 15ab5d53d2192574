//! The feed-forward clock of a server's exchanges (Ridoux, Veitch, Broomhead: The Case for
//! Feed-Forward Clock Synchronization): raw stamps of the counter at the client, the server's
//! clock in between.
//!
//! The ways there and back may be of any lengths: the clock is nowhere but inside of what all
//! exchanges allow. Ways that differ by A shift it by A/2, which nobody can see from here, so
//! that half of the round trip is in the bound, and never in the clock.

use serde::{Deserialize, Serialize};

use super::Exchange;
use tscap_clock::model::Verdict;
use tscap_clock::{
    Bracket, Counts, Estimate, FeedForward, NsPerCycle, RealNs, Scale, Tracker, TscCycles,
};

/// The first p̂ needs at least this baseline, ns.
const SHORTEST_BASELINE_NS: u64 = 100_000_000;
/// Farther from the host's p̂ than this, and than the first two exchanges can be off, one of
/// them is wrong: 0.1 %, more than any oscillator is off.
pub(super) const FARTHEST_RATE_PPB: u64 = 1_000_000;
/// PHI (RFC 5905, section 7.2): a server's error grows by so much of the time since it has
/// told it, parts per billion.
pub(crate) const PHI_PPB: u64 = 15_000;

/// What became of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NtpVerdict {
    /// The first of the two that a rate needs.
    First,
    /// It was used.
    Used,
    /// The reply was away for longer than the whole exchange took: one of the clocks went
    /// backwards.
    Torn,
    /// It contradicts the clock, and is not believed unless others say the same.
    Implausible,
    /// The clock begins anew with it: so many exchanges have said the same, or the counter
    /// jumped.
    Jumped,
}

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
    pub verdict: NtpVerdict,
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
    first: Option<Bracket>,
    model: Option<FeedForward>,
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
        let bracket = exchange.bracket(self.error_cycles(away, stamp_error_ns, rate));
        let at = TscCycles(sent.0 + away / 2);
        let rtt_ns = rate
            .duration_ns(away)
            .saturating_sub(left.0.saturating_sub(arrived.0));
        let middle = RealNs(arrived.0 + left.0.saturating_sub(arrived.0) / 2);
        let expected = self.model.as_ref().map(|model| model.estimate(at).real);
        let verdict = self.observe(&bracket, rate);
        if matches!(
            verdict,
            NtpVerdict::First | NtpVerdict::Used | NtpVerdict::Jumped
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
        self.alone = self.model.is_none().then_some((at, alone));
        let there = self.estimate(at).unwrap_or(alone);
        let model = self.model.as_ref();
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

    /// By how much both ends of an exchange of `away` cycles are moved apart: the error of a
    /// stamp, and that of the rate by which the time is taken that it was away, which counts
    /// where the server held it for long.
    fn error_cycles(&self, away: u64, stamp_error_ns: u64, host_rate: NsPerCycle) -> u64 {
        let rate_ppb = match &self.model {
            Some(model) => model.rate_bound_ppb() + Scale::NETWORK.wander_ppb(model.rate()),
            None => FARTHEST_RATE_PPB,
        };
        let stamp_ns = i64::try_from(stamp_error_ns).unwrap_or(i64::MAX);
        // Rounded up.
        let stamp = match stamp_ns {
            0 => 0,
            ns => host_rate.cycles_in(ns).unsigned_abs() + 1,
        };
        stamp + share_up(away, rate_ppb)
    }

    fn observe(&mut self, bracket: &Bracket, host_rate: NsPerCycle) -> NtpVerdict {
        let Some(model) = &mut self.model else {
            return self.begin(bracket, host_rate);
        };
        match model.observe(bracket) {
            Verdict::Used => NtpVerdict::Used,
            Verdict::Torn => NtpVerdict::Torn,
            Verdict::Implausible => NtpVerdict::Implausible,
            Verdict::Jumped { .. } => NtpVerdict::Jumped,
        }
    }

    fn begin(&mut self, bracket: &Bracket, host_rate: NsPerCycle) -> NtpVerdict {
        let Some(first) = self.first else {
            self.first = Some(*bracket);
            return NtpVerdict::First;
        };
        let cycles = bracket.tsc[0].0.saturating_sub(first.tsc[0].0);
        if host_rate.duration_ns(cycles) < SHORTEST_BASELINE_NS {
            return NtpVerdict::First;
        }
        let model = FeedForward::new(Scale::NETWORK, &first, bracket);
        self.model = model.filter(|model| {
            let off_ppb = model.rate().ppb_from(host_rate).unsigned_abs();
            off_ppb <= FARTHEST_RATE_PPB.saturating_add(model.rate_bound_ppb())
        });
        match self.model {
            Some(_) => NtpVerdict::Used,
            None => {
                self.first = Some(*bracket);
                NtpVerdict::First
            }
        }
    }

    /// The server's time at a counter value, with its bound against the server; `None` before
    /// two exchanges.
    pub fn estimate(&self, at: TscCycles) -> Option<Estimate> {
        Some(self.model.as_ref()?.estimate(at))
    }

    /// The server's time from its first exchange on: by the host's rate until there are two,
    /// which may be off by 0.1 %.
    pub fn known(&self, at: TscCycles, host: &Tracker) -> Option<NtpKnown> {
        let latest = self.latest?;
        let rate = host.counter()?.rate();
        let Estimate { real, bound_ns } = match (&self.model, self.alone) {
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
        let (model, latest) = (self.model.as_ref()?, self.latest?);
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

/// So many parts per billion of something, rounded up.
pub(crate) fn share_up(of: u64, ppb: u64) -> u64 {
    let share = (u128::from(of) * u128::from(ppb)).div_ceil(1_000_000_000);
    u64::try_from(share).unwrap_or(u64::MAX)
}

/// How far a time is ahead of another, ns.
fn ahead(of: RealNs, other: RealNs) -> i64 {
    of.0.wrapping_sub(other.0).cast_signed()
}

#[cfg(test)]
mod tests;
