//! Where it cannot stamp it says why, and what to do.

use tscap_testkit::bench::Bench;
use tscap_testkit::capture::{capture_on, stamp};
use tscap_testkit::files;
use tscap_testkit::root::root;

#[test]
fn a_capture_that_is_there_already_is_named() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("stamp-second");
    let folder = files::folder();
    let capture = capture_on(&bench.rx, &folder.path().join("out.pcapng")).ready();
    let id = bench.rx.xdp_program().expect("its program").to_string();
    let refused = stamp(&bench.rx.netns).on(&bench.rx).run();
    let pid = capture.pid().to_string();
    refused.failure(1, &["XDP program", &id, "start tscap stamp first", &pid]);
    assert_eq!(capture.stop().success().outcomes.total(), 0);
}

#[test]
fn an_interface_without_native_xdp_is_refused() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("stamp-native");
    let netns = &bench.rx.netns;
    netns.ip(&["link", "add", "bridge0", "type", "bridge"]);
    netns.ip(&["link", "set", "bridge0", "up"]);
    let refused = stamp(netns).with(["-i", "bridge0"]).run();
    refused.failure(1, &["bridge0 at native XDP", "hint: only native XDP"]);
    let refused = stamp(netns).with(["-i", "nowhere0"]).run();
    refused.failure(1, &["no such interface"]);
}
