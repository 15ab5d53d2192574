//! p̂, the counter's average period, from a far and a near reading.

use super::Scale;
use super::scale::HISTORY_NS;
use crate::capturing::clock::NsPerCycle;
use crate::capturing::clock::reading::Reading;

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
        let mut error_ppb = self.error_ppb(&self.far, &near);
        let next = self.error_ppb(&self.next, &near);
        if next.is_some_and(|next| error_ppb.is_none_or(|best| next < best)) {
            self.far = self.next;
            error_ppb = next;
        }
        let is_better = |error_ppb: &u64| *error_ppb <= self.error_ppb - self.error_ppb / 16;
        // Few are, so the divisions of 128 bits are left for these.
        let best = error_ppb.filter(is_better);
        let best = best.zip(average(&self.far, &near));
        self.move_on(near);
        let Some((error_ppb, (rate, bound_ppb))) = best else {
            return false;
        };
        self.rate = rate;
        self.bound_ppb = bound_ppb;
        self.error_ppb = error_ppb;
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

    /// The pair error of these two.
    fn error_ppb(&self, far: &End, near: &End) -> Option<u64> {
        let span = span(far, near)?;
        Some(ppb(far.error_ns + near.error_ns + self.noise_ns, span))
    }
}

fn span(far: &End, near: &End) -> Option<u64> {
    let span = near.reading.middle().checked_sub(far.reading.middle())?;
    (span > 0).then_some(span)
}

/// p̂ by a far and a near reading, and its greatest error.
fn average(far: &End, near: &End) -> Option<(NsPerCycle, u64)> {
    let span = span(far, near)?;
    let cycles = near.reading.at.0.checked_sub(far.reading.at.0)?;
    let widths = far.reading.width() + near.reading.width();
    Some((NsPerCycle::of(span, cycles)?, ppb(widths.div_ceil(2), span)))
}

/// So many ns in a span of ns, parts per billion.
fn ppb(error: u64, span: u64) -> u64 {
    let ppb = error.checked_mul(1_000_000_000).map_or_else(
        || {
            let ppb = (u128::from(error) * 1_000_000_000).div_ceil(u128::from(span));
            u64::try_from(ppb).unwrap_or(WORST_PPB)
        },
        |error| error.div_ceil(span),
    );
    ppb.min(WORST_PPB)
}
