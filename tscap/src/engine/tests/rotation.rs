//! Several files: every frame in one of them, whatever the limits.

use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::tz::TimeZone;
use tempfile::TempDir;

use super::merge::world::{MOST_FRAMES, World, numbers, world};
use super::*;
use crate::engine::window::WINDOW_NS;
use crate::pcapng::{Record, StatisticsOption, records};

const TCPDUMP: Naming = Naming::Tcpdump {
    has_time: false,
    has_number: true,
    ring: None,
};

/// A converter that writes files named after `out` into a folder.
struct Rotating {
    bench: Bench,
    told: UnboundedReceiver<Event>,
    folder: TempDir,
}

/// What was left at the end.
struct Ended {
    finished: Totals,
    order: StampOrder,
    bytes: u64,
    closed: Vec<ClosedFile>,
    removed: Vec<(PathBuf, Option<u64>)>,
    folder: TempDir,
}

fn rotate(bench: Bench, plan: &RotationPlan) -> Rotating {
    let folder = tempfile::tempdir().unwrap();
    let mut names = Names::new(&folder.path().join("out"), plan.naming, TimeZone::UTC);
    let start = bench.converter.file.start();
    let path = names.first(start).unwrap();
    let mut output = PreparedFile::open(&path).unwrap().start().unwrap();
    output.write(&bench.file()).unwrap();
    let (tell, told) = unbounded_channel();
    let rotation = Rotation::new(plan, names, path, start, tell).unwrap();
    let mut converter = bench.converter.rotating(rotation);
    converter.pieces.output = output;
    Rotating {
        bench: Bench { converter, ..bench },
        told,
        folder,
    }
}

fn plan(limits: Limits, naming: Naming) -> RotationPlan {
    RotationPlan {
        limits,
        naming,
        periods: None,
        command: None,
    }
}

fn frames(frames: u64) -> Limits {
    Limits {
        frames: Some(frames),
        ..Limits::default()
    }
}

fn period(ns: u64) -> Limits {
    Limits {
        period: Some(Period::Every(Duration::from_nanos(ns))),
        ..Limits::default()
    }
}

impl Rotating {
    /// Ends the capture as the command does: `seen` frames entered the program.
    fn end(mut self, seen: u64) -> Ended {
        let mut finished = self.bench.converter.into_finished();
        let observed = Observed::default();
        let totals = finished.totals(seen, &observed, Outcomes::default());
        let end = MonoNs(self.bench.script.0.lock().unwrap().0);
        finished
            .write_last_statistics(end, &observed, &totals)
            .unwrap();
        let (order, bytes) = (finished.order(), finished.bytes());
        let end = finished.tracker.real_at(end);
        let rotation = finished.rotation.unwrap();
        let closing = rotation.close_last(finished.output, totals.written, end);
        closing.join().unwrap();
        let (mut closed, mut removed) = (Vec::new(), Vec::new());
        while let Ok(event) = self.told.try_recv() {
            match event {
                Event::FileClosed { file, error: None } => closed.push(file),
                Event::FileRemoved { path, frames } => removed.push((path, frames)),
                other => panic!("{other:?}"),
            }
        }
        Ended {
            finished: totals,
            order,
            bytes,
            closed,
            removed,
            folder: self.folder,
        }
    }

    /// Pushes a frame and drains, at a time.
    fn frame_at(&mut self, mono: u64) {
        self.bench.push(0, mono, 60);
        self.drain_at(mono + 10);
    }

    fn drain_at(&mut self, mono: u64) {
        self.bench.script.set(mono, EPOCH);
        self.bench.converter.drain();
    }
}

impl Ended {
    /// Names of the files that are there, with the frames in each.
    fn there(&self) -> Vec<(String, usize)> {
        let entries = std::fs::read_dir(self.folder.path()).unwrap();
        let mut there: Vec<_> = entries
            .map(|entry| {
                let path = entry.unwrap().path();
                let name = path.file_name().unwrap().to_str().unwrap().to_owned();
                (name, numbers(&std::fs::read(path).unwrap()).len())
            })
            .collect();
        there.sort();
        there
    }

    fn closed_frames(&self) -> Vec<u64> {
        self.closed.iter().map(|file| file.frames).collect()
    }
}

/// The last statistics in a file, whose clock they must have.
fn last_statistics(file: &[u8]) -> StatisticsOption {
    let statistics = records(file).unwrap().filter_map(|record| {
        let Record::Statistics(0, statistics) = record.unwrap() else {
            return None;
        };
        Some(*statistics)
    });
    let last = statistics.last().expect("statistics in each file");
    assert!(!last.clock.segments.is_empty() && !last.clock.samples.is_empty());
    last
}

/// `isb_usrdeliv` of the last statistics.
fn delivered(file: &[u8]) -> u64 {
    let blocks = PcapNgReader::new(file).unwrap().into_iter();
    let delivered = blocks.filter_map(|block| match block.unwrap() {
        FileBlock::InterfaceStatistics(statistics) => {
            statistics
                .options
                .into_iter()
                .find_map(|option| match option {
                    InterfaceStatisticsOption::IsbUsrDeliv(frames) => Some(frames),
                    _ => None,
                })
        }
        _ => None,
    });
    delivered.last().unwrap()
}

/// Bytes of a file before its last packet.
fn before_last_packet(file: &[u8]) -> u64 {
    let (mut rest, mut parser) = PcapNgParser::new(file).unwrap();
    let mut before = 0;
    while !rest.is_empty() {
        let (next, block) = parser.next_block(rest).unwrap();
        if matches!(block, FileBlock::EnhancedPacket(_)) {
            before = file.len() - rest.len();
        }
        rest = next;
    }
    before as u64
}

fn limits() -> impl Strategy<Value = Limits> {
    let bytes = prop::option::of(prop_oneof![1u64..1_500, 1_500u64..20_000]);
    let frames = prop::option::of(1u64..60);
    let length = (1_000u64..400_000).prop_map(Duration::from_nanos);
    let period = prop_oneof![
        length.clone().prop_map(Period::Every),
        length.prop_map(Period::MultipleOf)
    ];
    (bytes, frames, prop::option::of(period)).prop_map(|(bytes, frames, period)| Limits {
        bytes,
        frames,
        period,
    })
}

/// `is_prompt` worlds have every frame published within the window.
fn check_cuts(world: &World, limits: Limits, count: Option<u64>, is_prompt: bool) {
    let mut whole = world.bench(count, usize::MAX);
    world.run(&mut whole);
    let mut expected = numbers(&whole.file());
    let order = whole.finish().order();

    let mut rotating = rotate(world.bench(count, usize::MAX), &plan(limits, TCPDUMP));
    world.run(&mut rotating.bench);
    let ended = rotating.end(world.frames.len() as u64);
    assert!(ended.finished.add_up(), "{:?}", ended.finished);
    assert_eq!(ended.order, order);
    assert_eq!(ended.removed, []);

    let mut all = Vec::new();
    let mut bytes = 0;
    let mut late = 0;
    for (number, closed) in ended.closed.iter().enumerate() {
        let file = std::fs::read(&closed.path).unwrap();
        let packets = numbers(&file);
        assert_eq!(closed.bytes, file.len() as u64);
        assert_eq!(closed.frames, packets.len() as u64);
        assert_eq!(delivered(&file), closed.frames);
        assert!(limits.frames.is_none_or(|most| closed.frames <= most));
        if let (Some(most), true) = (limits.bytes, packets.len() > 1) {
            assert!(before_last_packet(&file) < most);
        }
        let last = last_statistics(&file);
        let is_last = number + 1 == ended.closed.len();
        assert_eq!(last.totals, is_last.then_some(ended.finished));
        late += last.clock.order.late;
        if is_prompt {
            let span = closed.start.0..=closed.end.0;
            assert!(packets.iter().all(|(_, stamp)| span.contains(stamp)));
        }
        bytes += closed.bytes;
        all.extend(packets);
    }
    // Frames of one time come in any order.
    let stamps = |all: &[(usize, u64)]| all.iter().map(|(_, stamp)| *stamp).collect::<Vec<_>>();
    assert_eq!(stamps(&all), stamps(&expected), "in the same order");
    all.sort_unstable();
    expected.sort_unstable();
    assert_eq!(all, expected, "each frame once");
    assert_eq!((bytes, late), (ended.bytes, order.late));
    for pair in ended.closed.windows(2) {
        assert_eq!(pair[0].end, pair[1].start);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn files_together_are_the_one_file(
        world in world(WINDOW_NS),
        limits in limits(),
        count in prop::option::weighted(0.2, 1u64..MOST_FRAMES as u64),
    ) {
        check_cuts(&world, limits, count, true);
    }

    #[test]
    fn so_they_are_when_frames_come_late(world in world(20 * WINDOW_NS), limits in limits()) {
        check_cuts(&world, limits, None, false);
    }
}

#[test]
fn a_file_takes_the_frame_that_fills_it_and_no_empty_one_follows() {
    let mut rotating = rotate(unlimited(1), &plan(frames(2), TCPDUMP));
    for mono in 0..4 {
        rotating.bench.push(0, 1_000_000 + mono, 60);
    }
    rotating.drain_at(2_000_000);
    let ended = rotating.end(4);
    assert_eq!(ended.there(), [("out".into(), 2), ("out1".into(), 2)]);
    assert_eq!(ended.closed_frames(), [2, 2]);
}

#[test]
fn a_limit_below_the_headers_leaves_one_frame_a_file() {
    let limits = Limits {
        bytes: Some(1),
        ..Limits::default()
    };
    let mut rotating = rotate(unlimited(2), &plan(limits, TCPDUMP));
    for mono in 0..3 {
        rotating.bench.push(mono as usize % 2, 1_000_000 + mono, 60);
    }
    rotating.drain_at(2_000_000);
    assert_eq!(rotating.end(3).closed_frames(), [1, 1, 1]);
}

#[test]
fn a_ring_of_files_keeps_the_latest() {
    let naming = Naming::Dumpcap { ring: Some(2) };
    let mut rotating = rotate(unlimited(1), &plan(frames(3), naming));
    for mono in 0..14 {
        rotating.bench.push(0, 1_000_000 + mono, 60);
    }
    rotating.drain_at(2_000_000);
    let ended = rotating.end(14);
    let there = ended.there();
    let [(fourth, 3), (fifth, 2)] = &there[..] else {
        panic!("{there:?}");
    };
    assert!(fourth.starts_with("out_00004_2023") && fifth.starts_with("out_00005_2023"));
    assert_eq!(ended.closed_frames(), [3, 3, 3, 3, 2]);
    let removed: Vec<_> = ended.removed.iter().map(|(_, frames)| *frames).collect();
    assert_eq!(removed, [Some(3); 3]);
    assert_eq!(ended.finished.written, 14);
}

#[test]
fn a_ring_of_names_begins_again() {
    let naming = Naming::Tcpdump {
        has_time: false,
        has_number: true,
        ring: Some(2),
    };
    let mut rotating = rotate(unlimited(1), &plan(frames(3), naming));
    let stranger = rotating.folder.path().join("out1");
    std::fs::write(&stranger, b"an older capture").unwrap();
    for mono in 0..8 {
        rotating.bench.push(0, 1_000_000 + mono, 60);
    }
    rotating.drain_at(2_000_000);
    let ended = rotating.end(8);
    assert_eq!(ended.there(), [("out0".into(), 2), ("out1".into(), 3)]);
    let first = ended.folder.path().join("out0");
    assert_eq!(ended.removed, [(stranger, None), (first, Some(3))]);
}

#[test]
fn without_a_time_in_its_name_each_file_replaces_the_one_before() {
    let naming = Naming::Tcpdump {
        has_time: true,
        has_number: false,
        ring: None,
    };
    let mut rotating = rotate(unlimited(1), &plan(period(1_000_000), naming));
    for millis in 1..=3 {
        rotating.frame_at(millis * 1_000_000 + 5);
    }
    let ended = rotating.end(3);
    assert_eq!(ended.there(), [("out".into(), 1)]);
    let replaced: Vec<_> = ended.closed.iter().map(|file| file.is_replaced).collect();
    assert_eq!(replaced, [true, true, false]);
    assert_eq!(ended.removed.len(), 2);
    assert_eq!(ended.finished.written, 3);
}

#[test]
fn periods_end_on_time_with_and_without_frames() {
    const MS: u64 = 1_000_000;
    let mut rotating = rotate(unlimited(2), &plan(period(10 * MS), TCPDUMP));
    // From 1 ms on: ..11, ..21, ..31, ..41.
    for (ring, mono) in [(0, 2 * MS), (1, 11 * MS - 1), (0, 11 * MS), (1, 12 * MS)] {
        rotating.bench.push(ring, mono, 60);
    }
    rotating.drain_at(13 * MS);
    rotating.drain_at(21 * MS + WINDOW_NS - 1);
    assert!(
        !rotating.folder.path().join("out2").exists(),
        "but not the second"
    );
    rotating.drain_at(21 * MS + WINDOW_NS);
    assert!(rotating.folder.path().join("out2").exists());
    // Nobody was there for a whole period.
    rotating.bench.push(0, 45 * MS, 60);
    rotating.drain_at(46 * MS);
    let ended = rotating.end(5);
    assert_eq!(ended.closed_frames(), [2, 2, 0, 1]);
    let starts: Vec<_> = ended
        .closed
        .iter()
        .map(|file| file.start.0 - EPOCH)
        .collect();
    assert_eq!(starts, [1, 11, 21, 41].map(|millis| millis * MS));
}

#[test]
fn a_clock_set_back_neither_ends_a_period_nor_keeps_it() {
    const MS: u64 = 1_000_000;
    const HOUR: u64 = 3_600_000 * MS;
    let bench = bench_of(StampSource::Tai, 1, None, usize::MAX, io::ErrorKind::Other);
    let mut rotating = rotate(bench, &plan(period(10 * MS), TCPDUMP));
    let mut offset = EPOCH;
    for millis in 2..=31 {
        if millis == 6 {
            offset -= HOUR;
        }
        let now = millis * MS;
        rotating.bench.push(0, now + offset, 60);
        rotating.bench.script.set(now + 1, offset);
        rotating.bench.converter.drain();
    }
    let frames = rotating.end(30).closed_frames();
    assert_eq!(frames, [9, 10, 10, 1]);
}

#[test]
fn the_last_period_ends_the_capture() {
    let plan = RotationPlan {
        periods: Some(2),
        ..plan(period(1_000_000), TCPDUMP)
    };
    let mut rotating = rotate(unlimited(1), &plan);
    for half in 2..8 {
        rotating.frame_at(half * 500_000);
    }
    assert!(matches!(rotating.bench.events()[..], [Event::PeriodsOver]));
    let ended = rotating.end(6);
    assert_eq!(ended.closed_frames(), [2, 2]);
    assert_eq!(ended.finished.outcomes.after_stop, 2);
    assert!(ended.finished.add_up());
}

#[test]
fn a_next_file_that_can_not_be_made_leaves_the_old_one_complete() {
    let mut rotating = rotate(unlimited(1), &plan(frames(2), TCPDUMP));
    let blocked = rotating.folder.path().join("out1");
    std::fs::create_dir(&blocked).unwrap();
    for mono in 0..5 {
        rotating.bench.push(0, 1_000_000 + mono, 60);
    }
    rotating.drain_at(2_000_000);
    rotating.bench.push(0, 2_000_000, 60);
    rotating.drain_at(3_000_000);
    match &rotating.bench.events()[..] {
        [Event::NextFileFailed { path, error }] => {
            assert_eq!((path, error.kind()), (&blocked, io::ErrorKind::Other));
        }
        other => panic!("{other:?}"),
    }
    let ended = rotating.end(6);
    assert_eq!(ended.closed_frames(), [2]);
    let totals = ended.finished;
    assert_eq!((totals.written, totals.outcomes.write_failed), (2, 4));
    assert!(totals.add_up());
    let file = std::fs::read(ended.folder.path().join("out")).unwrap();
    assert_eq!(last_statistics(&file).totals, Some(totals));
    assert_eq!(delivered(&file), 2);
}

#[test]
fn a_file_that_does_not_take_its_statistics_ends_with_its_last_frame() {
    let mut rotating = rotate(unlimited(1), &plan(frames(2), TCPDUMP));
    // Closed behind the converter's back: what it writes fails from here on.
    let path: &Path = Path::new("/dev/full");
    rotating.bench.push(0, 1_000_000, 60);
    rotating.drain_at(1_500_000);
    let full = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    rotating.bench.converter.pieces.output = Output::stream(full);
    rotating.bench.converter.cut(MonoNs(1_600_000), false);
    assert!(matches!(
        rotating.bench.events()[..],
        [Event::WriteFailed { path: Some(_), .. }]
    ));
    assert!(!rotating.folder.path().join("out1").exists());
}
