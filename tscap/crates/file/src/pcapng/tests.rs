//! What the headers and statistics say, read back by the pcap-file crate.

mod clock;
mod interfaces;

use std::collections::BTreeMap;

use pcap_file::pcapng::blocks::Block;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption as Idb, InterfaceTsResolution,
};
use pcap_file::pcapng::blocks::interface_statistics::InterfaceStatisticsOption as Isb;
use pcap_file::pcapng::blocks::opt_common::CommonOption;
use pcap_file::pcapng::blocks::section_header::SectionHeaderOption;
use pcap_file::pcapng::{PcapNgReader, PcapNgWriter};
use pcap_file::{DataLink, Endianness};

use super::*;
use crate::accounting::{
    Counts, Directed, Direction, HardwareFrames, InterfaceCounts, InterfaceFrames, Observed,
    Outcome, Outcomes, StampOrder, Totals, Written,
};
use tscap_clock::{
    CrossTimestamp, FileNs, MonoNs, RealNs, StampPath, StampSource, TaiNs, Tracker, TscCycles,
};
use tscap_filter::LinkType;

const EPOCH: u64 = 1_700_000_000_000_000_000;

fn cross(mono: u64, offset: u64) -> CrossTimestamp {
    CrossTimestamp {
        mono: [MonoNs(mono), MonoNs(mono + 40)],
        tsc: None,
        real: [RealNs(mono + 20 + offset); 2],
        tai: TaiNs(mono + 20 + offset),
        boot: None,
        offset: None,
    }
}

pub(super) fn interface(name: &str) -> InterfaceInfo {
    let offloads = BTreeMap::from([("rx-gro".to_owned(), true)]);
    let hooks = Hooks {
        received: Some("generic XDP".into()),
        sent: Some("tcx egress".into()),
    };
    InterfaceInfo {
        name: name.into(),
        description: Some("a veth".into()),
        link_type: LinkType::Ethernet,
        mac: Some([2, 0, 0, 0, 0, 9]),
        speed: None,
        snaplen: 96,
        filter: None,
        os: "Linux 6.18".into(),
        tscap: InterfaceOption::new(hooks, StampOption::new(StampPath::Tai), offloads),
    }
}

pub(super) fn writer(interfaces: &[InterfaceInfo]) -> FileWriter {
    let section = SectionInfo {
        hardware: "a CPU".into(),
        os: "Linux 6.18".into(),
        application: "tscap".into(),
        part: None,
    };
    FileWriter::new(&section, interfaces, RealNs(EPOCH + 5)).unwrap()
}

fn counts(written: Written, observed: Observed) -> Counts {
    Counts {
        written: vec![Directed::received(written)],
        observed,
        ..Counts::default()
    }
}

fn blocks(bytes: &[u8]) -> Vec<Block<'static>> {
    let reader = PcapNgReader::new(bytes).unwrap();
    reader.into_iter().map(|block| block.unwrap()).collect()
}

fn json<T: serde::de::DeserializeOwned>(option: &CommonOption<'_>) -> T {
    match option {
        CommonOption::CustomUtf8Copiable(custom) => {
            assert_eq!(custom.pen, PEN);
            serde_json::from_str(&custom.value).unwrap()
        }
        other => panic!("{other:?} is not ours"),
    }
}

/// A clock of a statistics block, with so much of its history.
fn clock_with(segments: u64, left_out: u64, samples: u64) -> ClockOption {
    let first = cross(0, EPOCH);
    let mut tracker = Tracker::new(StampSource::Ktime, &first).unwrap();
    for second in 1..=samples.max(1) {
        tracker.observe(&cross(second * 1_000_000_000, EPOCH));
    }
    let all = tracker.take_samples();
    ClockOption {
        stamp: StampOption::new(StampPath::Ktime),
        counter: None,
        host_bound_ns: 7,
        stamp_error_ns: 0,
        utc_bound_ns: None,
        utc: None,
        reference: None,
        references: Vec::new(),
        order: StampOrder::default(),
        segments: tracker
            .segments()
            .iter()
            .copied()
            .take(segments as usize)
            .collect(),
        segments_left_out: left_out,
        samples: all.into_iter().take(samples as usize).collect(),
    }
}

#[test]
fn headers_describe_machine_and_interface() {
    let mut writer = writer(&[interface("eth0"), interface("eth1")]);
    assert_eq!(writer.interfaces(), 2);
    let bytes = writer.take();
    // The byte-order magic as this machine writes it: blocks from the ring
    // follow in the same order.
    assert_eq!(bytes[8..12], 0x1a2b_3c4du32.to_ne_bytes());
    let section = PcapNgReader::new(&bytes[..]).unwrap().section().clone();
    assert!(
        section
            .options
            .contains(&SectionHeaderOption::UserApplication("tscap".into()))
    );
    let Block::InterfaceDescription(second) = &blocks(&bytes)[1] else {
        panic!("an interface description");
    };
    assert_eq!(second.snaplen, 96);
    let has = |option: &Idb<'_>| second.options.contains(option);
    assert!(has(&Idb::IfName("eth1".into())));
    assert!(has(&Idb::IfDescription("a veth".into())));
    assert!(has(&Idb::IfMacAddr(vec![2, 0, 0, 0, 0, 9].into())));
    assert!(has(&Idb::IfTsResol(InterfaceTsResolution::NANO)));
    assert!(
        !second
            .options
            .iter()
            .any(|option| matches!(option, Idb::IfSpeed(_)))
    );
    // Nothing was forced, and nothing says so.
    let text = String::from_utf8_lossy(&bytes);
    assert!(!text.contains("forced") && !text.contains("tap"));
    let Some(Idb::Common(custom)) = second.options.last() else {
        panic!("a custom option");
    };
    let ours: InterfaceOption = json(custom);
    assert_eq!(ours, interface("eth1").tscap);
    assert_eq!(
        (ours.v, ours.stamp.path.as_str()),
        (1, "bpf_ktime_get_tai_ns")
    );
}

#[test]
fn statistics_hold_counts_times_and_clock() {
    let mut described = interface("eth0");
    described.tscap.hardware = Some(HardwareOption::default());
    let mut writer = writer(&[described]);
    let mut tracker = Tracker::new(StampSource::Ktime, &cross(1_000, EPOCH)).unwrap();
    tracker.observe(&cross(2_000, EPOCH + 1_000_000));
    tracker.set_stamp_error_ns(7);
    let written = Written {
        written: 10,
        outcomes: [(Outcome::AfterStop, 2)].into(),
        hardware: HardwareFrames {
            with: 4,
            ..HardwareFrames::default()
        },
    };
    let losses = [(Outcome::RingFull, 3), (Outcome::TooLong, 1)];
    let counted = InterfaceFrames {
        frames: 9,
        dropped: 1,
    };
    let observed = Observed {
        references: Vec::new(),
        interfaces: vec![InterfaceCounts {
            losses: Directed::received(losses.into()),
            ifdrop: Some(4),
            own: Some(Directed::sent(counted)),
            is_gone: false,
        }],
        utc_bound_ns: Some(500),
        utc: None,
        off_cpu: Some(6),
    };
    let totals = Totals {
        seen: 16,
        written: 10,
        outcomes: [losses[0], losses[1], (Outcome::AfterStop, 2)].into(),
    };
    let order = StampOrder {
        late: 5,
        largest_lateness_ns: 700,
        ..StampOrder::default()
    };
    let at = MonoNs(3_000);
    let bytes = writer
        .statistics(
            &mut tracker,
            at,
            &counts(written, observed),
            order,
            Some(&Directed::received(totals)),
        )
        .unwrap();
    let Block::InterfaceStatistics(statistics) = blocks(&bytes).remove(1) else {
        panic!("statistics behind the interface description");
    };
    let end = RealNs(3_000 + EPOCH + 1_000_000).since_epoch();
    assert_eq!(statistics.timestamp, end);
    let Isb::Common(custom) = statistics.options.last().unwrap() else {
        panic!("a custom option");
    };
    let ours: StatisticsOption = json(custom);
    assert_eq!(
        statistics.options[..6],
        [
            Isb::IsbStartTime(RealNs(EPOCH + 5).since_epoch()),
            Isb::IsbEndTime(end),
            Isb::IsbIfRecv(16),
            Isb::IsbIfDrop(4),
            Isb::IsbOsDrop(4),
            Isb::IsbUsrDeliv(10),
        ]
    );
    assert_eq!(ours.totals, Some(totals));
    assert!(totals.add_up());
    let none = InterfaceFrames::default();
    assert_eq!(
        (ours.counted_in, ours.counted_out),
        (Some(none), Some(counted))
    );
    let hardware = ours.hardware.expect("some have such stamps");
    assert_eq!((hardware.frames.with, hardware.without), (4, 6));
    assert_eq!(ours.off_cpu, Some(6));
    assert_eq!(ours.clock.host_bound_ns, 20);
    assert_eq!(ours.clock.stamp_error_ns, 7);
    assert_eq!(ours.clock.utc_bound_ns, Some(500));
    assert_eq!(ours.clock.order, order);
    assert_eq!(ours.clock.segments, tracker.segments());
}

#[test]
fn a_speed_and_a_filter_are_named_where_there_are_any() {
    let reported = InterfaceInfo {
        speed: Some(25_000_000_000),
        filter: Some("udp".into()),
        ..interface("eth0")
    };
    let bytes = writer(&[reported]).take();
    let Block::InterfaceDescription(description) = &blocks(&bytes)[0] else {
        panic!("an interface description");
    };
    let has = |option: &Idb<'_>| description.options.contains(option);
    assert!(has(&Idb::IfSpeed(25_000_000_000)));
    assert!(has(&Idb::IfFilter(b"\0udp"[..].into())));
}

#[test]
fn what_is_unusual_is_marked_in_the_file() {
    let mut forced = interface("eth0");
    forced.tscap.stamp.forced = Some("the TSC is not invariant".into());
    forced.tscap.tap = true;
    let bytes = writer(&[forced.clone()]).take();
    assert_eq!(
        read(&bytes),
        [Record::Interface(Interface {
            section: 0,
            name: Some("eth0".into()),
            linktype: DataLink::ETHERNET,
            is_damaged: false,
            resolution_ns: 1,
            tscap: Some(forced.tscap),
        })]
    );
}

fn read(bytes: &[u8]) -> Vec<Record> {
    let records = records(bytes).unwrap().map(Result::unwrap);
    let records = records.filter(|it| !matches!(it, Record::Section(_)));
    records.collect()
}

/// The counts of a capture that come to so much each.
fn counted(number: u64) -> Counts {
    let of = |is_in_kernel| {
        let meant = |it: Outcome| it.entry().is_in_kernel() == is_in_kernel;
        let count = |it| (it, if meant(it) { number } else { 0 });
        Outcomes::from(Outcome::ALL.map(count))
    };
    let (losses, outcomes) = (of(true), of(false));
    let observed = Observed {
        references: Vec::new(),
        interfaces: vec![InterfaceCounts {
            losses: Directed::received(losses),
            ifdrop: Some(number),
            own: None,
            is_gone: false,
        }],
        utc_bound_ns: None,
        utc: None,
        off_cpu: Some(number),
    };
    let written = Written {
        written: number,
        outcomes,
        ..Written::default()
    };
    counts(written, observed)
}

#[test]
fn the_hardware_stamps_of_two_writers_are_summed_up() {
    let of = |with, without, bound_ns| HardwareStatistics {
        frames: HardwareFrames {
            with,
            unconverted: with / 2,
            ambiguous: 1,
        },
        without,
        bound_ns,
    };
    let both = of(4, 30, Some(7)).and(of(6, 200, Some(9)));
    assert_eq!(both.frames.with, 10);
    assert_eq!((both.frames.unconverted, both.frames.ambiguous), (5, 2));
    assert_eq!((both.without, both.bound_ns), (230, Some(9)));
    assert_eq!(of(0, 0, None).and(of(0, 0, Some(5))).bound_ns, Some(5));
}

#[test]
fn json_is_ours_by_code_and_number() {
    let value = |pen: u32| [&pen.to_le_bytes()[..], b"{}"].concat();
    for (code, pen, expected) in [
        (options::CUSTOM_TEXT, PEN, Some("{}")),
        (options::CUSTOM_TEXT, PEN + 1, None),
        (options::CUSTOM_TEXT + 1, PEN, None),
    ] {
        let found =
            options::json_of_ours(code, &value(pen), Endianness::Little).map(ToOwned::to_owned);
        assert_eq!(found.as_deref(), expected, "{code} {pen}");
    }
}
