//! `tscap loss`: what it measures and predicts, and what it refuses. Needs root.

mod documents;
mod ends;
mod plan;
mod points;
mod refusals;
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use tempfile::TempDir;
use tscap_lab::loss::Sweep;
use tscap_testkit::command::{Done, run};
use tscap_testkit::netns::Netns;

pub use tscap_testkit::command::tscap_path;

/// A quick sweep may take longer on a busy machine.
const LIMIT: Duration = Duration::from_secs(180);

/// Why a test that measures runs alone.
const MEASURES: &str = "measures how fast frames are taken";

/// One quick sweep for every test that reads one.
fn quick() -> &'static (Done, Sweep) {
    static QUICK: OnceLock<(Done, Sweep)> = OnceLock::new();
    QUICK.get_or_init(|| {
        let place = Place::new();
        let done = run(&mut place.loss_in_folder(&["--quick", "--json"]), LIMIT);
        assert!(done.status.success(), "{}", done.stderr);
        place.has_nothing_new();
        let sweep = sweep(&done);
        (done, sweep)
    })
}

fn loss(arguments: &[&str]) -> Command {
    let mut command = Command::new(tscap_path());
    command.arg("loss").args(arguments);
    command
}

#[track_caller]
fn sweep(done: &Done) -> Sweep {
    tscap_report::saved::read::<Sweep>(&done.stdout)
        .unwrap_or_else(|error| panic!("{error:?}\n{}\n{}", done.stdout, done.stderr))
}

#[track_caller]
fn fails(done: &Done, parts: &[&str]) {
    assert_eq!(done.status.code(), Some(1), "{}", done.stderr);
    for part in parts.iter().chain(&["tscap: ", "hint: "]) {
        assert!(done.stderr.contains(part), "{part}:\n{}", done.stderr);
    }
}

/// A network namespace and a folder for the captures of one test: what is left behind
/// there is the test's, whoever else measures on the machine.
struct Place {
    netns: Netns,
    /// Its interfaces: some kernels give every namespace more than a loopback.
    links: String,
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::Builder::new()
            .prefix("tscap-test-")
            .tempdir_in("/dev/shm");
        let netns = Netns::new("loss");
        Self {
            links: netns.ip(&["-br", "link"]),
            netns,
            folder: folder.expect("a folder in /dev/shm"),
        }
    }

    /// `tscap loss` there, without `--folder`.
    fn loss(&self, arguments: &[&str]) -> Command {
        let mut command = self.netns.command(tscap_path());
        command.arg("loss").args(arguments);
        command
    }

    /// The same with `--folder`.
    fn loss_in_folder(&self, arguments: &[&str]) -> Command {
        let mut command = self.loss(arguments);
        command.arg("--folder").arg(self.folder.path());
        command
    }

    /// Panics if there is a new interface, or a file.
    #[track_caller]
    fn has_nothing_new(&self) {
        assert_eq!(self.netns.ip(&["-br", "link"]), self.links);
        let files = std::fs::read_dir(&self.folder).expect("list the folder");
        let names: Vec<_> = files
            .map(|file| file.expect("a file").file_name())
            .collect();
        assert!(names.is_empty(), "{names:?}");
    }
}
