//! What a terminal does: a width, a process group of its own, Ctrl-C for all of it, and
//! lines that are read as they come.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::pty::{Winsize, openpty};
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

use crate::process::interruptible;

/// Runs a command on a terminal of so many columns to its end. Returns all lines that
/// stood there, without colours, also those that were written over.
pub fn shown(command: &mut Command, columns: u16) -> Vec<String> {
    shown_with(command.stdin(Stdio::null()), columns, None)
}

/// The same of a command that gets SIGINT once `part` is there.
pub fn shown_until_ctrl_c(command: &mut Command, columns: u16, part: &str) -> Vec<String> {
    shown_with(command.stdin(Stdio::null()), columns, Some((part, None)))
}

/// The same of a command on whose terminal a key is pressed once `part` is there. It needs
/// `setsid -c` before it, by which the terminal is its own.
pub fn shown_until_key(
    command: &mut Command,
    columns: u16,
    (part, key): (&str, u8),
) -> Vec<String> {
    shown_with(command, columns, Some((part, Some(key))))
}

/// `until` is a part of what is shown with the key that is pressed then, or SIGINT.
fn shown_with(
    command: &mut Command,
    columns: u16,
    mut until: Option<(&str, Option<u8>)>,
) -> Vec<String> {
    let size = Winsize {
        ws_row: 24,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    let ends = openpty(Some(&size), None).expect("a pseudo-terminal");
    let other = || ends.slave.try_clone().expect("a file descriptor");
    if matches!(until, Some((_, Some(_)))) {
        command.stdin(other());
    }
    command.stdout(other()).stderr(ends.slave);
    interruptible(command);
    let mut child = command.spawn().expect("start tscap");
    // Their copies of the terminal's end go away: it then ends with the program.
    command.stdin(Stdio::null());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut all = Vec::new();
    let mut terminal = File::from(ends.master);
    let mut buffer = [0; 4096];
    // EIO once nobody has the other end open.
    while let Ok(length @ 1..) = terminal.read(&mut buffer) {
        all.extend_from_slice(&buffer[..length]);
        let shown = String::from_utf8_lossy(&all);
        let Some((_, key)) = until.take_if(|(part, _)| shown.contains(*part)) else {
            continue;
        };
        match key {
            Some(key) => terminal.write_all(&[key]).expect("press the key"),
            None => {
                let pid = Pid::from_raw(child.id().cast_signed());
                kill(pid, Signal::SIGINT).expect("send SIGINT");
            }
        }
    }
    assert_eq!(until, None, "never shown");
    child.wait().expect("wait for tscap");
    let text = String::from_utf8(all).expect("UTF-8").replace("\r\n", "\n");
    assert!(
        text.is_empty() || text.ends_with('\n'),
        "{text:?} has no end of its line"
    );
    let lines = text.split(['\r', '\n']);
    lines
        .map(|line| anstream::adapter::strip_str(line).to_string())
        .filter(|line| !line.is_empty())
        .collect()
}

/// Panics unless every line fits a terminal of so many columns.
pub fn check_width(lines: &[String], columns: u16) {
    let longest = lines.iter().map(|line| line.chars().count()).max();
    assert!(
        longest <= Some(columns.into()),
        "{columns} columns: {lines:#?}"
    );
}

/// Starts a command in a process group of its own.
pub fn in_a_group(command: &mut Command) -> Child {
    interruptible(command);
    command.process_group(0).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("start tscap")
}

/// Ctrl-C goes to all of a group.
pub fn ctrl_c(child: &Child) {
    killpg(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).expect("send SIGINT");
}

/// Waits for a line on standard error; returns the lines after it, still to come.
pub fn wait_for_text(child: &mut Child, part: &str, limit: Duration) -> JoinHandle<String> {
    let stderr = child.stderr.take().expect("a pipe");
    let (tell, is_reported) = std::sync::mpsc::channel();
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
    let is_reported = is_reported.recv_timeout(limit);
    is_reported.unwrap_or_else(|_| panic!("tscap does not say {part}"));
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
