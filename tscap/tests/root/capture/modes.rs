//! Native and generic XDP, and tcx.

use aya::programs::XdpMode;
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::{capture, capture_on};
use tscap_testkit::files;
use tscap_testkit::frame::Frame;
use tscap_testkit::packet_socket::PacketSocket;
use tscap_testkit::port::Port;
use tscap_testkit::probes::Attached;
use tscap_testkit::recording::Recording;
use tscap_testkit::root::root;

#[test]
fn auto_takes_native_where_the_driver_has_it() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("auto");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let capture = capture_on(&bench.rx, &path).ready();
    // `ip` calls native mode 1 (XDP_ATTACHED_DRV of linux/if_link.h).
    assert_eq!(bench.rx.show()["xdp"]["mode"], 1);
    let finished = capture.stop();
    assert_eq!(
        finished.success().interfaces[0].directions[0]
            .hook
            .as_deref(),
        Some("native XDP")
    );
    assert!(!finished.stderr.contains("generic"), "{}", finished.stderr);
}

#[test]
fn generic_mode_captures_warns_and_is_written_down() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("generic");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let frame = Frame::new(&bench.tx, &bench.rx, 200);

    let capture = capture_on(&bench.rx, &path)
        .with(["--hook", "generic"])
        .ready();
    assert_eq!(bench.rx.show()["xdp"]["mode"], 2);
    PacketSocket::open(&bench.tx).send(&frame, 0..100, 0);
    let finished = capture.stop();

    assert_eq!(
        finished.success().interfaces[0].directions[0]
            .hook
            .as_deref(),
        Some("generic XDP")
    );
    let warning = finished
        .stderr
        .lines()
        .find(|line| line.starts_with("warning: "));
    assert!(
        warning.is_some_and(|line| line.contains("generic")),
        "{}",
        finished.stderr
    );
    let recording = Recording::read(&path);
    assert_eq!(recording.interfaces[0].custom["hooks"]["in"], "generic XDP");
    assert_eq!(recording.packets.len(), 100);
    for (number, packet) in recording.packets.iter().enumerate() {
        frame.check(&packet.data, number as u64);
        assert_eq!(packet.data.len(), 200);
    }
    assert_eq!(bench.rx.xdp_program(), None);
}

/// A bridge over `rx0`: its own device has no native XDP.
pub fn bridge(bench: &Bench) -> Port {
    bench
        .rx
        .netns
        .ip(&["link", "add", "bridge0", "type", "bridge"]);
    bench.rx.set(&["master", "bridge0"]);
    let bridge = Port::find(&bench.rx.netns, "bridge0");
    bridge.set(&["up"]);
    bridge.wait_up();
    // It has taken the address of its port only now.
    Port::find(&bench.rx.netns, "bridge0")
}

#[test]
fn auto_falls_back_to_tcx_with_a_warning() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("fallback");
    let bridge = bridge(&bench);
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let frame = Frame::new(&bench.tx, &bridge, 100);

    let capture = capture_on(&bridge, &path).ready();
    PacketSocket::open(&bench.tx).send(&frame, 0..100, 0);
    let finished = capture.stop();
    let summary = finished.success();
    assert_eq!(
        (
            summary.interfaces[0].directions[0].hook.as_deref().unwrap(),
            summary.written
        ),
        ("tcx ingress", 100)
    );
    let warning = finished
        .stderr
        .lines()
        .find(|line| line.starts_with("warning: "));
    let warning = warning.unwrap_or_else(|| panic!("no warning: {}", finished.stderr));
    assert!(
        warning.contains("bridge0") && warning.contains("tcx ingress"),
        "{warning}"
    );
    assert_eq!(bridge.xdp_program(), None);
}

#[test]
fn native_refused_by_the_driver_is_an_error() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("refused");
    let bridge = bridge(&bench);
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let finished = capture_on(&bridge, &path).with(["--hook", "xdp"]).run();
    finished.failure(1, &["bridge0", "native", "--hook"]);
    assert!(!path.exists(), "a file was left");
    assert_eq!(bridge.xdp_program(), None);
}

#[test]
fn a_frame_passes_on_up_the_stack() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("pass");
    bench.add_addresses();
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    // The other end has a program too, and stays untouched.
    let other = Attached::pass(&bench.tx, XdpMode::Driver);
    let capture = capture(&bench.rx.netns).on(&bench.rx).to(&path).ready();
    bench
        .tx
        .netns
        .must("ping", &["-c", "3", "-i", "0.01", "-W", "5", "10.9.0.2"]);
    let finished = capture.stop();
    // Three requests and the ARP exchange around them.
    assert!(finished.success().written >= 4, "{:?}", finished.summary());
    assert_eq!(bench.tx.xdp_program(), Some(u64::from(other.id)));
    let echo = |packet: &&tscap_testkit::recording::Packet| packet.data[12..14] == [8, 0];
    assert_eq!(
        Recording::read(&path).packets.iter().filter(echo).count(),
        3
    );
}
