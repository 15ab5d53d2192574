//! What is wanted of a bench, and what came out.

use serde::Serialize;
use tscap_document::Table;

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
        let hundredths = |bound: f64| (bound * 100.0).round() / 100.0;
        match self {
            Self::AtLeast(least) => format!("at least {}", hundredths(least)),
            Self::AtMost(most) => format!("at most {}", hundredths(most)),
        }
    }
}

impl Target {
    /// A figure that `--assert` holds to be at least this.
    pub fn at_least(name: impl Into<String>, value: f64, least: f64) -> Self {
        Self {
            name: name.into(),
            value,
            bound: Bound::AtLeast(least),
            asserted: true,
        }
    }

    /// A figure that `--assert` holds to be at most this.
    pub fn at_most(name: impl Into<String>, value: f64, most: f64) -> Self {
        Self {
            bound: Bound::AtMost(most),
            ..Self::at_least(name, value, most)
        }
    }

    /// The same, held to it only if `asserted`.
    #[must_use]
    pub fn asserted_if(self, asserted: bool) -> Self {
        Self { asserted, ..self }
    }

    /// Whether it is as it should be.
    pub fn is_met(&self) -> bool {
        match self.bound {
            Bound::AtLeast(least) => self.value >= least,
            Bound::AtMost(most) => self.value <= most,
        }
    }

    /// What became of it.
    fn verdict(&self) -> &'static str {
        match (self.is_met(), self.asserted) {
            (true, true) => "met",
            (true, false) => "met, not asserted",
            (false, true) => "MISSED",
            (false, false) => "MISSED, not asserted",
        }
    }
}

/// The targets as a table.
pub fn targets(targets: &[Target]) -> Table {
    let row = |target: &Target| {
        let figure = format!("{:.2}", target.value);
        let (wanted, verdict) = (target.bound.text(), target.verdict().to_owned());
        vec![target.name.clone(), figure, wanted, verdict]
    };
    let rows = targets.iter().map(row).collect();
    Table::figures("targets", &["", "figure", "wanted", ""], rows).words(&[0, 2, 3])
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
