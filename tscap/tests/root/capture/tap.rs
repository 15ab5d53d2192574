//! A port that only listens: frames end in the program.

use std::io;
use std::net::UdpSocket;

use aya::programs::XdpMode;
use nix::sys::signal::Signal;
use tscap_file::accounting::Outcome;
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::{LIMIT, capture, capture_on};
use tscap_testkit::files;
use tscap_testkit::frame::Frame;
use tscap_testkit::packet_socket::PacketSocket;
use tscap_testkit::probes::Attached;
use tscap_testkit::process::{cpus, on_cpu};
use tscap_testkit::recording::Recording;
use tscap_testkit::root::root;
use tscap_testkit::wait;

/// Datagrams from one end of a pair to a socket of the other.
struct Datagrams {
    from: UdpSocket,
    to: UdpSocket,
}

impl Datagrams {
    /// No ARP is needed, so that each datagram is one frame.
    fn over(bench: &Bench) -> Self {
        bench.add_addresses();
        let mac = bench.rx.show()["address"].as_str().unwrap().to_owned();
        let neighbour = ["neigh", "replace", "10.9.0.2", "lladdr", &mac, "dev", "tx0"];
        bench.tx.netns.ip(&neighbour);
        let to = bench
            .rx
            .netns
            .enter(|| UdpSocket::bind("10.9.0.2:7"))
            .unwrap();
        let from = bench
            .tx
            .netns
            .enter(|| UdpSocket::bind("10.9.0.1:0"))
            .unwrap();
        from.connect("10.9.0.2:7").unwrap();
        to.set_read_timeout(Some(LIMIT)).unwrap();
        Self { from, to }
    }

    fn send(&self, text: &str, count: usize) {
        for _ in 0..count {
            self.from.send(text.as_bytes()).unwrap();
        }
    }

    /// The next one that the stack has or gets.
    fn received(&self) -> String {
        let mut text = [0; 64];
        let length = self.to.recv(&mut text).expect("a datagram arrives");
        String::from_utf8(text[..length].to_vec()).unwrap()
    }

    fn has_none(&self) {
        self.to.set_nonblocking(true).unwrap();
        let error = self.to.recv(&mut [0; 64]).expect_err("nothing has arrived");
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        self.to.set_nonblocking(false).unwrap();
    }
}

#[test]
fn the_stack_sees_nothing_until_the_end_whatever_it_is() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("tap");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let datagrams = Datagrams::over(&bench);
    datagrams.send("before", 1);
    assert_eq!(datagrams.received(), "before");
    for hook in ["xdp", "generic"] {
        let words = ["--tap=force", "--hook", hook];
        let capture = capture_on(&bench.rx, &path).with(words).ready();
        datagrams.send("during", 20);
        let finished = capture.stop();
        let summary = finished.success();
        assert!(summary.tap);
        assert_eq!((summary.seen, summary.written), (20, 20), "{hook}");
        assert_eq!(finished.events("ready")[0]["tap"], true);
        datagrams.has_none();
        datagrams.send("after", 1);
        assert_eq!(datagrams.received(), "after");
        let recording = Recording::read(&path);
        assert_eq!(recording.interfaces[0].custom["tap"], true);
        assert_eq!(recording.packets.len(), 20);
    }

    let words = ["--tap=force", "--hook", "xdp"];
    let capture = capture_on(&bench.rx, &path).with(words).ready();
    datagrams.send("during", 5);
    capture.stop_with(Signal::SIGKILL);
    wait::until("the program is gone", LIMIT, || {
        bench.rx.xdp_program().is_none().then_some(())
    });
    datagrams.has_none();
    datagrams.send("killed", 1);
    assert_eq!(datagrams.received(), "killed");
    assert_eq!(bench.rx.promiscuity(), 0);
}

#[test]
fn frames_that_are_not_recorded_end_too() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("tap-out");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let datagrams = Datagrams::over(&bench);
    // A ring of 128 KiB that nobody empties: the converter is frozen.
    let words = [
        "--tap=force",
        "-s",
        "44",
        "--ring-size",
        "128K",
        "udp[8] = 0x78",
    ];
    let capture = capture_on(&bench.rx, &path).with(words).ready();
    capture.freeze();
    on_cpu(cpus()[0], || datagrams.send("x wanted", 2000));
    datagrams.send("filtered", 300);
    capture.thaw();
    let finished = capture.stop();
    let summary = finished.accounted();
    assert_eq!(summary.seen, 2300);
    assert_eq!(summary.outcomes[Outcome::Filtered], 300);
    assert!(summary.outcomes[Outcome::RingFull] > 0, "{summary:?}");
    datagrams.has_none();
    let recording = Recording::read(&path);
    assert!(recording.packets.iter().all(|it| it.data.len() == 44));
    datagrams.send("after", 1);
    assert_eq!(datagrams.received(), "after");
}

#[test]
fn it_is_said_to_people() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("tap-said");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    // The address that the kernel makes by itself is no reason to refuse.
    bench.rx.netns.set("ipv6/conf/rx0/disable_ipv6", "0");
    let link_local = || bench.rx.netns.ip(&["address", "show", "dev", "rx0"]);
    wait::until("a link-local address", LIMIT, || {
        link_local().contains("fe80::").then_some(())
    });
    let capture = capture_on(&bench.rx, &path).human().with(["--tap"]).ready();
    assert_eq!(bench.rx.promiscuity(), 1);
    let frame = Frame::new(&bench.tx, &bench.rx, 60);
    PacketSocket::open(&bench.tx).send(&frame, 0..10, 0);
    let finished = capture.stop();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    let said = |start: &str, part: &str| {
        let mut lines = finished.stderr.lines().filter(|it| it.starts_with(start));
        let is_said = lines.any(|it| it.contains(part));
        assert!(is_said, "{part:?} is not in\n{}", finished.stderr);
    };
    said("ready: ", "the network stack sees nothing");
    said("  --tap: ", "the network stack saw nothing");
}

/// Nothing is changed where it is refused.
#[test]
fn an_interface_in_use_is_refused() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("tap-used");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let ip = |words: &str| bench.rx.netns.ip(&words.split(' ').collect::<Vec<_>>());
    let refused = |why: &str| {
        let finished = capture_on(&bench.rx, &path).with(["--tap"]).run();
        finished.failure(1, &["cannot listen on rx0", why, "--tap=force"]);
        assert!(!path.exists(), "a file was left");
        assert_eq!(bench.rx.xdp_program(), None);
        assert_eq!(bench.rx.promiscuity(), 0);
    };
    ip("route add 192.0.2.0/24 dev rx0");
    refused("the route to 192.0.2.0/24 goes through it");
    ip("route add default dev rx0 table 100");
    ip("route del 192.0.2.0/24");
    refused("the route to default goes through it");
    ip("route add default dev rx0");
    refused("the default route goes through it");
    for table in ["main", "100"] {
        ip(&format!("route del default table {table}"));
    }
    ip("address add 192.0.2.1/32 dev rx0");
    refused("it has the address 192.0.2.1");
    ip("address flush dev rx0");
    // The kernel's own addresses and routes of IPv6 are no reason, others are.
    bench.rx.netns.set("ipv6/conf/rx0/disable_ipv6", "0");
    ip("address add 2001:db8::1/128 dev rx0 nodad");
    refused("it has the address 2001:db8::1");
    ip("address del 2001:db8::1/128 dev rx0");
    ip("route add 2001:db8:1::/48 dev rx0");
    refused("the route to 2001:db8:1::/48 goes through it");
    ip("route del 2001:db8:1::/48 dev rx0");
    ip("-6 route add default dev rx0");
    refused("the default route goes through it");
    ip("-6 route del default dev rx0");
    ip("link add link rx0 name m7 type macvlan");
    refused("macvlan m7 is on it");
    ip("link del m7");
    ip("link add br0 type bridge");
    ip("link set rx0 master br0");
    let finished = capture_on(&bench.rx, &path).with(["--tap"]).run();
    finished.failure(1, &["it is a port of br0", "--tap=force"]);
    ip("link set rx0 nomaster");

    // Not even by force: it is no port, and its frames are the machine's own.
    let loopback = capture(&bench.rx.netns).with(["-i", "lo", "--tap=force"]);
    let finished = loopback.to(&path).run();
    finished.failure(1, &["cannot listen on lo", "it is no Ethernet port"]);
    // Nor here: it decides about frames.
    let other = Attached::pass(&bench.rx, XdpMode::Driver);
    let finished = capture_on(&bench.rx, &path).with(["--tap=force"]).run();
    let program = format!("XDP program {} of somebody else", other.id);
    finished.failure(1, &[&program]);
    drop(other);
    let free = capture_on(&bench.rx, &path).with(["--tap"]).ready();
    free.stop().success();
}
