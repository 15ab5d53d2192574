//! Offloads that change what a frame looks like.

use tscap_testkit::bench::Bench;
use tscap_testkit::capture::capture_on;
use tscap_testkit::files;
use tscap_testkit::recording::Recording;
use tscap_testkit::root::root;

const RX_VLAN: &str = "rx-vlan-offload";

#[test]
fn receive_vlan_offload_is_left_alone_and_written_down() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("vlan-warn");
    bench.rx.offload(RX_VLAN, true);
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let capture = capture_on(&bench.rx, &path).ready();
    assert!(bench.rx.offloads()[RX_VLAN]);
    let finished = capture.stop();
    finished.success();
    let custom = Recording::read(&path).interfaces[0].custom.clone();
    assert_eq!(custom["offloads"]["rx-vlan-hw-parse"], true, "{custom}");
    // The flag hides nothing where the program reads the tags.
    let is_warned = finished.stderr.contains("warning: ");
    assert_eq!(
        custom["vlan_tags"] != "kept",
        is_warned,
        "{}",
        finished.stderr
    );
}

#[test]
fn offloads_off_disables_and_restores() {
    let Some(_lock) = root() else { return };
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
    let Some(_lock) = root() else { return };
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
    let Some(_lock) = root() else { return };
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
