//! What exchanges allow of the peer's clock.

use tscap_clock::{NsPerCycle, RawStamp};

use super::Exchange;

const NS_PER_S: i128 = 1_000_000_000;

/// Times that a clock may have shown, ns, from – to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Around {
    pub low: i128,
    pub high: i128,
}

/// What the peer's clock may have shown when a stamp of this host was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Allowed {
    pub at: RawStamp,
    pub around: Around,
}

impl Around {
    pub fn meet(self, other: Self) -> Option<Self> {
        let both = Self {
            low: self.low.max(other.low),
            high: self.high.min(other.high),
        };
        (both.low <= both.high).then_some(both)
    }

    /// No farther from the middle than that.
    pub fn within(self, ns: i128) -> Self {
        let middle = self.middle();
        Self {
            low: self.low.max(middle - ns),
            high: self.high.min(middle + ns),
        }
    }

    pub fn middle(self) -> i128 {
        self.low + (self.high - self.low) / 2
    }

    /// From a time to the farther end.
    pub fn farther_ns(self, time: i128) -> u64 {
        let farther = (self.high - time).max(time - self.low);
        u64::try_from(farther).unwrap_or(u64::MAX)
    }
}

impl Allowed {
    /// What an exchange alone says of T1: T3 − (T4 − T1) to T2, each as far out as stamps may be
    /// off and as the peer's clock may be faster than this host's. `None` if the peer held it
    /// for longer than it was away: one of the clocks was set meanwhile.
    pub fn alone(exchange: &Exchange, rate: NsPerCycle, max_drift_ppb: u64) -> Option<Self> {
        let [sent, received] = exchange.own;
        let away_ns = i128::from(rate.duration_ns(received.0.checked_sub(sent.0)?));
        let error_ns = i128::from(exchange.own_error_ns) + i128::from(exchange.peer_error_ns) + 1;
        let [arrived, left] = exchange.peer.map(|it| i128::from(it.0));
        let drift_ns = share_up(away_ns, max_drift_ppb);
        let around = Around {
            // Both stamps of this host are in it.
            low: left - away_ns - drift_ns - error_ns - i128::from(exchange.own_error_ns),
            high: arrived + error_ns,
        };
        let around = (around.low <= around.high && arrived <= left).then_some(around)?;
        Some(Self { at: sent, around })
    }

    /// The same at another stamp, before or behind it.
    pub fn carried_to(self, at: RawStamp, rate: NsPerCycle, max_drift_ppb: u64) -> Self {
        let span_ns = i128::from(rate.duration_ns(self.at.0.abs_diff(at.0)));
        let drift_ns = share_up(span_ns, max_drift_ppb) + 1;
        let gone_ns = if at < self.at { -span_ns } else { span_ns };
        Self {
            at,
            around: Around {
                low: self.around.low + gone_ns - drift_ns,
                high: self.around.high + gone_ns + drift_ns,
            },
        }
    }

    /// What both allow of one stamp.
    pub fn meet(&self, other: &Self) -> Option<Self> {
        let around = self.around.meet(other.around)?;
        Some(Self { around, ..*self })
    }
}

/// So many parts per billion of something, rounded up.
pub(super) fn share_up(of: i128, ppb: u64) -> i128 {
    (of * i128::from(ppb) + NS_PER_S - 1) / NS_PER_S
}
