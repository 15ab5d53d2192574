//! The whole process is stopped for two seconds, and goes on.

use std::time::Duration;

use serde_json::Value;
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::capture_on;
use tscap_testkit::files::SmallDisk;
use tscap_testkit::packets;
use tscap_testkit::root::{alone_with, two_cpus};

use super::FILLS;
use super::account::{self, PROGRAMS};
use super::flood::Flood;

/// How long it is stopped.
const STOPPED: Duration = Duration::from_secs(2);
/// How long frames come: before, meanwhile and after.
const FLOOD: Duration = Duration::from_secs(5);

#[test]
fn two_seconds_without_a_converter_cost_what_the_ring_can_not_hold() {
    let (Some(_lock), Some((first, second))) = (alone_with(FILLS, &PROGRAMS), two_cpus()) else {
        return;
    };
    let bench = Bench::new("stopped");
    let disk = SmallDisk::new(4 << 30);
    let path = disk.file("out.pcapng");
    let capture = capture_on(&bench.rx, &path)
        // Little of each frame: the disk has room for what any machine sends.
        .with(["-s", "128", "--ring-size", "16M"])
        .with(["--converter-cpu", &second.to_string()])
        .ready();
    let flood = Flood::begin(&bench.tx, 512, first, FLOOD);
    let written = |event: &Value| event["written"].as_u64().expect("a count");
    capture.wait_event_with("progress", |event| written(event) > 0);
    capture.freeze();
    // The time is what is tested.
    std::thread::sleep(STOPPED);
    capture.thaw();
    let sent = flood.end();
    let summary = capture.stop().success();

    account::only_rings_were_full(&summary);
    let flows = account::of_all(&[&path], &summary, &[sent]);
    // It did go on, and had kept what the ring held.
    assert!(flows[0].most_missing > 100_000, "{flows:?}");
    let (mut before, mut longest, mut behind) = (0, 0, 0);
    packets::each(&path, |packet| {
        if packet.nanos - before > longest && before > 0 {
            (longest, behind) = (packet.nanos - before, 0);
        }
        (before, behind) = (packet.nanos, behind + 1);
    })
    .expect("read once already");
    let longest = Duration::from_nanos(longest);
    assert!(
        longest > STOPPED / 2 && longest < STOPPED * 2,
        "{longest:?}"
    );
    assert!(behind > 10_000, "{behind} frames behind the gap");
    assert_eq!(bench.rx.xdp_program(), None);
}
