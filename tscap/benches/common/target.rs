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

impl Target {
    /// Whether it is as it should be.
    pub fn is_met(&self) -> bool {
        match self.bound {
            Bound::AtLeast(least) => self.value >= least,
            Bound::AtMost(most) => self.value <= most,
        }
    }

    /// Its row in the table.
    pub fn row(&self) -> String {
        let (word, bound) = match self.bound {
            Bound::AtLeast(least) => ("at least", least),
            Bound::AtMost(most) => ("at most", most),
        };
        let verdict = if self.is_met() { "met" } else { "MISSED" };
        let asserted = if self.asserted { "" } else { ", not asserted" };
        let row = row(&self.name, &[format!("{:.2}", self.value)]);
        format!("{row}  {word} {bound}: {verdict}{asserted}")
    }
}

/// The targets that were missed and must not be, with what was measured.
pub fn missed(targets: &[Target]) -> Vec<String> {
    let missed = targets.iter();
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
