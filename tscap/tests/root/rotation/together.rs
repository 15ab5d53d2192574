//! Several files as one capture.

use std::path::{Path, PathBuf};

use tscap::Summary;
use tscap_testkit::finished::Finished;
use tscap_testkit::frame::Frame;
use tscap_testkit::recording::Recording;

/// Every file is whole by itself and says what is in it; all of them together
/// are the capture. Files that are gone are left out. Gives the summary.
#[track_caller]
pub fn check(finished: &Finished) -> (Summary, Vec<Recording>) {
    let summary = finished.accounted();
    let files = finished.files();
    let reported = summary.files.as_ref().expect("several files");
    assert_eq!(reported.written, files.len() as u64);
    let frames: u64 = files.iter().map(|file| file.frames).sum();
    let bytes: u64 = files.iter().map(|file| file.bytes).sum();
    assert_eq!((frames, bytes), (summary.written, summary.bytes_written));
    for pair in files.windows(2) {
        assert_eq!(pair[0].end_ns, pair[1].start_ns);
    }
    let latest = |path: &Path| files.iter().rposition(|file| file.path == path);
    let there = files
        .iter()
        .enumerate()
        .filter(|(number, file)| latest(&file.path) == Some(*number) && file.path.exists());
    let mut recordings = Vec::new();
    let mut received = 0;
    for (number, file) in there {
        let recording = Recording::read(&file.path);
        assert_eq!(recording.packets.len() as u64, file.frames);
        for interface in 0..recording.interfaces.len() {
            let last = recording.last_statistics(interface);
            let packets = recording.packets_of(interface).count() as u64;
            assert_eq!(last.delivered, Some(packets));
            assert_eq!(last.start, Some(file.start_ns));
            assert_eq!(last.after, recording.packets.len(), "at the end");
            let clock = &last.custom["clock"];
            let is_there = |part: &str| clock[part].as_array().is_some_and(|it| !it.is_empty());
            assert!(is_there("segments"));
            // The history is once in a file.
            assert_eq!(is_there("samples"), interface == 0);
            assert_eq!(
                last.custom.get("totals").is_some(),
                number + 1 == files.len()
            );
            received += last.received.expect("frames received");
        }
        recordings.push(recording);
    }
    if reported.removed == 0 {
        assert_eq!(received, summary.seen);
    }
    (summary, recordings)
}

/// The numbered frames of all recordings, which must be `expected` ones in a row.
#[track_caller]
pub fn check_frames(recordings: &[Recording], frame: &Frame, expected: std::ops::Range<u64>) {
    let packets = recordings.iter().flat_map(|recording| &recording.packets);
    let mut next = expected.start;
    for packet in packets {
        frame.check(&packet.data, next);
        next += 1;
    }
    assert_eq!(next, expected.end);
}

/// Where `tscap gen` puts the sequence number in a frame without a tag.
const SEQUENCE: usize = 14 + 20 + 8 + 6;

/// So many frames of `tscap gen` in a row, by their numbers.
#[track_caller]
pub fn check_sequence(recordings: &[Recording], frames: u64, options: &[&str]) {
    let packets = recordings.iter().flat_map(|recording| &recording.packets);
    let mut next = 0;
    for packet in packets {
        let number = packet.data[SEQUENCE..].first_chunk().expect("a number");
        assert_eq!(u32::from_be_bytes(*number), next, "{options:?}");
        next += 1;
    }
    assert_eq!(u64::from(next), frames);
}

/// Names of what is in a folder, in order.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("read a folder");
    let name = |path: PathBuf| path.file_name()?.to_str().map(str::to_owned);
    let mut names: Vec<_> = entries
        .map(|entry| name(entry.expect("an entry").path()).expect("a UTF-8 name"))
        .collect();
    names.sort();
    names
}
