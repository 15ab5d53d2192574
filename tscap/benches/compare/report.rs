//! What the bench found, as `--json` prints it and as the table is made from.

use serde::Serialize;

use crate::common::header::Header;
use crate::common::target::{self, Target};
use crate::linearity::LinearityReport;
use crate::power::PowerReport;
use crate::repeats::RepeatsReport;

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
    /// Whether what is dearer is found.
    pub power: Option<PowerReport>,
    /// Whether reads add up.
    pub linearity: Option<LinearityReport>,
    /// Whether comparisons agree.
    pub repeats: Option<RepeatsReport>,
}

impl Report {
    /// The targets that were missed and must not be, with what was measured.
    pub fn missed(&self) -> Vec<String> {
        target::missed(&self.targets)
    }
}
