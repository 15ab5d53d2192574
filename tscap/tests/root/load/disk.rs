//! The disk fills up while two interfaces are at full rate.

use std::path::Path;
use std::time::Duration;

use tscap::Stop;
use tscap::Summary;
use tscap_file::accounting::Outcome;
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::capture;
use tscap_testkit::files::{SmallDisk, length};
use tscap_testkit::finished::Finished;
use tscap_testkit::port::Port;
use tscap_testkit::root::{alone_with, two_cpus};

use super::FILLS;
use super::account::{self, PROGRAMS};
use super::flood::{Flood, Sent};

#[test]
fn a_disk_that_fills_up_under_full_load_ends_with_a_whole_frame_of_either() {
    let Some(_lock) = alone_with(FILLS, &PROGRAMS) else {
        return;
    };
    let Some((first, second)) = two_cpus() else {
        return;
    };
    let bench = Crossing::new("full-load", [first, second]);
    for disk_bytes in [8 << 20, (32 << 20) + 4096] {
        let disk = SmallDisk::new(disk_bytes);
        let path = disk.file("out.pcapng");
        let (finished, sent) = bench.fill_up(&path, &[]);
        let summary = ended_by(&finished, &path, &sent);
        account::of_files(&[&path], &summary, &sent);
        assert_eq!(summary.bytes_written, length(&path));
        // The last statistics may have found no room, one block neither.
        assert!(length(&path) > disk_bytes - 600_000, "{}", length(&path));
    }
}

/// In the middle of a file or at its end, and where the next one begins.
#[test]
fn a_disk_that_fills_up_among_many_files_keeps_whole_ones() {
    let Some(_lock) = alone_with(FILLS, &PROGRAMS) else {
        return;
    };
    let Some((first, second)) = two_cpus() else {
        return;
    };
    let bench = Crossing::new("full-cut", [first, second]);
    for (disk, files, at_a_cut) in [
        (SmallDisk::new(8 << 20), 8, None),
        (
            SmallDisk::of_files(6),
            6,
            Some("cannot begin the next file"),
        ),
    ] {
        let path = disk.file("out");
        let (finished, sent) = bench.fill_up(&path, &["-C", "1"]);
        let summary = ended_by(&finished, &path, &sent);
        assert!(
            finished.stderr.contains(at_a_cut.unwrap_or("")),
            "{}",
            finished.stderr
        );
        let reported = finished.files();
        assert!(
            (files..=files + 1).contains(&reported.len()),
            "{reported:?}"
        );
        assert_eq!(
            reported.len() as u64,
            summary.files.as_ref().map_or(0, |it| it.written)
        );
        let paths = reported.iter().map(|file| &file.path);
        account::of_files(&paths.collect::<Vec<_>>(), &summary, &sent);
        let bytes = reported.iter().map(|file| length(&file.path)).sum::<u64>();
        assert_eq!(summary.bytes_written, bytes);
        // Nothing else is left, such as half of the next one.
        let left = path.parent().expect("a folder").read_dir();
        assert_eq!(left.expect("list it").count(), reported.len());
    }
}

/// Two interfaces that frames come to at once.
struct Crossing {
    bench: Bench,
    second: (Port, Port),
    cpus: [usize; 2],
}

impl Crossing {
    fn new(tag: &str, cpus: [usize; 2]) -> Self {
        let bench = Bench::new(tag);
        Self {
            second: bench.add_pair(1),
            bench,
            cpus,
        }
    }

    /// Captures from both until it fails.
    fn fill_up(&self, path: &Path, options: &[&str]) -> (Finished, [Sent; 2]) {
        let (tx1, rx1) = &self.second;
        let capture = capture(&self.bench.rx.netns)
            .on(&self.bench.rx)
            .on(rx1)
            .to(path)
            .with(options)
            .ready();
        // Until both have begun; the rings are full then.
        capture.freeze();
        let [first, second] = self.cpus;
        let floods = [(&self.bench.tx, first, 70), (tx1, second, 1000)];
        let floods = floods.map(|(port, cpu, size)| Flood::begin(port, size, cpu, FLOOD));
        capture.thaw();
        let finished = capture.wait();
        let sent = floods.map(Flood::end);
        let programs = (self.bench.rx.xdp_program(), rx1.xdp_program());
        assert_eq!(programs, (None, None));
        (finished, sent)
    }
}

/// The summary of a capture that a full disk has ended.
#[track_caller]
fn ended_by(finished: &Finished, path: &Path, sent: &[Sent]) -> Summary {
    finished.failure(1, &[path.to_str().expect("a UTF-8 path"), "no space"]);
    let summary = finished.accounted();
    assert_eq!(summary.stopped_by, Stop::WriteError);
    assert!(summary.outcomes[Outcome::WriteFailed] > 0, "{summary:?}");
    for (interface, sent) in summary.interfaces.iter().zip(sent) {
        // What came after detaching is not seen.
        assert!(interface.seen <= sent.taken + sent.refused, "{interface:?}");
    }
    summary
}

/// How long frames come.
const FLOOD: Duration = Duration::from_secs(2);
