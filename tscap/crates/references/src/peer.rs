//! The feed-forward clock of another host, by exchanges with it: whatever is read between two
//! stamps of the counter is the other clock, strictly.

use serde::{Deserialize, Serialize};
use tscap_clock::model::Verdict;
use tscap_clock::{Bracket, Estimate, FeedForward, NsPerCycle, Scale, TscCycles};

/// The first p̂ needs at least this baseline, ns.
const SHORTEST_BASELINE_NS: u64 = 100_000_000;
/// Farther from the host's p̂ than this, and than the first two exchanges can be off, one of
/// them is wrong: 0.1 %, more than any oscillator is off.
pub(crate) const FARTHEST_RATE_PPB: u64 = 1_000_000;

/// What became of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PeerVerdict {
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

/// What exchanges tell of another host's clock.
#[derive(Clone, Debug, Default)]
pub struct PeerClock {
    first: Option<Bracket>,
    model: Option<FeedForward>,
}

impl PeerClock {
    /// By how much both ends of an exchange of `away` cycles are moved apart: the error of a
    /// stamp, and that of the rate by which the time is taken that it was away, which counts
    /// where the server held it for long.
    pub fn error_cycles(&self, away: u64, stamp_error_ns: u64, host_rate: NsPerCycle) -> u64 {
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

    /// Takes in an exchange. They must come in the order of their middles; `host_rate` is that of
    /// the counter by the host's own clock.
    pub fn take(&mut self, bracket: &Bracket, host_rate: NsPerCycle) -> PeerVerdict {
        let Some(model) = &mut self.model else {
            return self.begin(bracket, host_rate);
        };
        match model.observe(bracket) {
            Verdict::Used => PeerVerdict::Used,
            Verdict::Torn => PeerVerdict::Torn,
            Verdict::Implausible => PeerVerdict::Implausible,
            Verdict::Jumped { .. } => PeerVerdict::Jumped,
        }
    }

    fn begin(&mut self, bracket: &Bracket, host_rate: NsPerCycle) -> PeerVerdict {
        let Some(first) = self.first else {
            self.first = Some(*bracket);
            return PeerVerdict::First;
        };
        let cycles = bracket.tsc[0].0.saturating_sub(first.tsc[0].0);
        if host_rate.duration_ns(cycles) < SHORTEST_BASELINE_NS {
            return PeerVerdict::First;
        }
        let model = FeedForward::new(Scale::NETWORK, &first, bracket);
        self.model = model.filter(|model| {
            let off_ppb = model.rate().ppb_from(host_rate).unsigned_abs();
            off_ppb <= FARTHEST_RATE_PPB.saturating_add(model.rate_bound_ppb())
        });
        match self.model {
            Some(_) => PeerVerdict::Used,
            None => {
                self.first = Some(*bracket);
                PeerVerdict::First
            }
        }
    }

    /// The other clock at a counter value, with its bound; `None` before there are two exchanges
    /// that are 100 ms apart.
    pub fn estimate(&self, at: TscCycles) -> Option<Estimate> {
        Some(self.model.as_ref()?.estimate(at))
    }

    /// The clock itself, once there is one.
    pub fn model(&self) -> Option<&FeedForward> {
        self.model.as_ref()
    }
}

/// So many parts per billion of something, rounded up.
pub(crate) fn share_up(of: u64, ppb: u64) -> u64 {
    let share = (u128::from(of) * u128::from(ppb)).div_ceil(1_000_000_000);
    u64::try_from(share).unwrap_or(u64::MAX)
}
