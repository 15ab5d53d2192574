//! `tscap counters`, as any user.

use std::fs;
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tscap_lab::counters::{Characteristics, Counter, Stress};
use tscap_report::saved::Saved;
use tscap_testkit::command::{Done, SHORT, finish, run, tscap_path};
use tscap_testkit::terminal::{check_width, in_a_group, shown as shown_on, wait_for_text};

use tscap_testkit::shown::{Runner, commands};

fn counters(arguments: &[&str]) -> Command {
    let mut command = Command::new(tscap_path());
    command.arg("counters").args(arguments);
    command
}

#[track_caller]
fn characteristics(done: &Done) -> Characteristics {
    assert!(done.status.success(), "{}", done.stderr);
    match Saved::from_json(&done.stdout) {
        Ok(Saved::Counters(characteristics)) => *characteristics,
        other => panic!("{other:?}: {}", done.stdout),
    }
}

/// Whoever may not read one is told why.
#[test]
fn every_counter_is_read_or_named() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("counters.html");
    let report = page.to_str().unwrap();
    let done = run(
        &mut counters(&["--cycle", "1", "--json", "--report", report]),
        SHORT,
    );
    let of = characteristics(&done);
    for counter in Counter::ALL {
        let read = of.counters.iter().find(|it| it.counter == counter);
        let absent = of.absent.iter().find(|it| it.counter == counter);
        assert!(read.is_some() != absent.is_some(), "{counter:?}: {of:?}");
        if let Some(read) = read {
            assert_eq!(read.failed, 0, "{read:?}");
            let latency = read.latency[0].expect("it was read");
            assert!(latency.n >= 50 && latency.min <= latency.max, "{read:?}");
        }
        assert!(absent.is_none_or(|it| !it.why.is_empty()), "{absent:?}");
    }
    // A TSC of less than 500 MHz or more than 8 GHz is none.
    assert!(
        (5e8..8e9).contains(&of.method.tsc_hertz),
        "{}",
        of.method.tsc_hertz
    );
    let median = |counter| {
        let subject = of.counters.iter().find(|it| it.counter == counter);
        subject
            .and_then(|it| it.latency[0]?.p50)
            .expect("anybody may")
    };
    assert!(median(Counter::RawSyscall) > median(Counter::Tsc));
    assert!(fs::read_to_string(&page).unwrap().contains("<svg"));

    let json = folder.path().join("counters.json");
    fs::write(&json, &done.stdout).unwrap();
    let again = folder.path().join("again.html");
    let mut report = Command::new(tscap_path());
    let done = run(report.arg("report").arg(&json).arg("-o").arg(&again), SHORT);
    assert!(done.status.success(), "{}", done.stderr);
    assert!(
        done.stdout.contains("Counters (Table I)"),
        "{}",
        done.stdout
    );
    assert_eq!(fs::read(&again).unwrap(), fs::read(&page).unwrap());
}

/// The load keeps the CPU busy, and the text fits a terminal.
#[test]
fn a_load_is_between_idle_phases() {
    let arguments = ["--stress", "cpu", "--cycle", "200ms"];
    let lines = shown_on(counters(&arguments).arg("-v"), 80);
    check_width(&lines, 80);
    let text = lines.join("\n");
    for part in ["5 idle", "Reading a counter, 4 cpu", "Beside the paper"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let done = run(counters(&arguments).arg("--json"), SHORT);
    let phases = characteristics(&done).phases;
    let stress: Vec<_> = phases.iter().map(|phase| phase.stress).collect();
    assert_eq!(stress, Stress::cycle(&[Stress::Cpu]));
}

/// The paper's eleven hours, ended in the first phase: what was measured is told.
#[test]
fn a_long_run_ends_at_ctrl_c_with_what_it_has() {
    let arguments = ["--stress", "cpu", "--cycle", "90m", "--json"];
    let mut child = in_a_group(&mut counters(&arguments));
    let stderr = wait_for_text(&mut child, "\"seconds\":", SHORT);
    let pid = Pid::from_raw(child.id().try_into().unwrap());
    kill(pid, Signal::SIGINT).unwrap();
    let done = finish(child, "tscap counters", Duration::from_secs(10));
    let stderr = stderr.join().expect("reader");
    assert!(stderr.contains("about 7h 30m"), "{stderr}");
    let of = characteristics(&done);
    assert!(of.about.partial && of.warnings.iter().any(|it| it.contains("partial")));
    assert_eq!(of.phases.len(), 1);
    assert!(of.phases[0].seconds > 0.5, "{:?}", of.phases);
    assert!(
        of.counters.iter().all(|it| it.latency[0].is_some()),
        "{of:?}"
    );
}

#[test]
fn what_is_no_reference_is_refused() {
    for (device, why) in [
        ("/dev/null", "no PTP hardware clock"),
        ("/nonexistent/ptp0", "cannot open /nonexistent/ptp0"),
    ] {
        let done = run(&mut counters(&["--reference", device]), SHORT);
        assert_eq!(done.status.code(), Some(1), "{}", done.stderr);
        for part in [why, "tscap: ", "hint: give --reference"] {
            assert!(done.stderr.contains(part), "{part}: {}", done.stderr);
        }
        assert!(done.stdout.is_empty());
    }
}

/// Those that anybody may run: shortened.
#[test]
fn the_documented_commands_work() {
    let folder = tempfile::tempdir().unwrap();
    for line in commands(Runner::Counters) {
        if line.contains("net") {
            continue;
        }
        let line = line.replacen("tscap", "exec \"$TSCAP\"", 1);
        let line = line.replace("--cycle 90m", "--cycle 200ms");
        let mut shell = Command::new("sh");
        shell.args(["-c", &line]).env("TSCAP", tscap_path());
        let done = run(shell.current_dir(folder.path()), SHORT);
        assert!(done.status.success(), "{line}: {}", done.stderr);
    }
    let page = fs::read_to_string(folder.path().join("counters.html")).unwrap();
    assert!(page.contains("<svg") && page.contains("</html>"));
}
