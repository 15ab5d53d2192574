//! Where native frames can't be sent, a packet socket sends them, and says why.

use serde_json::Value;
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::generate_on;
use tscap_testkit::finished::Finished;
use tscap_testkit::old_kernel;
use tscap_testkit::probes::Attached;
use tscap_testkit::root::root;

const FEW: [&str; 4] = ["--rate", "1k", "-c", "10"];

#[track_caller]
fn fell_back(finished: &Finished, why: &str) {
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    assert_eq!(finished.events("ready")[0]["sender"], "packet");
    let note = finished.stderr.lines().find(|line| {
        line.starts_with("note: sending through a packet socket") && line.contains(why)
    });
    assert!(note.is_some(), "{why}:\n{}", finished.stderr);
    assert_eq!(finished.end.as_ref().expect("a summary")["sent"], 10);
}

#[test]
fn a_kernel_without_live_frames() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("nolive");
    let _peer = Attached::dropping(&bench.rx);
    let before = bench.rx.received();
    let finished = generate_on(&bench.tx)
        .with(FEW)
        .run_on(old_kernel::test_run);
    fell_back(&finished, "the kernel takes no live frames of 64 bytes");
    assert_eq!(bench.rx.received() - before, 10);
    let refused = generate_on(&bench.tx)
        .with(FEW)
        .with(["--sender", "native"])
        .run_on(old_kernel::test_run);
    refused.failure(1, &["no live frames", "--sender packet"]);
}

#[test]
fn a_kernel_without_the_tsc_in_xdp() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("notsc");
    let _peer = Attached::dropping(&bench.rx);
    let finished = generate_on(&bench.tx).with(FEW).run_on(old_kernel::perf);
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    let ready = &finished.events("ready")[0];
    assert_eq!(ready["sender"], "native");
    if ready["tsc_path"].is_string() {
        // By a kfunc, which needs no event.
        return;
    }
    let said = "note: the frames carry no TSC stamp: ";
    assert!(finished.stderr.contains(said), "{}", finished.stderr);
    for field in ["tsc_path", "ordered", "tsc_bound_ns"] {
        assert_eq!(ready.get(field), Some(&Value::Null), "{ready}");
    }
}

#[test]
fn frames_too_long_for_live_mode() {
    let Some(_lock) = root() else { return };
    let bench = Bench::with_mtu("jumbo", 9000);
    let _peer = Attached::dropping(&bench.rx);
    let finished = generate_on(&bench.tx)
        .with(FEW)
        .with(["--size", "9000"])
        .run();
    fell_back(&finished, "the kernel takes no live frames of 9000 bytes");
    let finished = generate_on(&bench.tx)
        .with(FEW)
        .with(["--size", "3300"])
        .run();
    assert_eq!(finished.events("ready")[0]["sender"], "native");
}

#[test]
fn no_privilege_to_load_programs() {
    let Some(_lock) = tscap_testkit::root::root_with(&["ip", "ethtool", "setpriv"]) else {
        return;
    };
    let bench = Bench::new("nobpf");
    let _peer = Attached::dropping(&bench.rx);
    let finished = generate_on(&bench.tx)
        .with(FEW)
        .through(["setpriv", "--bounding-set=-sys_admin,-bpf"])
        .run();
    fell_back(&finished, "cannot send native frames on tx0");
    let refused = generate_on(&bench.tx)
        .with(FEW)
        .through(["setpriv", "--bounding-set=-sys_admin,-bpf,-net_raw"])
        .run();
    refused.failure(1, &["packet socket on tx0", "hint: run as root"]);
}

#[test]
fn the_other_end_takes_no_native_frames() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("noredirect");
    let why = "its other end has neither an XDP program nor GRO";
    let finished = generate_on(&bench.tx).with(FEW).run();
    fell_back(&finished, why);
    let refused = generate_on(&bench.tx)
        .with(FEW)
        .with(["--sender", "native"])
        .run();
    refused.failure(1, &[why, "ethtool -K NAME gro on"]);
    bench.rx.offload("gro", true);
    let before = bench.rx.received();
    let finished = generate_on(&bench.tx).with(FEW).run();
    assert_eq!(finished.events("ready")[0]["sender"], "native");
    assert_eq!(finished.end.expect("a summary")["sent"], 10);
    assert!(bench.rx.received() - before >= 10);
}
