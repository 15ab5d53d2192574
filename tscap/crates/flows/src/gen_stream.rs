//! Delays of a stream of `tscap gen`, whose packets say when they were sent.

use tscap_common::stream::StreamHeader;

use super::schema::{Figures, Ipdv, Jitter};
use super::sequence::Sequence;
use tscap_clock::interval_ns;
use tscap_clock::{CounterReport, RawStamp, TaiNs};
use tscap_statistics::{Distribution, Summary};
use tscap_streams::{HostMoment, SenderClock, path_delay_ns, signed_difference, unwrapped_counter};

/// A packet's arrival.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub stamp: RawStamp,
    /// CLOCK_TAI of the receiving host.
    pub tai: Option<TaiNs>,
    /// What the clocks of that host showed near its arrival.
    pub host: Option<HostMoment>,
}

/// A packet that came.
#[derive(Clone, Copy, Debug)]
struct Came {
    sent: StreamHeader,
    stamp: RawStamp,
    /// The sender's TSC may be that of the host.
    may_have_counted: bool,
}

/// A stream so far. Memory: about 12 kB, unless all numbers are kept.
#[derive(Clone, Debug)]
pub(super) struct GenStream {
    pub sequence: Sequence,
    /// Whether memory may grow with it.
    grows: bool,
    /// None before the first.
    delays: Option<Distribution>,
    sender: SenderClock,
    variation: Distribution,
    interval_error: Distribution,
    tsc_pairs: u64,
    tai_pairs: u64,
    /// The latest one that is no copy, and its number.
    latest: Option<(u64, Came)>,
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
    pub interval_error: Option<Figures>,
    pub jitter: Option<Jitter>,
}

impl GenStream {
    /// Of which all numbers are kept and figures are fine, or whose memory does not grow.
    pub fn new(grows: bool) -> Self {
        let [variation, interval_error] = if grows {
            [Distribution::new(), Distribution::new()]
        } else {
            [Distribution::fixed_near(0), Distribution::fixed()]
        };
        Self {
            sequence: if grows {
                Sequence::of_all()
            } else {
                Sequence::new()
            },
            grows,
            variation,
            interval_error,
            delays: None,
            sender: SenderClock::default(),
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
            let of_first = if self.grows {
                Distribution::near
            } else {
                Distribution::fixed_near
            };
            let delays = self.delays.get_or_insert_with(|| of_first(delay));
            delays.add(delay);
        }
        self.sender.take(header, arrival.host);
        let came = Came {
            sent: *header,
            stamp: arrival.stamp,
            may_have_counted: arrival.host.is_none_or(|it| it.may_have_counted(header)),
        };
        if let Some((latest, before)) = self.latest.replace((number, came))
            && latest + 1 == number
        {
            self.note_variation(&before, &came, counter);
        }
    }

    fn note_variation(&mut self, from: &Came, to: &Came, counter: Option<&CounterReport>) {
        let between = |from, to| interval_ns(from, to, counter);
        let counts = |came: &Came| {
            let counter = counter.filter(|_| came.may_have_counted)?;
            unwrapped_counter(came.sent.tsc, came.stamp, counter)
        };
        let sent = match (counts(from), counts(to)) {
            (Some(from), Some(to)) => {
                self.tsc_pairs += 1;
                between(from, to)
            }
            _ => {
                self.tai_pairs += 1;
                signed_difference(to.sent.tai.wrapping_sub(from.sent.tai))
            }
        };
        let variation = between(from.stamp, to.stamp).saturating_sub(sent);
        self.variation.add(variation);
        let difference = variation.unsigned_abs();
        self.interval_error.add(variation.saturating_abs());
        self.jitter_16 = self.jitter_16.saturating_add(difference) - ((self.jitter_16 + 8) >> 4);
        self.greatest_16 = self.greatest_16.max(self.jitter_16);
        self.sum_16 += u128::from(self.jitter_16);
    }

    /// Jitter of the latest packet, ns.
    pub fn jitter_ns(&self) -> Option<f64> {
        (self.variation.n() > 0).then(|| self.jitter_16 as f64 / 16.0)
    }

    /// The figures. An interval may be off by what `interval_bound` says of its length, a
    /// delay by `delay_bound` if the sender's clocks are the receiving host's.
    pub fn report(
        &self,
        longest_interval: u64,
        interval_bound: impl Fn(u64) -> Option<u64>,
        delay_bound: Option<u64>,
    ) -> GenFigures {
        let is_here = delay_bound.is_some_and(|it| self.sender.is_the_receivers(it));
        let delay_bound = delay_bound.filter(|_| is_here);
        // The intervals of both sides by clocks of one host.
        let of_pair = interval_bound(longest_interval).filter(|_| is_here || self.tai_pairs == 0);
        let of_pair = of_pair.map(|bound| bound.saturating_add(1));
        let delays = self.delays.as_ref();
        let figures = |of: Summary, bound_ns| Figures::of(of, |_| bound_ns);
        // Both delays have the error.
        let of_two = delay_bound.map(|it| 2 * it);
        let n = self.variation.n();
        GenFigures {
            delay: delays
                .and_then(Distribution::summary)
                .map(|it| figures(it, delay_bound)),
            pdv: delays
                .and_then(Distribution::above_least)
                .map(|it| figures(it, of_two)),
            ipdv: self.variation.summary().map(|it| Ipdv {
                figures: figures(it, of_pair),
                tsc_pairs: self.tsc_pairs,
                tai_pairs: self.tai_pairs,
            }),
            interval_error: self.interval_error.summary().map(|it| figures(it, of_pair)),
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
