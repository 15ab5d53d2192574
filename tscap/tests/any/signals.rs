//! Signals in commands that any user may run: each ends in order by those that end other
//! programs, and leaves those alone that were ignored when it began.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::UdpSocket;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tscap_testkit::command::{tscap_path, wait_for};
use tscap_testkit::process::interruptible;

const LIMIT: Duration = Duration::from_secs(60);

/// A UDP port that nobody has.
fn free_port() -> String {
    let socket = UdpSocket::bind("0.0.0.0:0").expect("bind");
    socket.local_addr().expect("an address").port().to_string()
}

/// A responder that is ready, started by a shell after `before`.
fn echo(before: &str) -> Child {
    let script = format!("{before} exec \"$@\"");
    let mut command = Command::new("sh");
    interruptible(&mut command);
    let mut child = command
        .args(["-c", &script, "sh", tscap_path(), "gen", "--echo"])
        .args(["--port", &free_port(), "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("start sh");
    let mut line = String::new();
    let mut stdout = BufReader::new(child.stdout.as_mut().expect("a pipe"));
    stdout.read_line(&mut line).expect("read");
    assert!(line.contains("\"ready\""), "{line}");
    child
}

fn send(child: &Child, signal: Signal) {
    kill(Pid::from_raw(child.id().cast_signed()), signal).expect("send");
}

/// Its exit code, and what it said at its end.
#[track_caller]
fn end(mut child: Child) -> (Option<i32>, String) {
    let mut stdout = child.stdout.take().expect("a pipe");
    let status = wait_for(&mut child, LIMIT);
    if status.is_none() {
        let _ = child.kill();
    }
    let status = status.expect("it ends");
    assert_eq!(status.signal(), None, "{status}");
    let mut text = String::new();
    stdout.read_to_string(&mut text).expect("read");
    (status.code(), text)
}

#[test]
fn each_ends_it_in_order() {
    for signal in [
        Signal::SIGHUP,
        Signal::SIGINT,
        Signal::SIGQUIT,
        Signal::SIGALRM,
        Signal::SIGTERM,
        Signal::SIGIO,
        Signal::SIGPROF,
        Signal::SIGPWR,
    ] {
        let child = echo("");
        // These are questions to a capture.
        send(&child, Signal::SIGUSR1);
        send(&child, Signal::SIGUSR2);
        send(&child, signal);
        let (code, text) = end(child);
        assert_eq!(code, Some(0), "{signal}: {text}");
        assert!(
            text.contains("\"stopped_by\":\"signal\""),
            "{signal}: {text}"
        );
    }
}

#[test]
fn what_was_ignored_stays_ignored() {
    let child = echo("trap '' HUP INT QUIT;");
    for signal in [Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT] {
        send(&child, signal);
    }
    let status = format!("/proc/{}/status", child.id());
    let status = std::fs::read_to_string(status).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = u64::from_str_radix(line.expect("a line").trim(), 16).expect("a mask");
    assert_eq!(ignored & 0b111, 0b111, "{ignored:x}");
    send(&child, Signal::SIGTERM);
    let (code, text) = end(child);
    assert_eq!(code, Some(0), "{text}");
}

/// Neither a panic nor a half-way failure with a wrong reason.
#[test]
fn too_few_open_files_are_told() {
    for limit in 4..12 {
        let script = format!("ulimit -n {limit}; exec \"$@\"");
        let output = Command::new("sh")
            .args(["-c", &script, "sh", tscap_path(), "gen", "--echo"])
            .args(["--port", "1000", "--duration", "1ms"])
            .output()
            .expect("start sh");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{limit}: {stderr}");
        let reported = ["may have", "files open", "hint: ulimit -n"];
        assert!(
            reported.iter().all(|it| stderr.contains(it)),
            "{limit}: {stderr}"
        );
    }
}
