//! Captures whose times are an NTP server's, between namespaces. The truth is the host's own
//! clock, which all namespaces share, and what the server is ahead of it by the script. Needs
//! root.

use std::fs::File;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;
use tscap::command::Exit;
use tscap_file::pcapng::{InterfaceOption, Record, StatisticsOption, records};
use tscap_testkit::bench::Bench;
use tscap_testkit::brackets;
use tscap_testkit::capture::{LIMIT, Plan, capture_both, clock};
use tscap_testkit::command::{SHORT, run, tscap_path};
use tscap_testkit::files;
use tscap_testkit::frame::Frame;
use tscap_testkit::in_process::capture_with;
use tscap_testkit::ntp::{Asked, NtpClient, NtpServer};
use tscap_testkit::packet_socket::PacketSocket;
use tscap_testkit::probes::programs;
use tscap_testkit::recording::{Packet, Recording};
use tscap_testkit::root::{RootLock, alone, skip};
use tscap_testkit::shown::{Runner, commands};
use tscap_testkit::wait::until;

const SERVER: &str = "10.9.0.1:123";
/// tscap may ask so often what is on this machine.
const REFERENCE: [&str; 2] = ["--reference", "ntp:10.9.0.1,poll=200ms"];
/// How far the server is ahead of the host's clock.
const AHEAD_NS: i64 = 1_500_000_000;
const LIE_NS: i64 = 1_000_000_000;
/// Frames between two exchanges.
const BATCH: u64 = 50;

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

fn capture_on<'a>(bench: &'a Bench, file: &Path) -> Plan<'a> {
    let plan = capture_both(&bench.rx.netns).on(&bench.rx).to(file);
    plan.with(REFERENCE)
}

/// What a conversion says of itself.
fn convert(arguments: &[&str]) -> Value {
    let mut command = Command::new(tscap_path());
    let done = run(command.arg("convert").args(arguments), SHORT);
    assert!(done.status.success(), "{done:?}");
    serde_json::from_str(&done.stdout).expect("JSON")
}

/// CLOCK_REALTIME, ns.
fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.expect("a clock after 1970").as_nanos() as u64
}

/// Frames with their numbers, sent while the server answers.
struct Sender<'a> {
    socket: PacketSocket,
    frame: Frame,
    server: &'a NtpServer,
    /// When each left, ns.
    sent: Vec<u64>,
}

impl<'a> Sender<'a> {
    fn new(bench: &Bench, server: &'a NtpServer) -> Self {
        Self {
            socket: PacketSocket::open(&bench.tx),
            frame: Frame::new(&bench.tx, &bench.rx, 64),
            server,
            sent: Vec::new(),
        }
    }

    fn send(&mut self) {
        for _ in 0..BATCH {
            let bytes = self.frame.bytes(self.sent.len() as u64);
            self.sent.push(now());
            self.socket.send_once(&bytes).expect("send a frame");
        }
    }

    /// Some at each of so many requests.
    fn send_for(&mut self, requests: u64) {
        let end = self.server.asked() + requests;
        while self.server.asked() < end {
            let before = self.server.asked();
            self.send();
            until("another request", LIMIT, || {
                (self.server.asked() > before).then_some(())
            });
        }
    }

    /// Each frame is there once; its time is no earlier than it left, by a clock that is
    /// `ahead_ns` ahead, and not much later.
    #[track_caller]
    fn check(&self, packets: &[(u64, Vec<u8>)], bound_ns: u64, ahead_ns: impl Fn(u64) -> i64) {
        let ours: Vec<_> = packets.iter().filter(|(_, it)| it.len() == 64).collect();
        assert_eq!(ours.len(), self.sent.len());
        for (number, (time, data)) in ours.iter().enumerate() {
            self.frame.check(data, number as u64);
            let left = self.sent[number].wrapping_add_signed(ahead_ns(number as u64));
            assert!(time + bound_ns >= left, "frame {number} is early");
            // A frame may wait for its CPU.
            let late = time.saturating_sub(left);
            assert!(late < bound_ns + 500_000_000, "frame {number}: {late} ns");
        }
    }
}

/// NTP packets of a file: to the server, and from it.
fn ntp_packets(packets: &[(u64, Vec<u8>)]) -> [usize; 2] {
    let is_of =
        |data: &[u8], at: usize| data.len() == 90 && data[23] == 17 && data[at..at + 2] == [0, 123];
    [36, 34].map(|at| packets.iter().filter(|(_, it)| is_of(it, at)).count())
}

/// Times and bytes of all packets.
fn packets(path: &Path) -> Vec<(u64, Vec<u8>)> {
    let file = File::open(path).expect("open the capture");
    let records = records(std::io::BufReader::new(file)).expect("a pcapng file");
    let packets = records.filter_map(|record| match record.expect("a whole block") {
        Record::Packet(packet) => Some((packet.time.0, packet.data)),
        _ => None,
    });
    packets.collect()
}

fn described(path: &Path) -> (InterfaceOption, Vec<StatisticsOption>) {
    let file = File::open(path).expect("open the capture");
    let records = records(std::io::BufReader::new(file)).expect("a pcapng file");
    let (mut interface, mut statistics) = (None, Vec::new());
    for record in records {
        match record.expect("a whole block") {
            Record::Interface(it) => interface = it.tscap,
            Record::Statistics(_, it) => statistics.push(*it),
            _ => {}
        }
    }
    (interface.expect("tscap wrote it"), statistics)
}

/// Each stamp against readings of TAI around it, which a program leaves in the frame.
#[test]
fn every_time_is_the_servers_within_the_bound() {
    let Some((_lock, bench)) = bench("ref-true") else {
        return;
    };
    let (tx, rx) = bench.add_pair(1);
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let server = NtpServer::start(&bench.tx.netns, SERVER, honest);
    let (socket, frame) = (PacketSocket::open(&tx), Frame::new(&tx, &rx, 64));
    const TURNS: u64 = 15;
    let count = (TURNS * BATCH).to_string();
    let arguments = [&REFERENCE[..], &["-c", &count]].concat();
    // Nothing sets the host's clock meanwhile.
    let offset_ns = || {
        let uptime = tscap_clock::MonoNs::now().0;
        now().wrapping_sub(uptime)
    };
    let before_ns = offset_ns();
    let (exit, summary) = capture_with(
        |capture| capture.programs = programs("probe_bracket_tsc", None),
        &rx,
        &path,
        &arguments,
        || {
            for turn in 0..TURNS {
                let asked = server.asked();
                let numbers = turn * BATCH..(turn + 1) * BATCH;
                assert_eq!(socket.send(&frame, numbers, 0), BATCH);
                until("another request", LIMIT, || {
                    (server.asked() > asked || turn == TURNS - 1).then_some(())
                });
            }
        },
    );
    assert_eq!((exit, summary.written), (Exit::Success, TURNS * BATCH));
    assert!(
        offset_ns().abs_diff(before_ns) < 100_000_000,
        "the clock was set"
    );
    let clock = &summary.clock;
    let reference = clock.reference.as_ref().expect("it");
    assert_eq!(reference.name, "ntp:10.9.0.1");
    let [segment] = &clock.segments[..] else {
        panic!("the times stepped: {:?}", clock.segments);
    };
    let bounds = reference.bounds;
    let bound_ns = clock.host_bound_ns + bounds.bound_ns;
    let mut worst = 0;
    for packet in &Recording::read(&path).packets {
        let server = Packet {
            nanos: packet.nanos.wrapping_add_signed(-AHEAD_NS),
            ..packet.clone()
        };
        let outside = brackets::outside(&server, segment.tai_offset_s);
        assert!(outside <= bound_ns, "{outside} ns, bound {bound_ns}");
        worst = worst.max(outside);
    }
    println!("bound {bound_ns} ns, at most {worst} ns outside");
    let own_ns = bounds.own_bound_ns.expect("the server says it");
    // 1/65536 s of dispersion, and half of that of delay.
    assert!((22_888..100_000).contains(&own_ns), "{own_ns}");
    assert_eq!(clock.utc_bound_ns, Some(bounds.bound_ns + own_ns));
    assert_eq!(reference.stamp_utc_bound_ns, Some(bound_ns + own_ns));
    assert!(reference.host_ahead_ns.abs_diff(-AHEAD_NS) <= bounds.bound_ns + 100_000_000);

    let (interface, statistics) = described(&path);
    assert_eq!(interface.reference.as_deref(), Some("ntp:10.9.0.1"));
    let last = statistics.last().expect("statistics");
    assert_eq!(last.clock.reference, Some(bounds));
    assert_eq!(last.clock.utc_bound_ns, clock.utc_bound_ns);
}

/// The usual case: the server is behind the interface that is captured, in native XDP.
#[test]
fn the_server_may_be_behind_the_interface_that_is_captured() {
    let Some((_lock, bench)) = bench("ref-same") else {
        return;
    };
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let server = NtpServer::start(&bench.tx.netns, SERVER, honest);
    let running = capture_on(&bench, &path)
        .with(["--hook", "xdp", "--keep-raw"])
        .ready();
    let mut sender = Sender::new(&bench, &server);
    sender.send_for(10);
    let finished = running.stop();
    let summary = finished.success();
    let reference = summary.clock.reference.as_ref().expect("it");
    let bound_ns = summary.clock.host_bound_ns + reference.bounds.bound_ns;
    let all = packets(&path);
    sender.check(&all, bound_ns, |_| AHEAD_NS);
    // The exchanges pass the interface like all else.
    let [requests, replies] = ntp_packets(&all);
    assert!(requests >= 8 && replies >= 8, "{requests} {replies}");
    assert_eq!(summary.seen, summary.written);
    assert_eq!(finished.events("ready")[0]["reference"], "ntp:10.9.0.1");

    // Fitted again, it keeps to the reference, and by a log of the host's clock it is not.
    let copy = folder.path().join("copy.pcapng");
    let [from, to] = [&path, &copy].map(|path| path.to_str().expect("UTF-8"));
    let said = convert(&[from, "-w", to, "--json"]);
    assert_eq!(said["reference"], "ntp:10.9.0.1");
    sender.check(&packets(&copy), bound_ns, |_| AHEAD_NS);
    for (more, why) in [
        (["--clock-log", to], "the log tells of the host's clock"),
        (
            ["--time-base", "monotonic"],
            "nothing in it tells CLOCK_MONOTONIC",
        ),
    ] {
        let mut command = Command::new(tscap_path());
        let command = command.args(["convert", from, "-w", "/dev/null"]);
        let done = run(command.args(more), SHORT);
        assert!(
            !done.status.success() && done.stderr.contains(why),
            "{done:?}"
        );
    }
}

#[test]
fn a_server_that_falls_silent_is_carried_on() {
    let Some((_lock, bench)) = bench("ref-silent") else {
        return;
    };
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let server = NtpServer::start(&bench.tx.netns, SERVER, |asked| match asked.number {
        0 => honest(asked),
        _ => Vec::new(),
    });
    let running = capture_on(&bench, &path).ready();
    let mut sender = Sender::new(&bench, &server);
    sender.send_for(8);
    running.wait_event_with("warning", |it| {
        let text = it["text"].as_str();
        text.is_some_and(|text| text.contains("has not answered 3 requests"))
    });
    let finished = running.stop();
    let summary = finished.success();
    let reference = summary.clock.reference.as_ref().expect("it");
    // One exchange tells no rate: 0.1 % of the time.
    let age_ns = reference.age_ns;
    assert!(age_ns > 1_400_000_000, "{age_ns}");
    assert!(reference.bounds.bound_ns > 1_400_000, "{reference:?}");
    let bound_ns = summary.clock.host_bound_ns + reference.bounds.bound_ns;
    let all = packets(&path);
    sender.check(&all, bound_ns, |_| AHEAD_NS);
}

#[test]
fn a_lie_that_stays_is_a_step_and_one_that_does_not_is_none() {
    let Some((_lock, bench)) = bench("ref-lie") else {
        return;
    };
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let server = NtpServer::start(&bench.tx.netns, SERVER, |asked| {
        let lie_ns = match asked.number {
            4 | 8.. => LIE_NS,
            _ => 0,
        };
        vec![asked.reply(AHEAD_NS + lie_ns).to_vec()]
    });
    let running = capture_on(&bench, &path).ready();
    let mut sender = Sender::new(&bench, &server);
    let requests = 7_u64.saturating_sub(server.asked());
    sender.send_for(requests.max(1));
    let until_lie = sender.sent.len() as u64;
    running.wait_event_with("step", |it| {
        assert_eq!(it["cause"], "reference");
        true
    });
    let finished = running.stop();
    let summary = finished.success();
    let stepped: Vec<_> = summary.clock.segments.iter().collect();
    assert_eq!((stepped.len(), summary.clock.steps), (2, 1), "{stepped:?}");
    assert!(stepped[1].step_ns.abs_diff(LIE_NS) < 100_000_000);
    let reference = summary.clock.reference.as_ref().expect("it");
    let bound_ns = summary.clock.host_bound_ns + reference.bounds.bound_ns;
    let all = packets(&path);
    // The last ones may be of after the step.
    sender.sent.truncate((until_lie - BATCH) as usize);
    let early: Vec<_> = all
        .into_iter()
        .filter(|(_, it)| it.len() == 64)
        .take(sender.sent.len())
        .collect();
    sender.check(&early, bound_ns, |_| AHEAD_NS);
}

#[test]
fn what_a_daemon_asks_gives_the_times_and_nothing_is_sent() {
    let Some((_lock, bench)) = bench("ref-passive") else {
        return;
    };
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let server = NtpServer::start(&bench.tx.netns, SERVER, honest);
    let running = capture_both(&bench.rx.netns)
        .on(&bench.rx)
        .to(&path)
        .with(["--reference", "ntp:passive"])
        .start();
    let daemon = NtpClient::new(&bench.rx.netns, SERVER.parse().expect("an address"));
    let mut asked = 0;
    let mut ask = || {
        asked += 1;
        daemon.ask(asked);
    };
    until("the capture to begin", LIMIT, || {
        ask();
        running.event(0, Duration::from_millis(150))
    });
    let mut sender = Sender::new(&bench, &server);
    for _ in 0..5 {
        sender.send();
        ask();
    }
    let summary = running.stop().success();
    assert_eq!(server.asked(), asked, "tscap has asked too");
    let reference = summary.clock.reference.as_ref().expect("it");
    assert_eq!(reference.name, "ntp:passive");
    let bound_ns = summary.clock.host_bound_ns + reference.bounds.bound_ns;
    sender.check(&packets(&path), bound_ns, |_| AHEAD_NS);
}

#[test]
fn each_of_several_files_has_the_reference_and_its_bounds() {
    let Some((_lock, bench)) = bench("ref-files") else {
        return;
    };
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let server = NtpServer::start(&bench.tx.netns, SERVER, honest);
    let running = capture_on(&bench, &path).with(["-b", "packets:60"]).ready();
    Sender::new(&bench, &server).send_for(3);
    let finished = running.stop();
    let files = finished.success().files.expect("several");
    assert!(files.written >= 3, "{files:?}");
    let made = std::fs::read_dir(folder.path()).expect("the folder");
    for file in made {
        let (interface, statistics) = described(&file.expect("a file").path());
        assert_eq!(interface.reference.as_deref(), Some("ntp:10.9.0.1"));
        let last = statistics.last().expect("statistics");
        let bounds = last.clock.reference.expect("bounds");
        assert_eq!(last.clock.utc_bound_ns, bounds.utc_ns());
    }
}

#[test]
fn a_capture_does_not_begin_without_a_time() {
    let Some((_lock, bench)) = bench("ref-none") else {
        return;
    };
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let failed = capture_on(&bench, &path).run();
    failed.failure(
        1,
        &[
            "cannot take the times of ntp:10.9.0.1",
            "no server listens at UDP port 123",
            "hint: ",
        ],
    );
    assert!(!path.exists(), "a file was made");
}

/// A capture with raw stamps, by the log that `tscap clock` kept beside it.
#[test]
fn a_log_of_a_server_gives_a_capture_its_times() {
    let Some((_lock, bench)) = bench("ref-log") else {
        return;
    };
    let folder = files::folder();
    let [path, log, copy] =
        ["out.pcapng", "clock.log", "copy.pcapng"].map(|name| folder.path().join(name));
    let server = NtpServer::start(&bench.tx.netns, SERVER, honest);
    let [from, by, to] = [&path, &log, &copy].map(|path| path.to_str().expect("UTF-8"));
    let logging = clock(&bench.rx.netns)
        .with(REFERENCE)
        .with(["--log", by, "--interval", "100ms"])
        .start();
    logging.wait_event_with("exchange", |it| it["verdict"] == "used");
    let plain = capture_both(&bench.rx.netns).on(&bench.rx).to(&path);
    let running = plain.with(["--clock", "tsc", "--keep-raw"]).ready();
    let mut sender = Sender::new(&bench, &server);
    sender.send_for(10);
    let summary = running.stop().success();
    sender.check(&packets(&path), summary.clock.host_bound_ns, |_| 0);
    logging.stop();
    let base = ["--clock-log", by, "--time-base", "ntp", "--json"];
    let said = convert(&[&[from, "-w", to][..], &base].concat());
    assert_eq!(
        (&said["server"], &said["ambiguous"]),
        (&SERVER.into(), &0.into())
    );
    assert_eq!(said["timed"], summary.written);
    let bound_ns = said["bound_ns"]["max"].as_u64().expect("it");
    sender.check(&packets(&copy), bound_ns, |_| AHEAD_NS);
    let (interface, _) = described(&copy);
    let ntp = interface.ntp.expect("the copy says it");
    assert_eq!(ntp.server.to_string(), SERVER);
    // Also between two packets.
    assert!(ntp.bound_ns >= bound_ns, "{ntp:?} {bound_ns}");
}

/// With an interface and a server that are here.
#[test]
fn the_documented_commands_work() {
    let Some((_lock, bench)) = bench("ref-shown") else {
        return;
    };
    let folder = files::folder();
    let _servers =
        [SERVER, "10.9.0.1:1124"].map(|address| NtpServer::start(&bench.tx.netns, address, honest));
    for line in commands(Runner::Reference) {
        let words = line.split(' ').skip(2).map(|word| match word {
            "eth0" => bench.rx.name.clone(),
            "out.pcapng" => folder.path().join(word).display().to_string(),
            _ => word
                .replace("192.0.2.123", "10.9.0.1")
                .replace("192.0.2.124", "10.9.0.1:1124"),
        });
        let running = capture_both(&bench.rx.netns).with(words).ready();
        running.stop().success();
        assert!(folder.path().join("out.pcapng").exists(), "{line}");
    }
}
