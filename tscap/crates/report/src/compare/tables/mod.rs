//! Which figures are told in which table.

mod cost;
mod interrupts;
mod loss;
mod outliers;
mod precision;
mod verdicts;

use tscap_base::text::numbers::counted;
use tscap_document::words::maybe;
use tscap_document::{Table, columns, facts, head, row};
use tscap_lab::compare::schema::Comparison;

pub(crate) use cost::{autocorrelation, beside_paper, costs, frame_costs};
pub(crate) use interrupts::interrupts_off;
pub(crate) use loss::{loss_points, losses};
pub(crate) use outliers::outliers;
pub(crate) use precision::{delays, interval_errors, patterns, stamped};
pub(crate) use verdicts::verdicts;

/// Where and how a comparison was made.
pub(crate) fn environment(comparison: &Comparison) -> Table {
    let method = &comparison.method;
    let frames = maybe(method.frame_bytes, |bytes| format!(" of {bytes} B"));
    let method = format!(
        "{}, {}{} of each stamp in each, on CPU {}",
        counted(method.rounds.into(), "round"),
        counted(method.frames.into(), "frame"),
        match method.frame_bytes {
            Some(_) => frames,
            None => " of live traffic".to_owned(),
        },
        method.cpu
    );
    facts(&comparison.about, method)
}
