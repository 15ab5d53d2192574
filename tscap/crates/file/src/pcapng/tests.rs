//! What the headers and statistics say, read back by the pcap-file crate.

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
fn a_clock_set_all_the_time_still_fits_an_option() {
    let mut writer = writer(&[interface("eth0")]);
    let mut tracker = Tracker::new(StampSource::Ktime, &cross(0, EPOCH)).unwrap();
    for step in 1..5_000u64 {
        tracker.observe(&cross(step * 1_000_000, EPOCH + step * 1_000_000));
    }
    let counts = counts(Written::default(), Observed::default());
    let at = MonoNs(1);
    let (mut sizes, mut all) = (Vec::new(), writer.take());
    for _ in 0..2 {
        let order = StampOrder::default();
        let bytes = writer.statistics(&mut tracker, at, &counts, order, None);
        let bytes = bytes.unwrap();
        sizes.push(bytes.len());
        all.extend(bytes);
    }
    assert!(sizes[0] < 65_536, "{sizes:?}");
    assert!(
        sizes[1] < 1_500,
        "settled segments are not written again: {sizes:?}"
    );
    let segments = records(&all[..])
        .unwrap()
        .filter_map(|record| match record.unwrap() {
            Record::Statistics(_, ours) => {
                Some((ours.clock.segments.len(), ours.clock.segments_left_out))
            }
            _ => None,
        });
    // None goes missing without a count.
    assert_eq!(segments.collect::<Vec<_>>(), [(100, 4_900), (1, 0)]);
    let mut gatherer = Gatherer::default();
    for record in records(&all[..]).unwrap() {
        if let Record::Statistics(interface, ours) = record.unwrap() {
            gatherer.take(interface, &ours.clock).unwrap();
        }
    }
    assert_eq!(gatherer.history().unwrap().unwrap().left_out, 4_900);
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

#[test]
fn interfaces_are_numbered_over_all_sections() {
    let mut file = writer(&[interface("eth0"), interface("eth1")]).take();
    let mut other = PcapNgWriter::with_endianness(Vec::new(), Endianness::Big).unwrap();
    other
        .write_pcapng_block(InterfaceDescriptionBlock::new(DataLink::RAW, 64))
        .unwrap();
    let packet = EnhancedPacketBlock {
        timestamp: RealNs(EPOCH).since_epoch(),
        ..EnhancedPacketBlock::default()
    };
    other.write_pcapng_block(packet).unwrap();
    file.extend(other.get_ref());
    let read = read(&file);
    assert_eq!(
        read[2..],
        [
            Record::Interface(Interface {
                section: 1,
                name: None,
                linktype: DataLink::RAW,
                is_damaged: false,
                resolution_ns: 1_000,
                tscap: None,
            }),
            Record::Packet(Packet {
                interface: 2,
                time: FileNs(EPOCH),
                raw: None,
                direction: Direction::In,
                origlen: 0,
                data: Vec::new(),
            }),
        ]
    );
    let torn = records(&file[..file.len() - 1]).unwrap().last().unwrap();
    let fault = BlockFault::Torn;
    assert!(matches!(torn.unwrap(), Record::Damaged(it) if it.fault == fault));
}

/// As often as it is looked at, somebody has set it.
#[test]
fn the_last_statistics_of_a_restless_clock_fit_the_room_kept_for_them() {
    const INTERFACES: usize = 200;
    let interfaces = vec![interface("eth0"); INTERFACES];
    let mut writer = writer(&interfaces);
    writer.take();
    let at = |read: u64| CrossTimestamp {
        tsc: Some([TscCycles(EPOCH + read), TscCycles(EPOCH + read + 40)]),
        ..cross(EPOCH + read * 10_000_000, read % 2 * 5_000_000_000)
    };
    let mut tracker = Tracker::new(StampSource::Ktime, &at(0)).unwrap();
    let mut counts = counted(u64::MAX / 16);
    counts.written = vec![counts.written[0]; INTERFACES];
    counts.observed.interfaces = vec![counts.observed.interfaces[0]; INTERFACES];
    let order = StampOrder::default();
    for read in 1..=3_000 {
        tracker.observe(&at(read));
    }
    let now = MonoNs(EPOCH + 30_000_000_000);
    let length = [(); 2].map(|()| {
        let bytes = writer.statistics(&mut tracker, now, &counts, order, None);
        bytes.unwrap().len() as u64
    });
    assert!(length[0] > 2 * 16 * 1024, "{length:?}");
    let most = most_final_bytes(INTERFACES);
    assert!(length[0] + length[1] <= most, "{length:?} of {most}");
    assert_eq!((most_final_bytes(0), most_final_bytes(1)), (0, 73_728));
}

/// Interfaces come and go by thousands where containers do.
#[test]
fn what_is_gone_has_its_last_word_once() {
    let mut writer = writer(&["eth0", "veth1", "veth2"].map(interface));
    writer.take();
    let mut tracker = Tracker::new(StampSource::Ktime, &cross(1_000, EPOCH)).unwrap();
    let mut counts = counted(5);
    counts.written = vec![counts.written[0]; 3];
    counts.observed.interfaces = vec![InterfaceCounts::default(); 3];
    let mut reported = |counts: &Counts| {
        let order = StampOrder::default();
        let at = MonoNs(2_000);
        let bytes = writer.statistics(&mut tracker, at, counts, order, None);
        let header = writer
            .next(RealNs(EPOCH), Counts::default())
            .unwrap()
            .take();
        let file = [header, bytes.unwrap()].concat();
        let statistics = records(&file[..])
            .unwrap()
            .filter_map(|it| match it.unwrap() {
                Record::Statistics(interface, ours) => Some((interface, ours.clock.samples.len())),
                _ => None,
            });
        statistics.collect::<Vec<_>>()
    };
    let with_history = reported(&counts);
    assert_eq!(
        with_history.iter().map(|it| it.0).collect::<Vec<_>>(),
        [0, 1, 2]
    );
    assert!(with_history[0].1 > 0);
    assert_eq!([with_history[1].1, with_history[2].1], [0, 0]);
    let mut reported = |counts: &Counts| reported(counts).iter().map(|it| it.0).collect::<Vec<_>>();
    counts.observed.interfaces[0].is_gone = true;
    counts.observed.interfaces[1].is_gone = true;
    assert_eq!(reported(&counts), [0, 1, 2]);
    assert_eq!(reported(&counts), [0, 2]);
    // Its last frames were in a ring.
    counts.written[1][Direction::In].written += 1;
    assert_eq!(reported(&counts), [0, 1, 2]);
    assert_eq!(reported(&counts), [0, 2]);
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
fn the_next_file_counts_from_its_own_start_and_has_a_clock() {
    let filtered = InterfaceInfo {
        filter: Some("udp".into()),
        ..interface("eth0")
    };
    let mut first = writer(&[filtered]);
    let mut tracker = Tracker::new(StampSource::Ktime, &cross(0, EPOCH)).unwrap();
    let order = StampOrder::default();
    let statistics = |file: &mut FileWriter, tracker: &mut Tracker, counts: &Counts| {
        let headers = file.take();
        let bytes = file.statistics(tracker, MonoNs(7), counts, order, None);
        let all = blocks(&[headers, bytes.unwrap()].concat());
        assert!(matches!(all[0], Block::InterfaceDescription(_)), "{all:?}");
        let Block::InterfaceStatistics(statistics) = &all[1] else {
            panic!("{all:?}");
        };
        let Isb::Common(custom) = statistics.options.last().unwrap() else {
            panic!("a custom option");
        };
        (statistics.options.clone(), json::<StatisticsOption>(custom))
    };
    let (_, clock) = statistics(&mut first, &mut tracker, &counted(5));
    let mut next = first.next(RealNs(EPOCH + 7), counted(5)).unwrap();
    // No clock has been read since.
    let (options, ours) = statistics(&mut next, &mut tracker, &counted(12));
    let kinds = Outcome::ALL.len() as u64;
    assert_eq!(
        options[..7],
        [
            Isb::IsbStartTime(RealNs(EPOCH + 7).since_epoch()),
            options[1].clone(),
            Isb::IsbIfRecv(7 * (kinds + 1)),
            Isb::IsbIfDrop(7),
            Isb::IsbFilterAccept(7 * kinds),
            Isb::IsbOsDrop(7 * 6),
            Isb::IsbUsrDeliv(7),
        ]
    );
    assert_eq!(ours.outcomes.total(), 7 * kinds);
    assert_eq!(ours.off_cpu, Some(7));
    assert_eq!(ours.clock.segments, clock.clock.segments);
    assert_eq!(ours.clock.samples, clock.clock.samples);
    assert_eq!(ours.clock.samples.len(), 1);
}

#[test]
fn an_interface_that_joins_is_described() {
    let mut writer = writer(&[interface("eth0")]);
    let before = writer.take();
    let joined = writer.describe(interface("eth1")).unwrap();
    assert_eq!(writer.interfaces(), 2);
    let file = [before, joined].concat();
    let records = records(&file[..]).unwrap().map(Result::unwrap);
    let names: Vec<_> = records
        .filter_map(|record| match record {
            Record::Interface(interface) => interface.name,
            _ => None,
        })
        .collect();
    assert_eq!(names, ["eth0", "eth1"]);
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
fn a_history_is_of_segments_or_samples() {
    for (segments, left_out, samples, has_one) in [
        (0, 0, 0, false),
        (1, 0, 0, true),
        (0, 3, 0, true),
        (0, 0, 1, true),
        (1, 0, 1, true),
    ] {
        let clock = clock_with(segments, left_out, samples);
        let taken = Gatherer::default().take(0, &clock);
        assert_eq!(taken.is_ok(), has_one, "{segments} {left_out} {samples}");
    }
}

#[test]
fn the_first_interface_with_statistics_may_be_any() {
    let mut gatherer = Gatherer::default();
    let (clock, later) = (clock_with(1, 0, 1), clock_with(1, 0, 3));
    assert!(gatherer.take(1, &clock).is_ok());
    let later = ClockOption {
        samples: later.samples[1..].to_vec(),
        ..later
    };
    assert!(gatherer.take(1, &later).is_ok());
    // What stamps by tscap's own counter alone is told.
    let json = serde_json::to_value(&clock).unwrap();
    assert!(json.get("stamp_error_ns").is_none());
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

#[test]
fn an_interface_that_no_block_can_describe_is_an_error() {
    let mut writer = writer(&[interface("eth0")]);
    writer.take();
    let mut long = interface("eth1");
    long.name = "x".repeat(70_000);
    assert!(writer.describe(long).is_err());
    assert_eq!((writer.interfaces(), writer.take().len()), (2, 0));
}
