//! What is refused, before anything is measured.

use std::time::{Duration, Instant};

use tscap_testkit::command::{run, tscap_path};
use tscap_testkit::process::cpus;
use tscap_testkit::root::{alone, alone_with, root, root_with};

use super::{LIMIT, MEASURES, Place, fails, loss};

#[test]
fn what_cannot_be_measured_is_refused_at_once() {
    let Some(_lock) = alone(MEASURES) else { return };
    let place = Place::new();
    let first = cpus()[0].to_string();
    let cases: [(&[&str], &[&str]); 5] = [
        (&["--cpu", "4096"], &["send from CPU 4096"]),
        (
            &["--receive-cpu", "4096"],
            &["receive on CPU 4096: this process may"],
        ),
        (
            &["--cpu", &first, "--receive-cpu", &first],
            &["it is the sender's", "takes two CPUs"],
        ),
        (
            &["--folder", "/nonexistent"],
            &["write captures in /nonexistent"],
        ),
        (
            &["--report", "/nonexistent/a.html"],
            &["cannot write /nonexistent/a.html"],
        ),
    ];
    for (arguments, parts) in cases {
        let start = Instant::now();
        let mut command = if arguments.contains(&"--folder") {
            place.loss(&["--quick"])
        } else {
            place.loss_in_folder(&["--quick"])
        };
        let done = run(command.args(arguments), LIMIT);
        fails(&done, parts);
        assert!(
            start.elapsed() < Duration::from_secs(5),
            "nothing is measured"
        );
    }
    place.has_nothing_new();
}

#[test]
fn a_program_that_is_not_installed_is_named_with_its_package() {
    let Some(_lock) = root() else { return };
    // It looks into the folders of system programs too, where tcpdump is not.
    if ["/usr/sbin/dumpcap", "/sbin/dumpcap"]
        .iter()
        .any(|it| std::path::Path::new(it).exists())
    {
        return;
    }
    let mut command = loss(&["--quick", "--peer", "dumpcap"]);
    let done = run(command.env("PATH", "/nonexistent"), LIMIT);
    let parts = [
        "dumpcap is not installed",
        "apt-get install wireshark-common",
    ];
    fails(&done, &parts);
}

#[test]
fn without_privileges_what_is_missing_is_named() {
    let programs = ["ip", "ethtool", "setpriv"];
    let Some(_lock) = root_with(&programs) else {
        return;
    };
    let mut command = std::process::Command::new("setpriv");
    command.args(["--bounding-set=-sys_admin", tscap_path(), "loss", "--quick"]);
    fails(&run(&mut command, LIMIT), &["lacks CAP_SYS_ADMIN"]);
}

/// With one CPU for everything it measures all the same, and says what that means.
#[test]
fn one_cpu_is_told() {
    let Some(_lock) = alone_with(MEASURES, &["ip", "ethtool", "taskset"]) else {
        return;
    };
    let first = cpus()[0].to_string();
    let mut command = std::process::Command::new("taskset");
    let arguments = [
        "-c",
        &first,
        tscap_path(),
        "loss",
        "--quick",
        "--size",
        "64",
        "--json",
    ];
    let done = run(command.args(arguments), LIMIT);
    assert!(done.status.success(), "{}", done.stderr);
    let sweep = super::sweep(&done);
    assert!(
        sweep
            .warnings
            .iter()
            .any(|it| it.contains("no CPU of their own")),
        "{:?}",
        sweep.warnings
    );
    assert!(sweep.calibrations[0].costs.converter_shares);
}
