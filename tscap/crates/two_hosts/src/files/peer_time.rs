//! The second host's time by the first one's.

use tscap_clock::NsPerCycle;

use super::common::Pair;
use crate::{AlignBy, Aligned, Alignment, OneWay};

/// What an exchange tells of both clocks.
#[derive(Clone, Copy, Debug)]
struct Knot {
    /// Packets of the second host before it.
    order: u64,
    /// The second host's time, ns.
    at: u64,
    /// How far that is ahead of the first host's, ns.
    ahead_ns: i64,
    bound_ns: u64,
    /// A clock may have been set between knots of different epochs.
    epoch: u64,
}

/// A time of the second host by the first one's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlignedTime {
    /// By the first host's line of time, ns.
    pub at: u64,
    /// Greatest error of that by the alignment, ns.
    pub bound_ns: u64,
    /// Times of different epochs do not compare: a clock was set between them.
    pub epoch: u64,
}

/// How far the second host's clock is ahead, all the time.
#[derive(Debug)]
pub enum PeerTime {
    /// Both are one clock, or two of which this is known.
    Apart {
        /// Greatest difference of both, ns.
        bound_ns: u64,
        /// Greatest difference of their rates, parts per billion.
        drift_ppb: u64,
    },
    /// By exchanges.
    Exchanges(ByExchanges),
}

/// What exchanges tell.
#[derive(Debug)]
pub struct ByExchanges {
    knots: Vec<Knot>,
    drift_ppb: u64,
    /// A clock may have been set before the first exchange or behind the last one.
    may_be_set: bool,
    /// How often a clock was seen to be set, or to be slewed faster than the drift.
    pub changes: u64,
    /// How much faster the second clock runs, parts per billion, and how far off that may be.
    pub skew_ppb: Option<(i64, u64)>,
}

impl ByExchanges {
    /// `None` if no exchange aligns the clocks. Where one `may_be_set`, which shows in exchanges only,
    /// times outside of all exchanges are not known.
    pub fn of(
        pairs: &[Pair],
        drift_ppb: u64,
        max_asymmetry_ns: Option<u64>,
        may_be_set: bool,
    ) -> Option<Self> {
        let mut alignment = Alignment::new(AlignBy::Exchange, drift_ppb, max_asymmetry_ns);
        let mut epoch = 0;
        let mut known = Vec::with_capacity(pairs.len());
        let mut tell = |number: usize, _: &_, aligned: Aligned| {
            if let Aligned::Known(way) = aligned {
                epoch += u64::from(way.is_apart);
                known.push((number, way, epoch));
            }
        };
        for (number, pair) in pairs.iter().enumerate() {
            alignment.take(pair.exchange, NsPerCycle::ONE, number, &mut tell);
        }
        alignment.finish(&mut tell);
        let knot = |(number, way, epoch): (usize, OneWay, u64)| {
            let Pair {
                exchange, order, ..
            } = pairs[number];
            Knot {
                order,
                at: exchange.own_real[0]
                    .0
                    .saturating_add_signed(way.peer_ahead_ns),
                ahead_ns: way.peer_ahead_ns,
                bound_ns: way.alignment_ns,
                epoch,
            }
        };
        let mut knots: Vec<Knot> = known.into_iter().map(knot).collect();
        knots.sort_by_key(|it| (it.order, it.bound_ns));
        knots.dedup_by_key(|it| it.order);
        (!knots.is_empty()).then(|| Self {
            knots,
            drift_ppb,
            may_be_set,
            changes: alignment.changes(),
            skew_ppb: alignment.skew_ppb(NsPerCycle::ONE),
        })
    }

    /// How far the second clock was ahead at last, ns.
    pub fn ahead_ns(&self) -> Option<i64> {
        Some(self.knots.last()?.ahead_ns)
    }

    /// When the second host's packets were seen, by the first one's clock: from the first to the
    /// last of those in exchanges and of the ends of its capture, which are in this order.
    pub fn ends(&self, [first, last]: [u64; 2]) -> [u64; 2] {
        let ends = [(0, first), (u64::MAX, last)];
        let ends = ends.map(|(order, at)| Some(self.align(order, at)?.at));
        let ends = ends.into_iter().flatten();
        let knots = self.knots.iter();
        let knots = knots.map(|it| it.at.saturating_add_signed(-it.ahead_ns));
        let all = knots.chain(ends);
        let least = all.clone().min();
        [least.unwrap_or(first), all.max().unwrap_or(last)]
    }

    /// The greatest bound of any time of the second host's packets, which are from and to these.
    pub fn greatest_bound_ns(&self, [first, last]: [u64; 2]) -> u64 {
        let ends = [(0, first), (u64::MAX, last)];
        let ends = ends.map(|(order, at)| self.align(order, at));
        let together = self.knots.windows(2);
        let together = together.filter(|both| both[0].epoch == both[1].epoch);
        let middles = together.map(|both| {
            let middle = both[0].at.midpoint(both[1].at);
            self.align(both[0].order, middle)
        });
        let all = ends.into_iter().chain(middles).flatten();
        let knots = self.knots.iter().map(|it| it.bound_ns);
        all.map(|it| it.bound_ns).chain(knots).max().unwrap_or(0)
    }

    /// See [`PeerTime::align`].
    pub fn align(&self, order: u64, at: u64) -> Option<AlignedTime> {
        let behind = self.knots.partition_point(|it| it.order <= order);
        let before = behind.checked_sub(1).and_then(|it| self.knots.get(it));
        let (ahead_ns, epoch) = match (before, self.knots.get(behind)) {
            (Some(one), Some(other)) if one.epoch == other.epoch => {
                (between(one, other, at), one.epoch)
            }
            (Some(it), _) if it.order == order => (it.ahead_ns, it.epoch),
            // Nobody knows when it was set.
            (Some(_), Some(_)) | (None, None) => return None,
            (Some(_), None) | (None, Some(_)) if self.may_be_set => return None,
            (Some(it), None) | (None, Some(it)) => (it.ahead_ns, it.epoch),
        };
        let near = before.into_iter().chain(self.knots.get(behind));
        let near = near.filter(|it| it.epoch == epoch);
        let bound_ns = near.map(|it| self.carried(it, at, ahead_ns)).min()?;
        Some(AlignedTime {
            at: at.saturating_add_signed(-ahead_ns),
            bound_ns,
            epoch,
        })
    }

    /// The bound of a difference of the clocks by what a knot says.
    fn carried(&self, knot: &Knot, at: u64, ahead_ns: i64) -> u64 {
        let span_ns = knot.at.abs_diff(at).saturating_add(knot.bound_ns);
        knot.bound_ns
            .saturating_add(share_up(span_ns, self.drift_ppb))
            .saturating_add(ahead_ns.abs_diff(knot.ahead_ns))
    }
}

impl PeerTime {
    /// A time of the second host, which is at this place in the order of its packets. `None` near to
    /// where a clock was set.
    pub fn align(&self, order: u64, at: u64) -> Option<AlignedTime> {
        match self {
            Self::Apart { bound_ns, .. } => Some(AlignedTime {
                at,
                bound_ns: *bound_ns,
                epoch: 0,
            }),
            Self::Exchanges(exchanges) => exchanges.align(order, at),
        }
    }

    /// By how much the rates of both clocks may differ, parts per billion.
    pub fn drift_ppb(&self) -> u64 {
        match self {
            Self::Apart { drift_ppb, .. } => *drift_ppb,
            Self::Exchanges(exchanges) => exchanges.drift_ppb,
        }
    }
}

/// On the straight line between two knots.
fn between(one: &Knot, other: &Knot, at: u64) -> i64 {
    let since = |from: u64| i128::from(at) - i128::from(from);
    let (gone, span) = (since(one.at), i128::from(other.at) - i128::from(one.at));
    if span <= 0 || gone <= 0 {
        return one.ahead_ns;
    }
    let rise = i128::from(other.ahead_ns) - i128::from(one.ahead_ns);
    let ahead = i128::from(one.ahead_ns) + rise * gone.min(span) / span;
    ahead.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

/// So many parts per billion of something, rounded up.
pub fn share_up(of: u64, ppb: u64) -> u64 {
    let share = (u128::from(of) * u128::from(ppb)).div_ceil(1_000_000_000);
    u64::try_from(share).unwrap_or(u64::MAX)
}
