//! Which figures are told in which table.

mod cost;
mod environment;
mod interrupts;
mod loss;
mod outliers;
mod precision;
mod verdicts;

use super::table::{Table, columns};
use super::words::{NOTHING, maybe, number, whole};
use tscap_base::text::numbers::grouped;
use tscap_statistics::Summary;

pub(super) use cost::{autocorrelation, beside_paper, costs, frame_costs};
pub(super) use environment::{environment, facts, mitigations};
pub(super) use interrupts::interrupts_off;
pub(super) use loss::{loss_points, losses};
pub(super) use outliers::outliers;
pub(super) use precision::{delays, interval_errors, patterns, stamped};
pub(super) use verdicts::verdicts;

/// The columns of [`summary`].
const SUMMARY: [&str; 8] = ["n", "mean", "sd", "min", "p50", "p99", "p99.9", "max"];

pub(super) fn head(first: &'static str, last: &'static str) -> Vec<&'static str> {
    std::iter::once(first)
        .chain(SUMMARY)
        .chain([last])
        .collect()
}

/// A distribution, between the name of the row and what else there is to say.
pub(super) fn row(name: String, summary: Option<&Summary>, last: String) -> Vec<String> {
    let cells = match summary {
        None => [const { NOTHING }; SUMMARY.len()].map(str::to_owned),
        Some(of) => [
            grouped(of.n),
            number(of.mean),
            number(of.sd),
            whole(of.min),
            maybe(of.p50, whole),
            maybe(of.p99, whole),
            maybe(of.p99_9, whole),
            whole(of.max),
        ],
    };
    std::iter::once(name).chain(cells).chain([last]).collect()
}
