//! The least ring that there is.

use std::time::Duration;

use crate::FILLS;
use crate::account::{self, PROGRAMS};
use crate::flood::Flood;
use crate::support::bench::Bench;
use crate::support::capture::capture_on;
use crate::support::files::SmallDisk;
use crate::support::root::{alone_with, two_cpus};

#[test]
fn the_least_ring_under_full_load_loses_only_what_it_counts() {
    let (Some(_lock), Some((first, second))) = (alone_with(FILLS, &PROGRAMS), two_cpus()) else {
        return;
    };
    let bench = Bench::new("least");
    let disk = SmallDisk::new(4 << 30);
    let path = disk.file("out.pcapng");
    for size in [64, 1514] {
        let capture = capture_on(&bench.rx, &path)
            .with(["--ring-size", "128K"])
            .with(["--converter-cpu", &second.to_string()])
            .ready();
        let sent = Flood::begin(&bench.tx, size, first, Duration::from_secs(1)).end();
        let summary = capture.stop().success();
        account::only_rings_were_full(&summary);
        account::of_all(&[&path], &summary, &[sent]);
        // Many rings full went through.
        assert!(
            summary.bytes_written > 100 * (128 << 10),
            "{size}: {summary:?}"
        );
    }
}
