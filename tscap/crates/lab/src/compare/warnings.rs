//! What a reader must know before the figures of a comparison.

use super::schema::{LossMethod, Outcome, Subject, Verdict};
use super::stamp_samples::StampSamples;
use tscap_base::text::numbers::{counted, grouped};
use tscap_clock::StampPath;
use tscap_results::machine::Machine;

/// The two costs of a read may differ by so much, a share of the unrolled one.
const AGREEMENT: f64 = 0.25;

/// What makes all figures doubtful comes first.
pub(super) fn noise(machine: &Machine, cpus: usize, verdicts: &[Verdict]) -> Vec<String> {
    let mut noise = Vec::new();
    if let Some(steal) = machine.noisy_steal() {
        noise.push(format!(
            "a noisy machine: its host took {steal:.1} % of the time meanwhile"
        ));
    }
    let undecided = verdicts
        .iter()
        .filter(|it| it.over_ktime.outcome == Outcome::Undecided);
    match undecided.count() {
        0 => {}
        count => noise.push(format!(
            "a noisy machine, or too few rounds: {count} of {} undecided",
            counted(verdicts.len() as u64, "comparison")
        )),
    }
    if cpus == 1 {
        noise.push("one CPU only: sender, receiver and everything else share it".into());
    }
    noise
}

/// What is missing of a stamp's frames where nothing should be lost.
pub(super) fn losses(taken: &StampSamples) -> Vec<String> {
    let frames = |count: u64| counted(count, "frame");
    let patterns = taken.patterns.iter().map(|pattern| pattern.counts);
    let lost = std::iter::once(taken.fast)
        .chain(patterns)
        .map(|counts| counts.sent.saturating_sub(counts.received))
        .sum();
    let moved: u32 = taken.patterns.iter().map(|pattern| pattern.moved).sum();
    let (elsewhere, unstamped) = (taken.fast.elsewhere, taken.fast.unstamped);
    let rates_with_loss = taken.rates_with_loss;
    let all = [
        (lost > 0).then(|| format!("sent and not measured: {}", frames(lost))),
        (elsewhere > 0).then(|| {
            let frames = frames(elsewhere);
            format!("not measured, as they came in on other CPUs: {frames}")
        }),
        (unstamped > 0).then(|| {
            let frames = frames(unstamped);
            format!("the clock could not be read on {frames}")
        }),
        (moved > 0).then(|| {
            format!(
                "somebody opened a perf event during {}, and the sender's TSC moved: their delays \
                 and intervals are left out",
                counted(moved.into(), "burst")
            )
        }),
        (rates_with_loss > 0).then(|| {
            let rounds = counted(rates_with_loss.into(), "round");
            format!("no rate without loss was found in {rounds}")
        }),
    ];
    let name = taken.turn.name();
    let all = all.into_iter().flatten();
    all.map(|what| format!("{name}: {what}")).collect()
}

/// Points of a loss curve at which the sender was too slow.
pub(super) fn unreached(taken: &StampSamples) -> Option<String> {
    let unreached = taken.loss.iter().filter(|point| !point.is_reached());
    let gaps: Vec<_> = unreached
        .filter_map(|point| point.gap.map(grouped))
        .collect();
    (!gaps.is_empty()).then(|| {
        format!(
            "{}: loss at gap {}: the sender did not reach 99 % of the rate asked for, and the \
             curve leaves it out",
            taken.turn.name(),
            gaps.join(", ")
        )
    })
}

/// Where loss was measured without a CPU that only receives.
pub(super) fn one_cpu(loss: Option<&LossMethod>) -> Option<String> {
    loss.filter(|it| it.receive_cpu == it.sender_cpu).map(|it| {
        format!(
            "loss: received on the sender's CPU {}, as there is no other: a stamp that takes \
             longer slows the sender down there, and loses nothing",
            it.sender_cpu
        )
    })
}

/// Both ways to measure a read should agree; `None` if they do.
pub(super) fn disagreement(subject: &Subject) -> Option<String> {
    let unrolled = subject.read_ns.as_ref()?;
    let unrolled = unrolled.iter().sum::<f64>() / unrolled.len() as f64;
    let frame = &subject.frame.as_ref()?.rounds;
    let on_frames = frame.iter().sum::<f64>() / frame.len() as f64;
    if (on_frames / unrolled - 1.0).abs() <= AGREEMENT {
        return None;
    }
    Some(format!(
        "{}: {on_frames:.1} ns on frames and {unrolled:.1} ns unrolled: on frames code and data \
         are colder, and the clock's reads on either side are ordered against it",
        StampPath::by_function(&subject.path)?.name()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::schema::LossPoint;
    use crate::compare::stamp_samples::FrameCounts;
    use tscap_clock::TscPath;

    #[test]
    fn what_is_missing_is_said() {
        let mut taken = StampSamples::new(Some(StampPath::Tsc(TscPath::Module)));
        assert_eq!(losses(&taken), Vec::<String>::new());
        taken.fast = FrameCounts {
            sent: 10,
            received: 7,
            elsewhere: 2,
            unstamped: 1,
        };
        taken.rates_with_loss = 4;
        taken.patterns[0].moved = 2;
        let said = losses(&taken).join("\n");
        for part in [
            "tsc-module: sent and not measured: 3 frames",
            "on other CPUs: 2 frames",
            "read on 1 frame\n",
            "in 4 rounds",
            "during 2 bursts",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
    }

    #[test]
    fn a_gap_that_was_not_kept_is_said() {
        let mut taken = StampSamples::new(Some(StampPath::Ktime));
        taken.loss = vec![LossPoint::new(64, None), LossPoint::new(64, Some(12))];
        taken.loss[0].rates = vec![1.0; 3];
        let asked = taken.loss[1].rate_asked.unwrap();
        taken.loss[1].rates = vec![asked, 0.995 * asked, 0.2 * asked];
        assert_eq!(unreached(&taken), None);
        taken.loss[1].rates = vec![asked, 0.98 * asked, 0.2 * asked];
        let said = unreached(&taken).unwrap();
        assert!(said.starts_with("ktime: loss at gap 12:"), "{said}");
    }

    /// With one CPU a more expensive stamp loses nothing, and the curve is none.
    #[test]
    fn a_receiver_on_the_senders_cpu_is_said() {
        let method = |receive_cpu| LossMethod {
            frames: 20_000,
            rounds: 10,
            sender_cpu: 0,
            receive_cpu,
            capture_cpus: vec![0],
            ring_bytes: 4 << 20,
        };
        assert_eq!(one_cpu(Some(&method(1))), None);
        assert!(one_cpu(Some(&method(0))).unwrap().contains("CPU 0"));
    }
}
