//! Programs run to their end under a deadline.

use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::LazyLock;
use std::thread;
use std::time::{Duration, Instant};

use crate::{made, wait};

/// For programs that answer at once.
pub const SHORT: Duration = Duration::from_secs(30);

/// The program under test, which `cargo test` and `cargo bench` build.
pub fn tscap_path() -> &'static str {
    static PATH: LazyLock<String> = LazyLock::new(|| {
        let path = std::env::var("CARGO_BIN_EXE_tscap");
        path.expect("CARGO_BIN_EXE_tscap is not set: run tests by `cargo test`")
    });
    &PATH
}

/// What a program left.
#[derive(Debug)]
pub struct Done {
    /// How it ended.
    pub status: ExitStatus,
    /// Its standard output; invalid UTF-8 replaced.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

impl Done {
    /// Panics unless the time given on standard error, between the words `before` and
    /// `after`, is between a tenth of and twice the `seconds` that it took: other work, or a
    /// slow machine, makes it longer.
    #[track_caller]
    pub fn estimated(&self, before: &str, after: &str, seconds: f64) {
        let rest = self.stderr.split_once(before).map(|(_, rest)| rest);
        let time = rest.and_then(|rest| rest.split_once(after)).map(|it| it.0);
        let time = time.and_then(|time| humantime::parse_duration(time).ok());
        let estimate = time.unwrap_or_else(|| panic!("no estimate:\n{}", self.stderr));
        assert!(
            (0.1..=2.0).contains(&(estimate.as_secs_f64() / seconds)),
            "it took {seconds} s:\n{}",
            self.stderr
        );
    }
}

/// Runs `command` to its end, with no input. Kills it and panics after `limit`.
pub fn run(command: &mut Command, limit: Duration) -> Done {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let child = command
        .spawn()
        .unwrap_or_else(|error| panic!("start {command:?}: {error}"));
    made::note("process", child.id());
    finish(child, &format!("{command:?}"), limit)
}

/// Waits for a child and its output. Kills it and panics after `limit`.
pub fn finish(mut child: Child, what: &str, limit: Duration) -> Done {
    let stdout = child.stdout.take().map(read_all);
    let stderr = child.stderr.take().map(read_all);
    let status = wait_for(&mut child, limit);
    if status.is_none() {
        let _ = child.kill();
        let _ = child.wait();
    }
    let text = |reader: Option<thread::JoinHandle<String>>| {
        reader
            .map(|reader| reader.join().expect("reader"))
            .unwrap_or_default()
    };
    let (stdout, stderr) = (text(stdout), text(stderr));
    let status = status.unwrap_or_else(|| panic!("{what}: no end in {limit:?}: {stderr}"));
    Done {
        status,
        stdout,
        stderr,
    }
}

/// Waits for the end of `child`; `None` after `limit`.
pub fn wait_for(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let deadline = Instant::now() + limit;
    wait::until("the end of a child", limit + SHORT, || {
        match child.try_wait().expect("wait for a child") {
            Some(status) => Some(Some(status)),
            None if Instant::now() >= deadline => Some(None),
            None => None,
        }
    })
}

/// Asks `child` to end by `ask`, again and again until it does: requests within half a
/// second count as one. Panics after `limit`.
pub fn ask_until_the_end(child: &mut Child, limit: Duration, ask: impl Fn(&Child)) {
    const APART: Duration = Duration::from_millis(600);
    let start = Instant::now();
    loop {
        ask(child);
        if wait_for(child, APART).is_some() {
            return;
        }
        assert!(start.elapsed() < limit, "no end in {limit:?}");
    }
}

/// Runs a program that must succeed; returns its output.
pub fn must(command: &mut Command) -> String {
    let done = run(command, SHORT);
    assert!(
        done.status.success(),
        "{command:?}: {}: {}",
        done.status,
        done.stderr
    );
    done.stdout
}

fn read_all(mut source: impl std::io::Read + Send + 'static) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = source.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}
