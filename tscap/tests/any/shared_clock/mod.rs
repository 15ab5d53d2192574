//! `tscap clock --serve` and `--read`, and programs that read the page.

mod c;

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::time::ClockId;
use nix::unistd::Pid;
use serde_json::Value;
use tscap_clock_reader::{Clock, Refused, State, Times};
use tscap_testkit::command::{tscap_path, wait_for};
use tscap_testkit::root::skip;
use tscap_testkit::shown::{Runner, commands};
use tscap_time::now;

const DEADLINE: Duration = Duration::from_secs(60);
/// Reads of each of four threads: nightly more.
fn reads() -> u32 {
    let wanted = std::env::var("TSCAP_SHARED_CLOCK_READS").ok();
    wanted.and_then(|it| it.parse().ok()).unwrap_or(50_000)
}

fn has_no_counter() -> bool {
    let found = tscap_time::tsc::check();
    found.is_err_and(|error| {
        skip(&error.to_string());
        true
    })
}

/// A `tscap clock --serve`, which is ready.
struct Served {
    folder: tempfile::TempDir,
    path: PathBuf,
    child: Child,
}

impl Served {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("clock");
        let child = serve(&path);
        Self {
            folder,
            path,
            child,
        }
    }

    fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn path(&self) -> &Path {
        &self.path
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id().try_into().unwrap());
        kill(pid, signal).unwrap();
    }

    fn restart(&mut self) {
        self.child = serve(&self.path);
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until it says that it is ready.
fn serve(path: &Path) -> Child {
    let mut command = Command::new(tscap_path());
    command.args(["clock", "--serve"]).arg(path);
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let said = lines.find(|line| line.as_ref().is_ok_and(|it| it.starts_with("ready: ")));
    assert!(said.is_some(), "it ended before it was ready");
    // What it says later has somewhere to go.
    thread::spawn(move || lines.for_each(drop));
    child
}

fn read(path: &Path, options: &[&str]) -> Output {
    let mut command = Command::new(tscap_path());
    command.args(["clock", "--read"]).arg(path).args(options);
    command.output().unwrap()
}

fn json(output: &Output) -> Vec<Value> {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Reads, and holds the host's interval against its clock before and after.
fn checked(clock: &mut Clock) -> Result<Times, Refused> {
    let before = now(ClockId::CLOCK_REALTIME);
    let times = clock.now()?;
    let after = now(ClockId::CLOCK_REALTIME);
    if let Some(host) = times.host {
        let holds = host.earliest_ns <= after && before <= host.latest_ns;
        assert!(holds, "{before} {host:?} {after}");
    }
    Ok(times)
}

/// Reads until that is so.
fn until(
    clock: &mut Clock,
    is_so: impl Fn(&Result<Times, Refused>) -> bool,
) -> Result<Times, Refused> {
    let deadline = Instant::now() + DEADLINE;
    loop {
        let times = checked(clock);
        if is_so(&times) {
            return times;
        }
        assert!(Instant::now() < deadline, "{times:?}");
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn each_of_four_readers_gets_intervals_that_hold_the_time() {
    if has_no_counter() {
        return;
    }
    let served = Served::start();
    let refused: u32 = thread::scope(|scope| {
        let readers: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut clock = Clock::open(served.path()).unwrap();
                    (0..reads())
                        .map(|_| u32::from(checked(&mut clock).is_err()))
                        .sum::<u32>()
                })
            })
            .collect();
        readers.into_iter().map(|it| it.join().unwrap()).sum()
    });
    assert_eq!(refused, 0, "nobody sets the clock here");
}

#[test]
fn past_stamps_and_differences_are_converted() {
    if has_no_counter() {
        return;
    }
    let served = Served::start();
    let mut clock = Clock::open(served.path()).unwrap();
    let mut stamps = Vec::new();
    let started = Instant::now();
    while started.elapsed() < Duration::from_millis(1_500) {
        let before = now(ClockId::CLOCK_REALTIME);
        let raw = tscap_clock_reader::system::read_counter();
        let after = now(ClockId::CLOCK_REALTIME);
        stamps.push((before, raw, after));
        thread::sleep(Duration::from_millis(3));
    }
    let (mut narrow, mut ambiguous) = (0, 0);
    for (before, raw, after) in &stamps {
        let times = match clock.of_raw(*raw) {
            // This machine may have held up the server for more than 30 ms.
            Err(Refused::Ambiguous) => {
                ambiguous += 1;
                continue;
            }
            times => times.unwrap(),
        };
        let host = times.host.unwrap();
        assert!(
            host.earliest_ns <= *after && *before <= host.latest_ns,
            "{host:?}"
        );
        narrow += usize::from(host.latest_ns - host.earliest_ns < 20_000);
        match clock.of_real(*before) {
            Err(Refused::Ambiguous) => ambiguous += 1,
            times => {
                let host = times.unwrap().host.unwrap();
                assert_eq!([host.earliest_ns, host.latest_ns], [*before; 2]);
            }
        }
    }
    assert!(
        narrow > 0 && ambiguous < stamps.len(),
        "{narrow} {ambiguous} {}",
        stamps.len()
    );
    let [first, .., last] = stamps[..] else {
        panic!()
    };
    let took = clock.between(first.1, last.1).unwrap();
    let real = last.0.abs_diff(first.0).cast_signed();
    // CLOCK_REALTIME is slewed by 500 ppm at most.
    assert!(
        (took.ns - real).abs() < 2_000_000 && took.bound_ns < 1_000_000,
        "{took:?}"
    );
    assert_eq!(clock.of_raw(u64::MAX), Err(Refused::Future));
    assert_eq!(clock.of_raw(1), Err(Refused::TooOld));
    assert_eq!(clock.of_real(1), Err(Refused::TooOld));
}

#[test]
fn a_server_that_is_stopped_leaves_a_page_that_grows_stale() {
    if has_no_counter() {
        return;
    }
    let served = Served::start();
    let mut clock = Clock::open(served.path()).unwrap();
    checked(&mut clock).unwrap();
    served.signal(Signal::SIGSTOP);
    let stale = until(&mut clock, |times| {
        times.is_ok_and(|times| times.state == State::Stale)
    });
    assert_eq!(stale.unwrap().host, None);
    let lines = json(&read(served.path(), &["--json"]));
    assert_eq!(lines[0]["state"], "stale");
    assert_eq!(lines[0]["host"], Value::Null);
    served.signal(Signal::SIGCONT);
    until(&mut clock, |times| {
        times.is_ok_and(|times| times.state != State::Stale)
    })
    .unwrap();
}

#[test]
fn readers_find_the_server_that_was_started_again() {
    if has_no_counter() {
        return;
    }
    let mut served = Served::start();
    let mut clock = Clock::open(served.path()).unwrap();
    let first = clock.header().generation;
    served.signal(Signal::SIGKILL);
    served.child.wait().unwrap();
    served.restart();
    let deadline = Instant::now() + DEADLINE;
    while clock.header().generation == first {
        // Of the old page while it is not stale.
        checked(&mut clock).unwrap();
        assert!(Instant::now() < deadline);
        thread::sleep(Duration::from_millis(1));
    }
    checked(&mut clock).unwrap();
    // One that ends says so at once.
    served.signal(Signal::SIGTERM);
    assert!(wait_for(&mut served.child, DEADLINE).is_some_and(|it| it.success()));
    assert_eq!(checked(&mut clock), Err(Refused::Closed));
    let output = read(served.path(), &[]);
    assert!(!output.status.success());
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("tscap clock --serve has ended"), "{text}");
    served.restart();
    until(&mut clock, Result::is_ok).unwrap();
}

#[test]
fn one_server_serves_a_path() {
    if has_no_counter() {
        return;
    }
    let served = Served::start();
    for (path, why) in [
        (served.path().to_owned(), "another tscap serves this clock"),
        (served.folder().to_owned(), "no clock's page"),
        ("/dev/null".into(), "no clock's page"),
    ] {
        let mut command = Command::new(tscap_path());
        let output = command
            .args(["clock", "--serve"])
            .arg(&path)
            .output()
            .unwrap();
        assert!(!output.status.success());
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(text.contains(why), "{path:?}: {text}");
    }
}

#[test]
fn what_is_read_is_told_as_text_and_json() {
    if has_no_counter() {
        return;
    }
    let served = Served::start();
    let output = read(served.path(), &[]);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    for part in [
        "UTC",
        "host's clock",
        "± ",
        "counter jumped",
        "difference clock",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let lines = json(&read(
        served.path(),
        &["--json", "--interval", "100ms", "--duration", "300ms"],
    ));
    assert!(lines.len() >= 3, "{lines:?}");
    let raw = lines[0]["raw"].as_u64().unwrap();
    let host = &lines[0]["host"];
    assert!(host["earliest_ns"].as_u64() < host["latest_ns"].as_u64());
    for at in [raw.to_string(), seconds(&host["latest_ns"])] {
        let lines = json(&read(served.path(), &["--json", "--at", &at]));
        assert_eq!(lines[0]["refused"], Value::Null, "{at}: {lines:?}");
    }
    let output = read(served.path(), &["--at", "1"]);
    assert!(!output.status.success());
    assert!(
        String::from_utf8_lossy(&output.stdout).contains("older than"),
        "{output:?}"
    );
    let nowhere = read(&served.folder().join("nowhere"), &[]);
    let text = String::from_utf8_lossy(&nowhere.stderr);
    assert!(text.contains("tscap clock --serve shares it"), "{text}");
}

/// Nanoseconds as seconds with a decimal point.
fn seconds(ns: &Value) -> String {
    let ns = ns.as_u64().unwrap();
    format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

#[test]
fn the_documented_commands_work() {
    if has_no_counter() {
        return;
    }
    let served = Served::start();
    let mut read = 0;
    for line in commands(Runner::SharedClock) {
        let words: Vec<_> = line.split(' ').skip(1).collect();
        if words.contains(&"--serve") {
            continue;
        }
        let mut command = Command::new(tscap_path());
        command
            .args(&words[..2])
            .arg(served.path())
            .args(&words[2..]);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{line}: {output:?}");
        read += 1;
    }
    assert!(read >= 2);
}
