//! `tscap counters`: what root may read, and a capture beside it. Needs root.

use std::process::Command;
use std::time::Duration;

use tscap_lab::counters::schema::Phase;
use tscap_lab::counters::{Characteristics, Counter, Stress};
use tscap_report::saved::Saved;
use tscap_testkit::command::{finish, must, run, tscap_path};
use tscap_testkit::root::alone;
use tscap_testkit::terminal::{child_of, ctrl_c, in_a_group, wait_for_text};
use tscap_testkit::wait::until;

use tscap_testkit::shown::{Runner, commands};

/// Why its tests run alone.
const LOADS: &str = "loads the CPUs";
const LIMIT: Duration = Duration::from_secs(60);

fn counters(arguments: &[&str]) -> Command {
    let mut command = Command::new(tscap_path());
    command.arg("counters").args(arguments);
    command
}

#[track_caller]
fn characteristics(json: &str) -> Characteristics {
    match Saved::from_json(json) {
        Ok(Saved::Counters(characteristics)) => *characteristics,
        other => panic!("{other:?}: {json}"),
    }
}

/// Namespaces and interfaces of this one, and what the kernel counts time by.
fn machine() -> [String; 2] {
    let source = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    [
        must(Command::new("ip").args(["-br", "link"])),
        std::fs::read_to_string(source).expect("a clock source"),
    ]
}

/// Programs read ktime and TAI; each phase is there, the capture took every frame that it saw or
/// counts what it lost, and nothing is left.
#[test]
fn every_phase_is_measured_in_user_space_and_in_programs() {
    let Some(_lock) = alone(LOADS) else { return };
    let before = machine();
    let arguments = ["--stress", "cpu,net", "--cycle", "500ms", "--json"];
    let done = run(&mut counters(&arguments), LIMIT);
    assert!(done.status.success(), "{}", done.stderr);
    assert_eq!(machine(), before);
    let of = characteristics(&done.stdout);
    let stress: Vec<_> = of.phases.iter().map(|phase| phase.stress).collect();
    assert_eq!(stress, Stress::cycle(&[Stress::Cpu, Stress::Net]));
    for counter in [
        Counter::Tsc,
        Counter::TscOrdered,
        Counter::RawVdso,
        Counter::RawSyscall,
        Counter::Ktime,
        Counter::Tai,
    ] {
        let subject = of.counters.iter().find(|it| it.counter == counter);
        let subject = subject.unwrap_or_else(|| panic!("{counter:?}: {:?}", of.absent));
        for (phase, latency) in of.phases.iter().zip(&subject.latency) {
            let latency = latency.unwrap_or_else(|| panic!("{counter:?} in {phase:?}"));
            // Of a microsecond at most, if nothing came between.
            assert!(
                (-500..10_000).contains(&latency.p50.expect("many")),
                "{latency:?}"
            );
        }
        assert_eq!(subject.failed, 0);
    }
    let net = |phase: &&Phase| phase.stress == Stress::Net;
    let phase = of.phases.iter().find(net).expect("a phase");
    let captured = phase.captured.expect("a capture");
    assert!(
        captured.seen > 1_000 && captured.seen <= captured.sent,
        "{captured:?}"
    );
    assert!(captured.written <= captured.seen, "{captured:?}");
    // In its own words each other one is named.
    for counter in Counter::ALL {
        let is_read = of.counters.iter().any(|it| it.counter == counter);
        let is_named = of.absent.iter().any(|it| it.counter == counter);
        assert!(is_read != is_named, "{counter:?}: {:?}", of.absent);
    }
}

/// While frames are captured: sender and capture are gone, and what was measured is told.
#[test]
fn ctrl_c_ends_a_load_too() {
    let Some(_lock) = alone(LOADS) else { return };
    let before = machine();
    let arguments = ["--stress", "net", "--cycle", "500ms", "--json"];
    let mut child = in_a_group(&mut counters(&arguments));
    let stderr = wait_for_text(&mut child, "ready", LIMIT);
    until("the capture", LIMIT, || child_of(child.id()));
    ctrl_c(&child);
    let done = finish(child, "tscap counters", LIMIT);
    let stderr = stderr.join().expect("reader");
    assert!(done.status.success(), "{stderr}");
    let of = characteristics(&done.stdout);
    assert!(of.about.partial, "{:?}", of.warnings);
    assert_eq!(of.phases.len(), 2, "{:?}", of.phases);
    assert_eq!(machine(), before);
}

/// Those with frames: shortened.
#[test]
fn the_documented_commands_work() {
    let Some(_lock) = alone(LOADS) else { return };
    let lines = commands(Runner::Counters);
    for line in lines.iter().filter(|line| line.contains("net")) {
        let line = line.replace("--cycle 90m", "--cycle 200ms");
        let words: Vec<_> = line.split(' ').skip(2).collect();
        let done = run(&mut counters(&words), LIMIT);
        assert!(done.status.success(), "{line}: {}", done.stderr);
    }
}
