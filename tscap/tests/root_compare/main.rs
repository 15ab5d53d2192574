//! `tscap compare`: what it measures and says, and what it refuses. Needs root.

#[path = "../documents/shown.rs"]
mod shown;
#[path = "../support/mod.rs"]
mod support;

mod documents;
mod ends;
mod interrupts;
mod refusals;
mod stamps;

use std::time::Duration;

use tscap::measuring::compare::Comparison;

use support::capture::TSCAP;
use support::command::Done;

/// A quick comparison may take longer on a busy machine.
const LIMIT: Duration = Duration::from_secs(180);

fn compare(arguments: &[&str]) -> std::process::Command {
    let mut command = std::process::Command::new(TSCAP);
    command.arg("compare").args(arguments);
    command
}

#[track_caller]
fn comparison(done: &Done) -> Comparison {
    Comparison::from_json(&done.stdout)
        .unwrap_or_else(|error| panic!("{error:?}\n{}\n{}", done.stdout, done.stderr))
}

#[track_caller]
fn fails(done: &Done, parts: &[&str]) {
    assert_eq!(done.status.code(), Some(1), "{}", done.stderr);
    for part in parts.iter().chain(&["tscap: ", "hint: "]) {
        assert!(done.stderr.contains(part), "{part}:\n{}", done.stderr);
    }
}

/// Of the rounds: something else may take the CPU in one.
fn median(rounds: &[f64]) -> f64 {
    assert!(rounds.iter().all(|ns| ns.is_finite()), "{rounds:?}");
    let mut rounds = rounds.to_vec();
    rounds.sort_by(f64::total_cmp);
    rounds[rounds.len() / 2]
}

/// Network interfaces and XDP links of the whole machine, as far as this
/// namespace shows.
fn links() -> String {
    support::command::must(std::process::Command::new("ip").args(["-br", "link"]))
}
