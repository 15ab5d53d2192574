//! p̂, the counter's average period, from a far and a near reading.

use super::Scale;
use super::scale::HISTORY_NS;
use crate::clock::NsPerCycle;
use crate::clock::reading::Reading;

/// How far off p̂ may be for another machine's counter, as after a migration: crystals
/// are good to 50 ppm.
const UNKNOWN_PPB: u64 = 100_000;
/// A rate that is not known at all: twice too fast.
const WORST_PPB: u64 = 1_000_000_000;

/// A reading with its point error, ns.
#[derive(Clone, Copy, Debug)]
struct End {
    reading: Reading,
    error_ns: u64,
}

/// The far end, the one that will take its place, and what has come of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    far: End,
    next: End,
    /// p̂.
    pub rate: NsPerCycle,
    /// Greatest relative error of p̂ as an average over its baseline, parts per
    /// billion: both brackets' halves over the baseline.
    pub bound_ppb: u64,
    /// The pair error, by which p̂ is judged, parts per billion.
    error_ppb: u64,
    noise_ns: u64,
    /// See [`Scale::wander_ppb`].
    pub wander_ppb: u64,
}

/// p̂ by a far and a near reading.
struct Candidate {
    rate: NsPerCycle,
    bound_ppb: u64,
    error_ppb: u64,
}

impl Pair {
    /// Begins at `far` with a rate that nothing is known of yet.
    pub fn new(far: Reading, rate: NsPerCycle, scale: Scale) -> Self {
        let far = End {
            reading: far,
            error_ns: 0,
        };
        Self {
            far,
            next: far,
            rate,
            bound_ppb: WORST_PPB,
            error_ppb: WORST_PPB,
            noise_ns: scale.noise_ns,
            wander_ppb: scale.wander_ppb(rate),
        }
    }

    /// The far end moves here: time before it tells nothing of the rate after it.
    /// `of_counter` if the counter itself may run at another rate now.
    pub fn restart(&mut self, far: Reading, of_counter: bool) {
        let kept = if of_counter {
            UNKNOWN_PPB
        } else {
            self.wander_ppb
        };
        self.far = End {
            reading: far,
            error_ns: 0,
        };
        self.next = self.far;
        self.error_ppb = self.error_ppb.max(kept);
        self.bound_ppb = self.bound_ppb.max(kept);
    }

    /// All readings before were this much worse than they were taken for, ns.
    pub fn worsen(&mut self, by_ns: u64) {
        self.far.error_ns += by_ns;
        self.next.error_ns += by_ns;
    }

    /// Takes in a near reading. Says whether p̂ has changed: only for a pair that is
    /// better by a sixteenth, so that there are few changes and each is small.
    pub fn take(&mut self, near: Reading, error_ns: u64) -> bool {
        let near = End {
            reading: near,
            error_ns,
        };
        let mut best = self.candidate(&self.far, &near);
        if let Some(next) = self.candidate(&self.next, &near)
            && best
                .as_ref()
                .is_none_or(|best| next.error_ppb < best.error_ppb)
        {
            self.far = self.next;
            best = Some(next);
        }
        self.move_on(near);
        let Some(best) = best else { return false };
        if best.error_ppb > self.error_ppb - self.error_ppb / 16 {
            return false;
        }
        self.rate = best.rate;
        self.bound_ppb = best.bound_ppb;
        self.error_ppb = best.error_ppb;
        true
    }

    /// A better far end is kept in reserve, and one half a history later at last.
    fn move_on(&mut self, near: End) {
        let age = |end: &End| {
            let cycles = near.reading.at.0.saturating_sub(end.reading.at.0);
            self.rate.duration_ns(cycles)
        };
        if age(&self.far) > HISTORY_NS {
            self.far = self.next;
        }
        let is_better = near.error_ns + self.noise_ns < self.next.error_ns;
        let is_due = age(&self.far) > HISTORY_NS / 2 && age(&self.next) > HISTORY_NS / 2;
        if is_better || is_due {
            self.next = near;
        }
    }

    fn candidate(&self, far: &End, near: &End) -> Option<Candidate> {
        let span = near.reading.middle().checked_sub(far.reading.middle())?;
        let cycles = near.reading.at.0.checked_sub(far.reading.at.0)?;
        let rate = NsPerCycle::of(span, cycles)?;
        let ppb = |error: u64| {
            let ppb = (u128::from(error) * 1_000_000_000).div_ceil(u128::from(span));
            u64::try_from(ppb).map_or(WORST_PPB, |ppb| ppb.min(WORST_PPB))
        };
        Some(Candidate {
            rate,
            bound_ppb: ppb((far.reading.width() + near.reading.width()).div_ceil(2)),
            error_ppb: ppb(far.error_ns + near.error_ns + self.noise_ns),
        })
    }
}
