//! Round trips of real connections over a cable of which the delay is known.

use std::collections::VecDeque;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tscap_flows::schema::{FlowReport, Quality, QuicSign, RoundTrip, RoundTripBy, SpinBit};
use tscap_testkit::capture::{Capture, LIMIT, capture_both, qos};
use tscap_testkit::files;
use tscap_testkit::netns::Netns;
use tscap_testkit::peers::tshark_lines;
use tscap_testkit::root::{root, root_with};
use tscap_testkit::tun::Tun;

use super::{end, of_file};

/// What a frame from the client waits on its way to the server.
const DELAY: Duration = Duration::from_millis(3);
const CLIENT: &str = "10.9.0.1";
const SERVER: &str = "10.9.0.2";
/// The interface at both ends.
const TAP: &str = "tap0";
/// Requests of the client.
const REQUESTS: u64 = 60;

/// Two namespaces, joined by a cable.
struct Cable {
    client: Arc<Netns>,
    server: Arc<Netns>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Cable {
    fn new(tag: &str) -> Self {
        let [client, server] =
            ["client", "server"].map(|end| Arc::new(Netns::new(&format!("{tag}-{end}"))));
        let mut ends = [&client, &server].map(|netns| {
            netns.set("ipv6/conf/default/disable_ipv6", "1");
            Tun::tap(netns, TAP)
        });
        for (end, address) in ends.iter().zip([CLIENT, SERVER]) {
            let address = format!("{address}/24");
            end.port.netns.ip(&["address", "add", &address, "dev", TAP]);
        }
        ends[0].port.knows(SERVER, &ends[1].port);
        ends[1].port.knows(CLIENT, &ends[0].port);
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let thread = thread::spawn(move || {
            let mut under_way: VecDeque<(Instant, Vec<u8>)> = VecDeque::new();
            while !over.load(Ordering::Relaxed) {
                let mut is_idle = true;
                while let Some(frame) = ends[0].sent() {
                    // After it was stamped.
                    under_way.push_back((Instant::now() + DELAY, frame));
                    is_idle = false;
                }
                while let Some(frame) = ends[1].sent() {
                    ends[0].receive(&frame);
                    is_idle = false;
                }
                while under_way
                    .front()
                    .is_some_and(|(due, _)| *due <= Instant::now())
                {
                    let (_, frame) = under_way.pop_front().expect("one is due");
                    ends[1].receive(&frame);
                    is_idle = false;
                }
                if is_idle {
                    thread::sleep(Duration::from_micros(50));
                }
            }
        });
        Self {
            client,
            server,
            is_over,
            thread: Some(thread),
        }
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // Its panic is told by the test that waits for a frame.
            let _ = thread.join();
        }
    }
}

/// A measurement of both directions at the client, and a capture beside it.
struct Measured {
    live: Capture,
    capture: Capture,
    path: PathBuf,
    _folder: TempDir,
}

impl Measured {
    fn start(cable: &Cable) -> Self {
        let folder = files::folder();
        let path = folder.path().join("out.pcapng");
        let capture = capture_both(&cable.client)
            .with(["-i", TAP, "--keep-raw", "-w"])
            .with([&path])
            .ready();
        let live = qos(&cable.client).with(["-i", TAP]).ready();
        Self {
            live,
            capture,
            path,
            _folder: folder,
        }
    }

    /// Ends both when so many packets were seen. What they say has a true range: it is checked
    /// by `check`.
    fn end(self, packets: u64, check: impl Fn(&Quality, &Path)) {
        let live = end(self.live, packets);
        self.capture.stop().success();
        let file = of_file(&self.path, &[]);
        for found in [&live, &file] {
            check(found, &self.path);
        }
        // The same packets were seen: the same ones are timed.
        let counts = |quality: &Quality| {
            let flows = quality.flows.iter().map(|flow| {
                let trips = flow.round_trips.iter();
                let trips: Vec<_> = trips.map(|it| (it.by, it.figures.n)).collect();
                (flow.name.clone(), flow.packets, trips, flow.quic)
            });
            let mut flows: Vec<_> = flows.collect();
            flows.sort_by(|one, other| one.0.cmp(&other.0));
            flows
        };
        assert_eq!(counts(&live), counts(&file));
    }
}

fn flow<'a>(quality: &'a Quality, start: &str, end: &str) -> &'a FlowReport {
    let mut flows = quality.flows.iter();
    let found = flows.find(|it| it.name.starts_with(start) && it.name.contains(end));
    found.unwrap_or_else(|| panic!("{start} {end}: {:?}", quality.flows))
}

fn trip(flow: &FlowReport, by: RoundTripBy) -> &RoundTrip {
    let mut trips = flow.round_trips.iter();
    let found = trips.find(|it| it.by == by);
    found.unwrap_or_else(|| panic!("{by:?}: {flow:?}"))
}

/// A time is no shorter than the cable's delay, and no longer than the longest that the program
/// has waited.
#[track_caller]
fn is_true(trip: &RoundTrip, longest: Duration) {
    let figures = trip.figures;
    let bound = figures.bound_ns.expect("a bound");
    assert!(bound < 1_000_000, "{trip:?}");
    let bound = bound.cast_signed();
    let range = DELAY.as_nanos() as i64 - bound..=longest.as_nanos() as i64 + bound;
    for ns in [figures.min_ns, figures.max_ns] {
        assert!(range.contains(&ns), "{trip:?} is not within {range:?}");
    }
}

/// Requests and answers of a segment each. Gives how long the longest answer was waited for.
fn exchange(cable: &Cable) -> Duration {
    let bind = || TcpListener::bind((SERVER, 7_000)).expect("listen");
    let listener = cable.server.enter(bind);
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("accept");
        stream.set_nodelay(true).expect("an option");
        stream.set_read_timeout(Some(LIMIT)).expect("a limit");
        let mut request = [0; 100];
        for _ in 0..REQUESTS {
            stream.read_exact(&mut request).expect("a request");
            stream.write_all(&[1; 10]).expect("an answer");
        }
        // The client ends first.
        stream.read_to_end(&mut Vec::new()).expect("an end");
    });
    let before = Instant::now();
    let connect = || TcpStream::connect((SERVER, 7_000)).expect("connect");
    let mut stream = cable.client.enter(connect);
    let mut longest = before.elapsed();
    stream.set_nodelay(true).expect("an option");
    stream.set_read_timeout(Some(LIMIT)).expect("a limit");
    let mut answer = [0; 10];
    for _ in 0..REQUESTS {
        let before = Instant::now();
        stream.write_all(&[7; 100]).expect("a request");
        stream.read_exact(&mut answer).expect("an answer");
        longest = longest.max(before.elapsed());
    }
    drop(stream);
    server.join().expect("the server");
    longest
}

#[test]
fn tcp_has_the_round_trip_of_its_path() {
    let Some(_lock) = root_with(&["ip", "ethtool", "tshark"]) else {
        return;
    };
    let cable = Cable::new("qos-tcp");
    let measured = Measured::start(&cable);
    let longest = exchange(&cable);
    measured.end(2 * REQUESTS, |quality, path| {
        let there = flow(quality, CLIENT, "10.9.0.2:7000 tcp");
        let by_ack = trip(there, RoundTripBy::Acknowledgement);
        is_true(by_ack, longest);
        is_true(trip(there, RoundTripBy::Timestamps), longest);
        assert!(by_ack.figures.n > REQUESTS / 2, "{by_ack:?}");
        // What the server sent is acknowledged on this side of the cable.
        let back = flow(quality, SERVER, CLIENT);
        let own = trip(back, RoundTripBy::Acknowledgement).figures;
        assert!(own.min_ns < by_ack.figures.min_ns, "{own:?}");
        if there.retransmissions.is_some_and(|it| it.segments == 0) {
            agrees_with_tshark(path, by_ack);
        }
    });
}

/// tshark times the same segments, by the file's times.
fn agrees_with_tshark(path: &Path, trip: &RoundTrip) {
    let wanted = format!("tcp.analysis.ack_rtt && ip.src == {SERVER}");
    let fields = ["-T", "fields", "-e", "tcp.analysis.ack_rtt"];
    let lines = tshark_lines(path, &[&["-Y", &wanted][..], &fields].concat());
    let times = lines.iter().map(|it| it.parse::<f64>().expect("seconds"));
    let times: Vec<_> = times.map(|seconds| seconds * 1e9).collect();
    // It also times the end of the connection, which has no bytes.
    assert_eq!(times.len() as u64, trip.figures.n + 1, "{times:?}");
    // The live measurement stamps by a program of its own.
    let least = times.iter().copied().fold(f64::MAX, f64::min);
    let off = (least - trip.figures.min_ns as f64).abs();
    assert!(off < 1e6, "{least} {trip:?}");
}

/// A client and a server of QUIC that spin, by hand: the client sends the opposite of what it has
/// received, the server the same.
fn spin(cable: &Cable, packets: u64) -> Duration {
    let bind = |netns: &Netns, address: &str, port: u16| {
        let socket = netns.enter(|| UdpSocket::bind((address, port)).expect("a socket"));
        socket.set_read_timeout(Some(LIMIT)).expect("a limit");
        socket
    };
    let server = bind(&cable.server, SERVER, 443);
    let client = bind(&cable.client, CLIENT, 50_000);
    client.connect((SERVER, 443)).expect("an address");
    server.connect((CLIENT, 50_000)).expect("an address");
    let echo = thread::spawn(move || {
        let mut packet = [0; 100];
        for _ in 0..packets {
            let length = server.recv(&mut packet).expect("a packet");
            server.send(&packet[..length]).expect("send");
        }
    });
    let mut longest = Duration::ZERO;
    let mut packet = [9; 60];
    packet[0] = 0x40;
    for _ in 0..packets {
        let before = Instant::now();
        client.send(&packet).expect("send");
        client.recv(&mut packet).expect("a packet");
        longest = longest.max(before.elapsed());
        packet[0] ^= 0x20;
    }
    echo.join().expect("the server");
    longest
}

#[test]
fn quic_has_the_round_trip_of_its_path() {
    let Some(_lock) = root() else { return };
    let cable = Cable::new("qos-quic");
    let measured = Measured::start(&cable);
    let packets = 130;
    // From one packet of the client to the next is the time of an exchange, and what the
    // client does between.
    let before = Instant::now();
    spin(&cable, packets);
    let longest = before.elapsed();
    measured.end(2 * packets, |quality, _| {
        for (from, to) in [(CLIENT, ":443 udp"), (SERVER, ":50000 udp")] {
            let flow = flow(quality, from, to);
            let figures = flow.quic.expect("it is taken for QUIC");
            assert_eq!(figures.known_by, QuicSign::Port443);
            assert_eq!(
                (figures.short_packets, figures.spin),
                (packets, SpinBit::Spins)
            );
            let spin = trip(flow, RoundTripBy::SpinBit);
            is_true(spin, longest);
            // The first change is no time, and the last packets are judged with the others.
            assert!(spin.figures.n >= 126, "{spin:?}");
        }
    });
}
