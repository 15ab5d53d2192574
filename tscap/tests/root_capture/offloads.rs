//! Offloads that change what a frame looks like.

use crate::support::bench::Bench;
use crate::support::capture::capture_on;
use crate::support::files;
use crate::support::recording::Recording;
use crate::support::root::root;

const RX_VLAN: &str = "rx-vlan-offload";

#[test]
fn receive_vlan_offload_is_warned_of_and_left_alone() {
    let Some(_turn) = root("receive_vlan_offload_is_warned_of") else {
        return;
    };
    let bench = Bench::new("vlan-warn");
    bench.rx.offload(RX_VLAN, true);
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let capture = capture_on(&bench.rx, &path).ready();
    assert!(bench.rx.offloads()[RX_VLAN]);
    let finished = capture.stop();
    finished.success();
    let warning = finished
        .stderr
        .lines()
        .find(|line| line.starts_with("warning: "));
    let warning = warning.unwrap_or_else(|| panic!("no warning: {}", finished.stderr));
    assert!(
        warning.contains("rx0") && warning.contains("rx-vlan-"),
        "{warning}"
    );
    assert!(
        finished.stderr.contains("--offloads off"),
        "{}",
        finished.stderr
    );
    let offloads = Recording::read(&path).interfaces[0].custom["offloads"].clone();
    assert!(
        offloads
            .as_object()
            .is_some_and(|all| all.values().any(|on| on == true)),
        "{offloads}"
    );
}

#[test]
fn offloads_off_disables_and_restores() {
    let Some(_turn) = root("offloads_off_disables_and_restores") else {
        return;
    };
    let bench = Bench::new("vlan-off");
    bench.rx.offload(RX_VLAN, true);
    bench.rx.offload("generic-receive-offload", true);
    let before = bench.rx.offloads();
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let capture = capture_on(&bench.rx, &path)
        .with(["--offloads", "off"])
        .ready();
    assert!(!bench.rx.offloads()[RX_VLAN]);
    let finished = capture.stop();
    finished.success();
    assert!(
        !finished.stderr.contains("warning: "),
        "{}",
        finished.stderr
    );
    assert_eq!(bench.rx.offloads(), before, "restored");
}

#[test]
fn no_offload_no_warning() {
    let Some(_turn) = root("no_offload_no_warning") else {
        return;
    };
    let bench = Bench::new("vlan-none");
    bench.rx.offload(RX_VLAN, false);
    bench.rx.offload("rx-vlan-stag-hw-parse", false);
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let finished = capture_on(&bench.rx, &path).ready().stop();
    finished.success();
    assert!(
        !finished.stderr.contains("warning: "),
        "{}",
        finished.stderr
    );
    assert!(!bench.rx.offloads()[RX_VLAN], "not turned on either");
}

#[test]
fn offloads_that_attaching_changes_are_told() {
    let Some(_turn) = root("offloads_that_attaching_changes_are_told") else {
        return;
    };
    let bench = Bench::new("changes");
    // veth turns off GRO on its side, or TSO on the other, while it has a
    // native program; what it does on this kernel is found out here.
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let before = bench.rx.offloads();
    let capture = capture_on(&bench.rx, &path).human().with(["-v"]).ready();
    let during = bench.rx.offloads();
    let finished = capture.stop();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    for (name, on) in &during {
        if before[name] != *on {
            assert!(
                finished.stderr.contains(name),
                "{name} changed:\n{}",
                finished.stderr
            );
        }
    }
    assert_eq!(bench.rx.offloads(), before);
}
