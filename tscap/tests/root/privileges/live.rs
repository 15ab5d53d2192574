//! What the commands keep that measure, stamp and send for a time.

use std::path::Path;
use std::process::{Command, Stdio};

use tscap_testkit::bench::Bench;
use tscap_testkit::capture::{Capture, Plan, clock, echo, generate_on, qos_on, stamp};
use tscap_testkit::command::{SHORT, run, tscap_path};
use tscap_testkit::files;
use tscap_testkit::root::{root, root_with};
use tscap_time::tsc;

use super::status::{self, BPF, FOR_FILES, SYS_ADMIN};

/// Starts it, waits for its first line of this kind, and until it and these threads have
/// given up what they do not need: the main thread keeps `kept`, and no other thread anything.
#[track_caller]
fn keeps(plan: Plan<'_>, event: &str, threads: &[&str], kept: u64) {
    let running = plan.start();
    running.wait_event(event);
    has_given_up(running, threads, kept);
}

/// Waits for that, and ends it.
#[track_caller]
fn has_given_up(running: Capture, threads: &[&str], kept: u64) {
    status::wait_for_threads(running.pid(), threads, |name, it| {
        it.capabilities == if name == "tscap" { kept } else { 0 }
    });
    let finished = running.stop();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
}

/// A page at the end is made in any folder, as before.
#[test]
fn packets_of_flows_are_read_without_capabilities() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("keep-qos");
    let (folder, layers) = (files::folder(), ["--layers", "xdp,tcx,pre"]);
    let page = folder.path().join("page.html");
    let page = ["--report".as_ref(), page.as_os_str()];
    let flows = ["tscap-flows", "tscap-console", "tscap-signals"];
    keeps(qos_on(&bench.rx), "qos", &flows, 0);
    keeps(qos_on(&bench.rx).with(page), "qos", &flows, FOR_FILES);
    // The kernel's statistics of what programs cost are switched by a process of their own.
    let names = ["tscap-layers", "tscap-console", "tscap-signals"];
    let plan = || qos_on(&bench.rx).with(layers);
    for (plan, kept) in [(plan(), 0), (plan().with(page), FOR_FILES)] {
        let running = plan.start();
        running.wait_event("layers");
        let switch = running.helper("switch-statistics").expect("its process");
        let status = status::of(switch);
        assert_eq!((status.uid, status.capabilities), (0, SYS_ADMIN));
        has_given_up(running, &names, kept);
        assert!(!Path::new(&format!("/proc/{switch}")).exists());
    }
}

/// A thread that can't give up its capabilities parses no packets.
#[test]
fn no_packet_is_read_with_capabilities() {
    let Some(_lock) = root_with(&["strace"]) else {
        return;
    };
    let bench = Bench::new("keep-refused");
    let strace = ["strace", "-f", "--seccomp-bpf", "-qq", "-o", "/dev/null"];
    let refused = ["-e", "trace=capset", "-e", "inject=capset:error=EPERM"];
    let refused = [&strace[..], &refused].concat();
    for (layers, thread) in [
        (&[][..], "tscap-flows"),
        (&["--layers", "xdp,tcx"], "tscap-layers"),
    ] {
        let plan = qos_on(&bench.rx).with(layers);
        let finished = plan.through(&refused).run();
        assert_eq!(finished.code, Some(1), "{}", finished.stderr);
        let what = format!("cannot start the thread {thread} without capabilities");
        assert!(finished.stderr.contains(&what), "{}", finished.stderr);
        assert_eq!(bench.rx.xdp_program(), None);
    }
}

/// By hand it is of no use, and says so.
#[test]
fn nobody_else_switches_statistics() {
    let Some(_lock) = root() else { return };
    let mut command = Command::new(tscap_path());
    let done = run(command.arg("switch-statistics").stdin(Stdio::null()), SHORT);
    assert_eq!(done.status.code(), Some(1));
    let reported = "hint: a measurement at layers starts this command itself (tscap qos --layers)";
    assert!(done.stderr.contains(reported), "{}", done.stderr);
}

#[test]
fn receive_times_are_kept_right_without_capabilities() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("keep-stamp");
    let plan = stamp(&bench.rx.netns).on(&bench.rx);
    keeps(plan, "ready", &["tscap-signals"], 0);
}

/// By itself, and with programs that stamp the packets of NTP.
#[test]
fn clocks_are_watched_without_capabilities() {
    let Some(_lock) = root() else { return };
    if tsc::check().is_err() {
        return;
    }
    let bench = Bench::new("keep-clock");
    bench.acquaint();
    let folder = files::folder();
    let log = folder.path().join("clock.log");
    let plan = || clock(&bench.rx.netns).with(["--interval", "100ms"]);
    keeps(plan(), "clock", &["tscap-signals"], 0);
    let logging = plan().with(["--log".as_ref(), log.as_os_str()]);
    keeps(logging, "clock", &["tscap-signals"], FOR_FILES);
    let asking = plan().with(["--reference", "ntp:10.9.0.1,poll=200ms"]);
    keeps(asking, "clock", &["tscap-signals"], 0);
}

#[test]
fn frames_are_sent_and_answered_without_capabilities() {
    let Some(_lock) = root_with(&["ip", "ethtool"]) else {
        return;
    };
    let bench = Bench::new("keep-gen");
    bench.rx.offload("gro", true);
    for (sender, kept) in [("packet", 0), ("native", BPF)] {
        let plan = generate_on(&bench.tx).with(["--sender", sender, "--rate", "1k"]);
        let running = plan.start();
        running.wait_event("progress");
        status::wait_for_threads(running.pid(), &["tscap-sender"], |name, it| {
            let is_sent_by = ["tscap", "tscap-sender"].contains(&name);
            it.capabilities == if is_sent_by { kept } else { 0 }
        });
        assert_eq!(running.stop().code, Some(0));
    }
    let plan = echo(&bench.rx.netns).with(["--port", "9009"]);
    keeps(plan, "ready", &["tscap-echo"], 0);
}
