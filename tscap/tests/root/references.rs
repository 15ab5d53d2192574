//! Every live command by a reference, and several references at once: NTP servers of the test's own
//! in a namespace. The truth is the host's own clock, and what the servers are ahead of it by the
//! script. Needs root.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tscap_capture::Summary;
use tscap_file::pcapng::{Record, records};
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::{LIMIT, Plan, capture_both, delay, generate_on, qos_on, stamp};
use tscap_testkit::files;
use tscap_testkit::finished::Finished;
use tscap_testkit::frame::Frame;
use tscap_testkit::netns::Netns;
use tscap_testkit::ntp::{Asked, NtpServer, now};
use tscap_testkit::packet_socket::PacketSocket;
use tscap_testkit::recording::Recording;
use tscap_testkit::root::{RootLock, alone, skip};
use tscap_testkit::wait::until;

/// How far the servers are ahead of the host's clock.
const AHEAD_NS: i64 = 1_500_000_000;
const REFERENCE: [&str; 2] = ["--reference", "ntp:10.9.0.1,poll=200ms"];

/// Why these tests run alone.
const PAUSED: &str = "TSC events that others open make those of the stamps pause";

/// Two namespaces that know each other; `None` where there is nothing to test by.
fn bench(tag: &str) -> Option<(RootLock, Bench)> {
    let lock = alone(PAUSED)?;
    if let Err(error) = tscap_time::tsc::check() {
        skip(&error.to_string());
        return None;
    }
    let bench = Bench::new(tag);
    bench.acquaint();
    Some((lock, bench))
}

fn honest(asked: &Asked) -> Vec<Vec<u8>> {
    vec![asked.reply(AHEAD_NS).to_vec()]
}

/// What is said of the reference, which is right.
#[track_caller]
fn is_told(said: &Value) {
    let reference = &said["reference"];
    assert_eq!(reference["name"], "ntp:10.9.0.1", "{said}");
    let [it] = &reference["references"].as_array().expect("each")[..] else {
        panic!("{reference}");
    };
    assert_eq!(
        (&it["name"], &it["state"]),
        (&"ntp:10.9.0.1".into(), &"leads".into())
    );
    let bound = reference["bound_ns"].as_u64().expect("a bound");
    let own = reference["own_bound_ns"]
        .as_u64()
        .expect("the server says it");
    assert!((22_888..1_000_000).contains(&own), "{reference}");
    let ahead = reference["host_ahead_ns"]
        .as_i64()
        .expect("the host's clock");
    // Somebody may slew the host's clock.
    assert!(
        ahead.abs_diff(-AHEAD_NS) <= bound + 100_000_000,
        "{reference}"
    );
}

#[track_caller]
fn last(finished: &Finished) -> Value {
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    let line = finished.stdout.lines().last().expect("a result");
    serde_json::from_str(line).expect("JSON")
}

/// Ready, and with what it says of its reference at the end.
#[track_caller]
fn told_by(plan: Plan<'_>) -> Value {
    let running = plan.with(REFERENCE).ready();
    let finished = running.stop();
    let said = last(&finished);
    is_told(&said);
    said
}

#[test]
fn flows_are_told_by_a_reference() {
    let Some((_lock, bench)) = bench("refs-qos") else {
        return;
    };
    let _server = NtpServer::start(&bench.tx.netns, "10.9.0.1:123", honest);
    let running = qos_on(&bench.rx).with(REFERENCE).ready();
    PacketSocket::open(&bench.tx).send_all(&[vec![0x42; 100], vec![0x42; 100]]);
    running.wait_event_with("qos", |it| it["account"]["seen"].as_u64() >= Some(2));
    let said = last(&running.stop());
    is_told(&said);
    let basis = &said["places"][0]["delays"]["clocks"];
    assert_eq!(basis["reference"], "ntp:10.9.0.1", "{said}");
    let utc = basis["utc_bound_ns"].as_u64().expect("the server's");
    assert!(utc >= 22_888, "{said}");
}

#[test]
fn delays_are_told_by_a_reference() {
    let Some((_lock, bench)) = bench("refs-delay") else {
        return;
    };
    let _server = NtpServer::start(&bench.tx.netns, "10.9.0.1:123", honest);
    let plan = delay(&bench.rx.netns).with(["--rtt", &bench.rx.name]);
    told_by(plan.with(["--window", "300ms"]));
}

/// Sessions between both ends, each by the server: what each says of UTC aligns them.
#[test]
fn two_hosts_go_by_a_reference() {
    let Some((_lock, bench)) = bench("refs-hosts") else {
        return;
    };
    let (far, near) = bench.add_pair(1);
    far.netns
        .ip(&["address", "add", "10.9.1.1/24", "dev", &far.name]);
    near.netns
        .ip(&["address", "add", "10.9.1.2/24", "dev", &near.name]);
    let _server = NtpServer::start(&bench.tx.netns, "10.9.0.1:123", honest);
    let reflector = delay(&bench.rx.netns).with(["--serve", &near.name]);
    let reflector = reflector.with(REFERENCE).start();
    let ready = reflector.wait_event("ready");
    assert_eq!(ready["synchronised"], true, "{ready}");
    let here = ["--reference", "ntp:127.0.0.1,poll=200ms"];
    let _beside = NtpServer::start(&bench.tx.netns, "127.0.0.1:123", honest);
    let sender = delay(&bench.tx.netns).with(["--to", "10.9.1.2", "-c", "50"]);
    let said = last(&sender.with(here).run());
    let session = &said["sessions"][0];
    assert_eq!(session["account"]["answered"], 50, "{said}");
    assert_eq!(session["alignment"]["contradictions"], 0, "{said}");
    // Each follows its server by itself.
    let ahead = session["alignment"]["peer_ahead_ns"]
        .as_i64()
        .expect("aligned");
    let utc = session["alignment"]["utc_bound_ns"]
        .as_u64()
        .expect("both are of UTC");
    assert!(ahead.unsigned_abs() <= utc, "{ahead} {utc}");
    assert_eq!(said["reference"]["name"], "ntp:127.0.0.1", "{said}");
    let finished = reflector.stop();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    is_told(&finished.end.expect("a summary")["stamps"]);
}

#[test]
fn receive_times_are_those_of_a_reference() {
    let Some((_lock, bench)) = bench("refs-stamp") else {
        return;
    };
    let _server = NtpServer::start(&bench.tx.netns, "10.9.0.1:123", honest);
    let udp =
        tscap_testkit::stamped_udp::StampedUdp::new(&bench.tx.netns, &bench.rx.netns, "10.9.0.2");
    let running = stamp(&bench.rx.netns).on(&bench.rx).with(REFERENCE).start();
    running.wait_event("ready");
    let exchanges = udp.exchanges(200);
    let finished = running.stop();
    let said = finished.end.clone().expect("a summary");
    is_told(&said);
    let stamped = said["stamped"].as_u64().expect("it");
    assert!(stamped > 150, "{said}");
    let bound = said["host_bound_ns"].as_u64().expect("it")
        + said["reference"]["bound_ns"].as_u64().expect("it");
    let by_reference = exchanges.iter().filter(|it| {
        let sent = it.sent.0.wrapping_add_signed(AHEAD_NS);
        let received = it.received.0.wrapping_add_signed(AHEAD_NS);
        (sent - bound..=received + bound).contains(&it.stamp.0)
    });
    // Those that tscap counts as stamped, and no other but replies to its own requests.
    let by_reference = by_reference.count() as u64;
    let replies = (said["seconds"].as_f64().expect("it") / 0.2) as u64 + 2;
    assert!(
        (by_reference..=by_reference + replies).contains(&stamped),
        "{by_reference} {said}"
    );
}

#[test]
fn a_sender_tells_how_far_its_clocks_are_off_a_reference() {
    let Some((_lock, bench)) = bench("refs-gen") else {
        return;
    };
    let _server = NtpServer::start(&bench.rx.netns, "10.9.0.2:123", honest);
    let reference = ["--reference", "ntp:10.9.0.2,poll=200ms"];
    let plan = generate_on(&bench.tx).with(["--rate", "1k", "-c", "500"]);
    let finished = plan.with(reference).run();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    let said = finished.end.clone().expect("a summary");
    let reference = &said["reference"];
    assert_eq!(reference["name"], "ntp:10.9.0.2", "{said}");
    let ahead = reference["host_ahead_ns"].as_i64().expect("it");
    assert!(ahead.abs_diff(-AHEAD_NS) < 200_000_000, "{said}");
}

/// Frames with their numbers, and when each left, ns.
struct Sender {
    socket: PacketSocket,
    frame: Frame,
    sent: Vec<u64>,
}

impl Sender {
    fn new(bench: &Bench) -> Self {
        Self {
            socket: PacketSocket::open(&bench.tx),
            frame: Frame::new(&bench.tx, &bench.rx, 64),
            sent: Vec::new(),
        }
    }

    fn send(&mut self) {
        for _ in 0..20 {
            let bytes = self.frame.bytes(self.sent.len() as u64);
            self.sent.push(now());
            self.socket.send_once(&bytes).expect("send a frame");
        }
    }

    /// Sends until that server has been asked so many times more.
    fn send_for(&mut self, server: &NtpServer, requests: u64) {
        let end = server.asked() + requests;
        while server.asked() < end {
            let before = server.asked();
            self.send();
            until("another request", LIMIT, || {
                (server.asked() > before).then_some(())
            });
        }
    }

    /// Each frame has its time, by a clock that is [`AHEAD_NS`] ahead, within the bound.
    #[track_caller]
    fn check(&self, path: &Path, summary: &Summary) {
        let reference = summary.clock.reference.as_ref().expect("it");
        let bound = reference.stamp_utc_bound_ns.expect("servers say it");
        let packets = Recording::read(path).packets;
        let ours: Vec<_> = packets.iter().filter(|it| it.data.len() == 64).collect();
        assert_eq!(ours.len(), self.sent.len());
        for (packet, sent) in ours.iter().zip(&self.sent) {
            let left = sent.wrapping_add_signed(AHEAD_NS);
            assert!(packet.nanos + bound >= left, "a frame is early");
            // It may wait for its CPU.
            let late = packet.nanos.saturating_sub(left);
            assert!(late < bound + 500_000_000, "{late} ns late");
        }
    }
}

/// The states of all, in the order in which they were given.
fn states(summary: &Summary) -> Vec<(String, Value)> {
    let reference = summary.clock.reference.as_ref().expect("it");
    let each = reference.references.iter();
    let state = |it| serde_json::to_value(it).expect("JSON");
    each.map(|it| (it.name.clone(), state(it.state))).collect()
}

fn by(ports: &[u16]) -> Vec<String> {
    let one = |port: &u16| {
        [
            "--reference".into(),
            format!("ntp:10.9.0.1:{port},poll=200ms"),
        ]
    };
    ports.iter().flat_map(one).collect()
}

/// One of three lies by a second from the start, one dies in the middle, and the times go on
/// without a step.
#[test]
fn a_liar_is_named_and_another_one_takes_over() {
    let Some((_lock, bench)) = bench("refs-three") else {
        return;
    };
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let at = |port: u16| format!("10.9.0.1:{port}");
    let netns = &bench.tx.netns;
    // Known best, by its own account: it leads.
    let leader = NtpServer::start(netns, &at(1_001), honest);
    let _liar = NtpServer::start(netns, &at(1_002), |asked| {
        vec![asked.reply(AHEAD_NS + 1_000_000_000).to_vec()]
    });
    let other = NtpServer::start(netns, &at(1_003), |asked| {
        let mut reply = asked.reply(AHEAD_NS);
        // A root dispersion of 1/64 s.
        reply[8..12].copy_from_slice(&[0, 0, 4, 0]);
        vec![reply.to_vec()]
    });
    let plan = capture_both(&bench.rx.netns).on(&bench.rx).to(&path);
    let running = plan.with(by(&[1_001, 1_002, 1_003])).ready();
    let mut sender = Sender::new(&bench);
    sender.send_for(&other, 5);
    drop(leader);
    running.wait_line("note: the times follow ntp:10.9.0.1:1003");
    sender.send_for(&other, 5);
    let finished = running.stop();
    let summary = finished.success();
    let liar = "ntp:10.9.0.1:1002 contradicts the other references";
    assert!(finished.stderr.contains(liar), "{}", finished.stderr);
    assert_eq!((summary.clock.steps, summary.clock.segments.len()), (0, 1));
    let states = states(&summary);
    assert_eq!(
        states[1],
        ("ntp:10.9.0.1:1002".into(), "falseticker".into()),
        "{states:?}"
    );
    assert_eq!(
        states[2],
        ("ntp:10.9.0.1:1003".into(), "leads".into()),
        "{states:?}"
    );
    sender.check(&path, &summary);
    let in_file = standings(&path);
    assert_eq!(in_file[1], "ntp:10.9.0.1:1002 falseticker", "{in_file:?}");
    assert_eq!(in_file[2], "ntp:10.9.0.1:1003 leads", "{in_file:?}");
}

/// What each reference is by the last statistics of a file.
fn standings(path: &Path) -> Vec<String> {
    let file = fs::File::open(path).expect("open the capture");
    let records = records(std::io::BufReader::new(file)).expect("a pcapng file");
    let last = records.filter_map(|record| match record.expect("a whole block") {
        Record::Statistics(_, it) => Some(it),
        _ => None,
    });
    let last = last.last().expect("statistics");
    let each = last.clock.references.iter();
    each.map(|it| format!("{} {}", it.name, it.state)).collect()
}

/// `/etc/hosts` of the programs in a network namespace, as `ip netns exec` gives it to them.
struct Hosts(PathBuf);

impl Hosts {
    fn new(netns: &Netns, text: &str) -> Self {
        let folder = Path::new("/etc/netns").join(netns.name());
        fs::create_dir_all(&folder).expect("make a folder in /etc/netns");
        let hosts = Self(folder);
        hosts.are(text);
        hosts
    }

    /// The same file: it is mounted.
    fn are(&self, text: &str) {
        fs::write(self.0.join("hosts"), text).expect("write hosts");
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The server of a name is followed to its new address, with no other reference and no step.
#[test]
fn a_server_that_moves_is_followed() {
    let Some((_lock, bench)) = bench("refs-moves") else {
        return;
    };
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    bench
        .tx
        .netns
        .ip(&["address", "add", "10.9.0.3/24", "dev", &bench.tx.name]);
    let hosts = Hosts::new(&bench.rx.netns, "10.9.0.1 time.test\n");
    let first = NtpServer::start(&bench.tx.netns, "10.9.0.1:123", honest);
    let plan = capture_both(&bench.rx.netns).on(&bench.rx).to(&path);
    let running = plan
        .with(["--reference", "ntp:time.test,poll=200ms"])
        .ready();
    let mut sender = Sender::new(&bench);
    sender.send_for(&first, 5);
    let second = NtpServer::start(&bench.tx.netns, "10.9.0.3:123", honest);
    hosts.are("10.9.0.3 time.test\n");
    drop(first);
    running.wait_line("note: time.test is asked at 10.9.0.3 from now on");
    sender.send_for(&second, 5);
    let finished = running.stop();
    let summary = finished.success();
    let reference = summary.clock.reference.as_ref().expect("it");
    assert_eq!(reference.name, "ntp:time.test");
    assert!(reference.age_ns < 2_000_000_000, "{reference:?}");
    assert_eq!((summary.clock.steps, summary.clock.segments.len()), (0, 1));
    sender.check(&path, &summary);
}
