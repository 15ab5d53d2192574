//! A TCP connection that carries data both ways, with aggregates and without: each byte
//! as often as tcpdump has it, and frame by frame where both see the same.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::ops::Range;
use std::sync::mpsc;
use std::thread;

use tscap_common::block::{FLAGS_CHECKSUM_NOT_READY, FLAGS_SEGMENTED_LATER};
use tscap_file::accounting::Direction;
use tscap_testkit::bench::Bench;
use tscap_testkit::root::root_with;

use super::versus::{Compared, Versus};

const PROGRAMS: [&str; 4] = ["ip", "ethtool", "tcpdump", "capinfos"];
/// Bytes each way.
const LENGTH: usize = 4 << 20;
const ETHERNET: usize = 14;

fn pattern(from: &str, at: usize) -> u8 {
    (at.wrapping_mul(0x9e37_79b1) >> 13) as u8 ^ from.as_bytes()[0]
}

/// Sends its own bytes while it reads and checks those of the other end.
fn exchange(mut stream: TcpStream, own: &str, other: &str) {
    let mut reader = stream.try_clone().expect("clone");
    thread::scope(|scope| {
        scope.spawn(move || {
            let bytes: Vec<u8> = (0..LENGTH).map(|at| pattern(own, at)).collect();
            stream.write_all(&bytes).expect("send");
            stream.shutdown(Shutdown::Write).expect("shut down");
        });
        let mut received = Vec::new();
        reader.read_to_end(&mut received).expect("receive");
        let expected = (0..LENGTH).map(|at| pattern(other, at));
        assert!(received.into_iter().eq(expected), "what {own} received");
    });
}

/// Captures such a connection.
fn captured(bench: &Bench, options: &[&str]) -> Compared {
    bench.add_addresses();
    let versus = Versus::start(&[&bench.rx], options);
    let (ready, listens) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(|| {
            bench.rx.netns.enter(|| {
                let listener = TcpListener::bind("10.9.0.2:4000").expect("bind");
                ready.send(()).expect("the client waits");
                exchange(listener.accept().expect("accept").0, "rx", "tx");
            });
        });
        listens.recv().expect("the server listens");
        bench.tx.netns.enter(|| {
            exchange(
                TcpStream::connect("10.9.0.2:4000").expect("connect"),
                "tx",
                "rx",
            );
        });
    });
    versus.last_from(&[&bench.tx, &bench.rx]);
    versus.stop()
}

/// A frame with a TCP segment, or an aggregate of them.
struct Segment<'a> {
    sequence: u32,
    flags: u8,
    /// What it says it carries, bytes.
    length: usize,
    /// The part of that which is in the file.
    payload: &'a [u8],
}

impl<'a> Segment<'a> {
    const FIN: u8 = 1;
    const SYN: u8 = 2;

    fn of(origlen: u32, frame: &'a [u8]) -> Option<Self> {
        let ip = frame.get(ETHERNET..)?;
        if frame[12..14] != [8, 0] || ip[9] != 6 {
            return None;
        }
        let tcp = &ip[usize::from(ip[0] & 15) * 4..];
        let payload = &tcp[usize::from(tcp[12] >> 4) * 4..];
        let missing = origlen as usize - frame.len();
        Some(Self {
            sequence: u32::from_be_bytes(tcp[4..8].try_into().expect("four bytes")),
            flags: tcp[13],
            length: payload.len() + missing,
            payload,
        })
    }
}

/// What one program saw of one direction.
#[derive(Debug, Default, PartialEq)]
struct Stream {
    /// How often it saw each byte.
    times: Vec<u32>,
    /// Where it saw the end.
    ends: BTreeSet<usize>,
    /// Frames without data, with what is filled in on the way left out.
    bare: BTreeMap<Vec<u8>, usize>,
}

impl Stream {
    fn of<'a>(
        frames: impl Iterator<Item = (u32, &'a [u8])> + Clone,
        from: &str,
        left_out: Range<usize>,
    ) -> Self {
        let segments = frames
            .clone()
            .filter_map(|(length, it)| Segment::of(length, it));
        let first = segments.clone().find(|it| it.flags & Segment::SYN != 0);
        let first = first.expect("a connection begins").sequence.wrapping_add(1);
        let mut stream = Self {
            times: vec![0; LENGTH],
            ..Self::default()
        };
        for segment in segments {
            let at = segment.sequence.wrapping_sub(first) as usize;
            for times in stream.times.iter_mut().skip(at).take(segment.length) {
                *times += 1;
            }
            let wanted = (at..).map(|at| pattern(from, at));
            let has_data = segment.length > 0;
            assert!(
                !has_data
                    || segment
                        .payload
                        .iter()
                        .copied()
                        .eq(wanted.take(segment.payload.len()))
            );
            if segment.flags & Segment::FIN != 0 {
                stream.ends.insert(at + segment.length);
            }
        }
        for (length, frame) in frames {
            if Segment::of(length, frame).is_none_or(|it| it.length == 0) {
                let mut frame = frame.to_vec();
                if Segment::of(length, &frame).is_some() {
                    frame[left_out.clone()].fill(0);
                }
                *stream.bare.entry(frame).or_default() += 1;
            }
        }
        stream
    }
}

/// The checksum of a TCP segment in an IPv4 packet without options.
const CHECKSUM: Range<usize> = ETHERNET + 20 + 16..ETHERNET + 20 + 18;

/// Checks that both saw each byte as often.
fn same_streams(compared: &Compared, left_out: Range<usize>) {
    for (direction, from) in Direction::ALL.into_iter().zip(["tx", "rx"]) {
        let side = compared.side(direction);
        let ours = side.ours.iter().map(|it| (it.origlen, &it.data[..]));
        let theirs = side.theirs.iter().map(|it| (it.origlen, &it.data[..]));
        let ours = Stream::of(ours, from, left_out.clone());
        let theirs = Stream::of(theirs, from, left_out.clone());
        assert!(
            ours.times.iter().all(|times| *times > 0),
            "{direction:?}: a byte is missing"
        );
        assert!(ours.times == theirs.times, "{direction:?}: bytes");
        assert_eq!(ours.ends, theirs.ends, "{direction:?}");
        assert_eq!(ours.bare, theirs.bare, "{direction:?}");
    }
}

/// The longest frame that each saw: tscap, then tcpdump.
fn longest(compared: &Compared, direction: Direction) -> [u32; 2] {
    let side = compared.side(direction);
    let ours = side.ours.iter().map(|it| it.origlen).max();
    let theirs = side.theirs.iter().map(|it| it.origlen).max();
    [ours, theirs].map(|it| it.expect("a frame"))
}

fn with_offloads(tag: &str) -> Bench {
    let bench = Bench::new(tag);
    for port in [&bench.tx, &bench.rx] {
        for name in ["tso", "gso", "gro"] {
            port.offload(name, true);
        }
    }
    bench
}

/// tcx is where tcpdump is, both ways: the same aggregates.
#[test]
fn aggregates_are_the_same_beside_tcx() {
    let Some(_lock) = root_with(&PROGRAMS) else {
        return;
    };
    let bench = with_offloads("dir-tso-tcx");
    let compared = captured(&bench, &["--hook", "tcx"]);
    compared.are_same();
    same_streams(&compared, 0..0);
    for direction in Direction::ALL {
        let [ours, theirs] = longest(&compared, direction);
        assert!(
            ours > 1514 && ours == theirs,
            "{direction:?}: {ours}, {theirs}"
        );
    }
}

/// Before the driver too: of an aggregate hardly anything lies in the first buffer.
#[test]
fn aggregates_are_the_same_before_the_driver() {
    let Some(_lock) = root_with(&PROGRAMS) else {
        return;
    };
    let bench = with_offloads("dir-tso-driver");
    let options = ["--hook", "tcx", "--egress-point", "driver"];
    let compared = captured(&bench, &options);
    compared.are_same_before_the_driver();
    let side = compared.side(Direction::Out);
    assert!(longest(&compared, Direction::Out)[0] > 1514);
    let is_aggregate = |flags: u32| flags & FLAGS_SEGMENTED_LATER != 0;
    let flags = side.ours.iter().map(|it| (it.origlen, it.flags));
    for (length, flags) in flags {
        assert_eq!(flags.map(is_aggregate), Some(length > 1514), "{length}");
    }
}

/// Where the device can't, the kernel has made frames of aggregates and filled in checksums
/// before the driver gets them.
#[test]
fn frames_are_finished_before_the_driver() {
    let Some(_lock) = root_with(&PROGRAMS) else {
        return;
    };
    let bench = Bench::new("dir-plain-driver");
    for port in [&bench.tx, &bench.rx] {
        port.offload("tx", false);
    }
    let compared = captured(&bench, &["--egress-point", "driver"]);
    compared.are_same_before_the_driver();
    assert_eq!(longest(&compared, Direction::Out), [1514, 1514]);
    let unready = FLAGS_SEGMENTED_LATER | FLAGS_CHECKSUM_NOT_READY;
    for packet in &compared.side(Direction::Out).ours {
        assert_eq!(packet.flags.expect("epb_flags") & unready, 0);
    }
}

/// XDP sees frames before they are aggregated, tcpdump after that; what is sent is the same.
#[test]
fn each_byte_is_the_same_beside_native_xdp() {
    let Some(_lock) = root_with(&PROGRAMS) else {
        return;
    };
    let bench = with_offloads("dir-tso-xdp");
    let compared = captured(&bench, &["--hook", "xdp"]);
    same_streams(&compared, 0..0);
    compared.side(Direction::Out).is_same("out");
    assert_eq!(longest(&compared, Direction::In)[0], 1514);
    assert!(longest(&compared, Direction::Out)[0] > 1514);
}

/// The kernel makes frames of aggregates and fills in checksums on the way from tcx egress
/// to tcpdump, where the device can't.
#[test]
fn each_byte_is_the_same_without_offloads() {
    let Some(_lock) = root_with(&PROGRAMS) else {
        return;
    };
    for hook in ["xdp", "tcx"] {
        let bench = Bench::new("dir-plain");
        for port in [&bench.tx, &bench.rx] {
            port.offload("tx", false);
        }
        let compared = captured(&bench, &["--hook", hook]);
        same_streams(&compared, CHECKSUM);
        compared.side(Direction::In).is_same("in");
        assert_eq!(longest(&compared, Direction::In), [1514, 1514]);
        let [ours, theirs] = longest(&compared, Direction::Out);
        assert!(ours > theirs && theirs == 1514, "{ours}, {theirs}");
    }
}
