//! At the fastest rate: no frame is lost or doubled where one file ends, and the rings
//! do not wait for long.

use std::time::Duration;

use tscap_testkit::bench::Bench;
use tscap_testkit::capture::{capture_on, generate_on};
use tscap_testkit::files::{self, SmallDisk};
use tscap_testkit::peers;
use tscap_testkit::root::alone_with;

use super::together::{check, check_sequence, names};

const FRAMES: u64 = 400_000;
/// Longest cut of most captures: the others may have had to wait for the CPU.
const LONGEST_CUT: Duration = Duration::from_millis(100);

#[test]
fn no_frame_is_lost_or_doubled_flat_out() {
    let Some(_lock) = alone_with("fills the CPUs", &["ip", "ethtool", "capinfos"]) else {
        return;
    };
    let bench = Bench::new("flat-out");
    let mut cuts = Vec::new();
    // About 37 MB in blocks of 92 bytes.
    for (options, least_files) in [
        (&["-C", "1"][..], 30),
        (&["-G", "1"], 1),
        (&["-C", "1", "-G", "1"], 30),
        (&["-b", "filesize:2000"], 15),
        (&["-b", "packets:5000"], 80),
        (&["-b", "duration:0.02"], 4),
    ] {
        // Nobody else's writing holds up ours.
        let disk = SmallDisk::new(128 << 20);
        let path = disk.file("out-%s");
        let capture = capture_on(&bench.rx, &path).with(options).ready();
        let count = FRAMES.to_string();
        let gen_options = ["--flat-out", "--size", "64", "--count", &count];
        let sent = generate_on(&bench.tx).with(gen_options).run();
        assert_eq!(sent.code, Some(0), "{}", sent.stderr);
        let finished = capture.stop();
        let summary = finished.success();
        assert_eq!(
            summary.written, FRAMES,
            "{options:?}: {:?}",
            summary.outcomes
        );
        let (summary, recordings) = check(&finished);
        let reported = summary.files.expect("several files");
        assert!(reported.written >= least_files, "{options:?}: {reported:?}");
        if reported.written > 1 {
            cuts.push(Duration::from_nanos(reported.longest_cut_ns));
        }
        check_sequence(&recordings, FRAMES, options);
        for file in finished.files().iter().step_by(10) {
            assert_eq!(peers::capinfos_count(&file.path), file.frames);
        }
    }
    cuts.sort();
    assert!(cuts[cuts.len() / 2] < LONGEST_CUT, "{cuts:?}");
    assert!(cuts[0] > Duration::ZERO, "{cuts:?}");
}

#[test]
fn a_ring_of_large_files_keeps_as_many_as_asked_for() {
    let Some(_lock) = alone_with("fills the CPUs", &["ip", "ethtool"]) else {
        return;
    };
    let bench = Bench::new("large");
    for options in [
        &["-C", "32M", "-W", "2"][..],
        &["-b", "filesize:32000", "-b", "files:2"],
    ] {
        let folder = files::folder();
        let path = folder.path().join("out");
        let capture = capture_on(&bench.rx, &path).with(options).ready();
        let paced = ["--rate", "100k", "--size", "1400", "--count", "200000"];
        let sent = generate_on(&bench.tx).with(paced).run();
        assert_eq!(sent.code, Some(0), "{}", sent.stderr);
        let finished = capture.stop();
        let summary = finished.success();
        assert!(summary.written > 100_000, "{:?}", summary.outcomes);
        let reported = check(&finished).0.files.expect("several files");
        assert_eq!(reported.removed, reported.written - 2);
        assert!(reported.written >= 4, "{reported:?}");
        assert_eq!(names(folder.path()).len(), 2);
    }
}
