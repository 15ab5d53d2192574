//! `tscap clock`, which anybody may run.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

fn clock(arguments: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tscap"));
    command.arg("clock").args(arguments).stdout(Stdio::piped());
    command.spawn().expect("start tscap")
}

/// Whether it ended well within `limit`; it has ended in any case.
fn ends_within(child: &mut Child, limit: Duration) -> bool {
    let deadline = Instant::now() + limit;
    while Instant::now() < deadline {
        if let Some(status) = child.try_wait().unwrap() {
            return status.success();
        }
        thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    false
}

fn has_no_counter() -> bool {
    let found = tscap::sys::tsc::check();
    found.is_err_and(|error| {
        println!("SKIPPED: {error}");
        true
    })
}

#[test]
fn it_ends_when_nobody_reads() {
    if has_no_counter() {
        return;
    }
    for format in [&[][..], &["--json"]] {
        let mut child = clock(&[&["--interval", "100ms"], format].concat());
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(!lines.next().unwrap().unwrap().is_empty());
        drop(lines);
        assert!(
            ends_within(&mut child, Duration::from_secs(10)),
            "{format:?}"
        );
    }
}

#[test]
fn it_ends_in_time_whatever_the_interval() {
    if has_no_counter() {
        return;
    }
    let started = Instant::now();
    let mut child = clock(&["--interval", "1h", "--duration", "500ms", "--json"]);
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(ends_within(&mut child, Duration::from_secs(10)));
    assert!(started.elapsed() >= Duration::from_millis(500));
    assert_eq!(lines.count(), 1);
}

#[test]
fn the_readmes_command_works() {
    if has_no_counter() {
        return;
    }
    let readme = include_str!("../../README.md");
    let mut lines = readme.lines();
    let line = lines.find_map(|line| line.strip_prefix("tscap clock "));
    let arguments: Vec<_> = line.expect("it is there").split(' ').collect();
    let mut child = clock(&arguments);
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(ends_within(&mut child, Duration::from_secs(20)));
    assert_eq!(lines.count(), 3);
}
