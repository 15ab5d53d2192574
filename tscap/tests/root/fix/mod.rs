//! `tscap doctor --fix`: what it tells, what it does, and what `tscap restore` gives back.
//! Needs root.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value;
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::capture_on;
use tscap_testkit::command::{Done, SHORT, must, run, tscap_path};
use tscap_testkit::files;
use tscap_testkit::port::Port;
use tscap_testkit::root::{RootLock, alone_with};

fn lock() -> Option<RootLock> {
    alone_with(
        "journals are the machine's",
        &["ip", "ethtool", "strace", "setpriv"],
    )
}

/// What of an interface can be better here: as `ip netns exec` shows it.
type Settings = BTreeMap<&'static str, String>;

const FILES: [&str; 4] = [
    "queues/rx-0/rps_cpus",
    "queues/rx-0/rps_flow_cnt",
    "threaded",
    "napi_defer_hard_irqs",
];

fn settings(port: &Port) -> Settings {
    let mut settings = Settings::new();
    for file in FILES {
        let path = format!("/sys/class/net/{}/{file}", port.name);
        let value = port.netns.must("cat", &[&path]);
        settings.insert(file, value.trim().into());
    }
    let gro = port.offloads()["generic-receive-offload"];
    settings.insert("gro", gro.to_string());
    settings
}

/// Makes an interface worse in each of the ways that tscap can mend, on a pair without
/// native XDP.
fn worsen(port: &Port) {
    port.offload("gro", true);
    for (file, value) in FILES.into_iter().zip(["1", "8", "1", "2"]) {
        let line = format!("echo {value} > /sys/class/net/{}/{file}", port.name);
        port.netns.must("sh", &["-c", &line]);
    }
    let timeout = format!(
        "echo 20000 > /sys/class/net/{}/gro_flush_timeout",
        port.name
    );
    port.netns.must("sh", &["-c", &timeout]);
}

/// A veth whose peer has fewer queues to send on than it has to receive: no native XDP.
fn without_native_mode(bench: &Bench, number: u32) -> Port {
    let (name, peer) = (format!("few{number}"), format!("many{number}"));
    let add = format!(
        "link add {name} numrxqueues 1 numtxqueues 1 type veth peer name {peer} numtxqueues 2"
    );
    let words: Vec<_> = add.split_whitespace().collect();
    bench.rx.netns.ip(&words);
    for end in [&name, &peer] {
        bench.rx.netns.ip(&["link", "set", end, "up"]);
    }
    let port = Port::find(&bench.rx.netns, &name);
    port.wait_up();
    port
}

fn doctor(port: &Port, arguments: &[&str]) -> Done {
    let mut command = port.netns.command(tscap_path());
    command.args(["doctor", "-i", &port.name]).args(arguments);
    run(&mut command, SHORT)
}

#[track_caller]
fn json(done: &Done) -> Value {
    assert_eq!(done.stderr, "");
    let value: Value = serde_json::from_str(&done.stdout).expect("one JSON object");
    assert_eq!(
        (&value["event"], &value["v"]),
        (&"doctor_fix".into(), &1.into())
    );
    value
}

fn restore(port: &Port) -> String {
    must(port.netns.command(tscap_path()).arg("restore"))
}

fn verdict(port: &Port, id: &str) -> (String, String) {
    let report: Value = serde_json::from_str(&doctor(port, &["--json"]).stdout).expect("JSON");
    let checks = report["checks"].as_array().expect("checks");
    let check = checks.iter().find(|check| check["id"] == id);
    let check = check.expect("the check");
    let text = |name: &str| check[name].as_str().expect("a text").to_owned();
    (text("verdict"), text("found"))
}

const MENDED: [&str; 4] = ["offloads", "rps", "threaded_napi", "deferred_interrupts"];

#[test]
fn what_is_advised_is_told_done_and_given_back() {
    let Some(_lock) = lock() else { return };
    let bench = Bench::new("fix");
    let (port, other) = (
        without_native_mode(&bench, 0),
        without_native_mode(&bench, 1),
    );
    worsen(&port);
    worsen(&other);
    let before = settings(&port);

    // It is told, with its values, and nothing is changed.
    let reported = doctor(&port, &["--fix"]);
    assert_eq!(reported.status.code(), Some(0), "{}", reported.stderr);
    for part in [
        "few0: 5 changes to be made:",
        "rps: RPS CPUs of few0's queue 0: 0 → none",
        "rps: RPS flow table of few0's queue 0: 8 → 0",
        "threaded_napi: threaded NAPI of few0: 1 → 0",
        "deferred_interrupts: deferred interrupts of few0: 2 → 0",
        "not done by tscap (",
        "nothing is changed yet: --yes",
    ] {
        assert!(
            reported.stdout.contains(part),
            "{part:?} is not in\n{}",
            reported.stdout
        );
    }
    let reported = json(&doctor(&port, &["--fix", "--json"]));
    let changes = reported["changes"].as_array().expect("changes");
    assert!(
        changes.iter().all(|it| it["became"] == "planned"),
        "{reported}"
    );
    for left in reported["left"].as_array().expect("what is left") {
        assert!(
            left["fix"].is_string() != left["advice"].is_string(),
            "{left}"
        );
        assert!(
            !MENDED.contains(&left["check"].as_str().expect("a check")),
            "{left}"
        );
    }
    assert_eq!(settings(&port), before);
    assert_eq!(restore(&port), "nothing to restore\n");

    let done = doctor(&port, &["--fix", "--yes", "--json"]);
    assert_eq!(done.status.code(), Some(0));
    let done = json(&done);
    let changes = done["changes"].as_array().expect("changes");
    assert_eq!(changes.len(), 5, "{done}");
    assert!(changes.iter().all(|it| it["became"] == "done"), "{done}");
    let after = settings(&port);
    for (name, value) in &after {
        assert_ne!(*value, before[name], "{name}");
    }
    for id in MENDED {
        assert_eq!(verdict(&port, id).0, "good", "{id}");
    }
    assert_eq!(settings(&other), before, "the other interface is as it was");
    let again = doctor(&port, &["--fix", "--yes"]);
    assert!(
        again.stdout.contains("few0: nothing for tscap to change"),
        "{}",
        again.stdout
    );

    // These are no leftovers of a killed capture.
    let (verdict, found) = verdict(&port, "journals");
    assert_eq!(verdict, "good");
    assert!(found.contains("5 changes by doctor --fix"), "{found}");
    let folder = files::folder();
    let capture = capture_on(&port, &folder.path().join("out.pcapng"));
    let finished = capture.with(["--rx-cpu", "0"]).ready().stop();
    finished.success();
    assert!(
        !finished.stderr.contains("tscap restore"),
        "{}",
        finished.stderr
    );
    assert_eq!(
        settings(&port),
        after,
        "the capture gave back what it changed"
    );

    let restored = restore(&port);
    assert_eq!(restored.lines().count(), 5, "{restored}");
    assert_eq!(settings(&port), before);
    assert_eq!(restore(&port), "nothing to restore\n");
}

#[test]
fn a_kill_in_between_leaves_what_restore_gives_back() {
    let Some(_lock) = lock() else { return };
    let bench = Bench::new("fix-killed");
    let port = without_native_mode(&bench, 0);
    worsen(&port);
    let before = settings(&port);
    // At the write of the last of the settings.
    let flows = "/sys/class/net/few0/queues/rx-0/rps_flow_cnt";
    let mut command = port.netns.command("strace");
    command.args(["-f", "-o", "/dev/null", "-P", flows, "-e", "trace=write"]);
    command.args(["-e", "inject=write:signal=SIGKILL", tscap_path()]);
    command.args(["doctor", "-i", &port.name, "--fix", "--yes"]);
    let killed = run(&mut command, SHORT);
    assert!(!killed.status.success(), "{}", killed.stdout);
    let between = settings(&port);
    assert_ne!(between, before, "some were made");
    assert_eq!(between["queues/rx-0/rps_flow_cnt"], "8", "and one was not");
    let restored = restore(&port);
    assert!(restored.contains("had been restored already"), "{restored}");
    assert_eq!(settings(&port), before);
}

#[test]
fn a_setting_of_a_running_capture_is_left_to_it() {
    let Some(_lock) = lock() else { return };
    let bench = Bench::new("fix-live");
    let port = without_native_mode(&bench, 0);
    worsen(&port);
    let folder = files::folder();
    let capture = capture_on(&port, &folder.path().join("out.pcapng"));
    let capture = capture.with(["--rx-cpu", "0"]).ready();
    let before = settings(&port);
    let refused = doctor(&port, &["--fix", "--yes"]);
    assert_eq!(refused.status.code(), Some(1));
    let pid = format!("process {}", capture.pid());
    assert!(
        refused.stderr.contains(&pid) && refused.stderr.contains("hint: "),
        "{}",
        refused.stderr
    );
    assert_eq!(settings(&port), before);
    capture.stop().success();
}

#[test]
fn only_root_changes_anything() {
    let Some(_lock) = lock() else { return };
    let bench = Bench::new("fix-user");
    let port = without_native_mode(&bench, 0);
    worsen(&port);
    let before = settings(&port);
    let folder = files::public_folder();
    let tscap = folder.path().join("tscap");
    files::copy_program(tscap_path(), &tscap);
    let as_user = |more: &[&str]| {
        let mut command = port.netns.command("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        command
            .arg(&tscap)
            .args(["doctor", "-i", &port.name, "--fix"]);
        run(command.args(more), SHORT)
    };
    let reported = as_user(&[]);
    assert_eq!(reported.status.code(), Some(0), "{}", reported.stderr);
    assert!(
        reported.stdout.contains("5 changes to be made"),
        "{}",
        reported.stdout
    );
    let refused = as_user(&["--yes"]);
    assert_eq!(refused.status.code(), Some(1), "{}", refused.stdout);
    for part in [
        "tscap: cannot change settings of few0: only root may",
        "hint: run it as root",
    ] {
        assert!(refused.stderr.contains(part), "{}", refused.stderr);
    }
    assert_eq!(settings(&port), before);
    // Nor does anybody without an interface.
    let mut none = Command::new(tscap_path());
    let none = run(none.args(["doctor", "--fix", "--yes"]), SHORT);
    assert_eq!(none.status.code(), Some(2), "{}", none.stderr);
}
