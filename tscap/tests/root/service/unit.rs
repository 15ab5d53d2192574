//! `tscap@.service`, by a systemd of the test's own.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::LIMIT;
use tscap_testkit::command::must;
use tscap_testkit::files;
use tscap_testkit::frame::Frame;
use tscap_testkit::packet_socket::PacketSocket;
use tscap_testkit::recording::Recording;
use tscap_testkit::root::root_with;
use tscap_testkit::wait;

use super::booted::{Booted, PROGRAMS, field};
use tscap_testkit::shown::{Runner, commands};

const UNIT: &str = "tscap@rx0.service";
/// Where its captures are, in fact.
const STATE: &str = "/var/lib/private/tscap/rx0";
/// CAP_NET_ADMIN, CAP_NET_RAW, CAP_PERFMON and CAP_BPF (linux/capability.h).
const CAPABILITIES: u64 = 1 << 12 | 1 << 13 | 1 << 38 | 1 << 39;

/// The captures there, by name.
fn captures(booted: &Booted) -> Vec<PathBuf> {
    let entries = fs::read_dir(booted.path(STATE)).expect("the folder of captures");
    let mut paths: Vec<_> = entries.map(|it| it.expect("an entry").path()).collect();
    paths.sort();
    paths
}

fn send(bench: &Bench, frames: u64) {
    let frame = Frame::new(&bench.tx, &bench.rx, 60);
    PacketSocket::open(&bench.tx).send(&frame, 0..frames, 0);
}

#[test]
fn the_unit_starts_with_four_capabilities_and_ends_in_order() {
    let Some(_lock) = root_with(PROGRAMS) else {
        return;
    };
    let bench = Bench::new("unit");
    let booted = Booted::beside(&bench);
    let mut verify = booted.command("systemd-analyze");
    let said = must(verify.args(["verify", "--man=no", UNIT]));
    assert_eq!(said, "");
    // Tenths: 3.0 at most.
    let mut security = booted.command("systemd-analyze");
    let unit = "/etc/systemd/system/tscap@.service";
    must(security.args(["security", "--offline=yes", "--threshold=30", unit]));

    // By Type=notify it is started when it captures.
    booted.systemctl(&["start", UNIT]);
    let pid = booted.process(UNIT);
    send(&bench, 100);
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("its status");
    // Once it captures it keeps nothing of what it could have.
    for (set, expected) in [
        ("CapPrm", 0),
        ("CapEff", 0),
        ("CapBnd", CAPABILITIES),
        ("CapAmb", 0),
    ] {
        let found = u64::from_str_radix(&field(&status, set), 16).expect("a set");
        assert_eq!(found, expected, "{set}: {found:x}");
    }
    let user = field(&status, "Uid");
    let user: u32 = user
        .split_whitespace()
        .next()
        .expect("a user")
        .parse()
        .unwrap();
    assert!((61_184..=65_519).contains(&user), "a dynamic user: {user}");
    assert_eq!(field(&status, "NoNewPrivs"), "1");
    assert_eq!(field(&status, "Seccomp"), "2");
    wait::until("a status", LIMIT, || {
        let text = booted.property(UNIT, "StatusText");
        text.contains(" frames written, 0 drops").then_some(())
    });
    booted.systemctl(&["stop", UNIT]);
    assert_eq!(booted.property(UNIT, "Result"), "success");
    assert_eq!(booted.property(UNIT, "NRestarts"), "0");
    assert_eq!(bench.rx.xdp_program(), None);

    let files = captures(&booted);
    let [file] = files.as_slice() else {
        panic!("one capture: {files:?}");
    };
    assert_eq!(files::mode(file) & 0o777, 0o600);
    let written = Recording::read(file).packets.len();
    assert!(written >= 100, "{written}");
    let mut journal = booted.command("journalctl");
    let journal = journal.args(["-o", "json", "-u", UNIT]);
    let entries = must(journal.arg("MESSAGE_ID=8eae17fdc1a8403f97b1e25711999a7f"));
    let entry: Value = serde_json::from_str(entries.trim()).expect("one entry");
    assert_eq!(entry["TSCAP_WRITTEN"], written.to_string());
    assert_eq!(entry["TSCAP_ADDS_UP"], "1");
}

#[test]
fn arguments_of_an_instance_rotate_and_filter() {
    let Some(_lock) = root_with(&[PROGRAMS, &["gzip"]].concat()) else {
        return;
    };
    let bench = Bench::new("unit-args");
    let booted = Booted::beside(&bench);
    let arguments = "TSCAP_ARGS=\"-b packets:40 -z gzip 'greater 60 and not ip6'\"\n";
    fs::write(booted.path("/etc/tscap/rx0.conf"), arguments).expect("the arguments");
    booted.systemctl(&["start", UNIT]);
    send(&bench, 100);
    booted.systemctl(&["stop", UNIT]);
    assert_eq!(booted.property(UNIT, "Result"), "success");
    let files = captures(&booted);
    assert_eq!(files.len(), 3, "{files:?}");
    let mut packets = 0;
    for file in files {
        assert_eq!(file.extension().and_then(|it| it.to_str()), Some("gz"));
        must(std::process::Command::new("gunzip").arg(&file));
        packets += Recording::read(&file.with_extension("")).packets.len();
    }
    assert_eq!(packets, 100);

    // Wrong arguments are no reason to try again.
    let wrong = "TSCAP_ARGS=--no-such-option\n";
    fs::write(booted.path("/etc/tscap/rx0.conf"), wrong).expect("the arguments");
    assert!(!booted.try_systemctl(&["start", UNIT]).status.success());
    assert_eq!(booted.property(UNIT, "ActiveState"), "failed");
    assert_eq!(booted.property(UNIT, "ExecMainStatus"), "2");
}

#[test]
fn what_a_killed_service_changed_is_given_back_and_it_starts_again() {
    let Some(_lock) = root_with(PROGRAMS) else {
        return;
    };
    let bench = Bench::new("unit-killed");
    let before = bench.rx.offloads();
    let booted = Booted::beside(&bench);
    let arguments = "TSCAP_ARGS=--offloads off --hook generic\n";
    fs::write(booted.path("/etc/tscap/rx0.conf"), arguments).expect("the arguments");
    // So that what it left can be seen before the next one begins.
    let folder = booted.path("/etc/systemd/system/tscap@.service.d");
    fs::create_dir(&folder).expect("a folder of changes");
    fs::write(folder.join("later.conf"), "[Service]\nRestartSec=3\n").expect("a change");
    booted.systemctl(&["daemon-reload"]);
    booted.systemctl(&["start", UNIT]);
    assert_ne!(bench.rx.offloads(), before, "GRO is off");
    booted.systemctl(&["kill", "--signal=KILL", "--kill-whom=main", UNIT]);
    wait::until("tscap restore", LIMIT, || {
        (bench.rx.offloads() == before).then_some(())
    });
    wait::until("the next start", LIMIT, || {
        let is_again = booted.property(UNIT, "NRestarts") == "1"
            && booted.property(UNIT, "ActiveState") == "active";
        is_again.then_some(())
    });
    booted.systemctl(&["stop", UNIT]);
    assert_eq!(bench.rx.offloads(), before);
    assert!(
        !booted.path("/run/tscap-rx0").exists(),
        "no journal is left"
    );
}

#[test]
fn the_watchdog_ends_a_service_that_hangs() {
    let Some(_lock) = root_with(PROGRAMS) else {
        return;
    };
    let bench = Bench::new("unit-hangs");
    let booted = Booted::beside(&bench);
    let folder = booted.path("/etc/systemd/system/tscap@.service.d");
    fs::create_dir(&folder).expect("a folder of changes");
    let soon = "[Service]\nWatchdogSec=2\nRestart=no\n";
    fs::write(folder.join("soon.conf"), soon).expect("a change");
    booted.systemctl(&["daemon-reload"]);
    booted.systemctl(&["start", UNIT]);
    // It says that it is alive for longer than that.
    wait::until("a status of the third second", LIMIT, || {
        let since = booted.property(UNIT, "WatchdogTimestampMonotonic");
        let started = booted.property(UNIT, "ActiveEnterTimestampMonotonic");
        let number = |text: String| text.parse::<u64>().unwrap_or_default();
        (number(since) > number(started) + 3_000_000).then_some(())
    });
    booted.systemctl(&["kill", "--signal=STOP", "--kill-whom=main", UNIT]);
    wait::until("the watchdog to bite", LIMIT, || {
        (booted.property(UNIT, "Result") == "watchdog").then_some(())
    });
}

#[test]
fn the_documented_commands_work() {
    let Some(_lock) = root_with(PROGRAMS) else {
        return;
    };
    let bench = Bench::new("unit-documents");
    let booted = Booted::beside(&bench);
    for line in commands(Runner::Service) {
        let line = line.replace("eth0", &bench.rx.name);
        must(booted.command("sh").args(["-ec", &line]));
        let is_on = !line.contains("disable");
        assert_eq!(
            booted.property(UNIT, "ActiveState") == "active",
            is_on,
            "{line}"
        );
    }
    let escaped = "veth\\x2a";
    assert_eq!(
        must(booted.command("systemd-escape").arg("veth*")).trim(),
        escaped
    );
    let unit = format!("tscap@{escaped}.service");
    bench.rx.netns.ip(&["link", "add", "veth7", "type", "veth"]);
    booted.systemctl(&["start", &unit]);
    wait::until("the pattern to be taken", LIMIT, || {
        let reported = must(
            booted
                .command("journalctl")
                .args(["-u", &unit, "-o", "cat"]),
        );
        reported.contains("ready: ").then_some(())
    });
    booted.systemctl(&["stop", &unit]);
    assert_eq!(booted.property(&unit, "Result"), "success");
}

#[test]
fn the_documented_changes_let_it_write_metrics() {
    let Some(_lock) = root_with(PROGRAMS) else {
        return;
    };
    let bench = Bench::new("unit-metrics");
    let booted = Booted::beside(&bench);
    let folder = "/var/lib/prometheus/node-exporter";
    let page = fs::read_to_string(tscap_testkit::shown::root().join("docs/service.md"));
    let page = page.expect("the page");
    let text = page
        .split("```text\ngroupadd")
        .nth(1)
        .expect("the commands");
    let (commands, drop_in) = text.split_once("\n\n").expect("a drop-in");
    let drop_in = drop_in.split("```").next().expect("its end");
    let script = format!("mkdir -p {folder}; groupadd{commands}");
    must(booted.command("sh").args(["-ec", &script]));
    let arguments = format!("TSCAP_ARGS=--metrics-file {folder}/tscap-rx0.prom\n");
    fs::write(booted.path("/etc/tscap/rx0.conf"), arguments).expect("the arguments");
    let changes = booted.path("/etc/systemd/system/tscap@.service.d");
    fs::create_dir(&changes).expect("a folder of changes");
    fs::write(changes.join("metrics.conf"), drop_in).expect("a change");
    booted.systemctl(&["daemon-reload"]);
    booted.systemctl(&["start", UNIT]);
    booted.systemctl(&["stop", UNIT]);
    let file = booted.path(&format!("{folder}/tscap-rx0.prom"));
    let text = fs::read_to_string(&file).expect("the metrics");
    assert!(
        text.contains("tscap_up{capture=\"tscap-rx0\"} 0\n"),
        "{text}"
    );
    assert_eq!(files::mode(&file) & 0o777, 0o644);
}
