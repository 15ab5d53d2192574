//! What a stamp costs.

use super::{Table, head, row};
use crate::compare::paper::{self, PATTERNS};
use crate::compare::words::stamp;
use tscap_base::text::numbers::counted;
use tscap_document::words::{NOTHING, maybe, number, rounds};
use tscap_lab::compare::schema::{Comparison, Subject};

/// What a stamp costs by the round.
pub(crate) fn costs(comparison: &Comparison) -> Table {
    let row = |subject: &Subject| {
        let rates: Vec<f64> = subject
            .lossless_rate
            .iter()
            .map(|rate| rate / 1e6)
            .collect();
        vec![
            stamp(subject.source, &subject.path).to_owned(),
            rounds(subject.read_ns.as_deref().unwrap_or_default()),
            rounds(&subject.program_ns),
            rounds(&rates),
        ]
    };
    let stamps = comparison
        .subjects
        .iter()
        .filter(|subject| subject.source.is_some());
    let paths = stamps.map(|subject| {
        let order = if subject.ordered {
            "ordered"
        } else {
            "not ordered"
        };
        format!(
            "{} by {} ({order})",
            stamp(subject.source, &subject.path),
            subject.path
        )
    });
    let paths: Vec<String> = paths.collect();
    Table::figures(
        format!(
            "Cost of a stamp: median and range of {}",
            counted(comparison.method.rounds.into(), "round")
        ),
        &["stamp", "read, ns", "program, ns", "lossless, Mpps"],
        comparison.subjects.iter().map(row).collect(),
    )
    .note(paths.join("; "))
    .note(
        "read: one of many unrolled calls, the empty run subtracted; program: the \
         whole capture of a frame; lossless: the highest rate of which no frame \
         was lost, in bursts of 27 times what the capture's ring holds",
    )
}

/// What a stamp costs on each frame.
pub(crate) fn frame_costs(comparison: &Comparison) -> Table {
    let checkpoint = &comparison.method.checkpoint;
    let ours = comparison.subjects.iter().filter_map(|subject| {
        let frame = subject.frame.as_ref()?;
        let lag = frame.autocorrelation.first().copied();
        let name = stamp(subject.source, &subject.path).to_owned();
        Some(row(name, Some(&frame.all), maybe(lag, number)))
    });
    let own = "checkpoint alone".to_owned();
    let own = row(own, Some(&checkpoint.own), NOTHING.to_owned());
    Table::figures(
        "Cost of a stamp on each frame in the softirq, ns",
        &head("stamp", "lag 1"),
        ours.chain([own]).collect(),
    )
    .note(format!(
        "between two checkpoints ({}, resolution {} ns), less the mean of a \
         checkpoint alone, whose noise is its sd; lag 1: autocorrelation",
        checkpoint.path,
        number(checkpoint.resolution_ns)
    ))
}

/// What a stamp costs on the paper's traffic, here and there.
pub(crate) fn beside_paper(comparison: &Comparison) -> Table {
    let machine = &comparison.about.machine;
    let rows = PATTERNS.iter().flat_map(|pattern| {
        let ours = comparison.subjects.iter().flat_map(|subject| {
            let of = subject.precision.iter();
            let of = of.filter(|precision| precision.pattern == pattern.name);
            of.filter_map(|precision| {
                let name = format!("{}, {}", pattern.name, stamp(subject.source, &subject.path));
                Some(row(
                    name,
                    Some(precision.cost_ns.as_ref()?),
                    "here".to_owned(),
                ))
            })
        });
        let theirs = pattern.rows.iter().map(|figures| {
            let name = format!("{}, {}", pattern.name, figures.stamp);
            let mut row = row(name, None, "paper".to_owned());
            row[2] = number(figures.mean);
            row[3] = number(figures.deviation);
            row
        });
        ours.chain(theirs)
    });
    let patterns = PATTERNS.each_ref();
    let patterns = patterns.map(|pattern| format!("{}: {}", pattern.name, pattern.traffic));
    Table::figures(
        "Cost of a stamp on the paper's traffic, ns",
        &head("traffic, stamp", "from"),
        rows.collect(),
    )
    .words(&[0, 9])
    .note(format!(
        "{}; here: {}, {}, {}; paper: Orosz & Skopkó 2013, tables I and II, {}; \
         what they call variance, in ns, stands under sd; frames so far apart \
         find code and data gone from the caches, the more so the longer a \
         stamp's way",
        patterns.join("; "),
        machine.cpu,
        machine.driver,
        machine.kernel,
        paper::MACHINE,
    ))
}

/// Autocorrelation of the cost, a row a lag.
pub(crate) fn autocorrelation(series: &[(&'static str, &[f64])]) -> Table {
    let lags = series.iter().map(|(_, values)| values.len()).max();
    let row = |lag: usize| {
        let values = series.iter().map(|(_, values)| values.get(lag - 1));
        let values = values.map(|value| maybe(value, |value| format!("{value:.3}")));
        std::iter::once(lag.to_string()).chain(values).collect()
    };
    let names = series.iter().map(|(name, _)| *name);
    let head: Vec<_> = std::iter::once("lag").chain(names).collect();
    let rows = (1..=lags.unwrap_or(0)).map(row).collect();
    Table::figures("Each lag", &head, rows).words(&[])
}
