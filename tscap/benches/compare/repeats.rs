//! Whether comparisons, one after the other, contradict each other.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Serialize;
use tscap_clock::{StampPath, StampSource};
use tscap_document::Table;
use tscap_lab::compare::Comparison;
use tscap_lab::compare::schema::{Metric, Outcome};
use tscap_statistics::Spread;
use tscap_testkit::command::{Done, run, tscap_path};

use crate::common::report::Section;
use crate::common::table::{row, show};
use crate::common::target::Target;

/// What may be said of a stamp.
const OUTCOMES: [Outcome; 4] = [
    Outcome::Cheaper,
    Outcome::Dearer,
    Outcome::WithinMargin,
    Outcome::Undecided,
];
/// A comparison takes 15 s.
const LIMIT: Duration = Duration::from_secs(90);

/// The part of the report.
#[derive(Debug, Serialize)]
pub struct RepeatsReport {
    /// `tscap compare --quick` so often.
    pub repeats: u32,
    /// What those said that failed.
    pub failed: Vec<String>,
    /// How long each of the others took, s.
    pub seconds: Vec<f64>,
    /// One for each metric of each stamp.
    pub verdicts: Vec<Verdicts>,
}

/// What was said of one metric of one stamp.
#[derive(Debug, Serialize)]
pub struct Verdicts {
    /// The metric.
    pub metric: Metric,
    /// The stamp; `None` for the floor.
    pub source: Option<StampSource>,
    /// The function that read the clock.
    pub path: String,
    /// In the order of the repeats.
    pub outcomes: Vec<Outcome>,
    /// Cost over that of `ktime`, where there was one.
    pub ratios: Vec<f64>,
}

/// Measures.
pub fn measure(repeats: u32) -> Result<RepeatsReport> {
    let (mut failed, mut seconds) = (Vec::new(), Vec::new());
    let mut verdicts: BTreeMap<String, Verdicts> = BTreeMap::new();
    for repeat in 1..=repeats {
        eprintln!("repeats: {repeat} of {repeats}");
        let done = compare();
        if !done.status.success() {
            eprintln!("repeats: {}", done.stderr);
            failed.push(done.stderr);
            continue;
        }
        let comparison = tscap_report::saved::read::<Comparison>(&done.stdout);
        let comparison = comparison.context("tscap compare --json")?;
        seconds.push(comparison.about.seconds);
        for verdict in comparison.verdicts {
            let (metric, source, path) = (verdict.metric, verdict.source, verdict.path);
            let of_all = verdicts.entry(format!("{source:?} {path} {metric:?}"));
            let of_all = of_all.or_insert_with(|| Verdicts {
                metric,
                source,
                path,
                outcomes: Vec::new(),
                ratios: Vec::new(),
            });
            of_all.outcomes.push(verdict.over_ktime.outcome);
            of_all.ratios.extend(verdict.over_ktime.ratio);
        }
    }
    Ok(RepeatsReport {
        repeats,
        failed,
        seconds,
        verdicts: verdicts.into_values().collect(),
    })
}

fn compare() -> Done {
    let mut command = Command::new(tscap_path());
    run(command.args(["compare", "--quick", "--json"]), LIMIT)
}

impl Verdicts {
    /// How often this was the outcome.
    pub fn count(&self, outcome: Outcome) -> usize {
        self.outcomes.iter().filter(|it| **it == outcome).count()
    }

    fn is_flipped(&self) -> bool {
        self.count(Outcome::Cheaper) > 0 && self.count(Outcome::Dearer) > 0
    }
}

impl Section for RepeatsReport {
    fn targets(&self) -> Vec<Target> {
        let flipped = self.verdicts.iter().filter(|it| it.is_flipped()).count();
        let failed = self.failed.len();
        vec![
            Target::at_most("verdicts that flipped their sign", flipped as f64, 0.0),
            Target::at_most("comparisons that failed", failed as f64, 0.0),
        ]
    }

    fn tables(&self) -> Vec<Table> {
        let rows = self.verdicts.iter().map(|verdicts| {
            let path = StampPath::by_function(&verdicts.path);
            let name = path.map_or("none", StampPath::name);
            let metric = format!("{:?}", verdicts.metric).to_lowercase();
            let ratio = show(&Spread::of(verdicts.ratios.clone()), 2);
            let counts = OUTCOMES.map(|outcome| verdicts.count(outcome).to_string());
            row(
                format!("{name}: {metric}"),
                [ratio].into_iter().chain(counts),
            )
        });
        let title = format!(
            "tscap compare --quick, {} times, {} failed",
            self.repeats,
            self.failed.len()
        );
        let head = [&["against ktime", "ratio"], &OUTCOMES.map(name)[..]].concat();
        vec![Table::figures(title, &head, rows.collect())]
    }
}

/// An outcome for people.
pub fn name(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Cheaper => "cheaper",
        Outcome::Dearer => "more expensive",
        Outcome::WithinMargin => "within margin",
        Outcome::Undecided => "undecided",
    }
}
