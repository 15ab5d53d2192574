//! Single frames and pings, both ways at once.

use std::thread;
use std::time::Duration;

use tscap_file::accounting::Direction;
use tscap_testkit::bench::Bench;
use tscap_testkit::command::run;
use tscap_testkit::frame::Frame;
use tscap_testkit::packet_socket::PacketSocket;
use tscap_testkit::port::Port;
use tscap_testkit::process::cpus;
use tscap_testkit::root::root_with;

use super::versus::Versus;

const PROGRAMS: [&str; 5] = ["ip", "ethtool", "tcpdump", "capinfos", "ping"];
const C_TAG: u16 = 0x8100;
const S_TAG: u16 = 0x88a8;

/// Every length from the shortest that a socket sends to the longest, untagged and tagged.
fn frames(from: &Port, to: &Port, mtu: usize) -> Vec<Vec<u8>> {
    let lengths = [
        14, 15, 30, 31, 38, 59, 60, 61, 127, 128, 129, 160, 1000, 1513, 1514,
    ];
    let longer = [1515, 1536, 1537, 4096, 4097, 9013, 9014];
    let mut frames = Vec::new();
    for length in lengths.into_iter().chain(longer) {
        let frame = Frame::new(from, to, length);
        let kinds = [
            frame.clone(),
            frame.clone().tagged(C_TAG, 0xe064),
            frame.clone().tagged(S_TAG, 7).tagged(C_TAG, 42),
            frame.for_a_stranger(),
        ];
        // A single tag must have the next protocol behind it: the kernel drops it before
        // tcpdump sees it.
        let is_cut = |it: &Frame| (16..20).contains(&it.size()) && it.size() == length + 4;
        let kinds = kinds.into_iter().filter(|it| !is_cut(it));
        for kind in kinds.filter(|it| it.size() <= mtu + 14) {
            frames.push(kind.bytes(frames.len() as u64));
        }
    }
    frames
}

fn both_ways(mtu: u32, options: &[&str]) {
    let Some(_lock) = root_with(&PROGRAMS) else {
        return;
    };
    let bench = Bench::with_mtu("dir-frames", mtu);
    let ends = [(&bench.tx, &bench.rx), (&bench.rx, &bench.tx)];
    let versus = Versus::start(&[&bench.rx], options);
    let frames = ends.map(|(from, to)| frames(from, to, mtu as usize));
    thread::scope(|scope| {
        for ((from, _), frames) in ends.iter().zip(&frames) {
            scope.spawn(|| PacketSocket::open(from).send_all(frames));
        }
    });
    versus.last_from(&[&bench.tx, &bench.rx]);
    let compared = versus.stop();
    compared.are_same();
    for (direction, frames) in Direction::ALL.into_iter().zip(&frames) {
        let side = compared.side(direction);
        assert_eq!(side.frames(), frames.len());
        for (packet, sent) in side.ours.iter().zip(frames) {
            assert_eq!(packet.data, *sent, "{direction:?}");
        }
    }
}

#[test]
fn frames_of_every_kind_beside_native_xdp() {
    both_ways(1500, &["--hook", "xdp"]);
}

#[test]
fn frames_of_every_kind_beside_tcx() {
    both_ways(1500, &["--hook", "tcx"]);
}

#[test]
fn long_frames_beside_native_xdp() {
    both_ways(9000, &["--hook", "xdp"]);
}

#[test]
fn long_frames_beside_tcx() {
    both_ways(9000, &["--hook", "tcx"]);
}

/// Of each clock there is a program for each hook.
#[test]
fn frames_stamped_by_each_clock() {
    for clock in ["tai", "tsc"] {
        for [hook, point] in [["xdp", "qdisc"], ["tcx", "qdisc"], ["tcx", "driver"]] {
            let options = ["--hook", hook, "--egress-point", point, "--clock", clock];
            both_ways(1500, &[&options[..], &["--force"]].concat());
        }
    }
}

#[test]
fn frames_of_every_kind_before_the_driver() {
    both_ways(1500, &["--egress-point", "driver"]);
}

#[test]
fn long_frames_before_the_driver() {
    both_ways(9000, &["--hook", "tcx", "--egress-point", "driver"]);
}

/// With fragments of long ones, and ARP.
#[test]
fn pings_both_ways() {
    let Some(_lock) = root_with(&PROGRAMS) else {
        return;
    };
    let bench = Bench::new("dir-ping");
    bench.add_addresses();
    let versus = Versus::start(&[&bench.rx], &[]);
    for (port, address) in [(&bench.tx, "10.9.0.2"), (&bench.rx, "10.9.0.1")] {
        for size in ["0", "56", "1472", "8000"] {
            let mut ping = port.netns.command("ping");
            ping.args(["-q", "-c", "20", "-i", "0.002", "-s", size, address]);
            let done = run(&mut ping, Duration::from_secs(60));
            assert!(done.stdout.contains(" 20 received"), "{}", done.stdout);
        }
    }
    versus.last_from(&[&bench.tx, &bench.rx]);
    let compared = versus.stop();
    compared.are_same();
    for direction in Direction::ALL {
        // 40 of each size one way, those of 8000 bytes in six fragments; ARP besides.
        assert!(compared.side(direction).frames() >= 40 * (3 + 6));
    }
}

/// Nothing is put where received frames pass.
#[test]
fn sent_frames_alone() {
    let Some(_lock) = root_with(&PROGRAMS) else {
        return;
    };
    let bench = Bench::new("dir-out");
    let versus = Versus::start(&[&bench.rx], &["-Q", "out"]);
    assert_eq!(bench.rx.xdp_program(), None);
    let (sent, received) = (
        Frame::new(&bench.rx, &bench.tx, 100),
        Frame::new(&bench.tx, &bench.rx, 100),
    );
    PacketSocket::open(&bench.tx).send(&received, 0..500, cpus()[0]);
    PacketSocket::open(&bench.rx).send(&sent, 0..500, cpus()[0]);
    versus.last_from(&[&bench.rx]);
    let compared = versus.stop();
    compared.side(Direction::Out).is_same("sent");
    assert_eq!(compared.side(Direction::Out).frames(), 500);
    assert_eq!(compared.side(Direction::In).ours.len(), 0);
    let [only] = &compared.summary.interfaces[0].directions[..] else {
        panic!("{:?}", compared.summary.interfaces);
    };
    assert_eq!(only.hook.as_deref(), Some("tcx egress"));
}
