//! Stamps by the kfuncs of our kernel module, and each way to have none.

use std::thread;
use std::time::Duration;

use serde_json::Value;
use tscap_testkit::files;
use tscap_testkit::peers;
use tscap_testkit::recording::Recording;
use tscap_testkit::wait::until;

use crate::agent::{
    MODULE, MODULE_OF_OTHERS, MODULE_WITHOUT_TYPES, PROGRAM, SETPRIV, TRAFFIC, TSCAP,
};
use crate::guest::Guest;
use crate::machine::{Machine, Processor, Rig};
use crate::nic::{Kind, Nic};

use super::stamps::within_brackets;
use super::{comparison, doctor, merge, pinning};

/// Frames of a capture, of each interface.
const FRAMES: u64 = 300;
/// QEMU promises no constant rate of the TSC, so all of it needs to be forced.
const BY_TSC: [&str; 3] = ["--clock", "tsc", "--force"];
const PLAIN: &str = "tscap_rdtsc of the module tscap";
const ORDERED: &str = "tscap_rdtsc_ordered of the module tscap";

fn boot(rig: &Rig, nics: usize) -> Machine {
    rig.boot_on(
        Processor::ConstantTsc,
        &[Kind::Virtio, Kind::Virtio][..nics],
    )
}

fn with_module(rig: &Rig, nics: usize) -> Machine {
    let machine = boot(rig, nics);
    machine.guest.must(&["insmod", MODULE]);
    machine
}

/// Every stamp lies between readings of CLOCK_TAI around it.
fn between_readings(rig: &Rig, path: &str, function: &str) {
    let machine = with_module(rig, 1);
    let clock = format!("tsc:{path}");
    let arguments = ["--clock", &clock, "--force"];
    let summary = within_brackets(&machine, "probe_bracket_kfunc", &arguments);
    let clock = &summary.clock;
    assert_eq!((clock.source.as_str(), clock.steps), ("tsc", 0));
    assert_eq!(
        (clock.path.as_str(), clock.ordered),
        (function, path == "module-ordered")
    );
}

pub fn between_readings_of_the_clock(rig: &Rig) {
    between_readings(rig, "module", PLAIN);
}

pub fn ordered_between_readings_of_the_clock(rig: &Rig) {
    between_readings(rig, "module-ordered", ORDERED);
}

/// Captures `FRAMES` of each interface; returns the summary's path.
fn capture_by(machine: &Machine, arguments: &[&str]) -> String {
    let (guest, nics) = (&machine.guest, &machine.nics);
    let interfaces: Vec<_> = nics.iter().flat_map(|nic| ["-i", &nic.name]).collect();
    let frames = FRAMES * nics.len() as u64;
    let count = frames.to_string();
    let line = [&interfaces[..], arguments, &["-c", &count]].concat();
    let capture = guest.capture(&line).ready();
    thread::scope(|scope| {
        for nic in nics {
            scope.spawn(move || nic.send(&nic.frame(64), 0..FRAMES));
        }
    });
    let summary = capture.wait().success();
    assert_eq!((summary.seen, summary.written), (frames, frames));
    let folder = files::folder();
    let file = guest.bring(folder.path());
    peers::agree_on(&file, frames);
    let clock = &summary.clock;
    for interface in Recording::read(&file).interfaces {
        let stamp = &interface.custom["stamp"];
        assert_eq!(stamp["path"], *clock.path);
        assert_eq!(stamp["ordered"], clock.ordered);
        assert_eq!(stamp["forced"].is_string(), clock.source == "tsc");
    }
    summary.clock.path
}

/// By both CPUs, into one file in one order of time.
pub fn on_two_cpus(rig: &Rig) {
    let machine = with_module(rig, 2);
    let (guest, nics) = (&machine.guest, &machine.nics);
    let arguments = ["-i", "eth0", "-i", "eth1", "--rx-cpu", "0-1"];
    let capture = guest.capture(&[&arguments[..], &BY_TSC].concat()).ready();
    let counted = nics.iter().enumerate();
    let elsewhere = counted.map(|(cpu, nic)| pinning::come_in_on(cpu, guest, nic));
    let before = elsewhere.sum::<u64>() + 2 * pinning::FRAMES;
    merge::send_at_once(nics);
    let frames = before + 2 * merge::FRAMES;
    let by_cpu = guest.wait_recorded(frames);
    let least = pinning::FRAMES + merge::FRAMES;
    assert!(by_cpu[..2].iter().all(|it| *it >= least), "{by_cpu:?}");
    let finished = capture.stop();
    let summary = finished.success();
    assert_eq!((summary.seen, summary.written), (frames, frames));
    assert_eq!(summary.clock.path, PLAIN);
    let folder = files::folder();
    let file = guest.bring(folder.path());
    peers::agree_on(&file, frames);
    let recording = Recording::read(&file);
    merge::is_in_order(&recording, &summary.clock);
    merge::is_merged(&recording);
}

/// Where the TSC is taken for a clock.
pub fn taken_by_auto(rig: &Rig) {
    let machine = with_module(rig, 1);
    assert_eq!(capture_by(&machine, &["--force"]), PLAIN);
    assert_eq!(capture_by(&machine, &[]), "bpf_ktime_get_ns");
    remove_module(&machine.guest);
    assert_eq!(capture_by(&machine, &["--force"]), "bpf_ktime_get_ns");
}

/// Takes the module out, which the kernel lets go some time after the last program
/// that calls it (`bpf_prog_free_deferred`).
fn remove_module(guest: &Guest) {
    until("the module to be let go", Duration::from_secs(30), || {
        let removed = guest.run(&["rmmod", "tscap"]);
        removed.status.success().then_some(())
    });
}

/// The module stays as long as a program calls it.
pub fn holds_its_module(rig: &Rig) {
    let machine = with_module(rig, 1);
    let (guest, nic) = (&machine.guest, &machine.nics[0]);
    let arguments = [&["-i", &nic.name][..], &BY_TSC].concat();
    let capture = guest.capture(&arguments).ready();
    let refused = guest.run(&["rmmod", "tscap"]);
    assert_ne!(refused.status.code(), Some(0));
    assert!(
        guest.must(&["lsmod"]).contains("tscap"),
        "{}",
        refused.stderr
    );
    nic.send(&nic.frame(64), 0..FRAMES);
    guest.wait_recorded(FRAMES);
    assert_eq!(capture.stop().success().written, FRAMES);
    remove_module(guest);
}

/// What `--clock tsc` says when it can't.
fn refused(guest: &Guest, nic: &Nic, through: &[&str], parts: &[&str]) {
    let line = ["capture", "-i", &nic.name, "-w", "/tmp/none.pcapng"];
    let line = [through, &[TSCAP], &line, &BY_TSC].concat();
    let finished = guest.start(&line).wait();
    finished.failure(1, parts);
    guest.must(&["sh", "-c", "! test -e /tmp/none.pcapng"]);
}

/// Each missing thing by name, with what brings it.
pub fn names_what_is_missing(rig: &Rig) {
    let machine = boot(rig, 1);
    let (guest, nic) = (&machine.guest, &machine.nics[0]);
    let finds = |what: &str| {
        let found = doctor::finds(guest, nic, "stamp_kfunc");
        assert!(
            found.as_str().is_some_and(|it| it.contains(what)),
            "{found}"
        );
    };
    let perf = ["by bpf_perf_event_read of msr/tsc/: ", "6.16"];
    let all = |parts: &[&'static str]| [&perf[..], parts].concat();
    let has_perf = rig.kernel.reads_perf_events_in_xdp();
    assert!(!has_perf, "there, perf events stand in");
    let no_kernel = "no function bpf_get_cpu_time_counter";
    refused(
        guest,
        nic,
        &[],
        &all(&[
            no_kernel,
            "module tscap is not loaded",
            "insmod",
            "--clock ktime",
        ]),
    );
    finds("is not loaded");

    // Built for another kernel: refused by this one.
    let other = guest.run(&["insmod", MODULE_OF_OTHERS]);
    assert_ne!(other.status.code(), Some(0));
    let log = guest.must(&["dmesg"]);
    assert!(log.contains("tscap: version magic"), "{log}");

    // Built without pahole.
    guest.must(&["insmod", MODULE_WITHOUT_TYPES]);
    let parts = [
        "is loaded, but has no types",
        "/sys/kernel/btf/tscap",
        "pahole",
    ];
    refused(guest, nic, &[], &all(&parts));
    finds("has no types");
    guest.must(&["rmmod", "tscap"]);

    guest.must(&["insmod", MODULE]);
    let lacking = [SETPRIV, "--bounding-set=-sys_admin"];
    let parts = all(&["lacks CAP_SYS_ADMIN", "cap_sys_admin"]);
    refused(guest, nic, &lacking, &parts);
    // With the module, a capture without that privilege still goes by ktime.
    let line = [&lacking[..], &[TSCAP, "capture", "--json", "-i", &nic.name]].concat();
    let line = [&line[..], &["-w", "/tmp/out.pcapng", "--force", "-c", "10"]].concat();
    let capture = guest.start(&line).ready();
    nic.send(&nic.frame(60), 0..10);
    assert_eq!(capture.wait().success().clock.source, "ktime");
}

/// `compare` measures each kfunc as a stamp of its own; how long anything takes here
/// means nothing. On frames that come in: sending them all is too slow here.
pub fn compared(rig: &Rig) {
    let machine = with_module(rig, 1);
    let comparison = comparison::of_one_round(&machine.guest, &machine.nics[0], &["--force"]);
    let of = |list: &str| comparison[list].as_array().expect("a list").clone();
    for (path, ordered) in [(PLAIN, false), (ORDERED, true)] {
        let by_path = |it: &&Value| it["path"] == path;
        let subjects = of("subjects");
        let subject = subjects.iter().find(by_path);
        let subject = subject.unwrap_or_else(|| panic!("{}", comparison["warnings"]));
        assert_eq!(subject["source"], "tsc");
        assert_eq!(subject["ordered"], ordered);
        for cost in ["read_ns", "program_ns"] {
            let rounds = subject[cost].as_array().map_or(0, Vec::len);
            assert!(rounds > 0, "{subject}");
        }
        let rounds = subject["frame"]["rounds"].as_array().map_or(0, Vec::len);
        assert!(rounds > 0, "{subject}");
        assert_eq!(
            of("verdicts").iter().filter(by_path).count(),
            3,
            "{comparison}"
        );
    }
}

/// Natively by `gen`, whose programs are loaded also where XDP programs may read no
/// perf event, and call the kfunc where there is one.
pub fn sent(rig: &Rig) {
    let machine = boot(rig, 1);
    let guest = &machine.guest;
    // The kernel names the other end.
    let pair = "ip link add va type veth && ip link set va up && ip link set veth0 up";
    guest.must(&["sh", "-c", pair]);
    gen_without_tsc(guest, &machine.nics[0]);
    for (modules, path) in [(None, "bpf_ktime_get_ns"), (Some(MODULE), PLAIN)] {
        if let Some(module) = modules {
            guest.must(&["insmod", module]);
        }
        let capture = guest
            .capture(&["-i", "veth0", "--force", "-c", "50"])
            .ready();
        let line = [
            TSCAP, "gen", "-i", "va", "--sender", "native", "--rate", "1k",
        ];
        guest.must(&[&line[..], &["--count", "50"]].concat());
        let summary = capture.wait().success();
        assert_eq!((summary.written, summary.clock.path.as_str()), (50, path));
        let read = guest.must(&[TSCAP, "qos", "-v", "--flow", "gen", "/tmp/out.pcapng"]);
        assert!(read.contains("50 packets = 50 in 1 flow"), "{read}");
        assert!(read.contains("lost 0 of 50 ("), "{read}");
    }
}

/// Where `gen` does without the TSC, `doctor` still tries it.
fn gen_without_tsc(guest: &Guest, nic: &Nic) {
    let receiver = guest.capture(&["-i", "veth0"]).ready();
    let line = [
        TSCAP, "gen", "-i", "va", "--sender", "native", "--rate", "100",
    ];
    let sender = guest.start(&line).ready();
    let found = doctor::finds(guest, nic, "stamp_tsc");
    let sent = sender.stop();
    assert!(
        sent.stderr.contains("carry no TSC stamp"),
        "{}",
        sent.stderr
    );
    assert!(
        found.as_str().is_some_and(|it| it.contains("refused")),
        "{found}"
    );
    receiver.stop().success();
}

/// The TSC in frames that we send, for which `gen` and `compare` load their sender with
/// the kfunc: `gen` alone takes no TSC such as the one here.
pub fn in_frames_sent(rig: &Rig) {
    let machine = boot(rig, 0);
    let guest = &machine.guest;
    let line = [PROGRAM, TRAFFIC];
    let lacking = guest.run(&line);
    assert!(
        lacking.stderr.contains("no TSC in the frames: "),
        "{}",
        lacking.stderr
    );
    guest.must(&["insmod", MODULE]);
    guest.must(&line);
}
