//! Frames for others are received by default, as tcpdump does.

use tscap_testkit::bench::Bench;
use tscap_testkit::capture::capture_on;
use tscap_testkit::files;
use tscap_testkit::frame::Frame;
use tscap_testkit::packet_socket::PacketSocket;
use tscap_testkit::root::root;

#[test]
fn the_interface_is_promiscuous_while_capturing() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("promisc");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let frame = Frame::new(&bench.tx, &bench.rx, 60).for_a_stranger();
    assert_eq!(bench.rx.promiscuity(), 0);
    let capture = capture_on(&bench.rx, &path).ready();
    assert_eq!(bench.rx.promiscuity(), 1);
    PacketSocket::open(&bench.tx).send(&frame, 0..10, 0);
    assert_eq!(capture.stop().success().written, 10);
    assert_eq!(bench.rx.promiscuity(), 0, "given back");
}

#[test]
fn p_leaves_the_interface_as_it_is() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("no-promisc");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let capture = capture_on(&bench.rx, &path).with(["-p"]).ready();
    assert_eq!(bench.rx.promiscuity(), 0);
    capture.stop().success();
}
