//! The straight lines that a counter's clock is made of, and the conversion by them.

use std::collections::VecDeque;

use crate::{NsPerCycle, RawStamp, RealNs, TscCycles};

/// A straight piece of the clock, from a cross-timestamp on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockLine {
    pub(super) from: TscCycles,
    pub(super) real: RealNs,
    pub(super) rate: NsPerCycle,
}

impl ClockLine {
    #[inline]
    pub(super) fn real_at(&self, at: TscCycles) -> RealNs {
        if at >= self.from {
            RealNs(
                self.real
                    .0
                    .wrapping_add(self.rate.duration_ns(at.0 - self.from.0)),
            )
        } else {
            RealNs(
                self.real
                    .0
                    .wrapping_sub(self.rate.duration_ns(self.from.0 - at.0)),
            )
        }
    }
}

/// The clock before its counter went back: stamps from then are still to be converted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BeforeJump {
    /// Stamps from here on are of then, until the counter comes here again.
    pub(super) from: TscCycles,
    /// The latest piece of then and the one before it, which are those of the stamps that may
    /// wait.
    pub(super) pieces: [ClockLine; 2],
}

impl BeforeJump {
    fn real_at(&self, at: TscCycles) -> RealNs {
        let [latest, earlier] = &self.pieces;
        if at >= latest.from {
            latest.real_at(at)
        } else {
            earlier.real_at(at)
        }
    }
}

/// Pieces that a conversion keeps: stamps are converted within a few drains of
/// being taken, and each drain adds one.
pub(super) const PIECES: usize = 16;

/// The latest pieces of the clock, newest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterConversion {
    pieces: [ClockLine; PIECES],
    before: Option<BeforeJump>,
}

impl CounterConversion {
    /// By the pieces of a clock, oldest first: one at least.
    pub(super) fn new(clock: &VecDeque<ClockLine>, before: Option<BeforeJump>) -> Self {
        let latest = clock.back().expect("there is always one");
        let mut pieces = [*latest; PIECES];
        for (copy, piece) in pieces.iter_mut().zip(clock.iter().rev()) {
            *copy = *piece;
        }
        Self { pieces, before }
    }

    /// Where the latest piece begins, and its rate.
    pub(crate) fn latest(&self) -> (RawStamp, RealNs, NsPerCycle) {
        let ClockLine { from, real, rate } = self.pieces[0];
        (RawStamp(from.0), real, rate)
    }

    /// Whether a stamp is of before a counter went back that is not there again.
    #[inline]
    pub(crate) fn is_before_jump(&self, at: TscCycles) -> bool {
        self.before.is_some_and(|before| at >= before.from)
    }

    /// The wall-clock time at a counter value. Older than the oldest piece it is
    /// carried on backwards.
    #[inline]
    pub fn to_real(&self, at: TscCycles) -> RealNs {
        if let Some(before) = self.before.filter(|before| at >= before.from) {
            return before.real_at(at);
        }
        let piece = self.pieces.iter().find(|piece| at >= piece.from);
        piece.unwrap_or(&self.pieces[PIECES - 1]).real_at(at)
    }
}
