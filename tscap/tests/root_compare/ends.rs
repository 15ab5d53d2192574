//! How it ends before all is measured: signals, stops, a reader that is late.

use std::process::{Child, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tscap::measuring::compare::Comparison;

use crate::support::bench::Bench;
use crate::support::capture::{TSCAP, generate_on};
use crate::support::command::finish;
use crate::support::root::root;
use crate::support::terminal::{self, child_of, ctrl_c, ctrl_c_until_the_end, told};
use crate::support::wait;
use crate::{LIMIT, compare, comparison, links};

/// `tscap compare` as a terminal starts it.
fn in_a_group(arguments: &[&str]) -> Child {
    terminal::in_a_group(&mut compare(arguments))
}

#[test]
fn ctrl_c_leaves_partial_results() {
    let Some(_turn) = root("ctrl_c_leaves_partial_results") else {
        return;
    };
    let before = links();
    let mut child = in_a_group(&["--json"]);
    let stderr = told(&mut child, "\"event\":\"progress\"", LIMIT);
    ctrl_c(&child);
    let done = finish(child, "tscap compare", LIMIT);
    let stderr = stderr.join().expect("reader");
    assert!(done.status.success(), "{stderr}");
    assert!(stderr.contains("ending: "), "{stderr}");
    let comparison = comparison(&done);
    assert!(comparison.about.partial);
    let rounds = comparison.method.rounds;
    assert!((1..60).contains(&rounds), "{:?}", comparison.method);
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
/// second one must not leave it behind. The rounds before are reported.
#[test]
fn a_second_ctrl_c_ends_a_round_that_hangs() {
    let Some(_turn) = root("a_second_ctrl_c_ends_a_round_that_hangs") else {
        return;
    };
    let before = links();
    let mut child = in_a_group(&["--quick", "--json"]);
    let parent = child.id();
    let capture = wait::until("a capture", LIMIT, || child_of(parent));
    // It does not answer, so the measuring waits for it.
    let stop = |signal| kill(Pid::from_raw(capture), signal).expect("signal the capture");
    stop(Signal::SIGSTOP);
    ctrl_c(&child);
    let stderr = told(&mut child, "ending: ", LIMIT);
    ctrl_c_until_the_end(&mut child, LIMIT);
    let done = finish(child, "tscap compare", LIMIT);
    let stderr = stderr.join().expect("reader");
    assert!(done.status.success(), "{stderr}");
    let comparison = comparison(&done);
    assert!(comparison.about.partial);
    let rounds = comparison.method.rounds;
    assert!((1..40).contains(&rounds), "{rounds}");
    wait::until("the end of the capture", LIMIT, || {
        let gone = kill(Pid::from_raw(capture), None).is_err();
        gone.then_some(())
    });
    assert_eq!(links(), before);
}

/// A stop and its continuation interrupt what runs in the kernel.
#[test]
fn a_stopped_comparison_goes_on() {
    let Some(_turn) = root("a_stopped_comparison_goes_on") else {
        return;
    };
    let mut child = in_a_group(&["--quick", "--json"]);
    let stderr = told(&mut child, "ready: ", LIMIT);
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
    assert!(!comparison(&done).about.partial);
}

/// A burst is many rings: a reader that is late must show in the loss.
#[test]
fn a_reader_that_is_late_loses_frames() {
    let Some(_turn) = root("a_reader_that_is_late_loses_frames") else {
        return;
    };
    // Whether a burst is sent while the reader is stopped is a matter of chance.
    let mut last = None;
    let lost = (0..6).any(|_| {
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
    wait::until("tscap to attach", LIMIT, || bench.rx.xdp_program());
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
fn what_ends_it_after_a_round_leaves_that_round() {
    let Some(_turn) = root("what_ends_it_after_a_round_leaves_that_round") else {
        return;
    };
    let bench = Bench::new("cmpgone");
    let arguments = ["--rate", "50k", "--cpu", "0", "-q", "--sender", "packet"];
    let sending = generate_on(&bench.tx).with(arguments).ready();
    let mut command = bench.rx.netns.command(TSCAP);
    command.args(["compare", "--quick", "--json", "-i", "rx0", "--cpu", "0"]);
    command.args(["--timeout", "3s"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("start tscap");
    let stderr = told(&mut child, "\"event\":\"progress\"", LIMIT);
    sending.stop();
    let done = finish(child, "tscap compare", LIMIT);
    let stderr = stderr.join().expect("reader");
    assert_eq!(done.status.code(), Some(1), "{stderr}");
    let comparison = comparison(&done);
    assert!(comparison.about.partial);
    let first = &comparison.warnings[0];
    assert!(first.contains("no frame came in on CPU 0"), "{first}");
    assert!((1..40).contains(&comparison.method.rounds));
    assert_eq!(bench.rx.xdp_program(), None);
}
