//! `tscap compare`: what it measures and says, and what it refuses. Needs root.

#[path = "support/mod.rs"]
mod support;

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use tscap::compare::Comparison;
use tscap::compare::schema::{Metric, Outcome};

use support::bench::Bench;
use support::capture::{TSCAP, generate_on};
use support::command::{Done, finish, run};
use support::netns::Netns;
use support::old_kernel;
use support::port::Port;
use support::probes::Attached;
use support::root::root;

/// A quick comparison may take longer on a busy machine.
const LIMIT: Duration = Duration::from_secs(90);

fn compare(arguments: &[&str]) -> std::process::Command {
    let mut command = std::process::Command::new(TSCAP);
    command.arg("compare").args(arguments);
    command
}

#[track_caller]
fn comparison(done: &Done) -> Comparison {
    Comparison::from_json(&done.stdout)
        .unwrap_or_else(|error| panic!("{error:?}\n{}\n{}", done.stdout, done.stderr))
}

#[track_caller]
fn fails(done: &Done, parts: &[&str]) {
    assert_eq!(done.status.code(), Some(1), "{}", done.stderr);
    for part in parts.iter().chain(&["tscap: ", "hint: "]) {
        assert!(done.stderr.contains(part), "{part}:\n{}", done.stderr);
    }
}

/// Network interfaces and XDP links of the whole machine, as far as this
/// namespace shows.
fn links() -> String {
    support::command::must(std::process::Command::new("ip").args(["-br", "link"]))
}

#[test]
fn every_stamp_takes_its_turns() {
    let Some(_turn) = root("every_stamp_takes_its_turns") else {
        return;
    };
    let before = links();
    let done = run(&mut compare(&["--quick", "--json"]), LIMIT);
    assert!(done.status.success(), "{}", done.stderr);
    assert_eq!(links(), before);
    let comparison = comparison(&done);
    assert!(!comparison.partial);
    assert_eq!(comparison.method.rounds, 10);
    let names: Vec<_> = comparison.subjects.iter().map(|it| it.source).collect();
    let tsc = tscap::clock::StampSource::Tsc;
    assert!(names.len() >= 3 && names[0].is_none(), "{names:?}");
    for subject in &comparison.subjects {
        assert_eq!(subject.program_ns.len(), 10);
        assert!(
            subject
                .program_ns
                .iter()
                .all(|ns| (5.0..5_000.0).contains(ns))
        );
        let Some(source) = subject.source else {
            assert_eq!((&subject.read_ns, &subject.frame), (&None, &None));
            continue;
        };
        let frame = subject.frame.as_ref().expect("a cost on frames");
        assert_eq!(frame.all.n, 10_000, "every frame's value is kept");
        assert_eq!((frame.rounds.len(), frame.autocorrelation.len()), (10, 20));
        assert!(
            frame.rounds.iter().all(|ns| (1.0..5_000.0).contains(ns)),
            "{frame:?}"
        );
        let read = subject.read_ns.as_ref().expect("a cost of one read");
        assert!(
            read.iter().all(|ns| (1.0..1_000.0).contains(ns)),
            "{read:?}"
        );
        for pattern in &subject.precision {
            assert_eq!(
                (pattern.lost, pattern.sent),
                (0, pattern.received),
                "{pattern:?}"
            );
            let delay = pattern.delay_ns.as_ref().expect("a delay");
            // The stamp comes after the sending, on the same host.
            assert!(delay.min > 0 && delay.max < 1_000_000_000, "{delay:?}");
            let raw = source == tsc;
            assert_eq!(pattern.intervals_from == "raw stamps", raw);
            assert!(pattern.interval_error_ns.is_some());
        }
        assert_eq!(subject.precision.len(), 2);
        let points = subject.loss_by_size.iter().chain(&subject.loss_by_gap);
        for point in points {
            assert_eq!(point.sent, point.received + point.lost, "{point:?}");
            assert_eq!(point.sent, 60_000);
        }
        let none = format!("{}: no rate without loss", source.name());
        let is_told = comparison
            .warnings
            .iter()
            .any(|told| told.starts_with(&none));
        assert_eq!(
            subject.lossless_rate.is_empty(),
            is_told,
            "{:?}",
            comparison.warnings
        );
    }
    // No stamp at all is cheaper than any, whatever the machine.
    let floor = comparison
        .verdicts
        .iter()
        .find(|it| it.metric == Metric::Program && it.source.is_none());
    let floor = floor.expect("a verdict on the floor");
    assert!(
        matches!(floor.outcome, Outcome::Cheaper | Outcome::Undecided),
        "{floor:?}"
    );
}

/// `tscap compare` in a process group of its own, as a terminal starts it.
fn in_a_group(arguments: &[&str]) -> Child {
    let mut command = compare(arguments);
    command.process_group(0).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("start tscap")
}

/// Ctrl-C goes to all of a group.
fn ctrl_c(child: &Child) {
    killpg(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).expect("send SIGINT");
}

/// Waits for a line on standard error; returns the lines after it, still to come.
fn told(child: &mut Child, part: &str) -> JoinHandle<String> {
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
    let is_told = is_told.recv_timeout(LIMIT);
    is_told.unwrap_or_else(|_| panic!("tscap does not say {part}"));
    reader
}

#[test]
fn ctrl_c_leaves_partial_results() {
    let Some(_turn) = root("ctrl_c_leaves_partial_results") else {
        return;
    };
    let before = links();
    let mut child = in_a_group(&["--json"]);
    let stderr = told(&mut child, "\"event\":\"progress\"");
    ctrl_c(&child);
    let done = finish(child, "tscap compare", LIMIT);
    let stderr = stderr.join().expect("reader");
    assert!(done.status.success(), "{stderr}");
    assert!(stderr.contains("ending: "), "{stderr}");
    let comparison = comparison(&done);
    assert!(comparison.partial);
    let rounds = comparison.method.rounds;
    assert!((1..25).contains(&rounds), "{:?}", comparison.method);
    for subject in &comparison.subjects {
        assert_eq!(subject.program_ns.len(), rounds as usize);
        let frame = subject.frame.as_ref();
        assert!(frame.is_none_or(|frame| frame.rounds.len() == rounds as usize));
    }
    assert!(
        comparison.warnings[0].contains("partial"),
        "{:?}",
        comparison.warnings
    );
    assert_eq!(links(), before);
}

/// The capture under way is in a group of its own: Ctrl-C must not end it, and a
/// second one must not leave it behind.
#[test]
fn a_second_ctrl_c_ends_at_once() {
    let Some(_turn) = root("a_second_ctrl_c_ends_at_once") else {
        return;
    };
    let before = links();
    let mut child = in_a_group(&["--quick"]);
    let parent = child.id();
    let capture = support::wait::until("a capture", LIMIT, || child_of(parent));
    // It does not answer, so the measuring waits for it.
    let stop = |signal| kill(Pid::from_raw(capture), signal).expect("signal the capture");
    stop(Signal::SIGSTOP);
    ctrl_c(&child);
    let stderr = told(&mut child, "ending: ");
    ctrl_c(&child);
    let done = finish(child, "tscap compare", LIMIT);
    let stderr = stderr.join().expect("reader");
    assert_eq!(done.status.code(), Some(130), "{stderr}");
    assert!(stderr.contains("aborted: "), "{stderr}");
    assert_eq!(done.stdout, "");
    support::wait::until("the end of the capture", LIMIT, || {
        let gone = kill(Pid::from_raw(capture), None).is_err();
        gone.then_some(())
    });
    assert_eq!(links(), before);
}

/// The first child of any of a process's threads.
fn child_of(pid: u32) -> Option<i32> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    let children = threads
        .flatten()
        .filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    let children: Vec<_> = children.collect();
    children
        .iter()
        .find_map(|list| list.split_whitespace().next()?.parse().ok())
}

/// A stop and its continuation interrupt what runs in the kernel.
#[test]
fn a_stopped_comparison_goes_on() {
    let Some(_turn) = root("a_stopped_comparison_goes_on") else {
        return;
    };
    let mut child = in_a_group(&["--quick", "--json"]);
    let stderr = told(&mut child, "ready: ");
    let pid = Pid::from_raw(child.id().cast_signed());
    while child.try_wait().expect("wait for tscap").is_none() {
        for signal in [Signal::SIGSTOP, Signal::SIGCONT] {
            kill(pid, signal).expect("stop and go on");
        }
        // Some of these must come while it runs in the kernel.
        std::thread::sleep(Duration::from_millis(3));
    }
    let done = finish(child, "tscap compare", LIMIT);
    let stderr = stderr.join().expect("reader");
    assert!(done.status.success(), "{stderr}");
    assert!(!comparison(&done).partial);
}

/// A burst is many rings: a reader that is late must show in the loss.
#[test]
fn a_reader_that_is_late_loses_frames() {
    let Some(_turn) = root("a_reader_that_is_late_loses_frames") else {
        return;
    };
    // Whether a burst is sent while the reader is stopped is a matter of chance.
    let mut last = None;
    let lost = (0..3).any(|_| {
        let comparison = with_a_late_reader();
        let points = comparison.subjects.iter().flat_map(|it| &it.loss_by_size);
        let mut lost = 0;
        for point in points {
            assert_eq!(point.sent, point.received + point.lost);
            lost += point.lost;
        }
        last = Some(comparison.warnings);
        lost > 0
    });
    assert!(lost, "{last:?}");
}

/// A comparison whose captures are stopped most of the time.
fn with_a_late_reader() -> Comparison {
    let mut child = in_a_group(&["--quick", "--json"]);
    let parent = child.id();
    while child.try_wait().expect("wait for tscap").is_none() {
        let Some(capture) = child_of(parent) else {
            std::thread::sleep(Duration::from_millis(2));
            continue;
        };
        // A burst is longer than the shorter one, the ring shorter than the longer.
        for (signal, ms) in [(Signal::SIGSTOP, 25), (Signal::SIGCONT, 10)] {
            // It may just have ended.
            let _ = kill(Pid::from_raw(capture), signal);
            std::thread::sleep(Duration::from_millis(ms));
        }
    }
    comparison(&finish(child, "tscap compare", LIMIT))
}

#[test]
fn ctrl_c_does_not_wait_for_traffic() {
    let Some(_turn) = root("ctrl_c_does_not_wait_for_traffic") else {
        return;
    };
    let bench = Bench::new("cmpwait");
    let mut command = bench.rx.netns.command(TSCAP);
    command.args(["compare", "-i", "rx0", "--timeout", "1h"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("start tscap");
    support::wait::until("tscap to attach", LIMIT, || bench.rx.xdp_program());
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).expect("send SIGINT");
    let done = finish(child, "tscap compare", LIMIT);
    assert_eq!(done.status.code(), Some(1), "{}", done.stderr);
    assert!(
        done.stderr.contains("before the first round"),
        "{}",
        done.stderr
    );
    assert_eq!(bench.rx.xdp_program(), None);
}

#[test]
fn live_traffic_is_measured_as_it_comes() {
    let Some(_turn) = root("live_traffic_is_measured_as_it_comes") else {
        return;
    };
    let bench = Bench::new("cmplive");
    let mut command = bench.rx.netns.command(TSCAP);
    command.args(["compare", "--quick", "--json", "-i", "rx0", "--cpu", "0"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("start tscap");
    support::wait::until("tscap to attach", LIMIT, || bench.rx.xdp_program());
    let arguments = ["--rate", "50k", "--cpu", "0", "-q"];
    let sending = generate_on(&bench.tx).with(arguments).ready();
    let done = finish(child, "tscap compare", LIMIT);
    sending.stop();
    assert!(done.status.success(), "{}", done.stderr);
    let comparison = comparison(&done);
    assert_eq!(comparison.method.frame_bytes, None);
    for subject in comparison.subjects.iter().filter(|it| it.source.is_some()) {
        let frame = subject.frame.as_ref().expect("a cost on frames");
        assert!(frame.all.n >= 10_000, "{frame:?}");
        assert!(subject.precision.is_empty() && subject.lossless_rate.is_empty());
    }
    assert_eq!(bench.rx.xdp_program(), None);
}

#[test]
fn what_cannot_be_measured_is_refused() {
    let Some(_turn) = root("what_cannot_be_measured_is_refused") else {
        return;
    };
    let bench = Bench::new("cmprefuse");
    let on = |arguments: &[&str]| {
        let mut command = bench.rx.netns.command(TSCAP);
        run(command.args(["compare", "--quick"]).args(arguments), LIMIT)
    };
    fails(
        &on(&["-i", "rx9"]),
        &["measure on rx9", "no such interface"],
    );
    let silent = on(&["-i", "rx0", "--timeout", "0.3"]);
    let parts = [
        "rounds, at least ",
        "no frame came in on CPU",
        "within 300ms",
    ];
    fails(&silent, &parts);
    fails(&on(&["-i", "rx0", "--cpu", "4096"]), &["CPU 4096"]);
    let occupied = Attached::dropping(&bench.rx);
    fails(&on(&["-i", "rx0"]), &["has XDP program"]);
    drop(occupied);
    bench.rx.set(&["down"]);
    fails(&on(&["-i", "rx0"]), &["rx0: it is down"]);

    let netns = std::sync::Arc::new(Netns::new("cmplo"));
    netns.ip(&["link", "set", "lo", "up"]);
    let lo = Port::find(&netns, "lo");
    let mut command = lo.netns.command(TSCAP);
    let generic = run(command.args(["compare", "--quick", "-i", "lo"]), LIMIT);
    fails(&generic, &["native", "lo"]);
}

#[test]
fn without_a_way_to_the_tsc_the_others_are_compared() {
    let Some(_turn) = root("without_a_way_to_the_tsc") else {
        return;
    };
    let mut command = compare(&["--quick", "--json"]);
    old_kernel::lacking(&mut command, old_kernel::perf);
    let done = run(&mut command, LIMIT);
    assert!(done.status.success(), "{}", done.stderr);
    let comparison = comparison(&done);
    let names: Vec<_> = comparison.subjects.iter().map(|it| it.source).collect();
    assert!(
        !names.contains(&Some(tscap::clock::StampSource::Tsc)),
        "{names:?}"
    );
    let told = comparison
        .warnings
        .iter()
        .any(|it| it.starts_with("no tsc here: "));
    assert!(told, "{:?}", comparison.warnings);
}

/// The commands of the README, in their order: one reads what another wrote.
#[test]
fn the_readmes_commands_work() {
    let Some(_turn) = root("the_readmes_commands_work") else {
        return;
    };
    let folder = support::files::folder();
    let readme = include_str!("../../README.md");
    let lines = readme
        .lines()
        .filter(|line| line.starts_with("tscap compare ") || line.starts_with("tscap report "));
    let mut count = 0;
    for line in lines {
        let mut shell = std::process::Command::new("sh");
        let line = line.replacen("tscap", "\"$TSCAP\"", 1);
        shell.args(["-c", &line]).env("TSCAP", TSCAP);
        let done = run(shell.current_dir(folder.path()), LIMIT);
        assert!(done.status.success(), "{line}: {}", done.stderr);
        count += 1;
    }
    assert_eq!(count, 3);
    let page = std::fs::read_to_string(folder.path().join("compare.html")).expect("a page");
    assert!(page.contains("<svg") && page.contains("</html>"));
}

#[test]
fn arguments_need_not_be_utf_8() {
    let Some(_turn) = root("arguments_need_not_be_utf_8") else {
        return;
    };
    let folder = support::files::folder();
    let name = OsStr::from_bytes(b"\xff.html");
    let mut command = compare(&["--quick", "--json", "--report"]);
    let done = run(command.arg(folder.path().join(name)), LIMIT);
    let words = comparison(&done).command;
    assert!(words[5].ends_with("/\u{fffd}.html"), "{words:?}");
    assert!(folder.path().join(name).is_file());
}

#[test]
fn a_page_that_cannot_be_written_is_refused_at_once() {
    let Some(_turn) = root("a_page_that_cannot_be_written") else {
        return;
    };
    let start = Instant::now();
    let done = run(&mut compare(&["--report", "/nonexistent/out.html"]), LIMIT);
    fails(&done, &["cannot write /nonexistent/out.html"]);
    assert!(
        start.elapsed() < Duration::from_secs(5),
        "nothing was measured"
    );
}
