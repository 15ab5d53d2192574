//! Two CPUs receive at once: both rings fill, and the file is in order of time.
//! Needs root and two CPUs.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use tscap_testkit::bench::Bench;
use tscap_testkit::capture::{LIMIT, capture};
use tscap_testkit::cpu_state;
use tscap_testkit::files;
use tscap_testkit::frame::Frame;
use tscap_testkit::packet_socket::PacketSocket;
use tscap_testkit::port::Port;
use tscap_testkit::recording::Recording;
use tscap_testkit::root::{alone, two_cpus};
use tscap_testkit::wait;

/// One CPU that sends: from a port to a port.
struct Sender<'a> {
    cpu: usize,
    tx: &'a Port,
    rx: &'a Port,
}

/// Sends frames of some numbers from a CPU.
type Send<'a> = &'a (dyn Fn(&PacketSocket, &Frame, Range<u64>, usize) + Sync);

/// Captures `frames` frames from each of two senders, and checks that the file
/// holds every one that entered XDP once, and in order of time but for those
/// that the summary says are late.
fn capture_from(senders: &[Sender<'_>; 2], clock: &str, frames: u64, send: Send<'_>) {
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let ports: BTreeMap<_, _> = senders.iter().map(|s| (s.rx.index, s.rx)).collect();
    let entered = || -> u64 {
        let counters = ports.values().map(|port| port.driver_counters());
        counters.map(|counters| counters["rx_xdp_packets"]).sum()
    };

    let plan = capture(&senders[0].rx.netns)
        .with(["--clock", clock])
        .to(&path);
    let capture = ports
        .values()
        .fold(plan, |plan, port| plan.on(port))
        .ready();
    let before = entered();
    std::thread::scope(|scope| {
        for (sender, from) in senders.iter().zip([0, frames]) {
            let frame = Frame::new(sender.tx, sender.rx, 64);
            let numbers = from..from + frames;
            scope.spawn(move || {
                send(&PacketSocket::open(sender.tx), &frame, numbers, sender.cpu);
            });
        }
    });
    // What the senders leave to ksoftirqd comes later. Nothing tells that it is idle: the
    // count has stood for a while.
    let mut last = None;
    let entered = wait::until("the last frame", LIMIT, || {
        std::thread::sleep(Duration::from_millis(50));
        let now = entered() - before;
        (last.replace(now) == Some(now)).then_some(now)
    });
    let recorded = wait::until("every frame to be recorded", LIMIT, || {
        let recorded = cpu_state::recorded();
        (recorded.iter().sum::<u64>() >= entered).then_some(recorded)
    });
    for Sender { cpu, .. } in senders {
        assert!(recorded[*cpu] > 0, "CPU {cpu} has none: {recorded:?}");
    }
    let finished = capture.stop();

    let summary = finished.success();
    assert_eq!(summary.seen, entered);
    assert_eq!(summary.written, entered, "{:?}", summary.outcomes);
    let recording = Recording::read(&path);
    let (mut youngest, mut behind) = (0, 0);
    let mut numbers = Vec::new();
    for packet in &recording.packets {
        behind += u64::from(packet.nanos < youngest);
        youngest = youngest.max(packet.nanos);
        let sent = senders.iter().find_map(|sender| {
            let frame = Frame::new(sender.tx, sender.rx, 64);
            let number = frame.number(&packet.data);
            (packet.data == frame.bytes(number)).then_some(number)
        });
        numbers.push(sent.expect("a frame as it was sent"));
    }
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len() as u64, entered, "a frame is there twice");

    let order = &summary.clock.order;
    println!(
        "{clock}: {entered} frames, {recorded:?} by CPU; {behind} behind a younger one, by {} ns at most",
        order.largest_lateness_ns
    );
    if order.stamp_decreases == 0 && summary.clock.steps == 0 {
        assert_eq!(behind, order.late);
    }
    // At most one each time a CPU is taken away in the middle of a frame.
    assert!(order.late <= 1 + entered / 1000, "{order:?}");
    let statistics = &recording.last_statistics(0).custom["clock"];
    assert_eq!(statistics["late"], order.late);
}

fn flat_out(socket: &PacketSocket, frame: &Frame, numbers: Range<u64>, cpu: usize) {
    socket.send(frame, numbers, cpu);
}

#[test]
fn a_million_frames_from_two_cpus_are_in_order() {
    let Some(_lock) = alone("looks for the latest capture of the machine") else {
        return;
    };
    let Some((first, second)) = two_cpus() else {
        return;
    };
    let bench = Bench::new("merge");
    let (tx, rx) = (&bench.tx, &bench.rx);
    let senders = [first, second].map(|cpu| Sender { cpu, tx, rx });
    capture_from(&senders, "ktime", 500_000, &flat_out);
}

/// The CPUs share one queue above, which only one of them empties at a time;
/// here each has its own.
#[test]
fn frames_that_two_cpus_receive_at_the_same_time_are_in_order() {
    let Some(_lock) = alone("looks for the latest capture of the machine") else {
        return;
    };
    let Some((first, second)) = two_cpus() else {
        return;
    };
    let bench = Bench::new("both");
    let (tx, rx) = bench.add_pair(1);
    let one = Sender {
        cpu: first,
        tx: &bench.tx,
        rx: &bench.rx,
    };
    let other = Sender {
        cpu: second,
        tx: &tx,
        rx: &rx,
    };
    let senders = [one, other];
    for clock in ["ktime", "tai", "tsc"] {
        capture_from(&senders, clock, 200_000, &flat_out);
    }
}

#[test]
fn slow_traffic_of_two_cpus_is_in_order() {
    let Some(_lock) = alone("looks for the latest capture of the machine") else {
        return;
    };
    let Some((first, second)) = two_cpus() else {
        return;
    };
    let bench = Bench::new("slow");
    let (tx, rx) = (&bench.tx, &bench.rx);
    // About as fast as the window, as the drains under traffic, and as the
    // converter's longest sleep.
    for (gap_us, frames) in [(70, 20_000), (300, 5_000), (11_000, 100)] {
        let senders = [first, second].map(|cpu| Sender { cpu, tx, rx });
        capture_from(&senders, "ktime", frames, &|socket, frame, numbers, cpu| {
            socket.send_paced(frame, numbers, cpu, Duration::from_micros(gap_us));
        });
    }
}
