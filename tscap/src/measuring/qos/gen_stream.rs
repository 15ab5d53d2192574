//! Delays of a stream of `tscap gen`, whose packets say when they were sent.

use tscap_common::stream::StreamHeader;

use super::schema::{Figures, Ipdv, Jitter};
use super::sequence::Sequence;
use super::values::Values;
use crate::capturing::clock::{CounterReport, RawStamp, TaiNs};
use crate::capturing::pcapng::interval_ns;
use crate::measuring::measure::{path_delay_ns, signed_difference, unwrapped_counter};

/// A packet's arrival.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub stamp: RawStamp,
    /// CLOCK_TAI of the receiving host.
    pub tai: Option<TaiNs>,
}

/// A stream so far. Memory: about 10 kB.
#[derive(Clone, Debug)]
pub(super) struct GenStream {
    pub sequence: Sequence,
    /// None before the first.
    delays: Option<Values>,
    variation: Values,
    tsc_pairs: u64,
    tai_pairs: u64,
    /// The latest one that is no copy, and its number.
    latest: Option<(u64, StreamHeader, Arrival)>,
    /// Of the latest packet, times 16, ns.
    jitter_16: u64,
    greatest_16: u64,
    sum_16: u128,
}

/// What is reported of it.
pub(super) struct GenFigures {
    pub delay: Option<Figures>,
    pub pdv: Option<Figures>,
    pub ipdv: Option<Ipdv>,
    pub jitter: Option<Jitter>,
}

impl GenStream {
    pub fn new() -> Self {
        Self {
            sequence: Sequence::new(),
            delays: None,
            variation: Values::signed(),
            tsc_pairs: 0,
            tai_pairs: 0,
            latest: None,
            jitter_16: 0,
            greatest_16: 0,
            sum_16: 0,
        }
    }

    #[inline]
    pub fn add(
        &mut self,
        header: &StreamHeader,
        arrival: Arrival,
        counter: Option<&CounterReport>,
    ) {
        let Some(number) = self.sequence.add(header.seq) else {
            return;
        };
        if let Some(tai) = arrival.tai {
            let delay = path_delay_ns(header.tai, tai);
            let delays = self.delays.get_or_insert_with(|| Values::near(delay));
            delays.add(delay);
        }
        if let Some((latest, sent, came)) = self.latest.replace((number, *header, arrival))
            && latest + 1 == number
        {
            self.note_variation((&sent, &came), (header, &arrival), counter);
        }
    }

    fn note_variation(
        &mut self,
        from: (&StreamHeader, &Arrival),
        to: (&StreamHeader, &Arrival),
        counter: Option<&CounterReport>,
    ) {
        let between = |from, to| interval_ns(from, to, counter);
        let counts = |(header, arrival): (&StreamHeader, &Arrival)| {
            unwrapped_counter(header.tsc, arrival.stamp, counter?)
        };
        let sent = match (counts(from), counts(to)) {
            (Some(from), Some(to)) => {
                self.tsc_pairs += 1;
                between(from, to)
            }
            _ => {
                self.tai_pairs += 1;
                signed_difference(to.0.tai.wrapping_sub(from.0.tai))
            }
        };
        let variation = between(from.1.stamp, to.1.stamp).saturating_sub(sent);
        self.variation.add(variation);
        let difference = variation.unsigned_abs();
        self.jitter_16 = self.jitter_16.saturating_add(difference) - ((self.jitter_16 + 8) >> 4);
        self.greatest_16 = self.greatest_16.max(self.jitter_16);
        self.sum_16 += u128::from(self.jitter_16);
    }

    /// Jitter of the latest packet, ns.
    pub fn jitter_ns(&self) -> Option<f64> {
        (self.variation.n() > 0).then(|| self.jitter_16 as f64 / 16.0)
    }

    /// The figures. An interval may be off by what `interval_bound` says of its length, a
    /// delay by `delay_bound`.
    pub fn report(
        &self,
        longest_interval: u64,
        interval_bound: impl Fn(u64) -> Option<u64>,
        delay_bound: Option<u64>,
    ) -> GenFigures {
        // The intervals of both sides by one clock, or that of the arrivals.
        let of_pair = interval_bound(longest_interval).map(|bound| bound.saturating_add(1));
        let delays = self.delays.as_ref();
        let least = delays
            .and_then(|it| it.figures(0, |_| None))
            .map(|it| it.min_ns);
        let n = self.variation.n();
        GenFigures {
            delay: delays.and_then(|it| it.figures(0, |_| delay_bound)),
            // Both delays have the error.
            pdv: delays
                .zip(least)
                .and_then(|(it, least)| it.figures(least, |_| delay_bound.map(|it| 2 * it))),
            ipdv: self.variation.figures(0, |_| of_pair).map(|figures| Ipdv {
                figures,
                tsc_pairs: self.tsc_pairs,
                tai_pairs: self.tai_pairs,
            }),
            jitter: self.jitter_ns().map(|last_ns| Jitter {
                n,
                last_ns,
                mean_ns: self.sum_16 as f64 / n as f64 / 16.0,
                max_ns: self.greatest_16 as f64 / 16.0,
                bound_ns: of_pair,
            }),
        }
    }
}
