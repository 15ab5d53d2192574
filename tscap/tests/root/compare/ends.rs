//! How it ends before all is measured: signals, stops, a reader that is late.

use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal, kill};
use nix::unistd::Pid;
use tscap_lab::compare::{Amount, FrameSource, Request, run as measure};
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::generate_on;
use tscap_testkit::command::{ask_until_the_end, finish, tscap_path};
use tscap_testkit::files;
use tscap_testkit::process;
use tscap_testkit::root::alone;
use tscap_testkit::terminal::{self, child_of, ctrl_c, wait_for_text};
use tscap_testkit::wait;
use tscap_traffic::load::{Pair, Stop};

use super::{LIMIT, MEASURES, compare, comparison, links};

/// `tscap compare` as a terminal starts it.
fn in_a_group(arguments: &[&str]) -> Child {
    terminal::in_a_group(&mut compare(arguments))
}

#[test]
fn ctrl_c_leaves_partial_results() {
    let Some(_lock) = alone(MEASURES) else { return };
    let before = links();
    let mut child = in_a_group(&["--json"]);
    let stderr = wait_for_text(&mut child, "\"event\":\"progress\"", LIMIT);
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
    let Some(_lock) = alone(MEASURES) else { return };
    let before = links();
    // The first capture is in round 12 of 60.
    let mut child = in_a_group(&["--json"]);
    let parent = child.id();
    let capture = wait::until("a capture", LIMIT, || child_of(parent));
    // It does not answer, so the measuring waits for it.
    let stop = |signal| kill(Pid::from_raw(capture), signal).expect("signal the capture");
    stop(Signal::SIGSTOP);
    ctrl_c(&child);
    let stderr = wait_for_text(&mut child, "ending: ", LIMIT);
    ask_until_the_end(&mut child, LIMIT, ctrl_c);
    let done = finish(child, "tscap compare", LIMIT);
    let stderr = stderr.join().expect("reader");
    assert!(done.status.success(), "{stderr}");
    let comparison = comparison(&done);
    assert!(comparison.about.partial);
    let rounds = comparison.method.rounds;
    assert_eq!(rounds, 11);
    wait::until("the end of the capture", LIMIT, || {
        let gone = kill(Pid::from_raw(capture), None).is_err();
        gone.then_some(())
    });
    assert_eq!(links(), before);
}

/// A stop and its continuation interrupt what runs in the kernel.
#[test]
fn a_stopped_comparison_goes_on() {
    let Some(_lock) = alone(MEASURES) else { return };
    let mut child = in_a_group(&["--quick", "--json"]);
    let pid = Pid::from_raw(child.id().cast_signed());
    let is_over = AtomicBool::new(false);
    // Should nothing be told: a scope waits for its threads before it panics.
    let end = Instant::now() + LIMIT;
    let stderr = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) && Instant::now() < end {
                for signal in [Signal::SIGSTOP, Signal::SIGCONT] {
                    kill(pid, signal).expect("stop and go on");
                }
                // Some of these must come while it runs in the kernel.
                std::thread::sleep(Duration::from_millis(3));
            }
        });
        let stderr = wait_for_text(&mut child, "\"rounds\":2,", LIMIT);
        is_over.store(true, Ordering::Relaxed);
        stderr
    });
    ctrl_c(&child);
    let done = finish(child, "tscap compare", LIMIT);
    let stderr = stderr.join().expect("reader");
    assert!(done.status.success(), "{stderr}");
    let comparison = comparison(&done);
    assert!(comparison.method.rounds >= 2, "{:?}", comparison.method);
    let warnings = &comparison.warnings;
    assert!(warnings[0].contains("partial"), "{warnings:?}");
}

/// tscap, stopped when it is ready and until it is told to end, which the kernel shows
/// as a signal that is pending: SIGTERM is the 15th bit.
const LATE_READER: &str = r#"#!/bin/bash
exec > >(while read -r line; do
    if [[ $line == *'"event":"ready"'* ]]; then
        kill -STOP $$
        (while [[ -e /proc/$$/exe ]] && ! grep -q '^ShdPnd:.*[4-7c-f]...$' /proc/$$/status; do
            sleep 0.01
        done
        kill -CONT $$) &
    fi
    echo "$line"
done)
exec "$TSCAP" "$@"
"#;

/// A ring holds a whole burst: what is lost is lost on the CPU that receives, however late the
/// reader is.
#[test]
fn a_reader_that_is_late_does_not_show_in_the_loss() {
    let Some(_lock) = alone(MEASURES) else { return };
    let folder = files::folder();
    let executable = folder.path().join("late-tscap");
    let script = LATE_READER.replace("$TSCAP", tscap_path());
    files::make_script(&executable, &script);
    let cpu = process::cpus()[0];
    let results = process::on_cpu(cpu, || {
        // As in tscap: they are for another thread.
        SigSet::all().thread_block().expect("block signals");
        let request = Request {
            amount: Amount {
                rounds: 1,
                pattern_rounds: 0,
                rate_rounds: 0,
                ..Amount::QUICK
            },
            cpu: cpu as u32,
            force: false,
            interrupts: None,
            counters: None,
        };
        let pair = Box::new(Pair::new().expect("a pair"));
        let frame_source = FrameSource::Own { pair, executable };
        measure(frame_source, &request, Arc::new(Stop::default()), |_| {}).expect("results")
    });
    assert!(results.ended_by.is_none(), "{:?}", results.ended_by);
    let mut points = 0;
    for point in results.taken.iter().flat_map(|it| &it.loss) {
        assert_eq!(point.sent, point.received + point.lost);
        assert_eq!(point.lost, point.before, "{point:?}");
        points += 1;
    }
    assert!(points >= 2, "{points}");
}

#[test]
fn ctrl_c_does_not_wait_for_traffic() {
    let Some(_lock) = alone(MEASURES) else { return };
    let bench = Bench::new("cmpwait");
    let mut command = bench.rx.netns.command(tscap_path());
    command.args(["compare", "-i", "rx0", "--timeout", "1h"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    process::interruptible(&mut command);
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
    let Some(_lock) = alone(MEASURES) else { return };
    let bench = Bench::new("cmpgone");
    let arguments = ["--rate", "50k", "--cpu", "0", "-q", "--sender", "packet"];
    let sending = generate_on(&bench.tx).with(arguments).ready();
    let mut command = bench.rx.netns.command(tscap_path());
    command.args(["compare", "--quick", "--json", "-i", "rx0", "--cpu", "0"]);
    command.args(["--timeout", "3s"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("start tscap");
    let stderr = wait_for_text(&mut child, "\"event\":\"progress\"", LIMIT);
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
