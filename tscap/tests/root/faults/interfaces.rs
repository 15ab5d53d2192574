//! Interfaces that can't be captured on.

use std::sync::Arc;

use tscap_testkit::bench::Bench;
use tscap_testkit::capture::capture;
use tscap_testkit::files;
use tscap_testkit::netns::Netns;
use tscap_testkit::root::root;
use tscap_testkit::tun::Tun;

/// Captures on `names`, which must be refused, and leave no file.
#[track_caller]
fn refused(netns: &Netns, names: &[&str], parts: &[&str]) {
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let plan = names
        .iter()
        .fold(capture(netns), |plan, name| plan.with(["-i", name]));
    plan.to(&path).run().failure(1, parts);
    assert!(!path.exists(), "a file was left");
}

#[test]
fn no_such_interface() {
    let Some(_lock) = root() else { return };
    let netns = Netns::new("none");
    refused(&netns, &["nowhere0"], &["nowhere0", "no such", "-D"]);
    // Longer than any interface's name can be, and not a name at all.
    refused(
        &netns,
        &["a-name-longer-than-fifteen"],
        &["a-name-longer-than-fifteen"],
    );
    refused(&netns, &[""], &["interface"]);
}

#[test]
fn one_of_two_does_not_exist() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("one-of-two");
    refused(
        &bench.rx.netns,
        &["rx0", "nowhere0"],
        &["nowhere0", "no such"],
    );
    assert_eq!((bench.rx.xdp_program(), bench.rx.promiscuity()), (None, 0));
}

#[test]
fn interface_is_down() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("down");
    bench.rx.set(&["down"]);
    refused(&bench.rx.netns, &["rx0"], &["rx0", "down", "ip link set"]);
    assert_eq!(bench.rx.xdp_program(), None);
}

#[test]
fn interface_of_neither_ethernet_nor_ip() {
    let Some(_lock) = root() else { return };
    let netns = Arc::new(Netns::new("can"));
    let tun = Tun::new(&netns, "tun0");
    tun.set_link_type(libc::ARPHRD_CAN);
    refused(
        &netns,
        &["tun0"],
        &["tun0", "ethernet frames or ip packets"],
    );
}

#[test]
fn interface_by_two_of_its_names() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("altname");
    bench.rx.netns.ip(&[
        "link", "property", "add", "dev", "rx0", "altname", "receiver",
    ]);
    refused(&bench.rx.netns, &["rx0", "receiver"], &["twice"]);
}
