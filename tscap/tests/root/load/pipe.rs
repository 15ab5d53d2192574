//! The writer is stalled: whoever reads the pipe stops reading, or is slow.

use std::fs::File;
use std::io::{PipeReader, Read as _, Write as _};
use std::path::Path;
use std::time::Duration;

use tscap::Summary;
use tscap_file::accounting::Outcome;
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::capture;
use tscap_testkit::files::SmallDisk;
use tscap_testkit::root::{alone_with, two_cpus};

use super::FILLS;
use super::account::{self, PROGRAMS};
use super::flood::{Flood, Sent};

/// How long frames come.
const FLOOD: Duration = Duration::from_secs(4);
/// What a pipe holds by default, bytes.
const PIPE: usize = 64 << 10;

/// Floods a capture whose file goes through a pipe to `reader`, which copies it.
fn flood_through(
    tag: &str,
    (first, second): (usize, usize),
    path: &Path,
    reader: impl FnOnce(PipeReader, File) + Send,
) -> (Summary, Sent) {
    let bench = Bench::new(tag);
    let (pipe, writer) = std::io::pipe().expect("a pipe");
    let copy = File::create(path).expect("a file for the copy");
    std::thread::scope(|scope| {
        let capture = capture(&bench.rx.netns)
            .on(&bench.rx)
            .with(["-w", "-", "--ring-size", "4M"])
            .with(["--converter-cpu", &second.to_string()])
            .stdout(writer)
            .start();
        scope.spawn(|| reader(pipe, copy));
        capture.wait_ready();
        let sent = Flood::begin(&bench.tx, 256, first, FLOOD).end();
        (capture.stop().success(), sent)
    })
}

#[test]
fn a_reader_that_stops_for_two_seconds_costs_what_the_ring_can_not_hold() {
    let (Some(_lock), Some(cpus)) = (alone_with(FILLS, &PROGRAMS), two_cpus()) else {
        return;
    };
    let disk = SmallDisk::new(4 << 30);
    let path = disk.file("out.pcapng");
    let (summary, sent) = flood_through("stalled", cpus, &path, |mut pipe, mut copy| {
        // Into the flood.
        let begun = std::io::copy(&mut (&mut pipe).take(16 << 20), &mut copy);
        assert_eq!(begun.expect("copy"), 16 << 20);
        // So long it stops.
        std::thread::sleep(Duration::from_secs(2));
        std::io::copy(&mut pipe, &mut copy).expect("copy the rest");
    });
    account::only_rings_were_full(&summary);
    let flows = account::of_all(&[&path], &summary, &[sent]);
    assert!(flows[0].most_missing > 100_000, "{flows:?}");
    // It went on with what the ring held, and with more behind it.
    assert!(flows[0].came > 3 * (16 << 20) / 288, "{flows:?}");
}

#[test]
fn a_slow_disk_costs_frames_all_the_time_but_never_the_account() {
    let (Some(_lock), Some(cpus)) = (alone_with(FILLS, &PROGRAMS), two_cpus()) else {
        return;
    };
    let disk = SmallDisk::new(4 << 30);
    let path = disk.file("out.pcapng");
    // Some 30 MB/s, and every write of the converter waits.
    let (summary, sent) = flood_through("slow", cpus, &path, |mut pipe, mut copy| {
        let mut bytes = vec![0; PIPE];
        while let length @ 1.. = pipe.read(&mut bytes).expect("read the pipe") {
            copy.write_all(&bytes[..length]).expect("copy");
            std::thread::sleep(Duration::from_millis(2));
        }
    });
    account::only_rings_were_full(&summary);
    let flows = account::of_all(&[&path], &summary, &[sent]);
    assert!(
        summary.outcomes[Outcome::RingFull] > summary.written,
        "{summary:?}"
    );
    assert!(flows[0].came > 50_000, "{flows:?}");
}
