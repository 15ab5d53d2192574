//! What the commands keep that measure, stamp and send for a time.

use tscap_testkit::bench::Bench;
use tscap_testkit::capture::{Plan, clock, echo, generate_on, qos_on, stamp};
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
    // The kernel's statistics of what programs cost take it.
    let names = ["tscap-layers", "tscap-console", "tscap-signals"];
    keeps(qos_on(&bench.rx).with(layers), "layers", &names, SYS_ADMIN);
    let plan = qos_on(&bench.rx).with(layers).with(page);
    keeps(plan, "layers", &names, SYS_ADMIN | FOR_FILES);
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
