//! `tscap compare`: what it measures and says, and what it refuses. Needs root.

mod documents;
mod ends;
mod interrupts;
mod observer;
mod outliers;
mod refusals;
mod stamps;

use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use tscap_lab::compare::Comparison;
use tscap_testkit::command::{Done, finish, run, tscap_path};
use tscap_testkit::terminal::{ctrl_c, in_a_group, wait_for_text};

use interrupts::can_be_turned_off;

/// Why a test that compares runs alone: other tests would share its CPU.
const MEASURES: &str = "measures times on one CPU";

/// A quick comparison may take longer on a busy machine.
const LIMIT: Duration = Duration::from_secs(180);

fn compare(arguments: &[&str]) -> Command {
    let mut command = Command::new(tscap_path());
    command.arg("compare").args(arguments);
    command
}

#[track_caller]
fn comparison(done: &Done) -> Comparison {
    tscap_report::saved::read::<Comparison>(&done.stdout)
        .unwrap_or_else(|error| panic!("{error:?}\n{}\n{}", done.stdout, done.stderr))
}

/// One whole comparison of all that this kernel can, for every test that reads one.
fn whole() -> &'static (Done, Comparison) {
    static WHOLE: OnceLock<(Done, Comparison)> = OnceLock::new();
    WHOLE.get_or_init(|| {
        let irqs_off = can_be_turned_off().then_some("--irqs-off");
        let before = links();
        let done = run(compare(&["--quick", "--json"]).args(irqs_off), LIMIT);
        assert!(done.status.success(), "{}", done.stderr);
        assert_eq!(links(), before);
        let comparison = comparison(&done);
        (done, comparison)
    })
}

/// Ends a comparison by Ctrl-C after a round: for tests that need no verdict.
fn ended_after_a_round(command: &mut Command) -> Done {
    let mut child = in_a_group(command);
    let stderr = wait_for_text(&mut child, " done: about ", LIMIT);
    ctrl_c(&child);
    let done = finish(child, "tscap compare", LIMIT);
    let stderr = stderr.join().expect("reader");
    assert!(done.status.success(), "{stderr}");
    done
}

/// The same with its result.
fn first_round(command: &mut Command) -> Comparison {
    comparison(&ended_after_a_round(command))
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
    tscap_testkit::command::must(Command::new("ip").args(["-br", "link"]))
}
