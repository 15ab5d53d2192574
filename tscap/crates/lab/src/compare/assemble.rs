//! From what was measured to what is said.

use super::experiment::{PATTERNS, Results};
use super::schema::{
    Checkpoint, Comparison, FrameCost, KernelStamp, Method, Metric, Precision, Subject, VERSION,
    Verdict,
};
use super::stamp_samples::{PatternSamples, StampSamples};
use super::statistics::{
    Allowance, Density, autocorrelation, correlation, pooled_autocorrelation, verdict,
};
use super::warnings::{disagreement, losses, noise, one_cpu, unreached};
use super::{Stamp, causes, interrupts};
use crate::early_end::early_end;
use tscap_common::compare::UNROLLED;

use tscap_clock::{StampPath, StampSource};
use tscap_results::envelope::{Circumstances, Kind};
use tscap_statistics::{Summary, mean};

/// The checkpoints are readings of CLOCK_MONOTONIC.
const CHECKPOINT: &str = "bpf_ktime_get_ns";

/// The kernel gives the duration of a run of a program in whole ns, …
const PROGRAM_QUANTUM_NS: f64 = 1.0;
/// … of which a read is the difference of two, over so many reads.
pub(super) const READ_QUANTUM_NS: f64 = 2.0 / UNROLLED as f64;

/// Under which conditions frames were measured.
#[derive(Clone, Debug)]
pub struct Conditions {
    /// Frames of each stamp in each round.
    pub frames: u32,
    /// Length of these; `None` for live traffic.
    pub frame_bytes: Option<u32>,
    /// Number of the CPU on which programs ran.
    pub cpu: u32,
    /// CPUs that all of it may run on.
    pub cpus: usize,
    /// Why programs can't look at the kernel's counters, if they can't.
    pub causes_unknown: Option<String>,
}

/// Puts it together.
pub fn assemble(
    results: Results,
    about: Circumstances,
    conditions: Conditions,
) -> Option<Comparison> {
    let of_all = results.taken.into_iter();
    let (off, taken): (Vec<_>, Vec<_>) = of_all.partition(|it| it.turn.interrupts_off);
    let floor = taken.first()?;
    let own = Summary::of(floor.costs.iter().copied())?;
    let own_means = floor.means();
    let resolution_ns = resolution(&floor.costs);
    let mut subjects: Vec<_> = taken
        .iter()
        .map(|taken| subject(taken, &own, &own_means))
        .collect();
    let compared = comparable(&subjects);
    // The read and the p99 of each stamp with interrupts off too.
    let allowance = Allowance {
        comparisons: compared.len() + 2 * off.len(),
        quantum_ns: resolution_ns.max(1.0),
    };
    let verdicts: Vec<_> = compared.iter().map(|it| it.verdict(allowance)).collect();
    let mut warnings: Vec<_> = results.ended_by.iter().map(early_end).collect();
    warnings.extend(noise(&about.machine, conditions.cpus, &verdicts));
    warnings.extend(results.warnings);
    warnings.extend(taken.iter().chain(&off).flat_map(losses));
    warnings.extend(taken.iter().flat_map(unreached));
    warnings.extend(one_cpu(results.loss.as_ref()));
    warnings.extend(subjects.iter().filter_map(disagreement));
    subjects.iter_mut().for_each(|subject| {
        let has_precision = subject.source.is_some();
        subject
            .precision
            .retain(|pattern| has_precision && pattern.sent > 0);
    });
    Some(Comparison {
        about: about.envelope(Kind::Comparison, VERSION, results.ended_by.is_some()),
        method: Method {
            rounds: results.rounds,
            frames: conditions.frames,
            frame_bytes: conditions.frame_bytes,
            cpu: conditions.cpu,
            checkpoint: Checkpoint {
                path: CHECKPOINT.into(),
                own,
                resolution_ns,
            },
            causes_unknown: conditions.causes_unknown,
            loss: results.loss,
        },
        subjects,
        kernel_stamp: results.kernel.map(|patterns| KernelStamp {
            precision: kernel_precision(&patterns),
        }),
        verdicts,
        interrupts_off: interrupts::beside(&taken, &off, &own, allowance),
        warnings,
    })
}

/// The usual step from one cost to the next greater one. A clock may count in
/// steps of more than the nanosecond that it is read in; rounding then puts each
/// of its costs on one of two neighbouring numbers.
fn resolution(costs: &[i64]) -> f64 {
    let mut sorted = costs.to_vec();
    sorted.sort_unstable();
    let rare = sorted.len() / 1_000;
    let mut common = sorted[rare..sorted.len() - rare].to_vec();
    common.dedup();
    let runs: Vec<_> = common.chunk_by(|cost, next| next - cost == 1).collect();
    if runs.iter().any(|run| run.len() > 2) {
        return 1.0;
    }
    let mut steps: Vec<_> = runs
        .windows(2)
        .map(|pair| pair[1][0] - pair[0][0])
        .collect();
    steps.sort_unstable();
    steps.get(steps.len() / 2).map_or(0.0, |step| *step as f64)
}

fn subject(taken: &StampSamples, own: &Summary, own_means: &[f64]) -> Subject {
    let stamp = taken.turn.stamp;
    let source = stamp.map(StampPath::source);
    let loss = |is_wanted: fn(&Option<u64>) -> bool| {
        let points = taken.loss.iter().filter(|point| is_wanted(&point.gap));
        let measured = points.filter(|point| point.sent > 0);
        measured.cloned().collect()
    };
    Subject {
        source,
        path: stamp.map_or("", StampPath::function).into(),
        ordered: stamp.is_some_and(StampPath::is_ordered),
        read_ns: source.map(|_| taken.read_ns.clone()),
        frame: source.and_then(|_| frame_cost(taken, own, own_means)),
        program_ns: taken.program_ns.clone(),
        lossless_rate: taken.lossless_rate.clone(),
        precision: PATTERNS
            .iter()
            .zip(&taken.patterns)
            .map(|((name, _), pattern)| precision(name, source, pattern, own))
            .collect(),
        loss_by_size: loss(|gap| gap.is_none()),
        loss_by_gap: loss(|gap| gap.is_some()),
    }
}

fn frame_cost(taken: &StampSamples, own: &Summary, own_means: &[f64]) -> Option<FrameCost> {
    let costs = less(&taken.costs, own);
    let density = Density::of(&costs);
    let rounds = taken.means().into_iter().zip(own_means);
    Some(FrameCost {
        outliers: causes::outliers(&taken.costs, own, &taken.traces),
        all: summary_less(&costs, own)?,
        rounds: rounds.map(|(cost, own)| cost - own).collect(),
        histogram: density.buckets,
        bucket_ns: density.width,
        autocorrelation: mean_autocorrelation(taken),
    })
}

/// Of each round by itself, then the mean of the rounds: what changes from round
/// to round is not in it.
fn mean_autocorrelation(taken: &StampSamples) -> Vec<f64> {
    let of_rounds: Vec<_> = taken
        .rounds()
        .map(autocorrelation)
        .filter(|lags| !lags.is_empty())
        .collect();
    let Some(lags) = of_rounds.first().map(Vec::len) else {
        return Vec::new();
    };
    let of_lag = |lag: usize| of_rounds.iter().map(|round| round[lag]).collect::<Vec<_>>();
    (0..lags).map(|lag| mean(&of_lag(lag))).collect()
}

/// The checkpoints' own cost subtracted, in whole ns.
pub(super) fn less(costs: &[i64], own: &Summary) -> Vec<i64> {
    let own = own.mean.round() as i64;
    costs.iter().map(|cost| cost - own).collect()
}

/// Of costs with the checkpoints' subtracted in whole ns; from the mean it is
/// subtracted as it is.
pub(super) fn summary_less(costs: &[i64], own: &Summary) -> Option<Summary> {
    let mut summary = Summary::of(costs.iter().copied())?;
    summary.mean += own.mean.round() - own.mean;
    Some(summary)
}

fn precision(
    name: &str,
    source: Option<StampSource>,
    taken: &PatternSamples,
    own: &Summary,
) -> Precision {
    let density = Density::of(&taken.inter_arrivals);
    let costs = less(&taken.costs, own);
    let cost_density = Density::of(&costs);
    let counts = taken.counts;
    Precision {
        pattern: name.into(),
        sent: counts.sent,
        received: counts.received,
        lost: counts.sent.saturating_sub(counts.received),
        cost_ns: summary_less(&costs, own),
        cost_histogram: cost_density.buckets,
        cost_bucket_ns: cost_density.width,
        cost_autocorrelation: pooled_autocorrelation(taken.rounds()),
        delay_ns: Summary::of(taken.delays.iter().copied()),
        interval_error_ns: Summary::of(taken.interval_errors.iter().copied()),
        intervals_from: match source {
            Some(StampSource::Tsc) => "raw stamps",
            _ => "stamps",
        }
        .into(),
        inter_arrival: density.buckets,
        bucket_ns: density.width,
        correlation: correlation(&taken.interval_errors, &taken.error_costs),
    }
}

/// Of the kernel's own stamp: its cost is not known.
fn kernel_precision(patterns: &[PatternSamples; 2]) -> Vec<Precision> {
    let each = PATTERNS.iter().zip(patterns).map(|((name, _), taken)| {
        let density = Density::of(&taken.inter_arrivals);
        Precision {
            pattern: (*name).into(),
            sent: taken.counts.sent,
            received: taken.counts.received,
            lost: taken.counts.sent.saturating_sub(taken.counts.received),
            cost_ns: None,
            cost_histogram: Vec::new(),
            cost_bucket_ns: 0.0,
            cost_autocorrelation: Vec::new(),
            delay_ns: Summary::of(taken.delays.iter().copied()),
            interval_error_ns: Summary::of(taken.interval_errors.iter().copied()),
            intervals_from: "stamps".into(),
            inter_arrival: density.buckets,
            bucket_ns: density.width,
            correlation: None,
        }
    });
    each.filter(|precision| precision.sent > 0).collect()
}

/// Costs that a verdict is on.
struct Compared {
    metric: Metric,
    stamp: Stamp,
    costs: Vec<f64>,
    ktime: Vec<f64>,
}

impl Compared {
    fn verdict(&self, allowance: Allowance) -> Verdict {
        let quantum_ns = match self.metric {
            Metric::Read => READ_QUANTUM_NS,
            // A mean of many frames has no steps.
            Metric::Frame => 0.0,
            Metric::Program => PROGRAM_QUANTUM_NS,
        };
        let allowance = Allowance {
            quantum_ns,
            ..allowance
        };
        verdict(self.metric, self.stamp, &self.costs, &self.ktime, allowance)
    }
}

/// Each cost of each stamp that `ktime` has too.
fn comparable(subjects: &[Subject]) -> Vec<Compared> {
    let ktime = subjects
        .iter()
        .find(|it| it.source == Some(StampSource::Ktime));
    let Some(ktime) = ktime else {
        return Vec::new();
    };
    let costs = |subject: &Subject, metric| match metric {
        Metric::Read => subject.read_ns.clone(),
        Metric::Frame => subject.frame.as_ref().map(|frame| frame.rounds.clone()),
        Metric::Program => Some(subject.program_ns.clone()),
    };
    let others = subjects.iter().filter(|it| it.source != ktime.source);
    let of_all = others.flat_map(|subject| {
        [Metric::Read, Metric::Frame, Metric::Program].map(|metric| {
            Some(Compared {
                metric,
                stamp: StampPath::by_function(&subject.path),
                costs: costs(subject, metric)?,
                ktime: costs(ktime, metric)?,
            })
        })
    });
    of_all.flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_is_less_by_the_exact_one() {
        let own = Summary::of([20, 21, 20]).unwrap();
        let summary = summary_less(&less(&[50, 50, 51], &own), &own).unwrap();
        assert!((summary.mean - 30.0).abs() < 1e-9, "{summary:?}");
        assert_eq!((summary.min, summary.max), (30, 31));
    }

    #[test]
    fn the_resolution_is_the_usual_step() {
        assert_eq!(resolution(&[20, 21, 30, 40, 41, 51, 30]), 10.0);
        assert_eq!(resolution(&[30, 31, 32, 33, 36]), 1.0);
        assert_eq!(resolution(&[30, 30]), 0.0);
        assert_eq!(resolution(&[]), 0.0);
    }
}
