//! p̂, the counter's average period, from a far and a near reading.

use super::Scale;
use super::scale::HISTORY_NS;
use crate::NsPerCycle;
use crate::reading::Reading;

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

/// The average rate over some baseline.
#[derive(Clone, Copy, Debug)]
struct Average {
    rate: NsPerCycle,
    /// Its greatest relative error, parts per billion: both brackets' halves over the
    /// baseline.
    ppb: u64,
}

impl Average {
    /// Greatest relative error of another rate as an average over the same baseline, parts
    /// per billion.
    fn bound_of(&self, rate: NsPerCycle) -> u64 {
        if rate == self.rate {
            return self.ppb;
        }
        // This one may be off by a part of itself rather than of the other.
        let off = self.rate.ppb_from(rate).unsigned_abs() + 1;
        let more = self.ppb.saturating_mul(off).div_ceil(1_000_000_000);
        self.ppb.saturating_add(off).saturating_add(more)
    }
}

/// The far end, the one that will take its place, and what has come of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    far: End,
    next: End,
    pub rate: NsPerCycle,
    /// Greatest relative error of p̂ as an average over its baseline, parts per billion; or
    /// over that of `surest`.
    pub bound_ppb: u64,
    /// The average with the least bound, which is seldom that of the least noise.
    surest: Average,
    /// The pair error, by which p̂ is judged, parts per billion.
    error_ppb: u64,
    noise_ns: u64,
    /// See [`Scale::wander_ppb`].
    pub wander_ppb: u64,
    /// Whether the rate wanders around one average: over a network, where the server keeps
    /// its rate. A daemon changes that of the other references at any time.
    pub wanders: bool,
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
            surest: Average {
                rate,
                ppb: WORST_PPB,
            },
            error_ppb: WORST_PPB,
            noise_ns: scale.noise_ns,
            wander_ppb: scale.wander_ppb(rate),
            wanders: scale.usual_wander_ppb().is_some(),
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
        self.surest = Average {
            rate: self.rate,
            ppb: self.bound_ppb,
        };
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
        self.narrow(&near);
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
        let Some((error_ppb, Average { rate, ppb })) = best else {
            return false;
        };
        self.rate = rate;
        self.bound_ppb = if self.wanders {
            ppb.min(self.surest.bound_of(rate))
        } else {
            ppb
        };
        self.error_ppb = error_ppb;
        true
    }

    /// A reading with too much noise for p̂, long after the far end, may still say more
    /// surely than a short pair how far off p̂ is: while the reference's rate stays within
    /// [`Scale::wander_ppb`] of its averages, one baseline is as good as another for that.
    fn narrow(&mut self, near: &End) {
        if !self.wanders {
            return;
        }
        let average = average(&self.far, near);
        let surer = average.filter(|average| average.ppb < self.surest.ppb);
        if let Some(surest) = surer {
            self.surest = surest;
            self.bound_ppb = self.bound_ppb.min(surest.bound_of(self.rate));
        }
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
        if is_better || age(&self.next) > HISTORY_NS / 2 {
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
fn average(far: &End, near: &End) -> Option<Average> {
    let span = span(far, near)?;
    let cycles = near.reading.at.0.checked_sub(far.reading.at.0)?;
    let widths = far.reading.width() + near.reading.width();
    Some(Average {
        rate: NsPerCycle::of(span, cycles)?,
        ppb: ppb(widths.div_ceil(2), span),
    })
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TscCycles;
    use crate::scripted::EPOCH;

    const S: u64 = 1_000_000_000;

    /// A nanosecond a cycle.
    fn rate() -> NsPerCycle {
        NsPerCycle::of(S, S).unwrap()
    }

    /// Of a true clock at `t` ns.
    fn reading(t: u64) -> Reading {
        Reading {
            at: TscCycles(t),
            low: EPOCH + t - 500,
            high: EPOCH + t + 500,
        }
    }

    /// Begun at the time 0; the noise of its readings is 15,000 ns.
    fn pair() -> Pair {
        Pair::new(reading(0), rate(), Scale::NETWORK)
    }

    fn ends(pair: &Pair) -> [u64; 2] {
        [pair.far, pair.next].map(|end| end.reading.at.0)
    }

    #[test]
    fn the_far_end_is_half_a_week_to_a_week_old() {
        const HALF: u64 = HISTORY_NS / 2;
        let mut pair = pair();
        for (t, expected) in [
            (HALF, [0, 0]),
            (HALF + S, [0, HALF + S]),
            (2 * HALF, [0, HALF + S]),
            (2 * HALF + S, [HALF + S, HALF + S]),
            (2 * HALF + 2 * S, [HALF + S, 2 * HALF + 2 * S]),
        ] {
            pair.take(reading(t), 50_000);
            assert_eq!(ends(&pair), expected, "{t}");
        }
    }

    #[test]
    fn a_reading_better_by_more_than_the_noise_is_the_next_far_end() {
        let mut pair = pair();
        pair.worsen(100_000);
        for (t, error_ns, next) in [
            (S, 85_000, 0),
            (2 * S, 84_999, 2 * S),
            (3 * S, 84_999, 2 * S),
        ] {
            pair.take(reading(t), error_ns);
            assert_eq!(ends(&pair), [0, next], "{error_ns}");
        }
        // It takes the place of the first once a pair with it is the better one.
        assert!(pair.take(reading(1_000 * S), 0));
        assert_eq!(ends(&pair)[0], 2 * S);
        assert_eq!(pair.error_ppb, 101, "99,999 ns in 998 s");
        assert_eq!(pair.bound_ppb, 1, "two halves of 1,000 ns in 1,000 s");
        // Both are worse than they were taken for.
        pair.worsen(7);
        assert_eq!(pair.far.error_ns, 84_999 + 7);
        assert_eq!(pair.next.error_ns, 7);
    }

    #[test]
    fn the_rate_changes_for_a_pair_better_by_a_sixteenth() {
        let mut pair = pair();
        // 1,600 ppb with the noise of 15,000 ns.
        assert!(pair.take(reading(100 * S), 145_000));
        assert_eq!(pair.error_ppb, 1_600);
        for (error_ns, is_taken) in [(135_100, false), (135_000, true), (135_000, false)] {
            assert_eq!(
                pair.take(reading(100 * S), error_ns),
                is_taken,
                "{error_ns}"
            );
        }
        assert_eq!(pair.error_ppb, 1_500);
    }

    /// A server 10 ms away, of which two good readings are followed by hours of noise.
    #[test]
    fn noise_that_is_no_better_for_the_rate_still_bounds_it() {
        const AWAY: u64 = 10_000_000;
        let far = |t: u64, noise: u64| Reading {
            at: TscCycles(t),
            low: EPOCH + t - AWAY,
            high: EPOCH + t + AWAY + noise,
        };
        let mut pair = Pair::new(far(0, 0), rate(), Scale::NETWORK);
        assert!(pair.take(far(100 * S, 0), 0));
        assert_eq!(pair.bound_ppb, 200_000);
        let noise = 4_000_000;
        for (t, expected) in [(105, 200_000), (200, 120_000), (10_000, 2_400)] {
            assert!(!pair.take(far(t * S, noise), noise), "p̂ is kept");
            // All of the width and the noise over the span, and a little for rounding.
            assert!((expected..=expected + 4).contains(&pair.bound_ppb), "{t}");
        }
        // A pair of less noise over a short span gives p̂, and does not undo that.
        pair.worsen(1_000_000);
        pair.next = End {
            reading: far(10_100 * S, 0),
            error_ns: 0,
        };
        assert!(pair.take(far(10_300 * S, 0), 0));
        assert_eq!(ends(&pair)[0], 10_100 * S);
        assert_eq!(pair.bound_ppb, 1_942, "20 ms in 10,300 s");
        pair.restart(far(10_400 * S, 0), true);
        assert!(pair.take(far(10_500 * S, 0), 0));
        assert_eq!(pair.bound_ppb, UNKNOWN_PPB, "100 s allow 200,000 ppb");
    }

    /// Its averages differ by how it was slewed: one says nothing of another.
    #[test]
    fn a_clock_that_a_daemon_sets_is_bounded_by_its_own_pair() {
        for scale in [Scale::HOST, Scale::PHC] {
            let mut pair = Pair::new(reading(0), rate(), scale);
            assert!(pair.take(reading(S), 0));
            assert!(!pair.take(reading(100 * S), 10_000));
            assert_eq!(pair.bound_ppb, 1_000);
        }
    }

    #[test]
    fn an_average_bounds_other_rates_by_their_distance() {
        let average = Average {
            rate: rate(),
            ppb: 500,
        };
        assert_eq!(average.bound_of(rate()), 500);
        for sign in [1, -1] {
            let span = 1_000_000 * S;
            let off = span.checked_add_signed(sign * 1_000_000).unwrap();
            let other = NsPerCycle::of(off, span).unwrap();
            // 1 ppb, up to 1 for rounding, and 502 ppb of 500 ppb.
            assert!((502..=503).contains(&average.bound_of(other)), "{sign}");
        }
    }

    #[test]
    fn a_restart_forgets_what_it_knew_of_the_rate() {
        for (of_counter, ppb) in [
            (true, UNKNOWN_PPB),
            (false, Scale::NETWORK.wander_ppb(rate())),
        ] {
            let mut pair = pair();
            assert!(pair.take(reading(1_000 * S), 0));
            assert!(pair.bound_ppb < ppb && pair.error_ppb < ppb);
            pair.restart(reading(2_000 * S), of_counter);
            assert_eq!((pair.bound_ppb, pair.error_ppb), (ppb, ppb));
            assert_eq!(ends(&pair), [2_000 * S; 2]);
        }
    }

    #[test]
    fn a_reference_that_stands_gives_no_rate() {
        let mut pair = pair();
        let at = TscCycles(S);
        assert!(!pair.take(Reading { at, ..reading(0) }, 0));
        assert_eq!(pair.rate, rate());
    }

    #[test]
    fn parts_per_billion_are_rounded_up_and_limited() {
        for (error, span, expected) in [
            (0, 1, 0),
            (1, S, 1),
            (1, S + 1, 1),
            (3, 2 * S, 2),
            (20 * S, 1 << 62, 5),
            (S, 1, WORST_PPB),
            (u64::MAX, 1, WORST_PPB),
        ] {
            assert_eq!(ppb(error, span), expected, "{error} {span}");
        }
    }
}
