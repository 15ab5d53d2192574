//! A new file each megabyte: its name is in use, and the command for it fails.

use std::time::Duration;

use tscap_capture::CommandsSummary;
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::capture_on;
use tscap_testkit::files::{SmallDisk, length};
use tscap_testkit::root::{alone_with, two_cpus};

use super::FILLS;
use super::account::{self, PROGRAMS};
use super::flood::Flood;

/// Names that are in use, from the second file on.
const IN_USE: u64 = 5;

#[test]
fn failing_commands_and_names_in_use_under_full_load_keep_the_account() {
    let (Some(_lock), Some((first, second))) = (alone_with(FILLS, &PROGRAMS), two_cpus()) else {
        return;
    };
    let bench = Bench::new("rotation");
    let disk = SmallDisk::new(4 << 30);
    let path = disk.file("out");
    let in_use = |number: u64| disk.file(&format!("out{number}"));
    for number in 1..=IN_USE {
        std::fs::write(in_use(number), vec![0x55; 2_000_000]).expect("an older file");
        let kept = disk.file(&format!("kept{number}"));
        std::fs::hard_link(in_use(number), kept).expect("another name of it");
    }
    let capture = capture_on(&bench.rx, &path)
        .with(["-C", "1", "-z", "false"])
        .with(["--converter-cpu", &second.to_string()])
        .ready();
    let sent = Flood::begin(&bench.tx, 64, first, Duration::from_secs(1)).end();
    let finished = capture.stop();
    let summary = finished.success();

    account::only_rings_were_full(&summary);
    let files = finished.files();
    let paths = files.iter().map(|file| &file.path);
    account::of_all(&paths.collect::<Vec<_>>(), &summary, &[sent]);
    let bytes = files.iter().map(|file| length(&file.path)).sum::<u64>();
    assert_eq!(summary.bytes_written, bytes);
    let reported = summary.files.expect("several files");
    assert_eq!(reported.written, files.len() as u64);
    assert!(reported.written > 2 * IN_USE, "{reported:?}");
    assert_eq!((reported.removed, reported.replaced), (0, IN_USE));
    let all = CommandsSummary {
        succeeded: 0,
        failed: reported.written,
        unfinished: 0,
    };
    assert_eq!(reported.commands, Some(all));
    let failed = finished.events("command_failed");
    assert_eq!(failed.len() as u64, reported.written);
    for number in 1..=IN_USE {
        assert_eq!(length(&disk.file(&format!("kept{number}"))), 2_000_000);
    }
}
