//! Files that are written past the page cache, one after the other.

use tscap_testkit::bench::Bench;
use tscap_testkit::capture::{capture_on, generate_on};
use tscap_testkit::files::ImageDisk;
use tscap_testkit::peers;
use tscap_testkit::root::alone_with;

use super::together::{check, check_sequence};

/// In blocks of 1,432 bytes about 115 MB.
const FRAMES: u64 = 80_000;

#[test]
fn no_frame_is_lost_or_doubled_between_files_on_a_disk() {
    let programs = ["ip", "ethtool", "capinfos", "mkfs.ext4", "mount"];
    let Some(_lock) = alone_with("fills the CPUs", &programs) else {
        return;
    };
    let bench = Bench::new("disk-cuts");
    for (options, least_files) in [
        (&["-C", "8"][..], 14),
        (&["-b", "packets:5003"], 15),
        (&["-b", "duration:0.1"], 5),
    ] {
        let disk = ImageDisk::new(256);
        let plan = capture_on(&bench.rx, &disk.file("out")).with(options);
        // A ring bears a disk that takes nothing for most of a second.
        let capture = plan.with(["--io", "direct", "--ring-size", "128M"]).ready();
        let count = FRAMES.to_string();
        let paced = ["--rate", "100k", "--size", "1400", "--count", &count];
        let sent = generate_on(&bench.tx).with(paced).run();
        assert_eq!(sent.code, Some(0), "{}", sent.stderr);
        let finished = capture.stop();
        let summary = finished.success();
        assert_eq!(summary.written, FRAMES, "{:?}", summary.outcomes);
        let (direct, all) = (summary.bytes_direct, summary.bytes_written);
        assert!(direct > all / 2, "{options:?}: {direct} of {all} bytes");
        let (summary, recordings) = check(&finished);
        let reported = summary.files.expect("several files");
        assert!(reported.written >= least_files, "{options:?}: {reported:?}");
        check_sequence(&recordings, FRAMES, options);
        let last = finished.files().pop().expect("files");
        assert_eq!(peers::capinfos_count(&last.path), last.frames);
    }
}
