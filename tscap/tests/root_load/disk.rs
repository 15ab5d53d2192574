//! The disk fills up while two interfaces are at full rate.

use std::time::Duration;

use crate::account::{self, PROGRAMS};
use crate::flood::Flood;
use crate::support::bench::Bench;
use crate::support::capture::capture;
use crate::support::files::{SmallDisk, length};
use crate::support::root::{root_with, two_cpus};

#[test]
fn a_disk_that_fills_up_under_full_load_ends_with_a_whole_frame_of_either() {
    let name = "a_disk_that_fills_up_under_full_load";
    let Some(_turn) = root_with(name, &PROGRAMS) else {
        return;
    };
    let Some((first, second)) = two_cpus(name) else {
        return;
    };
    let bench = Bench::new("full-load");
    let (tx1, rx1) = bench.add_pair(1);
    for disk_bytes in [8 << 20, (32 << 20) + 4096] {
        let disk = SmallDisk::new(disk_bytes);
        let path = disk.file("out.pcapng");
        let capture = capture(&bench.rx.netns)
            .on(&bench.rx)
            .on(&rx1)
            .to(&path)
            .ready();
        // Until both have begun; the rings are full then.
        capture.freeze();
        let floods = [(&bench.tx, first, 70), (&tx1, second, 1000)];
        let floods = floods.map(|(port, cpu, size)| Flood::begin(port, size, cpu, FLOOD));
        capture.thaw();
        let finished = capture.wait();
        let sent = floods.map(Flood::end);

        finished.failure(1, &[path.to_str().expect("a UTF-8 path"), "no space"]);
        let summary = finished.accounted();
        assert_eq!(summary.stopped_by, "write_error");
        assert!(summary.outcomes["write_failed"] > 0, "{summary:?}");
        for (interface, sent) in summary.interfaces.iter().zip(&sent) {
            // What came after detaching is not seen.
            assert!(interface.seen <= sent.taken + sent.refused, "{interface:?}");
        }
        account::of_file(&path, &summary, &sent);
        assert_eq!(summary.bytes_written, length(&path));
        // The last statistics may have found no room, one block neither.
        assert!(length(&path) > disk_bytes - 600_000, "{}", length(&path));
        assert_eq!((bench.rx.xdp_program(), rx1.xdp_program()), (None, None));
    }
}

/// How long frames come.
const FLOOD: Duration = Duration::from_secs(2);
