//! Frames whose stamp cost far more than others, and why.

use super::Table;
use crate::compare::words::stamp;
use tscap_base::text::numbers::grouped;
use tscap_document::words::{NOTHING, maybe, number, whole};
use tscap_lab::compare::schema::{Cause, CauseCount, Comparison, Outliers};

/// `None` from an earlier tscap.
pub(crate) fn outliers(comparison: &Comparison) -> Option<Table> {
    let unknown = comparison.method.causes_unknown.as_deref();
    let rows = comparison.subjects.iter().filter_map(|subject| {
        let of = subject.frame.as_ref()?.outliers.as_ref()?;
        let mut row = vec![
            stamp(subject.source, &subject.path).to_owned(),
            whole(of.over_ns),
            grouped(of.frames),
        ];
        if unknown.is_none() {
            row.extend(Cause::ALL.map(|cause| share(of, cause)));
        }
        Some(row)
    });
    let mut head = vec!["stamp", "over, ns", "frames"];
    if unknown.is_none() {
        head.extend(Cause::ALL.map(|cause| match cause {
            Cause::Steal => "steal, %",
            Cause::Interrupt => "interrupt, %",
            Cause::Softirq => "softirq, %",
            Cause::None => "none, %",
        }));
    }
    let note = match unknown {
        Some(why) => format!("causes are unknown: {why}"),
        None => "of these frames so many, each at the first cause that the kernel's counters of \
                 the CPU are evidence of; in parentheses so many of all other frames. Steal: the \
                 host of a virtual machine took half to twice the time between two ticks; \
                 interrupt: one came between; softirq: others ran since the frame before"
            .into(),
    };
    let title = "Frames whose stamp cost more than 10 times the median";
    Table::figures(title, &head, rows.collect())
        .note(note)
        .if_any()
}

/// Of the outliers, and in parentheses of the other frames, %.
fn share(of: &Outliers, cause: Cause) -> String {
    let mut counts = of.causes.iter();
    let Some(count) = counts.find(|it| it.cause == cause) else {
        return NOTHING.to_owned();
    };
    let others = of.of.saturating_sub(of.frames);
    let CauseCount {
        share, others: n, ..
    } = count;
    let by_chance = (others > 0).then(|| *n as f64 / others as f64);
    let percent = |share: Option<f64>| maybe(share, |share| number(100.0 * share));
    format!("{} ({})", percent(*share), percent(by_chance))
}
