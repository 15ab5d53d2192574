//! What the bench found.

use anyhow::{Context as _, Result};
use serde::Serialize;
use tscap_document::Table;
use tscap_lab::loss::accuracy;
use tscap_lab::loss::schema::{Accuracy, Point};

use crate::common::report::Section;
use crate::common::table::row;
use crate::common::target::Target;
use crate::parts::Measured;

/// Most points by which the model errs in a few points of a busy machine too.
const SURELY_WITHIN: f64 = 20.0;

/// Everything.
#[derive(Debug, Serialize)]
pub struct Losses {
    #[serde(skip)]
    quick: bool,
    /// How good the model was over all points.
    accuracy: Accuracy,
    /// The parts, by round.
    rounds: Vec<Measured>,
}

impl Losses {
    /// Judges what was measured.
    pub fn new(rounds: Vec<Measured>, quick: bool) -> Result<Self> {
        let points: Vec<Point> = rounds.iter().flat_map(|it| it.points.clone()).collect();
        Ok(Self {
            quick,
            accuracy: accuracy(&points).context("no points")?,
            rounds,
        })
    }
}

impl Section for Losses {
    fn targets(&self) -> Vec<Target> {
        let Accuracy {
            between,
            error,
            error_of_constant,
            ..
        } = self.accuracy;
        let name = "mean |predicted − measured|, points of loss";
        let surely = Target::at_most(format!("{name}, on any machine"), error, SURELY_WITHIN);
        let better = error_of_constant / error;
        let full = [
            Target::at_least("share of points that lose 5 to 60 %", between, 1.0 / 3.0),
            Target::at_most(name, error, 5.0),
            Target::at_least("best constant's error / the model's", better, 3.0),
        ];
        // A quick run has few points, and may have a busy machine.
        let full = full.map(|target| target.asserted_if(!self.quick));
        full.into_iter().chain([surely]).collect()
    }

    fn tables(&self) -> Vec<Table> {
        let table = |measured: &Measured| {
            let costs = &measured.calibration.costs;
            let title = format!("{:?}: {costs:?}", measured.part);
            let head = [
                "size, snaplen, ring, frames/s",
                "before",
                "ring",
                "lost, %",
                "predicted, %",
                "off",
            ];
            Table::figures(title, &head, measured.points.iter().map(point).collect())
        };
        self.rounds.iter().map(table).collect()
    }
}

fn point(point: &Point) -> Vec<String> {
    let run = &point.run;
    let share = |frames: u64| 100.0 * frames as f64 / run.sent as f64;
    let predicted = point.predicted.map_or(0.0, |it| 100.0 * it.lost());
    let lost = 100.0 * run.loss();
    let what = format!(
        "{} B, {}, {} KiB, {:.0}",
        point.size,
        point.snaplen,
        point.ring_bytes >> 10,
        point.rate_asked.unwrap_or(f64::INFINITY),
    );
    let figures = [
        share(run.lost.before),
        share(run.lost.ring),
        lost,
        predicted,
        predicted - lost,
    ];
    row(what, figures.map(|figure| format!("{figure:.1}")))
}
