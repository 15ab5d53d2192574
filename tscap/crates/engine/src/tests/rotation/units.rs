//! Single cases.

use super::*;
use tscap_file::accounting::Outcome;

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
fn a_file_that_has_exactly_its_bytes_takes_no_more() {
    const BLOCK_BYTES: u64 = 92;
    let bench = unlimited(1);
    let limits = Limits {
        bytes: Some(bench.headers as u64 + 2 * BLOCK_BYTES),
        ..Limits::default()
    };
    let mut rotating = rotate(bench, &plan(limits, TCPDUMP));
    for mono in 0..3 {
        rotating.bench.push(0, 1_000_000 + mono, 60);
    }
    rotating.drain_at(2_000_000);
    assert_eq!(rotating.end(3).closed_frames(), [2, 1]);
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
    assert_eq!(ended.finished.outcomes[Outcome::AfterStop], 2);
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
    assert_eq!(
        (totals.written, totals.outcomes[Outcome::WriteFailed]),
        (2, 4)
    );
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
    rotating.bench.converter.writer.output = Output::stream(full);
    rotating
        .bench
        .converter
        .open_file()
        .rotate(MonoNs(1_600_000), false);
    assert!(matches!(
        rotating.bench.events()[..],
        [Event::WriteFailed { path: Some(_), .. }]
    ));
    assert!(!rotating.folder.path().join("out1").exists());
}

#[test]
fn a_drain_over_the_ends_of_periods_is_cut_there() {
    let mut rotating = rotate(unlimited(1), &plan(period(1_000_000), TCPDUMP));
    for mono in [1_500_000, 1_900_000, 2_100_000, 3_100_000] {
        rotating.bench.push(0, mono, 60);
    }
    rotating.drain_at(3_200_000);
    assert_eq!(rotating.end(4).closed_frames(), [2, 1, 1]);
}

#[test]
fn a_file_that_is_full_ends_no_period() {
    let limits = Limits {
        frames: Some(2),
        ..period(1_000_000)
    };
    let mut rotating = rotate(unlimited(1), &plan(limits, TCPDUMP));
    for mono in [1_100_000, 1_200_000, 1_300_000, 2_100_000] {
        rotating.frame_at(mono);
    }
    let ended = rotating.end(4);
    assert_eq!(ended.closed_frames(), [2, 1, 1]);
    let starts = ended.closed.iter().map(|file| file.start.0 - EPOCH);
    assert_eq!(starts.skip(1).collect::<Vec<_>>(), [1_300_000, 2_000_000]);
}

#[test]
fn a_clock_that_is_set_moves_the_end_of_a_period() {
    let limits = Limits {
        period: Some(Period::MultipleOf(Duration::from_secs(1))),
        ..Limits::default()
    };
    let mut rotating = rotate(unlimited(1), &plan(limits, TCPDUMP));
    for mono in [2_000_000, 400_000_000, 600_000_000] {
        rotating.bench.push(0, mono, 60);
        rotating.bench.script.set(mono + 10, EPOCH + 500_000_000);
        rotating.bench.converter.drain();
    }
    assert_eq!(rotating.end(3).closed_frames(), [2, 1]);
}

#[test]
fn all_files_are_counted_timed_and_watched() {
    let mut rotating = rotate(unlimited(1), &plan(frames(2), TCPDUMP));
    let watch = Arc::clone(rotating.bench.converter.writer.output.watch());
    for mono in 0..5 {
        rotating.bench.push(0, 1_000_000 + mono, 60);
    }
    rotating.drain_at(2_000_000);
    let before = watch.done();
    rotating.bench.push(0, 2_500_000, 60);
    rotating.drain_at(3_000_000);
    rotating.bench.converter.writer.settle();
    assert!(watch.done() > before);
    let rotation = rotating.bench.converter.files.rotation.as_ref();
    assert!(rotation.unwrap().longest_cut() > Duration::ZERO);
    let files = std::fs::read_dir(rotating.folder.path()).unwrap();
    let on_disk: u64 = files.map(|it| it.unwrap().metadata().unwrap().len()).sum();
    let published = &rotating.bench.shared.bytes;
    assert_eq!(
        published.load(std::sync::atomic::Ordering::Relaxed),
        on_disk
    );
}
