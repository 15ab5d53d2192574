//! What the kernel's counters say of the frames whose stamp cost far more than others.
//!
//! Programs look at the counters of their CPU right before the first checkpoint of a frame, and
//! at those of interrupts once more right after the second one. What follows of it:
//!
//! - *interrupts* while the stamp was made are counted as they begin, each of them.
//! - *stolen* time is brought up to date by the tick only (`steal_account_process_time`,
//!   kernel/sched/cputime.c): what the next tick adds may have been taken from any frame since
//!   the one before, so that it is a cause only of a frame that cost about as much more.
//! - *softirqs* interrupt no softirq, which stamps are made in: they are counted from one frame
//!   to the next, and leave code and data of the stamp out of the caches.

use tscap_common::compare::Sample;

use super::schema::{Cause, CauseCount, Outliers};
use tscap_statistics::Summary;

/// So many times the median cost is far more.
const TIMES: i64 = 10;

/// What happened to the CPU of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// There was an interrupt.
    interrupted: bool,
    /// Other softirqs ran since the frame before.
    after_softirqs: bool,
    /// Time stolen between the ticks around it, ns; `None` if no later frame of the burst tells.
    stolen_ns: Option<u32>,
}

impl Trace {
    /// Of a burst, whose frames are in the order of time.
    pub fn of(samples: &[Sample]) -> Vec<Self> {
        let mut traces = vec![Self::default(); samples.len()];
        for (trace, sample) in traces.iter_mut().zip(samples) {
            trace.interrupted = sample.interrupts > 0;
        }
        for (trace, pair) in traces.iter_mut().skip(1).zip(samples.windows(2)) {
            trace.after_softirqs = pair[0].other_softirqs != pair[1].other_softirqs;
        }
        let mut at_tick = None;
        for (trace, pair) in traces.iter_mut().zip(samples.windows(2)).rev() {
            if pair[0].accounted_ns != pair[1].accounted_ns {
                at_tick = Some(pair[1].stolen_ns);
            }
            let stolen = at_tick.map(|then| then.saturating_sub(pair[0].stolen_ns));
            trace.stolen_ns = stolen.map(|ns| u32::try_from(ns).unwrap_or(u32::MAX));
        }
        traces
    }

    /// Why a frame cost so many ns more than the median. Stolen time comes first: the host of
    /// a virtual machine gives a CPU back with the interrupts that have come meanwhile.
    fn cause(self, more_ns: i64) -> Cause {
        let stolen = self.stolen_ns.map_or(0, i64::from);
        let is_as_much = more_ns > 0 && stolen >= more_ns / 2 && stolen / 2 <= more_ns;
        if stolen > 0 && is_as_much {
            Cause::Steal
        } else if self.interrupted {
            Cause::Interrupt
        } else if self.after_softirqs {
            Cause::Softirq
        } else {
            Cause::None
        }
    }
}

/// Those of all `costs`, with a trace of each if there are traces. The median of the
/// checkpoint's `own` cost is subtracted, as outliers of its own are in the mean. `None` where
/// nothing is far more: a median of less than 1 ns has no multiple.
pub(super) fn outliers(costs: &[i64], own: &Summary, traces: &[Trace]) -> Option<Outliers> {
    let own = own.p50?;
    let costs: Vec<_> = costs.iter().map(|cost| cost.saturating_sub(own)).collect();
    let median = Summary::of(costs.iter().copied())?.p50;
    let median = median.filter(|median| *median >= 1)?;
    let over_ns = median.saturating_mul(TIMES);
    let is_one = |cost: i64| cost > over_ns;
    let frames = costs.iter().filter(|cost| is_one(**cost)).count() as u64;
    let mut causes = Cause::ALL.map(|cause| CauseCount {
        cause,
        outliers: 0,
        share: None,
        others: 0,
    });
    for (cost, trace) in costs.iter().zip(traces) {
        let cause = &mut causes[trace.cause(cost - median) as usize];
        if is_one(*cost) {
            cause.outliers += 1
        } else {
            cause.others += 1
        }
    }
    for cause in &mut causes {
        cause.share = (frames > 0).then(|| cause.outliers as f64 / frames as f64);
    }
    Some(Outliers {
        over_ns,
        frames,
        of: costs.len() as u64,
        causes: if traces.is_empty() {
            Vec::new()
        } else {
            causes.into()
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame every 20 µs; the tick comes before those in `ticks`, and finds this much stolen.
    fn burst(frames: u64, ticks: &[(u64, u64)]) -> Vec<Sample> {
        let at = |frame| ticks.iter().filter(move |(tick, _)| *tick <= frame);
        let sample = |frame| Sample {
            stolen_ns: at(frame).map(|(_, stolen)| stolen).sum(),
            accounted_ns: 4_000_000 * at(frame).count() as u64,
            ..Sample::default()
        };
        (0..frames).map(sample).collect()
    }

    #[test]
    fn what_a_tick_finds_stolen_was_so_since_the_last_one() {
        let traces = Trace::of(&burst(8, &[(3, 700), (6, 0)]));
        let stolen: Vec<_> = traces.iter().map(|it| it.stolen_ns).collect();
        let (first, second) = (Some(700), Some(0));
        assert_eq!(
            stolen,
            [first, first, first, second, second, second, None, None]
        );
    }

    #[test]
    fn softirqs_count_from_frame_to_frame_and_interrupts_in_one() {
        let mut samples = burst(3, &[]);
        samples[1].other_softirqs = 5;
        samples[2].other_softirqs = 5;
        samples[2].interrupts = 1;
        let traces = Trace::of(&samples);
        let softirqs: Vec<_> = traces.iter().map(|it| it.after_softirqs).collect();
        let interrupted: Vec<_> = traces.iter().map(|it| it.interrupted).collect();
        assert_eq!(softirqs, [false, true, false]);
        assert_eq!(interrupted, [false, false, true]);
        assert_eq!(Trace::of(&[]), []);
    }

    #[test]
    fn each_frame_has_one_cause() {
        let trace = |stolen_ns, interrupted, after_softirqs| Trace {
            interrupted,
            after_softirqs,
            stolen_ns,
        };
        for (trace, cause) in [
            (trace(Some(900), true, true), Cause::Steal),
            (trace(Some(500), false, false), Cause::Steal),
            (trace(Some(2_000), false, false), Cause::Steal),
            // That was taken from another frame.
            (trace(Some(2_002), true, true), Cause::Interrupt),
            (trace(Some(499), true, false), Cause::Interrupt),
            (trace(Some(0), false, true), Cause::Softirq),
            (trace(None, false, false), Cause::None),
        ] {
            assert_eq!(trace.cause(1_000), cause, "{trace:?}");
        }
        // Nothing is to be explained of a frame that cost less.
        assert_eq!(trace(Some(0), false, false).cause(-5), Cause::None);
        assert_eq!(trace(Some(1), false, false).cause(0), Cause::None);
    }

    /// The checkpoint alone, once held up: that is in its mean.
    fn own() -> Summary {
        let mut costs = [30; 100];
        costs[7] = 10_000_000;
        Summary::of(costs).expect("there are values")
    }

    #[test]
    fn shares_add_up_to_all_that_cost_ten_times_the_median() {
        let mut costs = vec![50; 100];
        costs[10] = 230;
        costs[20..24].fill(231);
        let mut traces = vec![Trace::default(); 100];
        for at in [5, 20, 21] {
            traces[at].interrupted = true;
        }
        traces[22].stolen_ns = Some(150);
        let found = outliers(&costs, &own(), &traces).expect("a median");
        assert_eq!((found.over_ns, found.frames, found.of), (200, 4, 100));
        let counts: Vec<_> = found
            .causes
            .iter()
            .map(|it| (it.cause, it.outliers, it.others))
            .collect();
        assert_eq!(
            counts,
            [
                (Cause::Steal, 1, 0),
                (Cause::Interrupt, 2, 1),
                (Cause::Softirq, 0, 0),
                (Cause::None, 1, 95),
            ]
        );
        let shares = found.causes.iter().filter_map(|it| it.share);
        assert!((shares.sum::<f64>() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn without_counters_they_are_counted_and_without_a_cost_there_are_none() {
        let costs = vec![50; 100];
        let found = outliers(&costs, &own(), &[]).expect("a median");
        assert_eq!((found.frames, &found.causes[..]), (0, &[][..]));
        let traced = outliers(&costs, &own(), &[Trace::default(); 100]).expect("a median");
        assert!(traced.causes.iter().all(|it| it.share.is_none()));
        assert_eq!(outliers(&[30; 100], &own(), &[]), None);
    }
}
