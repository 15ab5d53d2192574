//! Captures of both directions in twenty namespaces at once.

use std::thread;

use tscap_file::accounting::Direction;
use tscap_testkit::bench::Bench;
use tscap_testkit::frame::Frame;
use tscap_testkit::packet_socket::PacketSocket;
use tscap_testkit::root::alone_with;

use super::versus::Versus;

#[test]
#[ignore = "long: by night"]
fn twenty_namespaces_with_a_capture_each() {
    let programs = ["ip", "ethtool", "tcpdump", "capinfos"];
    let Some(_lock) = alone_with("sixty programs that capture", &programs) else {
        return;
    };
    let benches: Vec<_> = (0..20).map(|_| Bench::new("dir-many")).collect();
    let running: Vec<_> = benches
        .iter()
        .map(|bench| Versus::start(&[&bench.rx], &["--ring-size", "1M"]))
        .collect();
    thread::scope(|scope| {
        for (number, bench) in (0..).zip(&benches) {
            let ends = [(&bench.tx, &bench.rx), (&bench.rx, &bench.tx)];
            scope.spawn(move || {
                for (way, (from, to)) in (0..).zip(ends) {
                    let frame = Frame::new(from, to, 200);
                    // Of no other namespace or direction.
                    let first = (number * 2 + way) << 32;
                    let frames: Vec<_> = (first..first + 300).map(|n| frame.bytes(n)).collect();
                    PacketSocket::open(from).send_all(&frames);
                }
            });
        }
    });
    for (bench, versus) in benches.iter().zip(running) {
        versus.last_from(&[&bench.tx, &bench.rx]);
        let compared = versus.stop();
        compared.are_same();
        for direction in Direction::ALL {
            assert_eq!(compared.side(direction).frames(), 300);
        }
    }
}
