//! What is wanted of a bench, and what came out.

use serde::Serialize;

use super::table::row;

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

impl Bound {
    /// For people.
    pub fn text(self) -> String {
        match self {
            Self::AtLeast(least) => format!("at least {least}"),
            Self::AtMost(most) => format!("at most {most}"),
        }
    }
}

impl Target {
    /// Whether it is as it should be.
    pub fn is_met(&self) -> bool {
        match self.bound {
            Bound::AtLeast(least) => self.value >= least,
            Bound::AtMost(most) => self.value <= most,
        }
    }

    /// What became of it.
    pub fn verdict(&self) -> &'static str {
        match (self.is_met(), self.asserted) {
            (true, true) => "met",
            (true, false) => "met, not asserted",
            (false, true) => "MISSED",
            (false, false) => "MISSED, not asserted",
        }
    }

    /// Its row in the table.
    pub fn row(&self) -> String {
        let row = row(&self.name, &[format!("{:.2}", self.value)]);
        format!("{row}  {}: {}", self.bound.text(), self.verdict())
    }
}

/// The targets that were missed and must not be, with what was measured.
pub fn missed(targets: &[Target]) -> Vec<String> {
    let missed = targets.iter();
    let missed = missed.filter(|target| target.asserted && !target.is_met());
    let missed = missed.map(|target| {
        let (name, value) = (&target.name, target.value);
        format!("{name}: {value:.3}, {}", target.bound.text())
    });
    missed.collect()
}
