//! Programs of somebody else at egress.

use tscap_file::accounting::Direction;
use tscap_testkit::bench::Bench;
use tscap_testkit::frame::Frame;
use tscap_testkit::packet_socket::PacketSocket;
use tscap_testkit::root::root_with;

use super::versus::Versus;

const PROGRAMS: [&str; 5] = ["ip", "ethtool", "tcpdump", "capinfos", "tc"];
/// Classic BPF that returns TC_ACT_OK, or TC_ACT_SHOT for frames of 200 bytes.
const PASSES: &str = "1,6 0 0 0,";
const DROPS: &str = "4,128 0 0 0,21 0 1 200,6 0 0 2,6 0 0 0,";

/// tscap's program runs first, and leaves the frame to the others.
#[test]
fn all_frames_are_seen_before_others_decide() {
    let Some(_lock) = root_with(&PROGRAMS) else {
        return;
    };
    for (bytecode, dropped) in [(PASSES, 0), (DROPS, 30)] {
        let bench = Bench::new("dir-beside");
        let tc = |arguments: &[&str]| bench.rx.netns.must("tc", arguments);
        tc(&["qdisc", "add", "dev", "rx0", "clsact"]);
        let filter = ["filter", "add", "dev", "rx0", "egress", "bpf", "da"];
        tc(&[&filter[..], &["bytecode", bytecode]].concat());
        let versus = Versus::start(&[&bench.rx], &[]);
        let socket = PacketSocket::open(&bench.rx);
        let frames = [100, 200].map(|size| Frame::new(&bench.rx, &bench.tx, size));
        for number in 0..30 {
            for frame in &frames {
                // What is dropped is an error of the socket's.
                let _ = socket.send_once(&frame.bytes(number));
            }
        }
        versus.last_from(&[&bench.tx, &bench.rx]);
        let compared = versus.stop();
        compared.side(Direction::In).is_same("in");
        let out = compared.side(Direction::Out);
        assert_eq!(out.frames(), 60);
        assert_eq!(out.theirs.len() + dropped, out.ours.len());
        let kept = out
            .ours
            .iter()
            .filter(|it| dropped == 0 || it.origlen != 200);
        for (ours, theirs) in kept.zip(&out.theirs) {
            assert_eq!(ours.data, theirs.data);
        }
    }
}
