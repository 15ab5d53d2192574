//! `tscap delay --serve` and `tscap delay --to` between two namespaces, whose clock is one, and
//! with peers whose clock is scripted. Needs root.

mod abuse;
mod documents;
mod files;
mod long;
mod peers;
mod scripted;
mod sessions;

use std::net::UdpSocket;
use std::time::Duration;

use serde_json::Value;
use tscap_delay::schema::{Measurement, PeerSession};
use tscap_protocol::{ErrorEstimate, Mode, Request, TimeFormat, Timestamp};
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::{Capture, Plan, delay};
use tscap_testkit::finished::Finished;
use tscap_testkit::wait::until;

const PORT: u16 = 8_620;
/// Longest that a reply is waited for.
const LIMIT: Duration = Duration::from_secs(10);

/// Two hosts, each with an address of both families.
fn bed(tag: &str) -> Bench {
    let bench = Bench::new(tag);
    bench.acquaint();
    for (port, address) in [(&bench.tx, "fd09::1/64"), (&bench.rx, "fd09::2/64")] {
        let is_off = format!("ipv6/conf/{}/disable_ipv6", port.name);
        port.netns.set(&is_off, "0");
        let arguments = ["address", "add", address, "dev", &port.name, "nodad"];
        port.netns.ip(&arguments);
    }
    bench
}

/// A reflector at the receiving end, ready.
fn serve(bench: &Bench, options: &[&str]) -> Capture {
    let port = PORT.to_string();
    let plan = delay(&bench.rx.netns).with(["--serve", &bench.rx.name, "--port", &port]);
    let running = plan.with(options).start();
    running.wait_event("ready");
    running
}

/// Sessions from the sending end.
fn to<'a>(bench: &'a Bench, peer: &str, options: &[&str]) -> Plan<'a> {
    let peer = format!("{peer}:{PORT}");
    delay(&bench.tx.netns).with(["--to", &peer]).with(options)
}

/// The one session of a measurement; its account adds up.
#[track_caller]
fn session(finished: &Finished) -> PeerSession {
    assert_eq!(
        finished.code,
        Some(0),
        "{}\n{}",
        finished.stderr,
        finished.stdout
    );
    let line = finished.stdout.lines().last().unwrap_or_default();
    let read = tscap_report::saved::read::<Measurement>(line);
    let measurement = read.unwrap_or_else(|error| panic!("{error}\n{}", finished.stdout));
    let [session] = &measurement.sessions[..] else {
        panic!("{}", finished.stdout);
    };
    assert!(session.account.adds_up(), "{:?}", session.account);
    session.clone()
}

/// The summary of a reflector that ended in order; each of its requests has one outcome.
#[track_caller]
fn served(finished: &Finished) -> Value {
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    finished.end.clone().expect("a summary")
}

#[track_caller]
fn outcome(said: &Value, name: &str) -> u64 {
    let count = said["requests"][name].as_u64();
    count.unwrap_or_else(|| panic!("no {name}: {said}"))
}

/// A socket of the sending end that speaks to the reflector.
fn client(bench: &Bench, local: &str, peer: &str) -> UdpSocket {
    // A child of another test may have the socket of before for a moment longer.
    let bind = || UdpSocket::bind(local).ok();
    let socket = bench.tx.netns.enter(|| until(local, LIMIT, bind));
    socket.set_read_timeout(Some(LIMIT)).expect("a time limit");
    socket.connect(peer).expect("connect");
    socket
}

/// A test packet by hand.
fn packet(sequence: u32, ssid: u16, mode: Mode, length: usize) -> Vec<u8> {
    let mut packet = vec![0; length.max(mode.base())];
    let request = Request {
        sequence,
        timestamp: Timestamp(0xee00_0000_0000_0000 + u64::from(sequence)),
        error: ErrorEstimate::covering(1_000, false, TimeFormat::Ntp),
        ssid,
    };
    request.write(mode, &mut packet);
    packet.truncate(length);
    packet
}

/// Sends a packet, and gives the reply.
#[track_caller]
fn asked(socket: &UdpSocket, packet: &[u8]) -> Vec<u8> {
    socket.send(packet).expect("send");
    let mut reply = vec![0; 2_000];
    let length = socket.recv(&mut reply).expect("a reply");
    reply.truncate(length);
    reply
}
