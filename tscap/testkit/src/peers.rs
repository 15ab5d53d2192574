//! Programs of others that read or make the same captures.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::command::{Done, run};
use std::time::Duration;

/// Enough to read a million packets.
const LIMIT: Duration = Duration::from_secs(120);

/// Panics unless capinfos, tshark and tcpdump read `path` without complaint and
/// count `packets` in it.
#[track_caller]
pub fn agree_on(path: &Path, packets: u64) {
    assert_eq!(
        capinfos_count(path),
        packets,
        "capinfos on {}",
        path.display()
    );
    assert_eq!(
        tshark_lines(path, &["-T", "fields", "-e", "frame.number"]).len() as u64,
        packets
    );
    let done = run(
        Command::new("tcpdump")
            .args(["-n", "--count", "-r"])
            .arg(path),
        LIMIT,
    );
    assert!(done.status.success(), "tcpdump: {}", done.stderr);
    let count = done
        .stdout
        .split_whitespace()
        .next()
        .and_then(|word| word.parse().ok());
    assert_eq!(
        count,
        Some(packets),
        "tcpdump: {:?} {:?}",
        done.stdout,
        done.stderr
    );
}

/// Packets as capinfos counts them.
#[track_caller]
pub fn capinfos_count(path: &Path) -> u64 {
    let done = run(
        Command::new("capinfos")
            .args(["-M", "-T", "-r", "-c"])
            .arg(path),
        LIMIT,
    );
    quiet("capinfos", &done);
    let count = done
        .stdout
        .trim()
        .rsplit('\t')
        .next()
        .and_then(|count| count.parse().ok());
    count.unwrap_or_else(|| panic!("capinfos: {:?}", done.stdout))
}

/// Everything that capinfos says about a file, for people.
#[track_caller]
pub fn capinfos(path: &Path) -> String {
    let done = run(Command::new("capinfos").args(["-M"]).arg(path), LIMIT);
    quiet("capinfos", &done);
    done.stdout
}

/// Lines of `tshark -r <path> <arguments>`.
#[track_caller]
pub fn tshark_lines(path: &Path, arguments: &[&str]) -> Vec<String> {
    let mut command = Command::new("tshark");
    let done = run(command.args(["-n", "-r"]).arg(path).args(arguments), LIMIT);
    quiet("tshark", &done);
    done.stdout.lines().map(str::to_owned).collect()
}

/// A program that reads a capture from a pipe: `tshark -r -` counts packets.
pub fn tshark_on_pipe() -> Command {
    let mut command = Command::new("tshark");
    command.args(["-n", "-r", "-", "-T", "fields", "-e", "frame.len"]);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Panics if the program failed or complained.
#[track_caller]
pub fn quiet(name: &str, done: &Done) {
    let complaints: Vec<&str> = done
        .stderr
        .lines()
        .filter(|line| !line.starts_with("Running as user \"root\""))
        .collect();
    assert!(
        done.status.success(),
        "{name}: {}: {complaints:?}",
        done.status
    );
    assert!(complaints.is_empty(), "{name}: {complaints:?}");
}
