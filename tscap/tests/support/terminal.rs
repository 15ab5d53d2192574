//! What a terminal does: a process group of its own, Ctrl-C for all of it, and lines
//! that are read as they come.

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

/// Starts a command in a process group of its own.
pub fn in_a_group(command: &mut Command) -> Child {
    command.process_group(0).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("start tscap")
}

/// Ctrl-C goes to all of a group.
pub fn ctrl_c(child: &Child) {
    killpg(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).expect("send SIGINT");
}

/// Waits for a line on standard error; returns the lines after it, still to come.
pub fn told(child: &mut Child, part: &str, limit: Duration) -> JoinHandle<String> {
    let stderr = child.stderr.take().expect("a pipe");
    let (tell, is_told) = std::sync::mpsc::channel();
    let wanted = part.to_owned();
    let reader = std::thread::spawn(move || {
        let mut all = String::new();
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            if line.contains(&wanted) {
                // Nobody waits for the second one.
                let _ = tell.send(());
            }
            all += &(line + "\n");
        }
        all
    });
    let is_told = is_told.recv_timeout(limit);
    is_told.unwrap_or_else(|_| panic!("tscap does not say {part}"));
    reader
}

/// The first child of any of a process's threads.
pub fn child_of(pid: u32) -> Option<i32> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    let children = threads
        .flatten()
        .filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    let children: Vec<_> = children.collect();
    children
        .iter()
        .find_map(|list| list.split_whitespace().next()?.parse().ok())
}
