//! From what was measured to what is said.

use super::experiment::{Placement, Results, SNAPLEN};
use super::plan::Amount;
use super::schema::{Method, Metric, Observation, Subject, VERSION, Verdict};
use crate::compare::statistics::{Allowance, ratio};
use crate::early_end::early_end;
use tscap_results::envelope::{Circumstances, Kind};

/// Puts it together.
pub fn assemble(
    results: Results,
    about: Circumstances,
    placement: &Placement,
    amount: &Amount,
) -> Observation {
    let mut warnings: Vec<_> = results.ended_by.iter().map(early_end).collect();
    if let Some(steal) = about.machine.noisy_steal() {
        warnings.push(format!(
            "a noisy machine: its host took {steal:.1} % of the time meanwhile"
        ));
    }
    if results.receive_cpu == placement.sender_cpu {
        warnings.push("one CPU only: both programs and the captures share it".into());
    } else if results.capture_cpus == [results.receive_cpu] {
        warnings.push(
            "the captures have no CPU of their own, but share that of the program that receives"
                .into(),
        );
    }
    warnings.extend(results.warnings);
    warnings.extend(results.subjects.iter().filter_map(unanswered));
    Observation {
        about: about.envelope(Kind::Observer, VERSION, results.ended_by.is_some()),
        method: Method {
            rounds: results.rounds,
            exchanges: amount.exchanges,
            stream_seconds: amount.stream.as_secs_f64(),
            sender_cpu: placement.sender_cpu,
            receive_cpu: results.receive_cpu,
            capture_cpus: results.capture_cpus,
            snaplen: SNAPLEN,
            programs: results.programs,
        },
        verdicts: verdicts(&results.subjects),
        subjects: results.subjects,
        warnings,
    }
}

/// Each but the first against the first one, by every metric.
pub(super) fn verdicts(subjects: &[Subject]) -> Vec<Verdict> {
    let Some((nobody, others)) = subjects.split_first() else {
        return Vec::new();
    };
    let allowance = Allowance {
        comparisons: others.len() * Metric::ALL.len(),
        quantum_ns: 0.0,
    };
    let of_metric = |metric: Metric| {
        others.iter().map(move |subject| Verdict {
            metric,
            watcher: subject.watcher,
            over_nobody: ratio(subject.rounds(metric), nobody.rounds(metric), allowance),
        })
    };
    Metric::ALL.into_iter().flat_map(of_metric).collect()
}

fn unanswered(subject: &Subject) -> Option<String> {
    (subject.unanswered > 0).then(|| {
        format!(
            "{}: {} questions were not answered in a second",
            subject.watcher.name(),
            subject.unanswered
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::schema::Outcome;
    use crate::observer::fixtures::observation;

    /// Whoever makes a round trip longer by half is told, and who does nothing is not.
    #[test]
    fn only_what_changes_traffic_is_told() {
        let observation = observation();
        let (all, others) = (&observation.verdicts, observation.subjects.len() - 1);
        assert_eq!(all.len(), others * Metric::ALL.len());
        for verdict in all {
            let is_slow = verdict.watcher == observation.subjects[others].watcher;
            let outcome = if is_slow {
                Outcome::Dearer
            } else {
                Outcome::WithinMargin
            };
            assert_eq!(verdict.over_nobody.outcome, outcome, "{verdict:?}");
        }
    }
}
