//! The converter over synthetic rings, a scripted clock and an output in memory.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use pcap_file::pcapng::blocks::Block as FileBlock;
use pcap_file::pcapng::blocks::interface_statistics::InterfaceStatisticsOption;
use pcap_file::pcapng::{PcapNgParser, PcapNgReader};
use proptest::prelude::*;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tscap_common::hook::Slot;
use tscap_common::ring::MIN_RING_BYTES;

use super::*;
use tscap_clock::{
    CrossTimestamp, MonoNs, RawStamp, RealNs, Reference, StampPath, StampSource, StepCause, TaiNs,
    Tracker, TscCycles,
};
use tscap_file::accounting::{Directed, Direction, Observed, Outcome, StampOrder, Totals};
use tscap_file::pcapng::{
    FileWriter, Hooks, InterfaceInfo, InterfaceOption, SectionInfo, StampOption,
};
use tscap_filter::LinkType;
use tscap_programs::ring::synthetic::{self, Producer};

mod accounts;
mod direct;
mod joining;
mod last_statistics;
mod merge;
mod output_fails;
mod published;
mod rotation;
mod stop;

const SLOT: Slot = Slot::of(0, Direction::In);
const EPOCH: u64 = 1_700_000_000_000_000_000;

/// A clock that moves only when told.
#[derive(Clone, Debug)]
struct Script(Arc<Mutex<(u64, u64)>>);

impl Script {
    fn new() -> Self {
        Self(Arc::new(Mutex::new((1_000_000, EPOCH))))
    }

    fn set(&self, mono: u64, mono_to_real: u64) {
        *self.0.lock().unwrap() = (mono, mono_to_real);
    }
}

impl Reference for Script {
    fn read(&mut self) -> CrossTimestamp {
        let (mono, offset) = *self.0.lock().unwrap();
        CrossTimestamp {
            mono: [MonoNs(mono), MonoNs(mono)],
            tsc: None,
            real: [RealNs(mono + offset); 2],
            tai: TaiNs(mono + offset),
            boot: None,
            offset: None,
        }
    }
}

impl Reference<MonoNs> for Script {
    fn read(&mut self) -> MonoNs {
        MonoNs(self.0.lock().unwrap().0)
    }
}

/// An output that takes so many bytes and then fails.
#[derive(Clone, Debug)]
struct Sink {
    bytes: Arc<Mutex<Vec<u8>>>,
    room: usize,
    failure: io::ErrorKind,
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut inside = self.bytes.lock().unwrap();
        let takes = bytes.len().min(self.room - inside.len());
        if takes == 0 {
            return Err(self.failure.into());
        }
        inside.extend_from_slice(&bytes[..takes]);
        Ok(takes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Bench {
    producers: Vec<Producer>,
    converter: Converter<Script>,
    script: Script,
    events: UnboundedReceiver<Event>,
    shared: Arc<Shared>,
    bytes: Arc<Mutex<Vec<u8>>>,
    headers: usize,
}

fn interface() -> InterfaceInfo {
    InterfaceInfo {
        name: "test0".into(),
        description: Some("synthetic".into()),
        link_type: LinkType::Ethernet,
        mac: Some([2, 0, 0, 0, 0, 1]),
        speed: Some(10_000_000_000),
        snaplen: 262_144,
        filter: None,
        os: "Linux".into(),
        tscap: InterfaceOption::new(
            Hooks::default(),
            StampOption::new(StampPath::Ktime),
            std::collections::BTreeMap::new(),
        ),
    }
}

fn bench(rings: u32, count: Option<u64>, room: usize, failure: io::ErrorKind) -> Bench {
    bench_of(StampSource::Ktime, rings, count, room, failure)
}

fn bench_of(
    source: StampSource,
    rings: u32,
    count: Option<u64>,
    room: usize,
    failure: io::ErrorKind,
) -> Bench {
    let bytes = Arc::new(Mutex::new(Vec::new()));
    let inside = Arc::clone(&bytes);
    let bench = bench_with(source, (rings, MIN_RING_BYTES), count, |headers| {
        Output::stream(Sink {
            bytes: inside,
            room: room.saturating_add(headers),
            failure,
        })
    });
    Bench { bytes, ..bench }
}

/// Rings of so many bytes, and an output for headers of that length.
fn bench_with(
    source: StampSource,
    (rings, ring_bytes): (u32, usize),
    count: Option<u64>,
    output: impl FnOnce(usize) -> Output,
) -> Bench {
    let (producers, consumers) = synthetic::rings(rings, ring_bytes).unwrap();
    let mut script = Script::new();
    let tracker = Tracker::new(source, &script.read()).unwrap();
    let section = SectionInfo {
        hardware: "none".into(),
        os: "Linux".into(),
        application: "test".into(),
        part: None,
    };
    let start = tracker.real_at(tracker.current().from);
    let mut file = FileWriter::new(&section, &[interface()], start).unwrap();
    let headers = file.take();
    let mut output = output(headers.len());
    let length = headers.len();
    output.write_headers(headers).unwrap();
    let (tell, events) = unbounded_channel();
    let shared = Arc::new(Shared::default());
    let source = Source {
        consumers,
        clocks: script.clone(),
        tracker,
        frames: Frames {
            count,
            keep_raw: false,
            hardware_stamps: false,
        },
    };
    let converter = Converter::new(source, output, file, Arc::clone(&shared), tell);
    Bench {
        producers,
        converter,
        script,
        events,
        shared,
        bytes: Arc::default(),
        headers: length,
    }
}

fn unlimited(rings: u32) -> Bench {
    bench(rings, None, usize::MAX, io::ErrorKind::StorageFull)
}

impl Bench {
    fn push(&mut self, ring: usize, mono: u64, length: usize) {
        let pushed = self.producers[ring].push(SLOT, RawStamp(mono), &vec![0xa5; length]);
        assert!(pushed, "the test's ring is large enough");
    }

    fn events(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.events.try_recv().ok()).collect()
    }

    fn file(&self) -> Vec<u8> {
        self.bytes.lock().unwrap().clone()
    }

    /// Stamps of the packets in the file, ns since the epoch.
    fn stamps(&self) -> Vec<u64> {
        stamps(&self.file())
    }

    fn finish(self) -> Finished {
        self.converter.into_finished()
    }

    /// The account of `seen` frames, none of which a program lost.
    fn totals(self, seen: u64) -> Totals {
        totals(&self.finish(), seen)
    }
}

fn totals(finished: &Finished, seen: u64) -> Totals {
    of_each(finished, seen).sum()
}

fn of_each(finished: &Finished, seen: u64) -> Directed<Totals> {
    finished.totals(Directed::received(seen), &Observed::default())
}

fn stamps(file: &[u8]) -> Vec<u64> {
    let mut stamps = Vec::new();
    for block in PcapNgReader::new(file).unwrap() {
        if let FileBlock::EnhancedPacket(packet) = block.unwrap() {
            stamps.push(u64::try_from(packet.timestamp.as_nanos()).unwrap());
        }
    }
    stamps
}

#[test]
fn every_ring_is_drained_and_stamps_are_wall_clock() {
    let mut bench = unlimited(3);
    for ring in 0..3 {
        bench.push(ring, 1_000_000 + ring as u64, 60);
    }
    bench.script.set(2_000_000, EPOCH);
    assert!(bench.converter.drain());
    assert!(!bench.converter.drain());
    let expected: Vec<_> = (0..3).map(|ring| EPOCH + 1_000_000 + ring).collect();
    assert_eq!(bench.stamps(), expected);
    let finished = bench.finish();
    assert_eq!(finished.finisher.written(), 3);
    assert_eq!(finished.order().stamp_decreases, 0);
}

#[test]
fn a_step_converts_each_side_with_its_own_offset() {
    let mut bench = unlimited(1);
    let second = 1_000_000_000;
    bench.push(0, 900_000, 60);
    bench.converter.drain();
    bench.push(0, 1_000_000, 60);
    bench.push(0, 1_500_000, 60);
    bench.script.set(2_000_000, EPOCH - second);
    bench.converter.drain();
    bench.push(0, 2_500_000, 60);
    bench.script.set(3_000_000, EPOCH - second);
    bench.converter.drain();

    assert!(matches!(
        bench.events()[..],
        [Event::Stepped {
            step_ns: -1_000_000_000,
            cause: StepCause::Set
        }]
    ));
    let before = [900_000, 1_000_000, 1_500_000].map(|mono| mono + EPOCH);
    let after = [2_500_000 + EPOCH - second];
    assert_eq!(bench.stamps(), [&before[..], &after].concat());
    let finished = bench.finish();
    assert_eq!(finished.tracker.segments().len(), 2);
    // Only the one between the two cross-timestamps.
    assert_eq!(finished.finisher.ambiguous, 1);
}

#[test]
fn stamps_that_decrease_are_counted() {
    let mut bench = unlimited(2);
    for mono in [900_000, 900_050, 900_010, 900_020, 900_020] {
        bench.push(0, mono, 60);
    }
    bench.push(1, 800_000, 60);
    bench.script.set(2_000_000, EPOCH);
    bench.converter.drain();
    let finished = bench.finish();
    assert_eq!(finished.order().stamp_decreases, 1);
    assert_eq!(finished.order().largest_decrease_ns, 40);
}

#[test]
fn a_count_is_exact_and_the_rest_is_accounted_for() {
    let mut bench = bench(1, Some(5), usize::MAX, io::ErrorKind::StorageFull);
    for mono in 0..8 {
        bench.push(0, 900_000 + mono, 60);
    }
    bench.converter.drain();
    bench.push(0, 950_000, 60);
    bench.converter.drain();
    assert!(matches!(bench.events()[..], [Event::CountReached]));
    assert_eq!(bench.stamps().len(), 5);
    let totals = bench.totals(9);
    assert_eq!(
        (totals.written, totals.outcomes[Outcome::AfterStop]),
        (5, 4)
    );
    assert!(totals.add_up());
}

#[test]
fn each_direction_has_an_account_of_its_own() {
    let mut bench = unlimited(1);
    let sent = Slot::of(0, Direction::Out);
    for (mono, slot) in [(1, SLOT), (2, sent), (3, sent), (4, SLOT), (5, sent)] {
        assert!(bench.producers[0].push(slot, RawStamp(mono), &[0; 60]));
    }
    bench.converter.drain();
    assert_eq!(bench.stamps().len(), 5);
    let mut seen = Directed::default();
    (seen[Direction::In], seen[Direction::Out]) = (2, 4);
    let totals = bench.finish().totals(seen, &Observed::default());
    let written = Direction::ALL.map(|it| totals[it].written);
    assert_eq!(written, [2, 3]);
    assert_eq!(Direction::ALL.map(|it| totals[it].add_up()), [true, false]);
}

#[test]
fn a_block_of_a_slot_that_there_is_not_ends_the_capture() {
    for strange in [Slot::of(1, Direction::In), Slot(u32::MAX)] {
        for before in [0, 1] {
            let mut bench = unlimited(1);
            let slots = [SLOT, strange, SLOT];
            for (mono, slot) in (1..).zip(&slots[1 - before..]) {
                assert!(bench.producers[0].push(*slot, RawStamp(mono), &[0; 60]));
            }
            bench.converter.drain();
            assert_eq!(bench.stamps().len(), before);
            let events = bench.events();
            let [Event::Corrupt(corrupt)] = events[..] else {
                panic!("{events:?}");
            };
            let position = before * tscap_common::block::block_len(60, 0);
            assert_eq!(
                (corrupt.slot, corrupt.position),
                (strange.0, position as u64)
            );
        }
    }
}

#[test]
fn a_reader_that_is_gone_ends_the_capture_in_order() {
    let mut bench = bench(1, None, 200, io::ErrorKind::BrokenPipe);
    for mono in 0..8 {
        bench.push(0, 900_000 + mono, 60);
    }
    bench.converter.drain();
    assert!(matches!(bench.events()[..], [Event::ReaderGone]));
    let mut finished = bench.finish();
    let of_each = of_each(&finished, 8);
    let totals = of_each.sum();
    assert_eq!(
        (totals.written, totals.outcomes[Outcome::AfterStop]),
        (2, 6)
    );
    assert!(totals.add_up());
    let last = finished.write_last_statistics(MonoNs(2_000_000), &Observed::default(), &of_each);
    assert!(last.is_ok(), "nobody is there to read it");
}

#[test]
fn statistics_come_every_ten_seconds_with_counts_and_clock() {
    let mut bench = unlimited(1);
    for second in 1..=21u64 {
        let now = second * 1_000_000_000;
        bench.push(0, now - 10, 60);
        bench.script.set(now, EPOCH);
        bench.converter.drain();
    }
    let file = bench.file();
    let mut delivered = Vec::new();
    for block in PcapNgReader::new(&file[..]).unwrap() {
        let FileBlock::InterfaceStatistics(statistics) = block.unwrap() else {
            continue;
        };
        let at = statistics.timestamp.as_nanos() - u128::from(EPOCH);
        let frames = statistics.options.iter().find_map(|option| match option {
            InterfaceStatisticsOption::IsbUsrDeliv(frames) => Some(*frames),
            _ => None,
        });
        let json = statistics
            .options
            .iter()
            .any(|option| format!("{option:?}").contains("host_bound_ns"));
        assert!(json);
        delivered.push((at / 1_000_000_000, frames));
    }
    // The statistics precede the frame that the same drain wrote.
    assert_eq!(delivered, [(11, Some(10)), (21, Some(20))]);
}

#[test]
fn stamps_of_a_counter_become_times() {
    let mut bench = unlimited(1);
    let mut read = |ms: u64| {
        bench.script.set(ms * 1_000_000, EPOCH);
        let tsc = 3 * ms * 1_000_000;
        CrossTimestamp {
            tsc: Some([TscCycles(tsc - 30), TscCycles(tsc + 30)]),
            ..bench.script.read()
        }
    };
    let mut tracker = Tracker::new(StampSource::Tsc, &read(1)).unwrap();
    for ms in 2..100 {
        tracker.observe(&read(ms));
    }
    bench.converter.tracker = tracker;
    bench.push(0, 3 * 50_000_000, 60);
    bench.converter.drain();
    let [time] = bench.stamps()[..] else {
        panic!("one frame");
    };
    assert!(time.abs_diff(EPOCH + 50_000_000) < 100, "{time}");
}

/// The greatest stamp of a run counts, which need not be the last one.
#[test]
fn a_frame_is_late_behind_any_of_another_ring() {
    let mut bench = unlimited(2);
    bench.push(0, 100, 60);
    bench.push(0, 50, 60);
    bench.converter.drain_all();
    bench.push(1, 80, 60);
    bench.converter.drain_all();
    let order = bench.finish().order();
    assert_eq!((order.late, order.largest_lateness_ns), (1, 20));
    assert_eq!(order.largest_decrease_ns, 50);
}

#[test]
fn a_ring_gone_bad_is_told_and_left_out() {
    let mut bench = unlimited(1);
    bench.push(0, 1, 60);
    // A frame whose "block" is no block once the tail is moved into it.
    bench.converter.rings.consumers[0].take(4);
    bench.push(0, 2, 60);
    bench.converter.drain();
    assert!(matches!(bench.events()[..], [Event::Corrupt(_)]));
    assert!(!bench.converter.drain(), "it is not looked at again");
    let totals = bench.totals(2);
    assert!(!totals.add_up(), "the frames lost this way must show");
}
