//! What the bench found, as `--json` prints it and as the table is made from.

use anyhow::{Context as _, Result};
use serde::Serialize;
use tscap::measuring::loss::accuracy;
use tscap::measuring::loss::schema::{Accuracy, Point};

use crate::common::header::Header;
use crate::common::target::{self, Bound, Target};
use crate::parts::Measured;

/// Version of the schema.
pub const VERSION: u32 = 1;
/// Most points by which the model errs in a few points of a busy machine too.
const SURELY_WITHIN: f64 = 20.0;

/// Everything.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Which bench, how and where; of schema [`VERSION`].
    #[serde(flatten)]
    pub header: Header,
    /// What is wanted, and what came out.
    pub targets: Vec<Target>,
    /// How good the model was over all points.
    pub accuracy: Accuracy,
    /// The parts, by round.
    pub rounds: Vec<Measured>,
}

impl Report {
    /// Judges what was measured.
    pub fn new(header: Header, rounds: Vec<Measured>) -> Result<Self> {
        let points: Vec<Point> = rounds.iter().flat_map(|it| it.points.clone()).collect();
        let accuracy = accuracy(&points).context("no points")?;
        // A quick run has few points, and may have a busy machine.
        let full = !header.quick;
        let target = |name: &str, value, bound, asserted| Target {
            name: name.to_owned(),
            value,
            bound,
            asserted,
        };
        let error = "mean |foretold − measured|, points of loss";
        let better = accuracy.error_of_constant / accuracy.error;
        Ok(Self {
            targets: vec![
                target(
                    "share of points that lose 5 to 60 %",
                    accuracy.between,
                    Bound::AtLeast(1.0 / 3.0),
                    full,
                ),
                target(error, accuracy.error, Bound::AtMost(5.0), full),
                target(
                    &format!("{error}, on any machine"),
                    accuracy.error,
                    Bound::AtMost(SURELY_WITHIN),
                    true,
                ),
                target(
                    "best constant's error / the model's",
                    better,
                    Bound::AtLeast(3.0),
                    full,
                ),
            ],
            header,
            accuracy,
            rounds,
        })
    }

    /// The targets that were missed and must not be, with what was measured.
    pub fn missed(&self) -> Vec<String> {
        target::missed(&self.targets)
    }
}
