//! What `--rx-cpu` and `tscap restore` refuse, and what they warn of.

use nix::sys::signal::Signal;
use tscap_live::settings::JournalFolder;
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::{LIMIT, capture_on};
use tscap_testkit::command::{SHORT, run, tscap_path};
use tscap_testkit::files;
use tscap_testkit::process::cpus;
use tscap_testkit::root::{alone, two_cpus};
use tscap_testkit::wait::until;

use super::JOURNALS;
use super::machine::{journals, restore, rps, warning};

#[test]
fn cpus_that_are_not_there() {
    let Some(_lock) = alone(JOURNALS) else {
        return;
    };
    let bench = Bench::new("pin-cpu");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let finished = capture_on(&bench.rx, &path)
        .with(["--rx-cpu", "0,8191"])
        .run();
    finished.failure(1, &["CPU 8191", "there is none"]);
    assert!(!path.exists());
    for malformed in ["3-2", "0,0", "all", ""] {
        let finished = capture_on(&bench.rx, &path)
            .with(["--rx-cpu", malformed])
            .run();
        assert_eq!(finished.code, Some(2), "{malformed}: {}", finished.stderr);
        assert!(finished.stderr.contains("--rx-cpu"), "{}", finished.stderr);
    }
}

#[test]
fn another_running_captures_changes() {
    let Some(_lock) = alone(JOURNALS) else {
        return;
    };
    if two_cpus().is_none() {
        return;
    }
    let bench = Bench::new("pin-live");
    let folder = files::folder();
    let plan = |cpu| {
        let path = folder.path().join(format!("on-{cpu}.pcapng"));
        capture_on(&bench.rx, &path).with(["--hook", "generic", "--rx-cpu", cpu])
    };
    let running = plan("1").ready();
    let pid = format!("process {}", running.pid());
    plan("0").run().failure(1, &["rx0", &pid, "running"]);
    let done = restore(&bench.rx);
    assert_eq!(done.status.code(), Some(1), "{}", done.stdout);
    assert!(done.stderr.contains(&pid), "{}", done.stderr);
    assert!(done.stderr.contains("hint: kill "), "{}", done.stderr);
    assert_eq!((rps(&bench.rx).as_str(), journals().len()), ("2", 1));
    running.stop_with(Signal::SIGTERM).success();
    assert_eq!((rps(&bench.rx).as_str(), journals().len()), ("0", 0));
}

#[test]
fn without_a_journal_nothing_is_changed() {
    let Some(_lock) = alone(JOURNALS) else {
        return;
    };
    let bench = Bench::new("pin-ro");
    bench.rx.offload("rx-vlan-offload", true);
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let read_only = "mount -t tmpfs -o ro tscap-test /run && exec \"$@\"";
    for changing in [["--rx-cpu", "0"], ["--offloads", "off"]] {
        let finished = capture_on(&bench.rx, &path)
            .through(["unshare", "--mount", "sh", "-c", read_only, "sh"])
            .with(changing)
            .run();
        finished.failure(1, &["/run/tscap", "read-only", "nothing stays changed"]);
        assert_eq!(rps(&bench.rx), "0");
        assert!(bench.rx.offloads()["rx-vlan-offload"]);
        assert!(!path.exists());
    }
}

#[test]
fn another_namespaces_sysfs() {
    let Some(_lock) = alone(JOURNALS) else {
        return;
    };
    let bench = Bench::new("pin-sys");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    // Unlike `ip netns exec`, this mounts no sysfs of the namespace.
    let mut command = std::process::Command::new("nsenter");
    command.arg(format!("--net=/run/netns/{}", bench.rx.netns.name()));
    command.args([tscap_path(), "capture", "-i", "rx0", "--rx-cpu", "0", "-w"]);
    let done = run(command.arg(&path), SHORT);
    assert_eq!(done.status.code(), Some(1), "{}", done.stderr);
    for part in ["rx0", "/sys belongs to another network namespace", "hint: "] {
        assert!(done.stderr.contains(part), "{part}: {}", done.stderr);
    }
    assert!(!path.exists());
}

#[test]
fn the_converter_keeps_away_or_warns() {
    let Some(_lock) = alone(JOURNALS) else {
        return;
    };
    if two_cpus().is_none() {
        return;
    }
    let bench = Bench::new("pin-conv");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let all = cpus();
    let last = all.last().expect("a CPU");
    let (last, all) = (last.to_string(), all.iter().map(ToString::to_string));
    let all = all.collect::<Vec<_>>().join(",");
    let run = |more: &[&str]| {
        let plan = capture_on(&bench.rx, &path).with(["--hook", "generic"]);
        let finished = plan.with(more).ready().stop();
        finished.success();
        finished
    };
    let kept_away = run(&["--rx-cpu", &last]);
    assert!(
        !kept_away.stderr.contains("converter"),
        "{}",
        kept_away.stderr
    );
    let ready = kept_away.events("ready").remove(0);
    assert_ne!(ready["converter_cpu"].to_string(), last);
    assert_eq!(ready["rx_cpus"][0].to_string(), last);
    for beside in [
        run(&["--rx-cpu", &all]),
        run(&["--rx-cpu", &last, "--converter-cpu", &last]),
    ] {
        let reported = warning(&beside, "converter");
        assert!(reported.contains(&format!("CPU {last}")), "{reported}");
    }
}

/// Of two captures that start at once one changes the interface, and the other
/// sees that it has.
#[test]
fn two_at_once() {
    let Some(_lock) = alone(JOURNALS) else {
        return;
    };
    let bench = Bench::new("pin-two");
    bench.rx.offload("rx-vlan-offload", true);
    let folder = files::folder();
    for round in 0..3 {
        let start = |name: &str| {
            let path = folder.path().join(format!("{round}-{name}"));
            capture_on(&bench.rx, &path)
                .with(["--offloads", "off"])
                .start()
        };
        let (mut one, mut other) = (start("one"), start("other"));
        let one_is_over = until("one of them to be refused", LIMIT, || {
            match (one.has_ended(), other.has_ended()) {
                (false, false) => None,
                (one, _) => Some(one),
            }
        });
        let (refused, running) = if one_is_over {
            (one, other)
        } else {
            (other, one)
        };
        refused
            .wait()
            .failure(1, &["cannot change rx0", "is running"]);
        running.wait_ready();
        assert!(!bench.rx.offloads()["rx-vlan-offload"]);
        running.stop().success();
        assert!(bench.rx.offloads()["rx-vlan-offload"]);
        assert!(journals().is_empty());
    }
}

/// A capture that wants to change something waits for another one that is about
/// to, and can be stopped meanwhile.
#[test]
fn the_other_ones_turn() {
    let Some(_lock) = alone(JOURNALS) else {
        return;
    };
    let bench = Bench::new("pin-turn");
    bench.rx.offload("rx-vlan-offload", true);
    let folder = files::folder();
    let start = |name: &str| {
        capture_on(&bench.rx, &folder.path().join(name))
            .with(["--offloads", "off"])
            .start()
    };
    let turn = JournalFolder::live().try_lock().expect("root may");
    let turn = turn.expect("nobody else holds it");
    let (stopped, goes_on) = (start("stopped"), start("goes-on"));
    for capture in [&stopped, &goes_on] {
        capture.wait_line("note: waiting for another tscap");
    }
    let finished = stopped.stop();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    assert!(!finished.stderr.contains("ready"), "{}", finished.stderr);
    assert!(bench.rx.offloads()["rx-vlan-offload"]);
    drop(turn);
    goes_on.wait_ready();
    goes_on.stop().success();
}
