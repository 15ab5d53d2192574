//! Frames come in where they are steered to, and those that don't are counted.

use tscap_testkit::bench::Bench;
use tscap_testkit::capture::capture_on;
use tscap_testkit::files;
use tscap_testkit::frame::Frame;
use tscap_testkit::live::LiveSender;
use tscap_testkit::packet_socket::PacketSocket;
use tscap_testkit::recording::Recording;
use tscap_testkit::root::{alone, two_cpus};

use super::JOURNALS;
use super::machine::{cpus_of, make_threaded, off_cpu, poll_threads, rps, set_rps, warning};

/// Fewer than a backlog queue takes (`net.core.netdev_max_backlog`, 1000).
const FRAMES: u64 = 500;

#[test]
fn rps_steers_generic_mode() {
    let Some(_lock) = alone(JOURNALS) else {
        return;
    };
    let Some((from, to)) = two_cpus() else {
        return;
    };
    let bench = Bench::new("pin-rps");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let frame = Frame::new(&bench.tx, &bench.rx, 100);
    for rx_cpu in [to, from] {
        let capture = capture_on(&bench.rx, &path)
            .with(["--hook", "generic", "--rx-cpu", &rx_cpu.to_string()])
            .with(["-c", &FRAMES.to_string()])
            .ready();
        assert_eq!(rps(&bench.rx), format!("{:x}", 1 << rx_cpu));
        PacketSocket::open(&bench.tx).send(&frame, 0..FRAMES, from);
        let finished = capture.wait();
        assert_eq!(finished.success().seen, FRAMES);
        assert_eq!(off_cpu(&finished), Some(0), "to CPU {rx_cpu}");
        assert_eq!(rps(&bench.rx), "0", "restored");
    }
}

#[test]
fn frames_that_come_in_elsewhere_are_counted() {
    let Some(_lock) = alone(JOURNALS) else {
        return;
    };
    let Some((from, to)) = two_cpus() else {
        return;
    };
    let bench = Bench::new("pin-away");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let frame = Frame::new(&bench.tx, &bench.rx, 100);
    let capture = capture_on(&bench.rx, &path)
        .with(["--hook", "generic", "--rx-cpu", &to.to_string()])
        .with(["-c", &(10 + FRAMES).to_string()])
        .ready();
    PacketSocket::open(&bench.tx).send(&frame, 0..10, from);
    // Somebody else takes RPS away: frames stay on their sender's CPU.
    set_rps(&bench.rx, "0");
    PacketSocket::open(&bench.tx).send(&frame, 10..10 + FRAMES, from);
    let finished = capture.wait();
    assert_eq!(finished.success().seen, 10 + FRAMES);
    assert_eq!(off_cpu(&finished), Some(FRAMES));
    let recording = Recording::read(&path);
    assert_eq!(recording.last_statistics(0).custom["off_cpu"], FRAMES);
    assert_eq!(rps(&bench.rx), "0");
}

#[test]
fn a_plain_veth_has_nothing_to_pin() {
    let Some(_lock) = alone(JOURNALS) else {
        return;
    };
    let Some((from, to)) = two_cpus() else {
        return;
    };
    let bench = Bench::new("pin-none");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let frame = Frame::new(&bench.tx, &bench.rx, 100);
    let mut sender = LiveSender::open(&bench.tx);
    for (rx_cpu, elsewhere) in [(to, FRAMES), (from, 0)] {
        let capture = capture_on(&bench.rx, &path)
            .with(["--rx-cpu", &rx_cpu.to_string()])
            .with(["-c", &FRAMES.to_string()])
            .ready();
        assert_eq!(sender.send(&frame, FRAMES, from), FRAMES);
        let finished = capture.wait();
        assert_eq!(finished.success().seen, FRAMES);
        assert_eq!(off_cpu(&finished), Some(elsewhere), "--rx-cpu {rx_cpu}");
        let warning = warning(&finished, "nothing to pin");
        assert!(warning.contains("rx0"), "{warning}");
    }
}

#[test]
fn without_the_option_nothing_is_counted() {
    let Some(_lock) = alone(JOURNALS) else {
        return;
    };
    let bench = Bench::new("pin-not");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let finished = capture_on(&bench.rx, &path).ready().stop();
    assert_eq!(off_cpu(&finished), None);
    let recording = Recording::read(&path);
    assert!(recording.last_statistics(0).custom.get("off_cpu").is_none());
}

#[test]
fn people_are_told_how_many_came_in_elsewhere() {
    let Some(_lock) = alone(JOURNALS) else {
        return;
    };
    let Some((from, to)) = two_cpus() else {
        return;
    };
    let bench = Bench::new("pin-human");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let frame = Frame::new(&bench.tx, &bench.rx, 100);
    let capture = capture_on(&bench.rx, &path)
        .human()
        .with(["--rx-cpu", &to.to_string(), "-c", "7"])
        .ready();
    PacketSocket::open(&bench.tx).send(&frame, 0..7, from);
    let finished = capture.wait();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    let reported = "7 of them came in on other CPUs than --rx-cpu gives";
    assert!(finished.stderr.contains(reported), "{}", finished.stderr);
}

#[test]
fn poll_threads_are_pinned() {
    let Some(_lock) = alone(JOURNALS) else {
        return;
    };
    let Some((from, to)) = two_cpus() else {
        return;
    };
    // Another interface of the same name in another namespace, threaded too.
    let stranger = Bench::new("pin-other");
    make_threaded(&stranger.rx);
    let not_ours = poll_threads("rx0");
    let bench = Bench::new("pin-napi");
    make_threaded(&bench.rx);
    let mut ours = poll_threads("rx0");
    ours.retain(|thread| !not_ours.contains(thread));
    assert_eq!((not_ours.len(), ours.len()), (1, 1));
    let everywhere = cpus_of(ours[0]);
    assert!(everywhere.contains(&from) && everywhere.contains(&to));

    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let frame = Frame::new(&bench.tx, &bench.rx, 100);
    for rx_cpu in [to, from] {
        let capture = capture_on(&bench.rx, &path)
            .with(["--rx-cpu", &rx_cpu.to_string(), "-c", "200"])
            .ready();
        assert_eq!(cpus_of(ours[0]), [rx_cpu]);
        assert_eq!(cpus_of(not_ours[0]), everywhere, "of another namespace");
        // Fewer than the veth ring of 256 takes.
        PacketSocket::open(&bench.tx).send(&frame, 0..200, from);
        let finished = capture.wait();
        assert_eq!(finished.success().seen, 200);
        assert_eq!(off_cpu(&finished), Some(0), "--rx-cpu {rx_cpu}");
        assert!(
            !finished.stderr.contains("nothing to pin"),
            "{}",
            finished.stderr
        );
        assert_eq!(cpus_of(ours[0]), everywhere, "restored");
    }
}
