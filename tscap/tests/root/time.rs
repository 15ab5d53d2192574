//! Stamps against the clocks that they stand for, and programs with faults that
//! the accounting must find. Needs root.

use std::os::fd::AsFd as _;
use std::path::Path;
use std::sync::Arc;

use tscap::Capture;
use tscap::command::Exit;
use tscap_clock::{StampPath, TscPath};
use tscap_common::hook::Hook;
use tscap_common::hook::Slot;
use tscap_file::accounting::{Outcome, Outcomes};
use tscap_host::perf::EventPriority;
use tscap_network::bpf::{InterfaceLink, LinkPoint};
use tscap_programs::hook::{LoadOptions, Loaded, PROGRAMS, Shares};
use tscap_testkit::bench::Bench;
use tscap_testkit::brackets;
use tscap_testkit::capture::capture_on;
use tscap_testkit::files;
use tscap_testkit::frame::Frame;
use tscap_testkit::in_process::capture_with;
use tscap_testkit::live::LiveSender;
use tscap_testkit::netns::Netns;
use tscap_testkit::packet_socket::PacketSocket;
use tscap_testkit::probes::programs;
use tscap_testkit::process;
use tscap_testkit::recording::Recording;
use tscap_testkit::root::{root, two_cpus};
use tscap_testkit::tun::Tun;

/// Checks every stamp of a file against the TAI readings around it. Returns the
/// greatest distance by which a stamp was outside, ns (within the bound).
fn check_brackets(path: &Path, tai_offset_s: i64, bound_ns: u64) -> u64 {
    let mut worst = 0;
    let mut latest = 0;
    for (number, packet) in Recording::read(path).packets.iter().enumerate() {
        let outside = brackets::outside(packet, tai_offset_s);
        assert!(
            outside <= bound_ns,
            "frame {number}: {outside} ns outside its bracket, bound {bound_ns}"
        );
        worst = worst.max(outside);
        assert!(
            packet.nanos + bound_ns >= latest,
            "frame {number}: a stamp decreased"
        );
        latest = packet.nanos;
    }
    worst
}

/// Every stamp lies within the bound, and the bound is narrow: of one of three captures,
/// because a perf event that somebody else opens meanwhile widens it rightly.
fn tai_stamp_tai(source: &str, program: &str) {
    let is_narrow = |_| bound_of_a_capture(source, program) < NARROW_NS;
    assert!((0..3).any(is_narrow), "three captures in a row");
}

/// What a bound is below on a machine that need not be idle, ns. It is under 100 ns on
/// an idle one.
const NARROW_NS: u64 = 1_000;

/// Captures once, and holds each stamp against the bound. Gives the bound, ns.
fn bound_of_a_capture(source: &str, program: &str) -> u64 {
    const LIVE: u64 = 100_000;
    const PACKETS: u64 = 20_000;
    let bench = Bench::new("bracket");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let frame = Frame::new(&bench.tx, &bench.rx, 64);
    let mut live = LiveSender::open(&bench.tx);
    let socket = PacketSocket::open(&bench.tx);
    let count = (LIVE + PACKETS).to_string();
    let arguments = ["--clock", source, "-c", &count];

    let (exit, summary) = capture_with(
        |it| it.programs = programs(program, None),
        &bench.rx,
        &path,
        &arguments,
        || {
            // Natively in one go, and one by one over a longer time; on one CPU, for
            // the order.
            assert_eq!(live.send(&frame, LIVE, 0), LIVE);
            assert_eq!(socket.send(&frame, 0..PACKETS, 0), PACKETS);
        },
    );

    assert_eq!((exit, summary.written), (Exit::Success, LIVE + PACKETS));
    let clock = &summary.clock;
    let [segment] = &clock.segments[..] else {
        panic!("the host's clock was set meanwhile: {:?}", clock.segments);
    };
    let worst = check_brackets(&path, segment.tai_offset_s, clock.host_bound_ns);
    println!(
        "{source}: bound {} ns, at most {worst} ns outside",
        clock.host_bound_ns
    );
    assert!(clock.order.largest_decrease_ns <= clock.host_bound_ns);
    clock.host_bound_ns
}

#[test]
fn ktime_stamps_lie_between_the_tai_readings_around_them() {
    let Some(_lock) = root() else { return };
    tai_stamp_tai("ktime", "probe_bracket_ktime");
}

#[test]
fn tai_stamps_lie_between_the_tai_readings_around_them() {
    let Some(_lock) = root() else { return };
    tai_stamp_tai("tai", "probe_bracket_tai");
}

#[test]
fn tsc_stamps_lie_between_the_tai_readings_around_them() {
    let Some(_lock) = root() else { return };
    tai_stamp_tai("tsc", "probe_bracket_tsc");
}

#[test]
fn a_loss_that_is_not_counted_makes_the_check_fail() {
    let Some(_lock) = root() else { return };
    let Some((first, second)) = two_cpus() else {
        return;
    };
    let bench = Bench::new("uncounted");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let frame = Frame::new(&bench.tx, &bench.rx, 60);
    // Frames on a CPU without a ring are lost.
    let rings = Some(vec![first as u32]);
    let arguments = ["--duration", "3"];
    let with_program = |it: &mut Capture| it.programs = programs("probe_counts_no_loss", rings);
    let (exit, summary) = capture_with(with_program, &bench.rx, &path, &arguments, || {
        let socket = PacketSocket::open(&bench.tx);
        socket.send(&frame, 0..10, first);
        socket.send(&frame, 0..3, second);
    });
    assert_eq!(exit, Exit::DoesNotAddUp);
    assert_eq!(
        std::process::ExitCode::from(exit),
        std::process::ExitCode::from(3)
    );
    assert_eq!((summary.seen, summary.written), (13, 10));
    assert_eq!(summary.outcomes.total(), 0);
    assert!(!summary.adds_up);
    // The file is whole all the same, and tells that the account is open.
    let recording = Recording::read(&path);
    let totals = &recording.last_statistics(0).custom["totals"];
    assert_eq!(
        (totals["seen"].as_u64(), totals["written"].as_u64()),
        (Some(13), Some(10))
    );
}

#[test]
fn a_copy_that_the_kernel_refuses_is_counted() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("copy");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let frame = Frame::new(&bench.tx, &bench.rx, 60);
    let arguments = ["--duration", "3"];
    let with_program = |it: &mut Capture| it.programs = programs("probe_copies_too_much", None);
    let (exit, summary) = capture_with(with_program, &bench.rx, &path, &arguments, || {
        PacketSocket::open(&bench.tx).send(&frame, 0..25, 0);
    });
    assert_eq!(exit, Exit::Success);
    assert_eq!(
        (
            summary.seen,
            summary.written,
            summary.outcomes[Outcome::CopyFailed]
        ),
        (25, 0, 25)
    );
    let recording = Recording::read(&path);
    assert_eq!(recording.packets.len(), 0);
    assert_eq!(recording.last_statistics(0).os_drop, Some(25));
}

#[test]
fn frames_on_a_cpu_without_a_ring_are_counted() {
    let Some(_lock) = root() else { return };
    let Some((first, second)) = two_cpus() else {
        return;
    };
    let bench = Bench::new("no-ring");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let frame = Frame::new(&bench.tx, &bench.rx, 64);
    let mut live = LiveSender::open(&bench.tx);
    let rings = Some(vec![first as u32]);
    let arguments = ["--duration", "3"];
    let with_program = |it: &mut Capture| it.programs = programs("probe_bracket_ktime", rings);
    let (exit, summary) = capture_with(with_program, &bench.rx, &path, &arguments, || {
        live.send(&frame, 70, first);
        live.send(&frame, 30, second);
    });
    assert_eq!(exit, Exit::Success);
    assert_eq!(
        (
            summary.seen,
            summary.written,
            summary.outcomes[Outcome::NoRing]
        ),
        (100, 70, 30)
    );
    assert_eq!(Recording::read(&path).packets.len(), 70);
}

#[test]
fn frames_without_an_ethernet_header_are_counted() {
    let Some(_lock) = root() else { return };
    // No Ethernet device delivers such a frame, and the command refuses others:
    // so the program alone, on a TUN device.
    let mut tun = Tun::new(&Arc::new(Netns::new("too-short")), "tun0");
    let (loaded, _link) = attached(StampPath::Ktime, &tun);
    for length in [1, 10, 13, 14, 60] {
        tun.receive(&vec![0x45; length]);
    }
    assert_eq!(loaded.counters.seen().expect("counters").sum(), 5);
    let losses = losses_of(&loaded);
    assert_eq!((losses[Outcome::TooShort], losses.total()), (3, 3));
}

fn losses_of(loaded: &Loaded) -> Outcomes {
    let losses = loaded.counters.losses(&[Slot(0)], &Shares::all());
    losses.expect("counters").remove(0).remove(0)
}

/// A CPU whose TSC event is gone, as after it was taken offline and put back.
#[test]
fn frames_without_a_stamp_are_counted() {
    let Some(_lock) = root() else { return };
    let mut tun = Tun::new(&Arc::new(Netns::new("no-stamp")), "tun0");
    let (mut loaded, _link) = attached(StampPath::Tsc(TscPath::Perf), &tun);
    let frame = [0x45; 60];
    for _ in 0..5 {
        tun.receive(&frame);
    }
    let losses = losses_of(&loaded);
    assert_eq!((losses[Outcome::NoStamp], losses.total()), (5, 5));

    let _events = loaded
        .open_tsc_events(&all_cpus(), EventPriority::Pinned)
        .expect("open the events");
    tun.receive(&frame);
    assert_eq!(loaded.counters.seen().expect("counters").sum(), 6);
    let losses = losses_of(&loaded);
    assert_eq!(losses.total(), 5);
}

fn all_cpus() -> Vec<u32> {
    process::cpus().iter().map(|cpu| *cpu as u32).collect()
}

/// The program alone, on a device that the command would refuse.
fn attached(path: StampPath, tun: &Tun) -> (Loaded, InterfaceLink) {
    let ring_cpus = all_cpus();
    let possible_cpus = ring_cpus.iter().max().expect("a CPU") + 1;
    let mut options = LoadOptions::new(PROGRAMS, (128 * 1024, &ring_cpus), possible_cpus);
    (options.program, options.clock) = (Hook::Xdp.program(path.domain()), path.domain());
    let loaded = Loaded::load(&options).expect("load the program");
    let program = loaded.program.as_fd();
    let netns = &tun.port.netns;
    let link =
        netns.enter(|| InterfaceLink::attach(program, tun.port.index, LinkPoint::GenericXdp));
    let link = link.expect("attach");
    (loaded, link)
}

#[test]
fn stamps_of_one_cpu_never_decrease_by_more_than_the_bound() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("monotonic");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let frame = Frame::new(&bench.tx, &bench.rx, 64);
    let mut live = LiveSender::open(&bench.tx);
    for clock in ["ktime", "tai", "tsc"] {
        let capture = capture_on(&bench.rx, &path)
            .with(["--clock", clock])
            .ready();
        live.send(&frame, 500_000, 0);
        let finished = capture.stop();
        let bound = finished.success().clock.host_bound_ns;
        let packets = Recording::read(&path).packets;
        let decreases = packets
            .windows(2)
            .filter(|pair| pair[1].nanos < pair[0].nanos);
        let largest = decreases
            .map(|pair| pair[0].nanos - pair[1].nanos)
            .max()
            .unwrap_or(0);
        assert!(largest <= bound, "{clock}: {largest} ns, bound {bound} ns");
    }
}
