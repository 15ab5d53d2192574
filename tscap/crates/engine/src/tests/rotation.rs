//! Several files: every frame in one of them, whatever the limits.

use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::tz::TimeZone;
use tempfile::TempDir;

use super::merge::world::{MOST_FRAMES, World, numbers, world};
use super::*;
use crate::window::WINDOW_NS;
use tscap_file::pcapng::{Record, StatisticsOption, records};

mod units;

const TCPDUMP: Naming = Naming::Tcpdump {
    has_time: false,
    has_number: true,
    ring: None,
};

/// A converter that writes files named after `out` into a folder.
struct Rotating {
    bench: Bench,
    reported: UnboundedReceiver<Event>,
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
    let start = bench.converter.files.file.start();
    let path = names.first(start).unwrap();
    let mut output = PreparedFile::open(&path).unwrap().start(Io::Auto).unwrap();
    output.write(&bench.file()).unwrap();
    let (tell, reported) = unbounded_channel();
    let rotation = Rotation::new(plan, names, path, start, tell).unwrap();
    let mut converter = bench.converter.rotating(rotation);
    converter.writer.output = output;
    Rotating {
        bench: Bench { converter, ..bench },
        reported,
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
        let totals = finished.totals(Directed::received(seen), &observed);
        let end = MonoNs(self.bench.script.0.lock().unwrap().0);
        finished
            .write_last_statistics(end, &observed, &totals)
            .unwrap();
        let (order, bytes) = (finished.order(), finished.bytes());
        let end = finished.tracker.real_at(end);
        let rotation = finished.rotation.unwrap();
        let closing = rotation.close_last(finished.output, totals.sum().written, end);
        closing.join().unwrap();
        let (mut closed, mut removed) = (Vec::new(), Vec::new());
        while let Ok(event) = self.reported.try_recv() {
            match event {
                Event::FileClosed { file, error: None } => closed.push(file),
                Event::FileRemoved { path, frames } => removed.push((path, frames)),
                other => panic!("{other:?}"),
            }
        }
        Ended {
            finished: totals.sum(),
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
    if let (Some(_), Some((_, last))) = (count, all.last().copied()) {
        // So either of two may be the last one that is asked for.
        all.retain(|(_, stamp)| *stamp != last);
        expected.retain(|(_, stamp)| *stamp != last);
    }
    all.sort_unstable();
    expected.sort_unstable();
    assert_eq!(all, expected, "each frame once");
    assert_eq!((bytes, late), (ended.bytes, order.late));
    for pair in ended.closed.windows(2) {
        assert_eq!(pair[0].end, pair[1].start);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(std::env::var("TSCAP_CASES").map_or(30, |cases| {
        // More by night.
        cases.parse().expect("TSCAP_CASES is a number")
    })))]

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

/// Frames stamped before the request are in the file that ends with it, and no others, also while
/// they are still in the rings.
#[test]
fn the_next_file_begins_when_it_is_asked_for() {
    let mut files = rotate(unlimited(2), &plan(Limits::default(), TCPDUMP));
    let asked = 1_500_000;
    for mono in [1_000_100, 1_499_999, 1_500_001, 1_700_000] {
        files.bench.push(0, mono, 60);
        files.bench.push(1, mono, 60);
    }
    files.bench.shared.request_next_file(MonoNs(asked));
    // Frames stamped before may still be on their way for a window.
    files.bench.script.set(asked + WINDOW_NS - 1, EPOCH);
    files.bench.converter.drain();
    assert!(files.reported.try_recv().is_err());
    files.bench.script.set(2_000_000, EPOCH);
    files.bench.converter.drain();
    let reported: Vec<_> = files.bench.events();
    assert!(
        matches!(&reported[..], [Event::Flushed { next: Some(path) }] if path.ends_with("out1")),
        "{reported:?}"
    );
    let ended = files.end(8);
    let frames: Vec<_> = ended.closed.iter().map(|file| file.frames).collect();
    assert_eq!(frames, [4, 4]);
    // The next one begins with its first block.
    assert_eq!(ended.closed[0].end, RealNs(EPOCH + asked + 1));
}

/// Twice in a row there are two files, and a period ends when it did before.
#[test]
fn requests_leave_periods_as_they_are() {
    let naming = Naming::Dumpcap { ring: None };
    let mut files = rotate(unlimited(1), &plan(period(1_000_000), naming));
    for (at, now) in [(1_200_000, 1_400_000), (1_500_000, 1_700_000)] {
        files.bench.shared.request_next_file(MonoNs(at));
        files.bench.script.set(now, EPOCH);
        files.bench.converter.drain();
    }
    files.bench.script.set(2_500_000, EPOCH);
    files.bench.converter.drain();
    let ended = files.end(0);
    let starts: Vec<_> = ended.closed.iter().map(|it| it.start.0 - EPOCH).collect();
    assert_eq!(starts, [1_000_000, 1_300_000, 1_600_000, 2_000_000]);
}

/// A capture into one file goes on, and everything until then is in it.
#[test]
fn one_file_is_flushed_when_the_next_one_is_asked_for() {
    let mut bench = unlimited(2);
    for ring in [0, 1, 0] {
        bench.push(ring, 1_100_000, 60);
    }
    bench.shared.request_next_file(MonoNs(1_200_000));
    bench.script.set(2_000_000, EPOCH);
    bench.converter.drain();
    let reported = bench.events();
    assert!(
        matches!(reported[..], [Event::Flushed { next: None }]),
        "{reported:?}"
    );
    assert_eq!(bench.stamps().len(), 3);
    bench.push(0, 2_000_500, 60);
    bench.script.set(3_000_000, EPOCH);
    bench.converter.drain();
    assert_eq!(bench.stamps().len(), 4);
    assert!(bench.events().is_empty());
}
