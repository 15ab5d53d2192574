//! What the bench found, as `--json` prints it and as the table is made from.

use serde::Serialize;

use crate::common::header::Header;
use crate::flat_out::FlatOutReport;
use crate::gaps::GapsReport;
use crate::rate::RateReport;

/// Version of the schema.
pub const VERSION: u32 = 1;

/// Everything.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Which bench, how and where; of schema [`VERSION`].
    #[serde(flatten)]
    pub header: Header,
    /// What is wanted of the parts, and what came out.
    pub targets: Vec<Target>,
    /// Frames a second.
    pub flat_out: Option<FlatOutReport>,
    /// What is realised of a rate.
    pub rate: Option<RateReport>,
    /// Regularity.
    pub gaps: Option<GapsReport>,
}

/// A figure that is to be great or small enough.
#[derive(Debug, Serialize)]
pub struct Target {
    /// What it is.
    pub name: String,
    /// What came out; unless `name` says otherwise, the median of the rounds.
    pub value: f64,
    /// What it is to be.
    pub bound: Bound,
    /// Whether `--assert` holds it to that: on every machine it must be reached.
    pub asserted: bool,
}

/// What a figure is to be.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// This or more.
    AtLeast(f64),
    /// This or less.
    AtMost(f64),
}

impl Target {
    /// Whether it is as it should be.
    pub fn is_met(&self) -> bool {
        match self.bound {
            Bound::AtLeast(least) => self.value >= least,
            Bound::AtMost(most) => self.value <= most,
        }
    }
}

impl Report {
    /// The targets that were missed and must not be, with what was measured.
    pub fn missed(&self) -> Vec<String> {
        let missed = self.targets.iter();
        let missed = missed.filter(|target| target.asserted && !target.is_met());
        let missed = missed.map(|target| {
            let (name, value) = (&target.name, target.value);
            match target.bound {
                Bound::AtLeast(least) => format!("{name}: {value:.3}, at least {least}"),
                Bound::AtMost(most) => format!("{name}: {value:.3}, at most {most}"),
            }
        });
        missed.collect()
    }
}
