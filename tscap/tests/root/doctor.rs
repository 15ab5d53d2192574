//! `tscap doctor` on this machine and on veth pairs: what it says is what a
//! capture then meets, and it leaves everything as it was. Needs root.

use std::process::Command;

use aya::programs::XdpMode;
use nix::sys::signal::Signal;
use serde_json::Value;
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::{LIMIT, capture_on, generate_on};
use tscap_testkit::command::{Done, SHORT, run, tscap_path};
use tscap_testkit::files;
use tscap_testkit::port::Port;
use tscap_testkit::probes::Attached;
use tscap_testkit::root::{alone, root, root_with, two_cpus};
use tscap_testkit::wait;

/// Why tests run alone that let go of a program or a socket and look whether it is gone.
const DESCRIPTORS: &str = "children of other tests keep its descriptors for a moment";

/// Every check of the machine, in order.
const MACHINE: [&str; 25] = [
    "kernel",
    "preemption",
    "privilege_capture",
    "privilege_promiscuous",
    "privilege_changes",
    "privilege_kfunc",
    "privilege_namespaces",
    "privilege_gen",
    "stamp_ktime",
    "stamp_tai",
    "stamp_tsc",
    "stamp_kfunc",
    "tsc",
    "clocksource",
    "clock_sync",
    "utc_sources",
    "tai_offset",
    "virtualisation",
    "steal_time",
    "governor",
    "isolated_cpus",
    "irqbalance",
    "kernel_buffers",
    "libpcap",
    "journals",
];
/// Every check of an interface, in order.
const INTERFACE: [&str; 12] = [
    "link",
    "xdp_programs",
    "xdp_mode",
    "attaching",
    "mtu",
    "offloads",
    "coalescing",
    "rx_ring",
    "rx_queues",
    "rps",
    "threaded_napi",
    "deferred_interrupts",
];

/// A report of `--json`.
struct Report {
    code: Option<i32>,
    json: Value,
}

impl Report {
    fn of(done: &Done) -> Self {
        assert_eq!(done.stderr, "");
        let json: Value = serde_json::from_str(&done.stdout).expect("one JSON object");
        assert_eq!((&json["event"], &json["v"]), (&"doctor".into(), &1.into()));
        Self {
            code: done.status.code(),
            json,
        }
    }

    fn ids(&self) -> Vec<&str> {
        let checks = self.json["checks"].as_array().expect("checks").iter();
        checks
            .map(|check| check["id"].as_str().expect("an id"))
            .collect()
    }

    #[track_caller]
    fn check(&self, id: &str) -> &Value {
        let mut checks = self.json["checks"].as_array().expect("checks").iter();
        let check = checks.find(|check| check["id"] == id);
        check.unwrap_or_else(|| panic!("no check {id}: {}", self.json))
    }

    /// Panics unless the check came out so, with `found` in what was found.
    #[track_caller]
    fn is(&self, id: &str, verdict: &str, found: &str) {
        let check = self.check(id);
        assert_eq!(check["verdict"], verdict, "{check}");
        let text = check["found"].as_str().expect("what was found");
        assert!(text.contains(found), "{found:?} is not in {check}");
    }
}

/// `tscap doctor --json` with these arguments, in the port's namespace.
fn doctor(port: &Port, arguments: &[&str]) -> Report {
    let mut command = port.netns.command(tscap_path());
    command.args(["doctor", "--json"]).args(arguments);
    Report::of(&run(&mut command, SHORT))
}

#[test]
fn every_check_runs_and_stamps_work() {
    let Some(_lock) = alone("TSC events of others make its own pause") else {
        return;
    };
    let bench = Bench::new("doctor");
    let before = (bench.rx.show(), bench.rx.offloads());
    let report = doctor(&bench.rx, &["-i", "rx0"]);
    assert_eq!(report.ids(), [&MACHINE[..], &INTERFACE].concat());
    for check in report.json["checks"].as_array().expect("checks") {
        let remedies = ["fix", "advice"].map(|it| check[it].is_string());
        let is_good = check["verdict"] == "good";
        assert_eq!(remedies.contains(&true), !is_good, "{check}");
        assert!(
            check["why"].as_str().is_some_and(|why| why.ends_with('.')),
            "{check}"
        );
    }
    report.is("stamp_ktime", "good", "bpf_ktime_get_ns");
    report.is("stamp_tai", "good", "bpf_ktime_get_tai_ns");
    report.is("privilege_capture", "good", "CAP_BPF");
    report.is("privilege_kfunc", "good", "CAP_SYS_ADMIN");
    report.is("privilege_namespaces", "good", "CAP_SYS_ADMIN");
    report.is("privilege_gen", "good", "CAP_BPF");
    report.is("link", "good", "veth, up");
    report.is("xdp_mode", "good", "native");
    report.is("attaching", "good", "veth_xdp_set");
    report.is("rx_queues", "good", "1 queue");
    assert_eq!((report.code, &report.json["bad"]), (Some(0), &0.into()));
    assert_eq!(report.json["interface"]["driver"], "veth");
    let now = (bench.rx.show()["xdp"].clone(), bench.rx.offloads());
    assert_eq!(now, (before.0["xdp"].clone(), before.1), "left alone");

    let machine = doctor(&bench.rx, &[]);
    assert_eq!(machine.ids(), MACHINE);
    assert_eq!(machine.json["interface"], Value::Null);
}

#[test]
fn the_mode_foretold_is_the_one_of_the_capture() {
    let Some(_lock) = alone(DESCRIPTORS) else {
        return;
    };
    let bench = Bench::new("doctor-mode");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let captured = |port: &Port| {
        let finished = capture_on(port, &path).ready().stop();
        finished.success().interfaces[0].directions[0]
            .hook
            .clone()
            .expect("a hook")
    };
    doctor(&bench.rx, &["-i", "rx0"]).is("xdp_mode", "good", "native");
    assert_eq!(captured(&bench.rx), "native XDP");

    let few = pair_without_native_mode(&bench);
    let report = doctor(&few, &["-i", "few0"]);
    report.is("xdp_mode", "warning", "tcx ingress stamps");
    report.is("attaching", "good", "leaves the driver alone");
    assert_eq!(captured(&few), "tcx ingress");

    let _other = Attached::pass(&bench.rx, XdpMode::Driver);
    doctor(&bench.rx, &["-i", "rx0"]).is("xdp_mode", "warning", "tcx ingress stamps");
    assert_eq!(captured(&bench.rx), "tcx ingress");
}

/// `few0` of a veth pair in the receiver's namespace: its one receive queue is too few
/// for a peer that sends by two.
fn pair_without_native_mode(bench: &Bench) -> Port {
    bench.rx.netns.ip(&[
        "link",
        "add",
        "few0",
        "numrxqueues",
        "1",
        "numtxqueues",
        "1",
        "type",
        "veth",
        "peer",
        "name",
        "many0",
        "numtxqueues",
        "2",
    ]);
    let few = Port::find(&bench.rx.netns, "few0");
    few.set(&["up"]);
    Port::find(&bench.rx.netns, "many0").set(&["up"]);
    few.wait_up();
    few
}

#[test]
fn what_attaching_does_to_the_default_route_is_a_warning() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("doctor-default");
    bench.add_addresses();
    bench
        .rx
        .netns
        .ip(&["route", "add", "default", "dev", "rx0"]);
    let report = doctor(&bench.rx, &["-i", "rx0"]);
    report.is("attaching", "warning", "the default route goes through it");
    let advice = report.check("attaching")["advice"].as_str();
    assert!(advice.is_some_and(|it| it.contains("--hook tcx")));
}

#[test]
fn what_would_stop_a_capture_is_bad() {
    let Some(_lock) = alone(DESCRIPTORS) else {
        return;
    };
    let bench = Bench::new("doctor-bad");
    bench.rx.set(&["down"]);
    let down = doctor(&bench.rx, &["-i", "rx0"]);
    down.is("link", "bad", "down");
    assert_eq!(down.check("link")["fix"], "ip link set dev rx0 up");
    assert_eq!((down.code, &down.json["bad"]), (Some(1), &1.into()));
    bench.rx.netns.must("sh", &["-c", "ip link set dev rx0 up"]);
    bench.rx.wait_up();

    for mode in [XdpMode::Driver, XdpMode::Skb] {
        let other = Attached::pass(&bench.rx, mode);
        let busy = doctor(&bench.rx, &["-i", "rx0"]);
        let found = format!("program {} (probe_pass)", other.id);
        busy.is("xdp_programs", "warning", &found);
        assert_eq!(busy.code, Some(0));
        let id = bench.rx.xdp_program();
        assert_eq!(id, Some(u64::from(other.id)), "left alone");
    }

    let folder = files::folder();
    let capture = capture_on(&bench.rx, &folder.path().join("out.pcapng")).ready();
    let busy = doctor(&bench.rx, &["-i", "rx0"]);
    busy.is("xdp_programs", "warning", "tscap_ktime");
    let advice = busy.check("xdp_programs")["advice"].as_str();
    assert!(
        advice.is_some_and(|it| it.contains("stamps at tcx ingress")),
        "{advice:?}"
    );
    capture.stop().success();
}

#[test]
fn neither_capture_nor_generator_is_disturbed() {
    let Some(_lock) = alone("TSC events of others make its own pause") else {
        return;
    };
    let bench = Bench::new("doctor-tsc");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let capture = capture_on(&bench.rx, &path).with(["--clock", "tsc"]);
    let capture = capture.ready();
    for _ in 0..5 {
        tsc_works(&bench.rx);
    }
    // It looks at its events at the end, and says which have paused.
    let finished = capture.stop();
    finished.success();
    assert!(
        !finished.stderr.contains("has paused"),
        "{}",
        finished.stderr
    );

    let _peer = Attached::dropping(&bench.rx);
    let sending = ["--rate", "1k", "--sender", "native"];
    let generator = generate_on(&bench.tx).with(sending).ready();
    generator.wait_event("progress");
    for _ in 0..5 {
        doctor(&bench.rx, &[]).is("stamp_tsc", "good", "tscap gen stamps with it now");
    }
    let finished = generator.stop();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    assert_eq!(finished.events("sent")[0]["tsc_moved_ns"], 0);
    tsc_works(&bench.rx);
}

/// Waits until stamps by the TSC are tried and work: they are not tried while anybody's
/// generator stamps with it, wherever on the machine.
fn tsc_works(port: &Port) {
    wait::until("the end of others' generators", LIMIT, || {
        let report = doctor(port, &[]);
        let found = report.check("stamp_tsc")["found"].as_str();
        let in_use = found.is_some_and(|found| found.contains("tscap gen stamps with it now"));
        (!in_use).then(|| report.is("stamp_tsc", "good", "works"))
    });
}

#[test]
fn what_can_be_better_comes_with_a_command_that_does_it() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("doctor-fix");
    // Without a program, veth polls only for GRO.
    bench.rx.offload("gro", true);
    let sysfs = "/sys/class/net/rx0";
    let set = format!(
        "echo 1 > {sysfs}/threaded; echo 2 > {sysfs}/napi_defer_hard_irqs; \
         echo 20000 > {sysfs}/gro_flush_timeout"
    );
    bench.rx.netns.must("sh", &["-c", &set]);
    let worse = doctor(&bench.rx, &["-i", "rx0"]);
    for (id, found) in [
        ("threaded_napi", "1 poll thread"),
        ("deferred_interrupts", "20000 ns"),
    ] {
        worse.is(id, "warning", found);
        let fix = worse.check(id)["fix"].as_str().expect("a command");
        bench.rx.netns.must("sh", &["-c", fix]);
    }
    assert_eq!(worse.code, Some(0), "no reason not to capture");
    let better = doctor(&bench.rx, &["-i", "rx0"]);
    for id in ["threaded_napi", "deferred_interrupts"] {
        better.is(id, "good", "");
    }
}

#[test]
fn offloads_that_hide_frames_are_found_where_the_program_will_run() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("doctor-offload");
    bench.rx.offload("rx-vlan-offload", true);
    bench.rx.offload("gro", true);
    // Native on veth: the program reads the tags that were taken off, and GRO comes after it.
    doctor(&bench.rx, &["-i", "rx0"]).is("offloads", "good", "none that hides frames is on");

    let few = pair_without_native_mode(&bench);
    few.offload("gro", true);
    let worse = doctor(&few, &["-i", "few0"]);
    // Tags are read at tcx ingress too.
    worse.is("offloads", "warning", "on: rx-gro");
    let fix = worse.check("offloads")["fix"].as_str().expect("a command");
    few.netns.must("sh", &["-c", fix]);
    doctor(&few, &["-i", "few0"]).is("offloads", "good", "none that hides frames is on");
}

#[test]
fn a_killed_captures_journal_is_found_and_restored_by_the_command_given() {
    let Some(_lock) = alone("journals are the machine's") else {
        return;
    };
    if two_cpus().is_none() {
        return;
    }
    let bench = Bench::new("doctor-kill");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let plan = capture_on(&bench.rx, &path).with(["--hook", "generic", "--rx-cpu", "1"]);
    plan.ready().stop_with(Signal::SIGKILL);
    let here = doctor(&bench.rx, &[]);
    here.is("journals", "warning", "the RPS CPUs of rx0's queue 0");
    assert_eq!(here.check("journals")["fix"], "tscap restore");
    let outside = run(Command::new(tscap_path()).args(["doctor", "--json"]), SHORT);
    let outside = Report::of(&outside);
    let command = format!("ip netns exec {} tscap restore", bench.rx.netns.name());
    assert_eq!(outside.check("journals")["fix"], command.as_str());

    let command = command.replace("tscap restore", &format!("{} restore", tscap_path()));
    bench.rx.netns.must("sh", &["-c", &command]);
    doctor(&bench.rx, &[]).is("journals", "good", "none left over");
}

#[test]
fn an_ordinary_user_is_told_what_could_not_be_seen() {
    let programs = ["ip", "ethtool", "setpriv"];
    let Some(_lock) = root_with(&programs) else {
        return;
    };
    let bench = Bench::new("doctor-user");
    let folder = files::public_folder();
    let copy = folder.path().join("tscap");
    files::copy_program(tscap_path(), &copy);
    let copy = copy.to_str().expect("a UTF-8 path");
    let mut command = bench.rx.netns.command("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", copy]);
    command.args(["doctor", "--json", "-i", "rx0"]);
    let report = Report::of(&run(&mut command, SHORT));
    assert_eq!(report.ids(), [&MACHINE[..], &INTERFACE].concat());
    report.is(
        "privilege_capture",
        "bad",
        "CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON",
    );
    let fix = report.check("privilege_capture")["fix"].as_str();
    let fix = fix.expect("a command");
    assert!(
        fix.starts_with("sudo install -D -m 0750") && fix.contains(copy),
        "not for everybody who can run it: {fix}"
    );
    report.is("privilege_kfunc", "warning", "lacks CAP_SYS_ADMIN");
    // Not for a program that a group may run.
    assert_eq!(report.check("privilege_kfunc")["fix"].as_str(), None);
    report.is("privilege_namespaces", "warning", "CAP_BPF");
    report.is("privilege_gen", "warning", "no frames can be sent");
    for id in ["stamp_ktime", "stamp_tai", "stamp_tsc"] {
        report.is(id, "warning", "not tried");
        let again = format!("sudo {copy} doctor -i rx0");
        assert_eq!(report.check(id)["fix"], again.as_str());
    }
    report.is("link", "good", "veth");
    report.is("xdp_mode", "good", "native");
    assert_eq!(report.code, Some(1));
}

#[test]
fn the_sysfs_of_another_namespace_is_not_believed() {
    let programs = ["ip", "ethtool", "nsenter"];
    let Some(_lock) = root_with(&programs) else {
        return;
    };
    let bench = Bench::new("doctor-sysfs");
    let netns = bench.rx.netns.name();
    let mut command = Command::new("nsenter");
    command
        .arg(format!("--net=/run/netns/{netns}"))
        .arg(tscap_path());
    command.args(["doctor", "--json", "-i", "rx0"]);
    let report = Report::of(&run(&mut command, SHORT));
    report.is("link", "good", "veth");
    let fix = format!("ip netns exec {netns} tscap doctor -i rx0");
    for id in ["rx_queues", "rps", "threaded_napi", "deferred_interrupts"] {
        report.is(id, "warning", "another network namespace");
        assert_eq!(report.check(id)["fix"], fix.as_str());
    }
}

#[test]
fn an_interface_that_is_not_there() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("doctor-none");
    let mut command = bench.rx.netns.command(tscap_path());
    let done = run(command.args(["doctor", "-i", "tx0"]), SHORT);
    assert_eq!((done.status.code(), done.stdout.as_str()), (Some(1), ""));
    let reported = "tscap: cannot examine tx0: no such interface here\nhint: ";
    assert!(done.stderr.starts_with(reported), "{}", done.stderr);
}
