//! The files of several writers.

mod refused;

use std::collections::BTreeSet;

use pcap_file::pcapng::PcapNgReader;
use pcap_file::pcapng::blocks::Block as FileBlock;
use pcap_file::pcapng::blocks::interface_statistics::InterfaceStatisticsOption as Isb;
use tscap_common::block::{OPT_RAW, PEN};

use super::*;
use crate::accounting::{
    Counts, Directed, Direction, InterfaceCounts, Observed, Outcome, StampOrder, Written,
};
use crate::pcapng::{
    ClockOption, FileWriter, Gatherer, Hooks, InterfaceInfo, InterfaceOption, PartOption,
    SectionInfo, StampOption, padded,
};
use tscap_clock::scripted::Host;
use tscap_clock::{MonoNs, StampPath, StampSource, TimeBase, Tracker};
use tscap_filter::LinkType;

mod files;

/// What a writer has: its number, of how many, and how many frames of each interface.
struct Script {
    capture: &'static str,
    boot: &'static str,
    writer: u32,
    writers: u32,
    frames: [u64; 2],
    lost: u64,
    has_raw: bool,
    time_base: TimeBase,
    reference: Option<&'static str>,
    last: Last,
}

/// What its last statistics say beside the counts.
#[derive(Clone, Copy)]
struct Last {
    start: u64,
    end: u64,
    width_ns: u64,
    stamp_error_ns: u64,
    utc_bound_ns: Option<u64>,
    late: u64,
    ifdrop: Option<u64>,
}

const SCRIPT: Script = Script {
    capture: "c",
    boot: "b",
    writer: 0,
    writers: 2,
    frames: [3, 2],
    lost: 4,
    has_raw: false,
    time_base: TimeBase::Realtime,
    reference: None,
    last: Last {
        start: 0,
        end: 20_000_000,
        width_ns: 35,
        stamp_error_ns: 0,
        utc_bound_ns: None,
        late: 0,
        ifdrop: None,
    },
};

/// Frames of writer n at times n, 10,000 + n, 20,000 + n, …
fn written(script: &Script, is_ended: bool) -> Vec<u8> {
    let part = PartOption::new(script.capture.into(), script.writer, script.writers);
    let section = SectionInfo {
        hardware: "a script".into(),
        os: "Linux".into(),
        application: "tscap".into(),
        part: (script.writers > 1).then_some(part),
    };
    let interfaces = ["lan", "wan"].map(|name| {
        let stamp = StampOption::new(StampPath::Ktime);
        let mut tscap = InterfaceOption::new(Hooks::default(), stamp, Default::default());
        tscap.boot_id = Some(script.boot.into());
        tscap.time_base = script.time_base;
        tscap.reference = script.reference.map(str::to_owned);
        InterfaceInfo {
            name: name.into(),
            description: None,
            link_type: LinkType::Ethernet,
            mac: None,
            speed: None,
            snaplen: 96,
            filter: None,
            os: "Linux".into(),
            tscap,
        }
    });
    let host = Host {
        hertz: 1_000_000_000,
        slews: Vec::new(),
    };
    let Last {
        width_ns, start, ..
    } = script.last;
    let mut file = FileWriter::new(&section, &interfaces, RealNs(start)).unwrap();
    let cross = |t| host.cross(t, [15, width_ns, 15]);
    let mut tracker = Tracker::new(StampSource::Ktime, &cross(0)).unwrap();
    tracker.observe(&cross(10_000_000));
    tracker.set_stamp_error_ns(script.last.stamp_error_ns);
    let mut bytes = file.take();
    let mut time = u64::from(script.writer);
    for (interface, frames) in (0..).zip(script.frames) {
        for _ in 0..frames {
            let mut frame = packet(
                interface,
                time,
                &[interface as u8; 61],
                Endianness::native(),
            );
            if script.has_raw {
                let end = frame.len() - 4;
                let raw = [OPT_RAW, PEN].map(u32::to_ne_bytes).concat();
                frame.splice(end..end, [&raw[..], &time.to_ne_bytes(), &[0; 4]].concat());
                let length = (frame.len() as u32).to_ne_bytes();
                let end = frame.len() - 4;
                frame[4..8].copy_from_slice(&length);
                frame[end..].copy_from_slice(&length);
            }
            bytes.extend(frame);
            time += 10_000;
        }
    }
    if !is_ended {
        return bytes;
    }
    let counts = Counts {
        written: script.frames.map(received).into(),
        observed: Observed {
            interfaces: vec![
                InterfaceCounts {
                    losses: Directed::received([(Outcome::RingFull, script.lost)].into()),
                    ifdrop: script.last.ifdrop,
                    ..InterfaceCounts::default()
                },
                InterfaceCounts::default(),
            ],
            utc_bound_ns: script.last.utc_bound_ns,
            utc: None,
            ..Observed::default()
        },
        ..Counts::default()
    };
    let seen = script.frames.iter().sum::<u64>() + script.lost;
    let totals = counts.totals(Directed::received(seen));
    let at = MonoNs(script.last.end);
    let order = StampOrder {
        late: script.last.late,
        ..StampOrder::default()
    };
    let last = file.statistics(&mut tracker, at, &counts, order, Some(&totals));
    bytes.extend(last.unwrap());
    bytes
}

fn received(written: u64) -> Directed<Written> {
    Directed::received(Written {
        written,
        ..Written::default()
    })
}

fn of(writer: u32) -> Script {
    Script {
        writer,
        lost: 4 + u64::from(writer),
        ..SCRIPT
    }
}

fn statistics(bytes: &[u8]) -> Vec<(u32, Option<Totals>, u64)> {
    let all = records(bytes).unwrap().map(Result::unwrap);
    let found = all.filter_map(|record| match record {
        Record::Statistics(of, it) => Some((of, it.totals, it.outcomes[Outcome::RingFull])),
        _ => None,
    });
    found.collect()
}

#[test]
fn the_whole_is_the_sum_of_its_parts() {
    let files = [written(&of(0), true), written(&of(1), true)];
    let (copy, merged) = joined(&files).unwrap();
    let capture = &merged.captures[0];
    let totals = Totals {
        seen: 19,
        written: 10,
        outcomes: [(Outcome::RingFull, 9)].into(),
    };
    assert_eq!(
        (capture.totals, capture.adds_up),
        (Some(totals), Some(true))
    );
    assert!(capture.missing.is_empty() && merged.interfaces == 2);
    assert_eq!(
        statistics(&copy),
        [(0, Some(totals), 9), (1, Some(totals), 0)]
    );
    let times: Vec<_> = packets(&copy).iter().map(|it| it.time.0).collect();
    let pairs = (0..5).flat_map(|turn| [10_000 * turn, 10_000 * turn + 1]);
    assert_eq!(times, pairs.collect::<Vec<_>>());
    assert!((1..5_000).contains(&merged.inputs[0].host_bound_ns.unwrap()));
    assert_eq!(
        (merged.neighbours.between_files, merged.neighbours.undecided),
        (9, 5)
    );

    // Each writer had a clock of its own: no stamp is made again by one of them.
    let taken = records(&copy[..]).unwrap().map(|record| match record {
        Ok(Record::Statistics(of, it)) => Gatherer::default().take(of, &it.clock),
        _ => Ok(()),
    });
    let refused = taken.filter_map(Result::err).map(|it| it.to_string());
    let refused: Vec<_> = refused.collect();
    assert_eq!(refused.len(), 2);
    assert!(refused[0].contains("without the history"), "{refused:?}");

    // What was merged can be merged again, and says what it is.
    let (again, merged) = joined(&[copy]).unwrap();
    assert_eq!(merged.captures[0].totals, Some(totals));
    assert_eq!(
        statistics(&again),
        [(0, Some(totals), 9), (1, Some(totals), 0)]
    );
    let part = merged.inputs[0].part.clone().unwrap();
    assert_eq!(part.parts, BTreeSet::from([0, 1]));
}

/// The times and the drops that the first interface's last statistics state, and the clock.
fn last_words(bytes: &[u8]) -> ([u64; 4], ClockOption) {
    let statistics = PcapNgReader::new(bytes).unwrap().into_iter();
    let first = statistics.filter_map(|it| match it.unwrap() {
        FileBlock::InterfaceStatistics(it) if it.interface_id == 0 => Some(it),
        _ => None,
    });
    let block = first.last().unwrap();
    let ns = |time: std::time::Duration| u64::try_from(time.as_nanos()).unwrap();
    let mut reported = [ns(block.timestamp), 0, 0, 0];
    for option in &block.options {
        match option {
            Isb::IsbStartTime(time) => reported[1] = ns(*time),
            Isb::IsbEndTime(time) => reported[2] = ns(*time),
            Isb::IsbIfDrop(count) => reported[3] = *count,
            _ => {}
        }
    }
    let all = records(bytes).unwrap().map(Result::unwrap);
    let clock = all.filter_map(|it| match it {
        Record::Statistics(0, statistics) => Some(statistics.clock),
        _ => None,
    });
    (reported, clock.last().unwrap())
}

/// From the earliest start to the latest end, with the bounds of the worst. What the interface
/// dropped each part has of all of it.
#[test]
fn the_last_statistics_hold_for_all_parts() {
    let one = Last {
        start: 3_000,
        end: 20_000_000,
        width_ns: 35,
        stamp_error_ns: 9,
        utc_bound_ns: Some(500),
        late: 2,
        ifdrop: Some(5),
    };
    let other = Last {
        start: 1_000,
        end: 30_000_000,
        width_ns: 95,
        stamp_error_ns: 4,
        utc_bound_ns: Some(800),
        late: 3,
        ifdrop: Some(6),
    };
    let unknown = Last {
        utc_bound_ns: None,
        ..other
    };
    for (lasts, utc_bound_ns) in [
        ([one, other], Some(800)),
        ([other, one], Some(800)),
        ([one, unknown], None),
    ] {
        let part = |writer, last| Script { last, ..of(writer) };
        let files = [(0, lasts[0]), (1, lasts[1])];
        let files = files.map(|(writer, last)| written(&part(writer, last), true));
        let words = [last_words(&files[0]), last_words(&files[1])];
        let greatest = |of: fn(&ClockOption) -> u64| of(&words[0].1).max(of(&words[1].1));
        let (copy, _) = joined(&files).unwrap();
        let (reported, clock) = last_words(&copy);
        let end = words[0].0[0].max(words[1].0[0]);
        assert!(end > 1 << 32 && words[0].0[0] != words[1].0[0]);
        assert_eq!(reported, [end, 1_000, end, 6]);
        assert_eq!(clock.host_bound_ns, greatest(|it| it.host_bound_ns));
        assert_ne!(words[0].1.host_bound_ns, words[1].1.host_bound_ns);
        assert_eq!((clock.stamp_error_ns, clock.order.late), (9, 5));
        assert_eq!(clock.utc_bound_ns, utc_bound_ns);
    }
}

/// A file of one writer: what is before its packets, these, and the last statistics.
fn alone() -> [Vec<u8>; 3] {
    let script = Script {
        writers: 1,
        ..SCRIPT
    };
    let whole = written(&script, true);
    let end = written(&script, false).len();
    let none = Script {
        frames: [0; 2],
        ..script
    };
    let start = written(&none, false).len();
    [&whole[..start], &whole[start..end], &whole[end..]].map(<[u8]>::to_vec)
}

#[test]
fn statistics_stay_where_they_are_and_are_there_once() {
    let [start, packets, statistics] = alone();
    let (before, behind) = packets.split_at(packets.len() / 5);
    let all = [
        &statistics[..],
        &statistics,
        before,
        &statistics,
        behind,
        &statistics,
    ];
    let (copy, _) = joined(&[[&start[..], &all.concat()].concat()]).unwrap();
    assert!(copy.ends_with(&all.concat()));
}

#[test]
fn statistics_that_say_something_else_than_the_packets_are_told() {
    let [start, packets, statistics] = alone();
    let (first, others) = packets.split_at(packets.len() / 5);
    for (packets, behind, reported) in [
        (&packets[..], &[][..], None),
        (others, &[][..], Some((7, 3, 4, 2))),
        // As when the capture was killed: they say nothing of what follows.
        (others, first, None),
        (&packets[..], first, None),
    ] {
        let file = [&start[..], packets, &statistics, behind].concat();
        let (_, merged) = joined(&[file]).unwrap();
        let found = merged.inputs[0].contradictions.iter();
        let found = found.map(|it| (it.seen, it.written, it.not_written, it.packets));
        assert_eq!(found.collect::<Vec<_>>(), Vec::from_iter(reported));
    }
}

/// Each file's headers and statistics are as long as its ring wants them to be.
#[test]
fn padding_is_not_copied() {
    let plain = [0, 1].map(|writer| written(&of(writer), true));
    let longer = [0, 1].map(|writer| {
        let whole = written(&of(writer), true);
        let frames = written(&of(writer), false).len();
        let none = Script {
            frames: [0; 2],
            ..of(writer)
        };
        let head = written(&none, false);
        let by = 12 + 4 * writer as usize;
        let between = whole[head.len()..frames].to_vec();
        let last = padded(whole[frames..].to_vec(), by);
        [padded(head, by), between, last].concat()
    });
    let copies = [plain, longer].map(|files| joined(&files).unwrap().0);
    assert!(copies[0] == copies[1]);
}

#[test]
fn raw_stamps_decide_where_they_were_kept() {
    let with_raw = |writer| Script {
        has_raw: true,
        ..of(writer)
    };
    let files = [written(&with_raw(0), true), written(&with_raw(1), true)];
    let (_, merged) = joined(&files).unwrap();
    assert_eq!(
        (merged.neighbours.between_files, merged.neighbours.undecided),
        (9, 0)
    );
}

#[test]
fn a_writer_that_is_missing_is_named() {
    let three = |writer| Script {
        writers: 3,
        ..of(writer)
    };
    let files = [written(&three(0), true), written(&three(2), true)];
    let (copy, merged) = joined(&files).unwrap();
    assert_eq!(merged.captures[0].missing, [1]);
    // It joins later, too.
    let (_, merged) = joined(&[written(&three(1), true), copy]).unwrap();
    assert_eq!(merged.captures[0].missing, [0u32; 0]);
    assert_eq!(merged.captures[0].totals.unwrap().written, 15);
    assert_eq!(merged.captures[0].adds_up, Some(true));
}

#[test]
fn a_writer_that_was_killed_leaves_no_account() {
    let files = [written(&of(0), true), written(&of(1), false)];
    let (copy, merged) = joined(&files).unwrap();
    let capture = &merged.captures[0];
    assert_eq!(capture.without_account, ["file 1"]);
    assert_eq!((capture.totals, capture.adds_up), (None, None));
    assert!(packets(&copy).len() == 10 && statistics(&copy).is_empty());
    assert_eq!(merged.inputs[1].host_bound_ns, None);
    assert_eq!(merged.neighbours.without_bounds, 9);
}

#[test]
fn accounts_are_held_against_the_packets() {
    let whole = written(&of(0), true);
    // Without its first packet.
    let length = packet(0, 0, &[0; 61], Endianness::native()).len();
    let first = whole.windows(4).position(|it| it == 6u32.to_ne_bytes());
    let first = first.unwrap();
    let less = [&whole[..first], &whole[first + length..]].concat();
    let (_, merged) = joined(&[less, written(&of(1), true)]).unwrap();
    assert_eq!(merged.captures[0].adds_up, Some(false));
    let contradiction = &merged.inputs[0].contradictions[0];
    assert_eq!((contradiction.written, contradiction.packets), (3, 2));
    assert_eq!(contradiction.interface, "lan");
}

/// Each keeps its own statistics; nothing of them is lost.
#[test]
fn captures_stay_apart() {
    let single = |boot, writer| Script {
        writers: 1,
        boot,
        ..of(writer)
    };
    let files = [
        written(&single("b", 0), true),
        written(&single("other", 1), true),
    ];
    let (copy, merged) = joined(&files).unwrap();
    assert!(merged.captures.is_empty() && merged.interfaces == 4);
    let totals = files.each_ref().map(|it| statistics(it)[0].1);
    let expected = [
        (0, totals[0], 4),
        (1, totals[0], 0),
        (2, totals[1], 5),
        (3, totals[1], 0),
    ];
    assert_eq!(statistics(&copy), expected);
    assert_eq!(merged.neighbours.of_two_hosts, 9);
    let sent = packets(&copy)
        .iter()
        .filter(|it| it.direction == Direction::Out)
        .count();
    assert_eq!(sent, 0);
    let shard = [
        files[0].clone(),
        written(&of(0), true),
        written(&of(1), true),
    ];
    let (_, merged) = joined(&shard).unwrap();
    assert_eq!((merged.interfaces, merged.captures.len()), (4, 1));
}
