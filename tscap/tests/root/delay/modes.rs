//! The other ways to measure: mirrored ends, the far end of a veth pair, both ways, and a
//! capture of both ends.

use std::net::UdpSocket;

use tscap_delay::schema::{How, Measurement};
use tscap_testkit::between::Between;
use tscap_testkit::capture::{Capture, LIMIT, capture, delay, echo};
use tscap_testkit::command::{SHORT, run, tscap_path};
use tscap_testkit::files;
use tscap_testkit::netns::Netns;
use tscap_testkit::port::Port;
use tscap_testkit::root::alone_with;
use tscap_testkit::wait;

use super::{MEASURES, PROGRAMS, WINDOW, adds_up, end, first, send};

const FRAMES: u64 = 1_000;
const PACE: [&str; 2] = ["--rate", "2k"];

fn start(netns: &Netns, options: &[&str]) -> Capture {
    delay(netns).with(WINDOW).with(options).ready()
}

/// All frames matched, and nothing else at the first exit.
#[track_caller]
fn all_matched(measurement: &Measurement, how: How) {
    assert_eq!(measurement.method.how, how);
    let of = measurement.passages[0].exits[0].account;
    assert_eq!(
        (of.entered, of.left, of.matched),
        (FRAMES, FRAMES, FRAMES),
        "{of:?}"
    );
    let (_, delays) = first(measurement);
    assert!(delays.summary.min > 0, "{delays:?}");
}

/// Sends requests through the device as programs do, which every hook sees, each when the reply
/// to the one before has come.
fn ask(between: &Between) {
    between.bench.tx.netns.enter(|| {
        let socket = UdpSocket::bind("10.9.0.1:0").expect("a socket");
        socket.connect("10.10.0.1:9").expect("an address");
        socket.set_read_timeout(Some(LIMIT)).expect("a limit");
        for number in 0..FRAMES {
            let request = [number.to_be_bytes(); 18].concat();
            let mut reply = [0; 256];
            socket.send(&request).expect("send a request");
            let length = socket.recv(&mut reply).expect("a reply");
            assert_eq!(reply[..length], request);
        }
    });
}

#[test]
fn the_far_end_of_the_pair_is_later_than_the_tap() {
    let Some(_lock) = alone_with(MEASURES, &PROGRAMS) else {
        return;
    };
    let between = Between::router("delay-peer");
    let ends = [
        "--in",
        &between.bench.rx.name,
        "--out",
        &between.out.name,
        "udp",
    ];
    let far = between.far.netns.name();
    let peer = ["--out-point", "peer", "--peer-netns", far];
    let tap = start(between.device(), &ends);
    send(&between, &PACE, FRAMES);
    let tap = end(tap);
    let peer = start(between.device(), &[&ends[..], &peer].concat());
    send(&between, &PACE, FRAMES);
    let peer = end(peer);
    all_matched(&tap, How::Hooks);
    all_matched(&peer, How::Hooks);
    let points = |it: &Measurement| {
        let exits = it.passages[0].exits.iter().map(|exit| exit.point.clone());
        exits.collect::<Vec<_>>()
    };
    assert_eq!(
        (points(&tap), points(&peer)),
        (vec!["tap".into(), "egress".into()], vec!["peer".into()])
    );
    let queueing = tap.passages[0].queueing.as_ref().expect("both exits");
    assert_eq!(queueing.summary.n, FRAMES);
    assert!(queueing.summary.min >= 0, "{queueing:?}");

    let elsewhere = delay(between.device())
        .with(ends)
        .with(["--out-point", "peer"])
        .run();
    elsewhere.failure(1, &["cannot find the other end", "--peer-netns"]);
}

#[test]
fn mirrored_ends_are_told_apart_by_their_order() {
    let Some(_lock) = alone_with(MEASURES, &PROGRAMS) else {
        return;
    };
    let between = Between::router("delay-mirror");
    let device = between.device();
    device.ip(&["link", "add", "m0", "type", "veth", "peer", "name", "m1"]);
    for name in ["m0", "m1"] {
        // Neither end of the cable says anything of its own.
        device.set(&format!("ipv6/conf/{name}/disable_ipv6"), "1");
    }
    let cable = ["m0", "m1"].map(|name| Port::find(&between.bench.rx.netns, name));
    cable.iter().for_each(|port| port.set(&["up"]));
    cable.iter().for_each(Port::wait_up);
    let ends = ["--in", &between.bench.rx.name, "--out", &between.out.name];
    let mirrored = start(device, &[&ends[..], &["--mirror", "m0:m1"]].concat());
    send(&between, &PACE, FRAMES);
    let mirrored = end(mirrored);
    all_matched(&mirrored, How::Mirror);
    assert_eq!(mirrored.passages[0].exits[0].point, "mirror");

    // Less the mean of another one.
    let folder = files::folder();
    let saved = folder.path().join("without.json");
    std::fs::write(&saved, serde_json::to_string(&mirrored).unwrap()).unwrap();
    let correction = ["--correction", saved.to_str().unwrap()];
    let corrected = start(
        device,
        &[&ends[..], &["--mirror", "m0:m1"], &correction].concat(),
    );
    send(&between, &PACE, FRAMES);
    let corrected = end(corrected);
    let mean = first(&mirrored).1.summary.mean;
    let by = corrected.method.correction.expect("as asked for");
    assert!((by.mean_ns - mean).abs() < 1e-6, "{by:?}");
    // Nothing of it is left.
    let shown = device.must(
        "tc",
        &["filter", "show", "dev", &between.out.name, "egress"],
    );
    assert_eq!(shown, "");
}

/// Two copies of each packet, none of which can be sent.
#[test]
fn copies_that_are_not_sent_are_counted() {
    let Some(_lock) = alone_with(MEASURES, &PROGRAMS) else {
        return;
    };
    let between = Between::router("delay-uncopied");
    let device = between.device();
    device.ip(&["link", "add", "m0", "type", "veth", "peer", "name", "m1"]);
    device.ip(&["link", "set", "m1", "up"]);
    let ends = ["--in", &between.bench.rx.name, "--out", &between.out.name];
    let running = start(device, &[&ends[..], &["--mirror", "m0:m1"]].concat());
    send(&between, &PACE, 10);
    let measurement = end(running);
    let of = measurement.passages[0].exits[0].account;
    assert_eq!((of.entered, of.left), (0, 0), "{of:?}");
    let [.., warning] = &measurement.warnings[..] else {
        panic!("{measurement:?}");
    };
    assert!(
        warning.starts_with("20 mirrored frames not sent"),
        "{warning}"
    );
}

#[test]
fn both_ways_have_an_account_of_their_own() {
    let Some(_lock) = alone_with(MEASURES, &PROGRAMS) else {
        return;
    };
    let between = Between::router("delay-both");
    let server = echo(&between.far.netns).ready();
    let ends = ["--in", &between.bench.rx.name, "--out", &between.out.name];
    let options = ["--both", "--clock", "tsc", "udp"];
    let running = start(between.device(), &[&ends[..], &options].concat());
    ask(&between);
    let measurement = end(running);
    assert_eq!(server.stop().code, Some(0));
    assert_eq!(measurement.passages.len(), 2);
    for passage in &measurement.passages {
        assert_eq!(passage.exits.len(), 2, "{passage:?}");
        for exit in &passage.exits {
            assert_eq!(exit.account.matched, FRAMES, "{passage:?}");
        }
    }
    let names = measurement.passages.iter().map(|it| it.name.as_str());
    assert_eq!(names.collect::<Vec<_>>(), ["rx0 → out0", "out0 → rx0"]);
}

/// The same packets, live and in a capture of the same run: both stamp by the same clock, the
/// capture a moment earlier at the entry or later at the exit.
#[test]
fn a_capture_of_both_ends_says_the_same() {
    let Some(_lock) = alone_with(MEASURES, &PROGRAMS) else {
        return;
    };
    let between = Between::router("delay-file");
    let folder = files::folder();
    let path = folder.path().join("both.pcapng");
    let captured = capture(between.device())
        .with(["-i", &between.bench.rx.name, "-i", &between.out.name])
        .with(["-Q", "inout", "--keep-raw"])
        .to(&path)
        .with(["udp"])
        .ready();
    send(&between, &PACE, FRAMES);
    captured.stop().success();
    let ends = ["--in", &between.bench.rx.name, "--out", &between.out.name];
    let read = |more: &[&str]| {
        let mut tscap = std::process::Command::new(tscap_path());
        run(
            tscap
                .arg("delay")
                .arg("--file")
                .arg(&path)
                .args(ends)
                .args(more),
            SHORT,
        )
    };
    let done = read(&["--json"]);
    assert!(done.status.success(), "{}", done.stderr);
    let measurement =
        tscap_report::saved::read::<Measurement>(&done.stdout).expect("a measurement");
    measurement.passages.iter().for_each(adds_up);
    all_matched(&measurement, How::Hooks);
    let text = read(&[]).stdout;
    // In a pipe.
    assert!(
        text.lines().all(|line| line.chars().count() <= 100),
        "{text}"
    );
    let refused = read(&["--match", "bridge", "--json"]);
    let unmatched =
        tscap_report::saved::read::<Measurement>(&refused.stdout).expect("a measurement");
    assert_eq!(unmatched.passages[0].exits[0].account.matched, 0);
}

/// By a signal, by two, and by the one that nothing can catch: no program stays.
#[test]
fn however_it_ends_nothing_stays_attached() {
    let Some(_lock) = alone_with(MEASURES, &PROGRAMS) else {
        return;
    };
    use nix::sys::signal::Signal::{SIGINT, SIGKILL, SIGTERM};
    let between = Between::router("delay-ends");
    let ends = ["--in", &between.bench.rx.name, "--out", &between.out.name];
    for signals in [&[SIGINT][..], &[SIGTERM, SIGTERM], &[SIGKILL]] {
        let mut running = start(between.device(), &ends);
        assert!(between.bench.rx.xdp_program().is_some());
        signals.iter().for_each(|signal| running.signal(*signal));
        wait::until("its end", LIMIT, || running.has_ended().then_some(()));
        wait::until("the programs to go", LIMIT, || {
            between.bench.rx.xdp_program().is_none().then_some(())
        });
    }
    let twice = delay(between.device())
        .with(["--in", "rx0", "--out", "rx0"])
        .run();
    twice.failure(1, &["--in and --out are one interface", "--reflect"]);
    let absent = delay(between.device())
        .with(["--in", "rx0", "--out", "none0"])
        .run();
    absent.failure(1, &["no such interface"]);
}
