//! What each thread keeps.

use nix::sys::signal::Signal;
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::{Capture, capture_both, capture_on};
use tscap_testkit::files;
use tscap_testkit::frame::Frame;
use tscap_testkit::packet_socket::PacketSocket;
use tscap_testkit::port::Port;
use tscap_testkit::root::{root, root_with};

use super::status::{self, BPF, FOR_FILES, NET_ADMIN, NET_RAW, NOBODY, NOBODY_UID, PERFMON};
use super::status::{SYS_ADMIN, SYS_NICE};

const CONVERTER: &str = "tscap-converter";

/// One interface by its name needs nothing more, whatever stamps.
#[test]
fn another_user_is_left_with_nothing() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("drop");
    for clock in ["ktime", "auto"] {
        let folder = files::folder();
        let path = folder.path().join("out.pcapng");
        let plan = capture_on(&bench.rx, &path).with(["-Z", NOBODY, "--clock", clock]);
        let capture = plan.ready();
        status::wait_for_threads(capture.pid(), &[CONVERTER], |name, it| {
            let is_nobody = it.uid == NOBODY_UID && it.groups == [NOBODY_UID];
            is_nobody && it.capabilities == 0 && it.has_seccomp == (name == CONVERTER)
        });
        assert_eq!(capture.keeper(), None);
        let frame = Frame::new(&bench.tx, &bench.rx, 100);
        PacketSocket::open(&bench.tx).send(&frame, 0..50, 0);
        assert_eq!(capture.stop().success().written, 50);
        assert_eq!(files::owner(&path), (NOBODY_UID, 0));
        assert_eq!(files::mode(&path), 0o600);
        assert_eq!(bench.rx.xdp_program(), None);
    }
}

/// A signal to the process is none of the converter's, whose handler could not tell of it.
#[test]
fn the_converter_takes_no_signals() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("drop-sig");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let capture = capture_on(&bench.rx, &path).ready();
    let ends = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];
    let ends = ends.map(|signal| 1 << (signal as u64 - 1));
    let ends = ends.into_iter().fold(0, |all, signal: u64| all | signal);
    status::wait_for(capture.pid(), |name, it| {
        it.blocked & ends == if name == CONVERTER { ends } else { 0 }
    });
    capture.stop().success();
}

/// Root stays root without capabilities, but for those of next files.
#[test]
fn root_that_stays_is_left_with_files() {
    let Some(_lock) = root_with(&["ip", "ethtool"]) else {
        return;
    };
    let bench = Bench::new("drop-root");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let capture = capture_on(&bench.rx, &path).with(["-Z", "root"]).ready();
    status::wait_for(capture.pid(), |_, it| it.uid == 0 && it.capabilities == 0);
    capture.stop().success();

    // In a folder of somebody else's, where only root may make files by CAP_DAC_OVERRIDE.
    files::give(folder.path(), NOBODY_UID);
    let plan = capture_on(&bench.rx, &path).with(["-Z", "root", "-b", "packets:10"]);
    let capture = plan.with(["-b", "files:2", "-z", "true"]).ready();
    status::wait_for(capture.pid(), |name, it| {
        let has_files = ["tscap", CONVERTER, "tscap-closer"].contains(&name);
        it.uid == 0 && it.capabilities == if has_files { FOR_FILES } else { 0 }
    });
    let frame = Frame::new(&bench.tx, &bench.rx, 100);
    PacketSocket::open(&bench.tx).send(&frame, 0..45, 0);
    let reported = capture.stop().success().files.expect("several files");
    assert_eq!((reported.written, reported.removed), (5, 3));
}

/// Where interfaces join, the main thread keeps what that takes; a process of root's keeps
/// the journal.
#[test]
fn interfaces_join_and_are_given_back() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("drop-any");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let plan = capture_both(&bench.rx.netns).with(["-i", "any", "-Z", NOBODY]);
    let capture = plan.with(["--offloads", "off"]).to(&path).ready();
    let kept = BPF | PERFMON | NET_ADMIN | NET_RAW;
    status::wait_for(capture.pid(), |name, it| {
        let kept = if name == "tscap" { kept } else { 0 };
        it.uid == NOBODY_UID && it.capabilities == kept
    });
    let keeper = status::of(capture.keeper().expect("a keeper"));
    assert_eq!((keeper.uid, keeper.capabilities), (0, NET_ADMIN | SYS_NICE));

    joins_and_is_given_back(&bench, capture);
}

/// Namespaces are entered when interfaces join there.
#[test]
fn other_namespaces_take_sys_admin() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("drop-ns");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let there = bench.rx.netns.name();
    let plan = capture_both(&bench.tx.netns).with(["--netns", there, "-Z", NOBODY]);
    let capture = plan.with(["--offloads", "off"]).to(&path).ready();
    let kept = BPF | PERFMON | NET_ADMIN | NET_RAW | SYS_ADMIN;
    status::wait_for(capture.pid(), |name, it| {
        it.capabilities == if name == "tscap" { kept } else { 0 }
    });
    let keeper = status::of(capture.keeper().expect("a keeper"));
    assert_eq!(keeper.capabilities, NET_ADMIN | SYS_NICE | SYS_ADMIN);
    joins_and_is_given_back(&bench, capture);
}

/// An interface comes up beside the port: its offloads are off until the end of the capture.
fn joins_and_is_given_back(bench: &Bench, capture: Capture) {
    let netns = &bench.rx.netns;
    netns.ip(&["link", "add", "late", "type", "veth", "peer", "name", "far"]);
    let late = Port::find(netns, "late");
    let is_on = || late.offloads()["rx-vlan-offload"];
    assert!(is_on());
    late.set(&["up"]);
    capture.wait_event_with("joined", |it| it["name"] == "late");
    assert!(!is_on());
    capture.stop().success();
    assert!(is_on());
}
