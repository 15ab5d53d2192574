//! What was sent, for people and for machines.

use std::fmt::Write as _;

use serde::Serialize;

use crate::command::console::Console;
use tscap_base::text::numbers::{counted, grouped, span};
use tscap_clock::read_order;
use tscap_references::ReferenceSummary;
use tscap_traffic::generator::{GapReport, Pacing, Sent, Step};

/// Version of the JSON objects.
pub(super) const VERSION: u32 = 1;
/// A realised rate this far from the one asked for is worth a warning.
const RATE_TOLERANCE: f64 = 0.01;

/// The sender as it begins.
#[derive(Debug, Serialize)]
pub(super) struct Ready<'a> {
    pub interface: &'a str,
    pub ifindex: u32,
    /// "native" or "packet".
    pub sender: &'a str,
    pub cpu: u32,
    pub steps: usize,
    /// The function that reads the payloads' TSC stamps; null if they are 0.
    pub tsc_path: Option<&'a str>,
    /// Whether that read is ordered (fenced).
    pub ordered: Option<bool>,
    /// Greatest error of the value read, ns.
    pub tsc_bound_ns: Option<u64>,
    /// The reference that the host's clocks are compared with, and how far they are off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference: Option<ReferenceSummary>,
}

/// How far a step is.
#[derive(Debug, Serialize)]
pub(super) struct Progress {
    pub step: usize,
    pub steps: usize,
    pub seconds: f64,
    pub sent: u64,
    /// Frames a second since the last time.
    pub rate: f64,
}

/// A step that is over.
#[derive(Debug, Serialize)]
pub(super) struct StepReport {
    /// Names its frames in their payloads.
    pub run: u16,
    pub size: u32,
    /// Between the starts of two frames, as asked for; null flat out.
    pub period_ns: Option<f64>,
    /// Frames that the interface took.
    pub sent: u64,
    /// Frames that it was given and did not take.
    pub refused: u64,
    /// Frames that went out more than a period after their time.
    pub late: u64,
    /// From the first frame to the last.
    pub seconds: f64,
    /// Frames a second, as asked for; null flat out.
    pub rate_asked: Option<f64>,
    /// Frames a second that the interface really took.
    pub rate: Option<f64>,
    /// Farthest that the TSC stamps may be off besides their bound.
    pub tsc_moved_ns: u64,
    /// The gaps between them.
    pub gaps: Option<GapReport>,
}

#[derive(Debug, Default, Serialize)]
pub(super) struct Summary {
    pub steps: usize,
    pub sent: u64,
    pub refused: u64,
    pub late: u64,
    /// "done", "signal" or "error".
    pub stopped_by: &'static str,
    /// The reference, and how far the host's clocks, which stamp, were off it at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference: Option<ReferenceSummary>,
}

impl StepReport {
    pub fn new(run: u16, step: Step, sent: &Sent) -> Self {
        let period = match step.pacing {
            Pacing::Paced(period) => Some(period),
            Pacing::FlatOut => None,
        };
        let ns = sent.between.map_or(0, |[first, last]| last.0 - first.0);
        Self {
            run,
            size: step.size,
            period_ns: period.map(|period| 1e9 / period.rate()),
            sent: sent.sent,
            refused: sent.refused,
            late: sent.late,
            seconds: ns as f64 / 1e9,
            rate_asked: period.map(|period| period.rate()),
            rate: sent.rate(step.pacing),
            tsc_moved_ns: sent.tsc_moved_ns,
            gaps: sent.gap_report(step.pacing),
        }
    }

    /// The rate reached if it is not the one asked for.
    fn missed_rate(&self) -> Option<(f64, f64)> {
        let (asked, rate) = (self.rate_asked?, self.rate?);
        let is_missed = (rate / asked - 1.0).abs() > RATE_TOLERANCE;
        is_missed.then_some((asked, rate))
    }
}

pub(super) fn ready(console: &mut Console, ready: &Ready<'_>) {
    let steps = match ready.steps {
        1 => String::new(),
        steps => format!(", {}", counted(steps as u64, "step")),
    };
    let tsc = ready.tsc_path.zip(ready.ordered);
    let tsc = tsc.map_or(String::new(), |(path, ordered)| {
        format!(", TSC by {path}, {} read", read_order(ordered))
    });
    console.say(&format!(
        "ready: sending on {} ({}) from CPU {}{steps}{tsc}",
        ready.interface, ready.sender, ready.cpu
    ));
    console.event("ready", VERSION, ready);
}

pub(super) fn progress(console: &mut Console, progress: &Progress) {
    console.progress(VERSION, progress, || {
        let step = match progress.steps {
            1 => None,
            steps => Some(format!("step {} of {steps}", progress.step)),
        };
        let parts = [
            format!("{:.0} s", progress.seconds),
            counted(progress.sent, "frame"),
            format!("{}/s", grouped(progress.rate as u64)),
        ];
        step.into_iter().chain(parts).collect()
    });
}

pub(super) fn step(console: &mut Console, step: &StepReport) {
    if let Some((asked, rate)) = step.missed_rate() {
        console.warning(&format!(
            "asked for {} frames/s and reached {}",
            decimal(asked),
            decimal(rate)
        ));
    }
    if step.refused > 0 {
        console.warning(&format!(
            "not taken by the interface: {}; its queue was full, or it went down",
            counted(step.refused, "frame")
        ));
    }
    if step.tsc_moved_ns > 0 {
        console.warning(&format!(
            "the frames' TSC stamps may be off by {}: the perf event that counts it has paused, \
             as when somebody else opens one",
            span(step.tsc_moved_ns)
        ));
    }
    if console.is_json() {
        console.event("sent", VERSION, step);
    } else {
        console.say(&one_line(step));
        if !console.is_quiet()
            && let Some(details) = details(step)
        {
            console.say(&details);
        }
    }
}

pub(super) fn summary(console: &mut Console, summary: &Summary) {
    console.event("summary", VERSION, summary);
    if !console.is_json() && summary.steps > 1 {
        console.say(&format!(
            "{} sent in {}, {} refused",
            counted(summary.sent, "frame"),
            counted(summary.steps as u64, "step"),
            grouped(summary.refused)
        ));
    }
    if !console.is_json() {
        let reference = summary.reference.iter();
        let lines = reference.flat_map(|it| it.lines("the host's clocks beside"));
        lines.for_each(|it| console.say(&it));
    }
}

fn one_line(step: &StepReport) -> String {
    let mut line = format!(
        "{} of {} bytes sent",
        counted(step.sent, "frame"),
        step.size
    );
    if let Some(rate) = step.rate {
        let bits = rate * f64::from(step.size) * 8.0;
        let _ = write!(
            line,
            " in {:.3} s: {}/s, {:.1} Mbit/s",
            step.seconds,
            decimal(rate),
            bits / 1e6
        );
    }
    line
}

fn details(step: &StepReport) -> Option<String> {
    let gaps = step.gaps?;
    let quantiles = |quantiles: &tscap_traffic::generator::Quantiles| {
        let named = [
            ("p50", quantiles.p50),
            ("p90", quantiles.p90),
            ("p99", quantiles.p99),
            ("p99.9", quantiles.p99_9),
            ("max", Some(quantiles.max)),
        ];
        let reported = named.into_iter().filter_map(|(name, value)| {
            let value = u64::try_from(value?).unwrap_or(0);
            Some(format!("{name} {}", span(value)))
        });
        reported.collect::<Vec<_>>().join(", ")
    };
    Some(match (&gaps.error_ns, step.period_ns) {
        (Some(errors), Some(period)) => format!(
            "  gaps of {}, off by {}; {} late by more than a gap",
            span(period.round() as u64),
            quantiles(errors),
            counted(step.late, "frame")
        ),
        _ => format!(
            "  gaps between bulks of {}: {}",
            counted(gaps.frames, "frame"),
            quantiles(&gaps.gap_ns)
        ),
    })
}

/// With digits enough to tell a tenth of a per mille.
fn decimal(rate: f64) -> String {
    if rate < 1_000.0 {
        format!("{rate:.1}")
    } else {
        grouped(rate.round() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(rate_asked: Option<f64>, rate: Option<f64>) -> StepReport {
        StepReport {
            run: 1,
            size: 64,
            period_ns: rate_asked.map(|rate| 1e9 / rate),
            sent: 1,
            refused: 0,
            late: 0,
            seconds: 0.0,
            rate_asked,
            rate,
            tsc_moved_ns: 0,
            gaps: None,
        }
    }

    #[test]
    fn a_rate_within_one_per_cent_is_no_warning() {
        for (asked, rate, is_missed) in [
            (1_000.0, 1_000.0, false),
            (1_000.0, 1_002.0, false),
            (1_000.0, 1_009.9, false),
            (1_000.0, 990.1, false),
            (1_000.0, 1_010.1, true),
            (1_000.0, 989.9, true),
            (1e6, 1_002_000.0, false),
            (1e6, 500_000.0, true),
        ] {
            let missed = step(Some(asked), Some(rate)).missed_rate();
            assert_eq!(missed, is_missed.then_some((asked, rate)));
        }
        // Flat out, and of one frame.
        assert_eq!(step(None, Some(1e6)).missed_rate(), None);
        assert_eq!(step(Some(1e3), None).missed_rate(), None);
    }

    #[test]
    fn one_frame_is_no_frames() {
        assert_eq!(one_line(&step(None, None)), "1 frame of 64 bytes sent");
    }
}
