//! Interfaces of a file: several sections, those that join and those that go.

use super::*;

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
fn an_interface_that_no_block_can_describe_is_an_error() {
    let mut writer = writer(&[interface("eth0")]);
    writer.take();
    let mut long = interface("eth1");
    long.name = "x".repeat(70_000);
    assert!(writer.describe(long).is_err());
    assert_eq!((writer.interfaces(), writer.take().len()), (2, 0));
}
