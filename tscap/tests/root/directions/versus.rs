//! A capture, and for each direction of each of its interfaces a tcpdump beside it.

use std::collections::BTreeMap;

use serde_json::Value;
use tempfile::TempDir;
use tscap::Summary;
use tscap_common::block::{FLAGS_INBOUND, FLAGS_OUTBOUND, MAX_CAPLEN};
use tscap_file::accounting::{Directed, Direction, Totals};
use tscap_testkit::capture::{Capture, capture_both};
use tscap_testkit::files;
use tscap_testkit::frame::Frame;
use tscap_testkit::packet_socket::PacketSocket;
use tscap_testkit::peers;
use tscap_testkit::port::Port;
use tscap_testkit::recording::{Packet, Recording};
use tscap_testkit::tcpdump::{Seen, Tcpdump};

/// Frames with this number and those after it are the last ones, by which is known that
/// everything before them is there.
pub const LAST: u64 = 1 << 48;

/// Both, running.
pub struct Versus {
    capture: Capture,
    witnesses: Vec<Directed<Option<Tcpdump>>>,
    /// The interfaces, and frames that each had sent before.
    ports: Vec<(Port, u64)>,
    folder: TempDir,
}

/// What both saw.
pub struct Compared {
    pub summary: Summary,
    /// By interface.
    pub sides: Vec<Directed<Side>>,
    /// Frames that each interface counted as sent.
    pub sent: Vec<u64>,
    /// What tscap said.
    pub reported: String,
    /// What the last statistics of the first interface say of tscap's own.
    pub last_statistics: Value,
}

/// What both saw of one direction of an interface.
#[derive(Default)]
pub struct Side {
    pub ours: Vec<Packet>,
    pub theirs: Vec<Seen>,
}

/// A frame that both may have seen: its length, and its bytes.
type Shape = (u32, Vec<u8>);

impl Versus {
    /// Captures on `ports`, which are in one namespace.
    pub fn start(ports: &[&Port], options: &[&str]) -> Self {
        let folder = files::folder();
        let witnesses = ports.iter().map(|port| {
            Directed::by(|direction| {
                let name = format!("{}-{direction:?}.pcap", port.name);
                Some(Tcpdump::watch(port, &folder.path().join(name), direction))
            })
        });
        let witnesses = witnesses.collect();
        let plan = capture_both(&ports[0].netns).to(&folder.path().join("out.pcapng"));
        let plan = ports.iter().fold(plan, |plan, port| plan.on(port));
        let capture = plan.with(options).ready();
        let before = ports.iter().map(|port| (Port::clone(port), port.sent()));
        Self {
            capture,
            ports: before.collect(),
            witnesses,
            folder,
        }
    }

    /// Sends a last frame out of each of these: every interface and direction that is
    /// compared must see one at least.
    pub fn last_from(&self, ports: &[&Port]) {
        for (number, port) in (LAST..).zip(ports) {
            let frame = Frame::between(port.mac, [0xff; 6], 60);
            PacketSocket::open(port).send_all(&[frame.bytes(number)]);
        }
    }

    /// Ends both, and checks the account of each direction.
    #[track_caller]
    pub fn stop(self) -> Compared {
        let ports = self.ports.iter();
        let sent = ports.map(|(port, before)| port.sent() - before).collect();
        let finished = self.capture.stop();
        let summary = finished.success();
        let path = self.folder.path().join("out.pcapng");
        let recording = Recording::read(&path);
        assert_eq!(peers::capinfos_count(&path), summary.written);
        check_account(&summary, &recording);
        let mut sides = Vec::new();
        for (number, mut witness) in self.witnesses.into_iter().enumerate() {
            let mut both = Directed::<Side>::default();
            for packet in recording.packets_of(number) {
                both[direction(packet)].ours.push(packet.clone());
            }
            for direction in Direction::ALL {
                let Side { ours, theirs } = &mut both[direction];
                let last = ours.iter().map(|it| &it.data[..]).filter(|it| is_last(it));
                let last: Vec<_> = last.collect();
                let witness = witness[direction].take().expect("taken here only");
                *theirs = witness.stop_with(&last);
            }
            sides.push(both);
        }
        Compared {
            summary,
            sides,
            sent,
            reported: finished.stderr,
            last_statistics: recording.last_statistics(0).custom.clone(),
        }
    }
}

impl Compared {
    /// Of the only interface.
    pub fn side(&self, direction: Direction) -> &Side {
        assert_eq!(self.sides.len(), 1);
        &self.sides[0][direction]
    }

    /// The same where what is sent is stamped before the driver, of frames that softirqs may
    /// have sent. There are kernels that don't run the program in every softirq: it may lack
    /// frames, exactly as many as the interface counted more.
    #[track_caller]
    pub fn are_same_before_the_driver(&self) {
        let sides = self.sides.iter().zip(&self.sent);
        for ((side, sent), interface) in sides.zip(&self.summary.interfaces) {
            side[Direction::In].is_same("in");
            let out = &side[Direction::Out];
            assert_eq!(out.theirs.len() as u64, *sent, "tcpdump has what was sent");
            let (ours, theirs) = (out.our_shapes(), out.their_shapes());
            for (shape, count) in &ours {
                let of_theirs = theirs.get(shape).copied().unwrap_or(0);
                assert!(*count <= of_theirs, "{count}, {of_theirs}: {shape:02x?}");
            }
            let lacking = out.theirs.len() - out.ours.len();
            let of_each = &interface.directions;
            let reported = of_each.iter().find(|it| it.direction == "out");
            let reported = reported.expect("sent frames");
            let counted = reported.interface.expect("it counts").frames;
            assert_eq!(
                (counted - reported.totals.seen, counted),
                (lacking as u64, *sent)
            );
            if lacking > 0 {
                println!("the program did not run for {lacking} of {sent} frames");
            }
            assert!(lacking * 4 <= out.theirs.len(), "{lacking} of {sent}");
        }
    }

    /// Checks that both saw the same frames, on every interface and in each direction.
    #[track_caller]
    pub fn are_same(&self) {
        for (number, side) in self.sides.iter().enumerate() {
            for direction in Direction::ALL {
                let what = format!("interface {number}, {direction:?}");
                side[direction].is_same(&what);
            }
        }
    }
}

impl Side {
    /// Frames of tscap without the last ones.
    pub fn frames(&self) -> usize {
        self.ours.iter().filter(|it| !is_last(&it.data)).count()
    }

    #[track_caller]
    pub fn is_same(&self, what: &str) {
        assert!(
            self.ours.iter().any(|it| is_last(&it.data)),
            "{what}: no last frame"
        );
        let (ours, theirs) = (self.our_shapes(), self.their_shapes());
        let differ = |one: &BTreeMap<Shape, usize>, other: &BTreeMap<Shape, usize>| {
            let differing = one
                .iter()
                .filter(|(it, count)| other.get(it) != Some(count));
            let start = |data: &[u8]| data[..data.len().min(64)].to_vec();
            let shown = differing.map(|((length, data), n)| (*n, *length, start(data)));
            shown.take(4).collect::<Vec<_>>()
        };
        assert!(
            ours == theirs,
            "{what}: {} frames, tcpdump {}\nours: {:02x?}\ntcpdump: {:02x?}",
            self.ours.len(),
            self.theirs.len(),
            differ(&ours, &theirs),
            differ(&theirs, &ours),
        );
    }

    /// How often each frame is there.
    pub fn our_shapes(&self) -> BTreeMap<Shape, usize> {
        counted(self.ours.iter().map(|it| (it.origlen, it.data.clone())))
    }

    /// As tscap keeps them: a frame longer than its largest record is cut.
    pub fn their_shapes(&self) -> BTreeMap<Shape, usize> {
        counted(self.theirs.iter().map(|it| {
            let kept = it.data.len().min(MAX_CAPLEN);
            (it.origlen, it.data[..kept].to_vec())
        }))
    }
}

fn counted(shapes: impl Iterator<Item = Shape>) -> BTreeMap<Shape, usize> {
    let mut counts = BTreeMap::new();
    for shape in shapes {
        *counts.entry(shape).or_default() += 1;
    }
    counts
}

fn is_last(data: &[u8]) -> bool {
    // Of an interface without Ethernet: a datagram with the number.
    if let (Some(0x45), Some(number)) = (data.first(), data.get(28..36)) {
        return number == LAST.to_be_bytes();
    }
    let number_behind = |header: usize| {
        let number = data
            .get(header..)?
            .strip_prefix(&[0x88, 0xb5])?
            .get(16..24)?;
        Some(u64::from_be_bytes(number.try_into().expect("eight bytes")))
    };
    // Untagged or tagged.
    [12, 16]
        .into_iter()
        .filter_map(number_behind)
        .any(|number| number >= LAST)
}

/// Which way a packet went, by its flags.
#[track_caller]
pub fn direction(packet: &Packet) -> Direction {
    match packet.flags.expect("epb_flags") & 3 {
        FLAGS_INBOUND => Direction::In,
        FLAGS_OUTBOUND => Direction::Out,
        other => panic!("direction {other} in epb_flags"),
    }
}

/// Checks that summary, last statistics and packets agree on each direction.
#[track_caller]
pub fn check_account(summary: &Summary, recording: &Recording) {
    let name = |direction| match direction {
        Direction::In => "in",
        Direction::Out => "out",
    };
    let mut all = Directed::<Totals>::default();
    for (number, interface) in summary.interfaces.iter().enumerate() {
        let custom = &recording.last_statistics(number).custom;
        for side in Direction::ALL {
            let packets = recording.packets_of(number);
            let written = packets.filter(|it| direction(it) == side).count() as u64;
            let reported = interface
                .directions
                .iter()
                .find(|it| it.direction == name(side));
            let totals = reported.map_or(Totals::default(), |it| it.totals);
            assert!(totals.add_up(), "{totals:?}");
            assert_eq!(totals.written, written, "{} {side:?}", interface.name);
            if side == Direction::Out {
                assert_eq!(reported.is_some().then_some(totals), read(&custom["sent"]));
            }
            all[side] += totals;
        }
    }
    for side in Direction::ALL {
        let reported = summary
            .directions
            .iter()
            .find(|it| it.direction == name(side));
        let totals = reported.map_or(Totals::default(), |it| it.totals);
        assert_eq!(totals, all[side], "{side:?} over all interfaces");
    }
    let sent = read(&recording.statistics.last().expect("statistics").custom["totals_sent"]);
    assert_eq!(sent.unwrap_or_default(), all[Direction::Out]);
}

fn read(totals: &Value) -> Option<Totals> {
    serde_json::from_value(totals.clone()).expect("totals or nothing")
}
