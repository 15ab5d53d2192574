//! Of captures whose every packet is known.

use std::borrow::Cow;
use std::io::Cursor;

use etherparse::PacketBuilder;
use pcap_file::DataLink;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::custom::{CustomBinaryOption, CustomUtf8Option};
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption, InterfaceTsResolution,
};
use pcap_file::pcapng::blocks::interface_statistics::{
    InterfaceStatisticsBlock, InterfaceStatisticsOption,
};
use pcap_file::pcapng::blocks::opt_common::CommonOption;
use serde::Serialize;

use super::*;
use crate::schema::{Account, Certificate};
use tscap_clock::{CounterReport, NsPerCycle, StampPath, TimeBase, TscPath};
use tscap_file::accounting::{Direction, Outcomes, StampOrder};
use tscap_file::pcapng::{ClockOption, Hooks, InterfaceOption, PEN, StampOption, StatisticsOption};

mod clocks;

const NOW: u64 = 1_800_000_000_000_000_000;

/// A file in the making.
struct File(PcapNgWriter<Vec<u8>>);

impl File {
    fn new() -> Self {
        Self(PcapNgWriter::new(Vec::new()).unwrap())
    }

    /// Of another program, with these interfaces.
    fn foreign(names: &[&str]) -> Self {
        let mut file = Self::new();
        for name in names {
            file.interface(name, DataLink::ETHERNET, None);
        }
        file
    }

    /// Of tscap, with these interfaces, both directions of each.
    fn ours(names: &[&str], path: StampPath) -> Self {
        let mut file = Self::new();
        for name in names {
            file.interface(name, DataLink::ETHERNET, Some(&option(path, true)));
        }
        file
    }

    fn interface(&mut self, name: &str, linktype: DataLink, tscap: Option<&InterfaceOption>) {
        let mut block = InterfaceDescriptionBlock::new(linktype, 0);
        block.options = vec![
            InterfaceDescriptionOption::IfName(name.to_owned().into()),
            InterfaceDescriptionOption::IfTsResol(InterfaceTsResolution::NANO),
        ];
        let tscap = tscap.map(|it| InterfaceDescriptionOption::Common(json(it)));
        block.options.extend(tscap);
        self.0.write_pcapng_block(block).unwrap();
    }

    fn packet(&mut self, packet: &Frame<'_>) {
        let mut options = Vec::new();
        if let Some(direction) = packet.direction {
            let flags = if direction == Direction::Out { 2 } else { 1 };
            options.push(EnhancedPacketOption::Flags(flags));
        }
        if let Some(raw) = packet.raw {
            let value = Cow::Owned(raw.to_ne_bytes().to_vec());
            let raw = CustomBinaryOption { pen: PEN, value };
            options.push(EnhancedPacketOption::Common(
                CommonOption::CustomBinaryCopiable(raw),
            ));
        }
        let block = EnhancedPacketBlock {
            interface_id: packet.interface,
            timestamp: RealNs(NOW + packet.at_ns).since_epoch(),
            original_len: packet.bytes.len() as u32 + packet.cut,
            data: Cow::Borrowed(packet.bytes),
            options,
        };
        self.0.write_pcapng_block(block).unwrap();
    }

    fn statistics(&mut self, interface_id: u32, statistics: &StatisticsOption) {
        let block = InterfaceStatisticsBlock {
            interface_id,
            timestamp: RealNs(NOW).since_epoch(),
            options: vec![InterfaceStatisticsOption::Common(json(statistics))],
        };
        self.0.write_pcapng_block(block).unwrap();
    }

    fn measure(self, plan: &FilePlan) -> Result<FileResult, FileError> {
        measure_file(&mut Cursor::new(self.0.into_inner()), plan)
    }
}

/// A frame of the file.
#[derive(Clone, Copy)]
struct Frame<'a> {
    interface: u32,
    direction: Option<Direction>,
    at_ns: u64,
    raw: Option<u64>,
    bytes: &'a [u8],
    cut: u32,
}

impl Default for Frame<'_> {
    fn default() -> Self {
        Self {
            interface: 0,
            direction: Some(Direction::In),
            at_ns: 0,
            raw: None,
            bytes: &[1; 60],
            cut: 0,
        }
    }
}

fn json(option: &impl Serialize) -> CommonOption<'static> {
    CommonOption::CustomUtf8Copiable(CustomUtf8Option {
        pen: PEN,
        value: Cow::Owned(serde_json::to_string(option).unwrap()),
    })
}

fn option(path: StampPath, takes_sent: bool) -> InterfaceOption {
    let hooks = Hooks {
        received: Some("native XDP".into()),
        sent: takes_sent.then(|| "tcx egress".into()),
    };
    let mut option = InterfaceOption::new(hooks, StampOption::new(path), Default::default());
    option.boot_id = Some("boot".into());
    option
}

/// Of a clock with cycles of half a nanosecond.
fn statistics(path: StampPath, outcomes: Outcomes) -> StatisticsOption {
    let clock = ClockOption {
        stamp: StampOption::new(path),
        counter: Some(CounterReport {
            ns_per_cycle_2_58: NsPerCycle(NsPerCycle::ONE.0 / 2),
            rate_bound_ppb: 1_000_000,
            raw: None,
        }),
        host_bound_ns: 20,
        stamp_error_ns: 3,
        utc_bound_ns: None,
        utc: None,
        reference: None,
        references: Vec::new(),
        order: StampOrder::default(),
        segments_left_out: 0,
        segments: Vec::new(),
        samples: Vec::new(),
    };
    StatisticsOption::new(outcomes, clock, None)
}

fn plan(how: How, entry: &str, exit: &str) -> FilePlan {
    FilePlan {
        how,
        entry: entry.into(),
        exit: exit.into(),
        matched_by: Match::Bridge,
        window: Duration::from_millis(1),
        capacity: 1_000,
    }
}

/// Sixty bytes that nothing else has.
fn bytes(number: u64) -> Vec<u8> {
    let mut bytes = vec![0; 60];
    bytes[20..28].copy_from_slice(&number.to_le_bytes());
    bytes
}

/// In at `a`, out at `b`: number, time, and time at the other end.
fn through(file: &mut File, passages: &[(u64, u64, Option<u64>)], raw: Option<u64>) {
    let mut frames = Vec::new();
    for (number, entered, left) in passages {
        frames.push((*entered, 0, Direction::In, bytes(*number)));
        frames.extend(left.map(|left| (left, 1, Direction::Out, bytes(*number))));
    }
    frames.sort_by_key(|frame| frame.0);
    for (at_ns, interface, direction, bytes) in &frames {
        file.packet(&Frame {
            interface: *interface,
            direction: Some(*direction),
            at_ns: *at_ns,
            raw: raw.map(|cycles| cycles * at_ns + 7),
            bytes,
            ..Frame::default()
        });
    }
}

#[test]
fn raw_stamps_are_used_where_all_packets_have_them() {
    for (path, unit, bound_ns) in [
        // Of the longest delay 0.1 %.
        (StampPath::Tsc(TscPath::Module), 2, 7 + 1),
        (StampPath::Ktime, 1, 7),
    ] {
        let mut file = File::ours(&["a", "b"], path);
        let passages = [(1, 0, Some(500)), (2, 300, Some(1_200)), (3, 2_000, None)];
        through(&mut file, &passages, Some(unit));
        file.statistics(0, &statistics(path, Outcomes::default()));
        let result = file.measure(&plan(How::Hooks, "a", "b")).unwrap();
        assert_eq!(result.warnings, [""; 0]);
        assert_eq!(result.clock, path.function());
        assert_eq!(result.started, Some(RealNs(NOW)));
        let passage = &result.passage;
        assert_eq!(passage.name, "a → b");
        let entry = &passage.entry;
        let names = (entry.interface.as_str(), entry.hook.as_str());
        assert_eq!(names, ("a", "native XDP"));
        assert_eq!((entry.seen, entry.keyed, entry.unkeyed), (3, 3, 0));
        let exit = &passage.exits[0];
        assert_eq!((exit.point.as_str(), exit.spot.seen), ("egress", 2));
        let expected = Account {
            entered: 3,
            left: 2,
            matched: 2,
            pending: 1,
            ..Account::default()
        };
        assert_eq!(exit.account, expected);
        let delays = exit.delays.as_ref().unwrap();
        assert_eq!((delays.summary.min, delays.summary.max), (500, 900));
        assert_eq!(delays.bound_ns, Some(bound_ns));
        let slowest = &delays.slowest[0];
        assert_eq!((slowest.entered_ns, slowest.cpu_in), (NOW + 300, None));
    }
}

#[test]
fn without_raw_stamps_the_times_of_the_file_are_used() {
    let path = StampPath::Ktime;
    let mut file = File::ours(&["a", "b"], path);
    through(&mut file, &[(1, 0, Some(500))], None);
    for interface in 0..2 {
        file.statistics(interface, &statistics(path, Outcomes::default()));
    }
    let result = file.measure(&plan(How::Hooks, "a", "b")).unwrap();
    assert!(
        result.warnings[0].contains("--keep-raw"),
        "{:?}",
        result.warnings
    );
    let delays = result.passage.exits[0].delays.as_ref().unwrap();
    assert_eq!((delays.summary.max, delays.bound_ns), (500, Some(41)));
}

#[test]
fn the_file_of_another_program_says_what_it_lacks() {
    let mut file = File::foreign(&["a", "b"]);
    for (interface, at_ns) in [(0, 0), (1, 400)] {
        file.packet(&Frame {
            interface,
            at_ns,
            direction: None,
            ..Frame::default()
        });
    }
    let result = file.measure(&plan(How::Hooks, "a", "b")).unwrap();
    let [directions, times, bound] = &result.warnings[..] else {
        panic!("{:?}", result.warnings);
    };
    assert!(
        directions.contains("b: no frame has a direction"),
        "{directions}"
    );
    assert!(times.contains("another program"), "{times}");
    assert!(bound.contains("delays have no bound"), "{bound}");
    assert_eq!(result.passage.exits[0].account.matched, 1);
    let delays = result.passage.exits[0].delays.as_ref().unwrap();
    assert_eq!(delays.bound_ns, None);
    assert!(matches!(&delays.certificate, Certificate::None { why } if why.contains("bounds")));
    for how in [How::Reflect, How::Rtt] {
        let mut file = File::foreign(&["a"]);
        file.packet(&Frame {
            direction: None,
            ..Frame::default()
        });
        let error = file.measure(&plan(how, "a", "a")).unwrap_err();
        assert!(error.to_string().contains("epb_flags"), "{error}");
    }
}

#[test]
fn requests_and_replies_are_told_by_their_direction() {
    for (how, first) in [(How::Reflect, Direction::In), (How::Rtt, Direction::Out)] {
        let mut file = File::foreign(&["a"]);
        let second = match first {
            Direction::In => Direction::Out,
            Direction::Out => Direction::In,
        };
        for (direction, at_ns) in [(first, 0), (second, 300)] {
            let direction = Some(direction);
            file.packet(&Frame {
                direction,
                at_ns,
                ..Frame::default()
            });
        }
        let result = file.measure(&plan(how, "a", "a")).unwrap();
        let exit = &result.passage.exits[0];
        assert_eq!(exit.account.matched, 1);
        assert_eq!(exit.delays.as_ref().unwrap().summary.max, 300);
    }
}

#[test]
fn mirrored_frames_are_told_by_their_order() {
    let mut file = File::foreign(&["m"]);
    let one = bytes(1);
    for (at_ns, bytes) in [(0, &one), (100, &bytes(2)), (250, &one)] {
        file.packet(&Frame {
            at_ns,
            bytes,
            direction: None,
            ..Frame::default()
        });
    }
    let result = file.measure(&plan(How::Mirror, "m", "m")).unwrap();
    let exit = &result.passage.exits[0];
    let account = exit.account;
    assert_eq!((account.matched, account.entered, account.left), (1, 2, 1));
    assert_eq!((result.passage.entry.seen, exit.spot.seen), (2, 1));
    assert_eq!(exit.delays.as_ref().unwrap().summary.max, 250);
}

#[test]
fn a_router_changes_what_keys_are_not_of() {
    let packet = |ttl| {
        let builder = PacketBuilder::ethernet2([ttl; 6], [2; 6]);
        let builder = builder.ipv4([10, 0, 0, 1], [10, 0, 1, 1], ttl).udp(1, 2);
        let mut bytes = Vec::new();
        builder.write(&mut bytes, &[7; 30]).unwrap();
        bytes
    };
    let (before, after) = (packet(64), packet(63));
    for (matched_by, matched) in [(Match::Route, 1), (Match::Bridge, 0)] {
        let mut file = File::foreign(&["a", "b"]);
        file.packet(&Frame {
            bytes: &before,
            ..Frame::default()
        });
        let direction = Some(Direction::Out);
        let (at_ns, bytes) = (10, &after[..]);
        file.packet(&Frame {
            interface: 1,
            direction,
            at_ns,
            bytes,
            ..Frame::default()
        });
        // What is no IP packet has no key.
        file.packet(&Frame {
            at_ns: 20,
            bytes: &[0; 60],
            ..Frame::default()
        });
        let plan = FilePlan {
            matched_by,
            ..plan(How::Hooks, "a", "b")
        };
        let result = file.measure(&plan).unwrap();
        assert_eq!(result.passage.exits[0].account.matched, matched);
        let entry = &result.passage.entry;
        let unkeyed = u64::from(matched_by == Match::Route);
        assert_eq!(
            (entry.seen, entry.unkeyed, entry.keyed),
            (2, unkeyed, 2 - unkeyed)
        );
    }
}

#[test]
fn what_the_capture_lost_or_cut_is_warned_of() {
    use tscap_common::outcome::Outcome;
    let mut file = File::ours(&["a", "b"], StampPath::Ktime);
    through(&mut file, &[(1, 0, Some(500))], Some(1));
    let raw = Some(907);
    file.packet(&Frame {
        at_ns: 900,
        cut: 40,
        raw,
        ..Frame::default()
    });
    let lost = Outcomes::from([(Outcome::RingFull, 5), (Outcome::Filtered, 9)]);
    file.statistics(0, &statistics(StampPath::Ktime, lost));
    let result = file.measure(&plan(How::Hooks, "a", "b")).unwrap();
    let [cut, lost] = &result.warnings[..] else {
        panic!("{:?}", result.warnings);
    };
    assert!(cut.contains("a: 1 frame of 2 cut"), "{cut}");
    assert!(
        lost.contains("a: the capture itself lost 5 frames"),
        "{lost}"
    );
}

#[test]
fn what_can_not_be_measured_is_refused() {
    let refused = |file: File, plan: &FilePlan| file.measure(plan).unwrap_err().to_string();
    let hooks = plan(How::Hooks, "a", "b");
    let error = refused(File::foreign(&["a", "c"]), &hooks);
    assert_eq!(error, "it has no interface b: it has a, c");
    let mut raw = File::foreign(&["a"]);
    raw.interface("b", DataLink::RAW, None);
    assert_eq!(refused(raw, &hooks), "the frames of b are not Ethernet");
    let mut only_received = File::new();
    for name in ["a", "b"] {
        let option = option(StampPath::Ktime, false);
        only_received.interface(name, DataLink::ETHERNET, Some(&option));
    }
    let error = refused(only_received, &hooks);
    assert!(error.starts_with("what b sent was not captured"), "{error}");
    let mut other_base = File::new();
    for name in ["a", "b"] {
        let mut option = option(StampPath::Ktime, true);
        option.time_base = TimeBase::Tai;
        other_base.interface(name, DataLink::ETHERNET, Some(&option));
    }
    let error = refused(other_base, &hooks);
    assert!(error.contains("of the clock tai"), "{error}");
    let none = measure_file(&mut Cursor::new(b"no"), &hooks).unwrap_err();
    assert_eq!(none.to_string(), "not a pcapng file");
}

/// An interface without a name has its number.
#[test]
fn interfaces_have_numbers() {
    let mut file = File::foreign(&["x", "y"]);
    through(&mut file, &[(1, 0, Some(500))], None);
    let result = file.measure(&plan(How::Hooks, "0", "1")).unwrap();
    assert_eq!(result.passage.exits[0].account.matched, 1);
}

#[test]
fn a_torn_file_is_read_up_to_there() {
    let mut file = File::foreign(&["a", "b"]);
    through(&mut file, &[(1, 0, Some(500))], None);
    let whole = file.0.get_ref().len();
    file.packet(&Frame {
        at_ns: 900,
        ..Frame::default()
    });
    let bytes = &file.0.into_inner()[..whole + 9];
    let result = measure_file(&mut Cursor::new(bytes), &plan(How::Hooks, "a", "b")).unwrap();
    assert!(!result.is_whole);
    let last = result.warnings.last().unwrap();
    assert!(last.contains("ends in the middle of a block"), "{last}");
    assert_eq!(result.passage.exits[0].account.matched, 1);
}

/// What was inside when the clock was set back is not guessed.
#[test]
fn times_that_go_back_are_warned_of() {
    let mut file = File::foreign(&["a", "b"]);
    through(
        &mut file,
        &[(1, 5_000_000, Some(5_000_100)), (2, 5_000_200, None)],
        None,
    );
    through(
        &mut file,
        &[(3, 0, Some(90)), (4, 2_000_000, Some(2_000_060))],
        None,
    );
    let result = file.measure(&plan(How::Hooks, "a", "b")).unwrap();
    let account = result.passage.exits[0].account;
    assert_eq!((account.matched, account.ambiguous_in), (3, 1));
    let last = result.warnings.last().unwrap();
    assert!(
        last.contains("go back by more than the window, 1 times"),
        "{last}"
    );
}
