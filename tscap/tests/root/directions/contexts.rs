//! One ring a CPU takes records from two programs: of sent frames, which run in the sender's
//! context, and of received ones, which run in softirq.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use tscap_file::accounting::{Direction, Outcome};
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::capture_both;
use tscap_testkit::files;
use tscap_testkit::frame::Frame;
use tscap_testkit::packet_socket::PacketSocket;
use tscap_testkit::packets;
use tscap_testkit::port::Port;
use tscap_testkit::process::on_cpu;
use tscap_testkit::root::{alone, two_cpus};

const SECONDS: Duration = Duration::from_secs(5);
/// Frames in a row from one sender.
const TURN: u64 = 32;
/// Set in the numbers of frames that the captured interface sends.
const SENT: u64 = 1 << 63;

/// Sends frames from `first` on until `ended`, each number once; gives how many it sent.
/// `refused` counts those that did not leave.
fn send(from: &Port, frame: &Frame, first: u64, ended: &AtomicBool, refused: &AtomicU64) -> u64 {
    let socket = PacketSocket::open(from);
    let mut number = first;
    while !ended.load(Ordering::Relaxed) {
        if socket.send_once(&frame.bytes(number)).is_err() {
            refused.fetch_add(1, Ordering::Relaxed);
        }
        number += 1;
        // The other sender's turn, and back: often within a time slice.
        if number.is_multiple_of(TURN) {
            thread::yield_now();
        }
    }
    number - first
}

#[test]
fn one_ring_takes_both_contexts_of_a_cpu() {
    both_contexts("qdisc");
}

#[test]
fn one_ring_takes_both_contexts_before_the_driver() {
    both_contexts("driver");
}

fn both_contexts(point: &str) {
    let Some(_lock) = alone("full rate on one CPU, for seconds") else {
        return;
    };
    let Some((cpu, other)) = two_cpus() else {
        return;
    };
    let bench = Bench::new("dir-contexts");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    // As much of a frame as has its number.
    let options = ["-s", "40", "--converter-cpu", &other.to_string()];
    let plan = capture_both(&bench.rx.netns).on(&bench.rx).to(&path);
    let plan = plan.with(["--egress-point", point]);
    let capture = plan.with(options).ready();
    let [received, sent] = [(&bench.tx, &bench.rx), (&bench.rx, &bench.tx)];
    let (ended, refused) = (AtomicBool::new(false), [const { AtomicU64::new(0) }; 2]);
    let counts = thread::scope(|scope| {
        let start = |(from, to), first, refused| {
            let (frame, ended) = (Frame::new(from, to, 64), &ended);
            scope.spawn(move || on_cpu(cpu, || send(from, &frame, first, ended, refused)))
        };
        let both = [
            start(received, 0, &refused[0]),
            start(sent, SENT, &refused[1]),
        ];
        thread::sleep(SECONDS);
        ended.store(true, Ordering::Relaxed);
        both.map(|sender| sender.join().expect("a sender"))
    });
    // What tx0 refused did not come in; what rx0 refused has been at its program.
    let [refused, _] = refused.map(AtomicU64::into_inner);
    let finished = capture.stop();
    let summary = finished.success();

    let frame = Frame::new(&bench.tx, &bench.rx, 64);
    let (mut next, mut missing, mut written) = ([0, SENT], [0; 2], [0; 2]);
    let (mut before, mut switches) = (0, 0_u64);
    packets::each(&path, |packet| {
        let number = frame.number(packet.data);
        let way = usize::from(number & SENT != 0);
        assert!(number >= next[way], "{number:#x} after {:#x}", next[way]);
        missing[way] += number - next[way];
        next[way] = number + 1;
        written[way] += 1;
        switches += u64::from(way != before);
        before = way;
    })
    .expect("whole blocks");
    missing[0] += counts[0] - next[0];
    missing[1] += counts[1] - (next[1] - SENT);

    let rates = format!("{counts:?} frames, {switches} changes of direction, {missing:?} lost");
    eprintln!("{rates}");
    for (way, direction) in summary.directions.iter().enumerate() {
        let totals = direction.totals;
        let lost = totals.outcomes[Outcome::RingFull];
        assert_eq!(totals.seen, totals.written + lost, "{totals:?}");
        assert_eq!(totals.written, written[way]);
        let refused = if way == Direction::In as usize {
            refused
        } else {
            0
        };
        assert_eq!(totals.seen, counts[way] - refused, "{rates}");
        assert_eq!(missing[way], lost + refused, "{rates}");
    }
    assert!(counts.iter().all(|it| *it > 20_000), "{rates}");
    assert!(switches > 100, "{rates}");
}
