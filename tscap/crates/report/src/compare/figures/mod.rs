//! Which figures are drawn in which chart.

mod cost;
mod density;
mod loss;
mod verdicts;

use super::words::stamp;
use tscap_document::Figure;
use tscap_document::chart::{Series, Shape};
use tscap_lab::compare::schema::{Comparison, Subject};

pub(crate) use cost::tails_of;
pub(crate) use cost::{autocorrelation, interrupts_off, tail};
pub(crate) use density::{costs, inter_arrivals, pattern_costs};
pub(crate) use loss::losses;
pub(crate) use verdicts::of_intervals;
pub(crate) use verdicts::verdicts;

/// A stamp's series, in its look.
fn series(
    comparison: &Comparison,
    subject: &Subject,
    shape: Shape,
    points: Vec<(f64, f64)>,
) -> Series {
    let mut subjects = comparison.subjects.iter();
    Series {
        name: stamp(subject.source, &subject.path).to_owned(),
        style: subjects
            .position(|other| std::ptr::eq(other, subject))
            .unwrap_or(0),
        shape,
        points,
    }
}

fn xs(series: &[Series]) -> impl Iterator<Item = f64> {
    series
        .iter()
        .flat_map(|series| series.points.iter().map(|(x, _)| *x))
}

fn ys(series: &[Series]) -> impl Iterator<Item = f64> {
    series
        .iter()
        .flat_map(|series| series.points.iter().map(|(_, y)| *y))
}
