//! `tscap loss`: what it measures and foretells, and what it refuses. Needs root.

#[path = "../support/mod.rs"]
mod support;

mod ends;
mod plan;
mod points;
mod readme;
mod refusals;

use std::process::Command;
use std::time::Duration;

use tscap::loss::Sweep;

pub use support::capture::TSCAP;
use support::command::Done;

/// A quick sweep may take longer on a busy machine.
const LIMIT: Duration = Duration::from_secs(180);

fn loss(arguments: &[&str]) -> Command {
    let mut command = Command::new(TSCAP);
    command.arg("loss").args(arguments);
    command
}

#[track_caller]
fn sweep(done: &Done) -> Sweep {
    Sweep::from_json(&done.stdout)
        .unwrap_or_else(|error| panic!("{error:?}\n{}\n{}", done.stdout, done.stderr))
}

#[track_caller]
fn fails(done: &Done, parts: &[&str]) {
    assert_eq!(done.status.code(), Some(1), "{}", done.stderr);
    for part in parts.iter().chain(&["tscap: ", "hint: "]) {
        assert!(done.stderr.contains(part), "{part}:\n{}", done.stderr);
    }
}

/// What it must not leave behind: interfaces, and files in the folder of its captures.
fn left() -> (String, Vec<std::ffi::OsString>) {
    let links = support::command::must(Command::new("ip").args(["-br", "link"]));
    let files = std::fs::read_dir("/dev/shm").expect("list /dev/shm");
    let names = files.map(|file| file.expect("a file").file_name());
    let ours = |name: &std::ffi::OsString| name.to_string_lossy().starts_with("tscap-loss-");
    (links, names.filter(ours).collect())
}
