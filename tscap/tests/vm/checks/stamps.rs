//! Which clocks stamp on this kernel, and whether they tell the time.

use tscap::Summary;
use tscap_testkit::brackets;
use tscap_testkit::files;
use tscap_testkit::peers;
use tscap_testkit::recording::Recording;

use crate::machine::{Machine, Rig};
use crate::nic::Kind;

/// Frames of a capture.
const FRAMES: u64 = 300;

/// Every stamp of `source` lies between readings of CLOCK_TAI around it.
fn works(rig: &Rig, source: &str, path: &str) {
    let machine = rig.boot(&[Kind::Virtio]);
    let program = format!("probe_bracket_{source}");
    let summary = within_brackets(&machine, &program, &["--clock", source]);
    let clock = &summary.clock;
    assert_eq!((clock.source.as_str(), clock.steps), (source, 0));
    assert!(clock.path.contains(path), "{}", clock.path);
}

/// Captures by a test program that reads CLOCK_TAI around each stamp, which must lie
/// between.
pub fn within_brackets(machine: &Machine, program: &str, arguments: &[&str]) -> Summary {
    let (guest, nic) = (&machine.guest, &machine.nics[0]);
    let count = FRAMES.to_string();
    let arguments = [&["-i", &nic.name, "-c", &count][..], arguments].concat();
    let capture = guest.capture_by(program, &arguments).ready();
    nic.send(&nic.frame(100), 0..FRAMES);
    let summary = capture.wait().success();
    assert_eq!((summary.seen, summary.written), (FRAMES, FRAMES));
    let clock = &summary.clock;
    let folder = files::folder();
    let file = guest.bring(folder.path());
    peers::agree_on(&file, FRAMES);
    let tai_offset_s = clock.segments[0].tai_offset_s;
    for (number, packet) in Recording::read(&file).packets.iter().enumerate() {
        let outside = brackets::outside(packet, tai_offset_s);
        let bound = clock.host_bound_ns;
        assert!(
            outside <= bound,
            "frame {number}: {outside} ns outside its bracket, bound {bound} ns"
        );
    }
    summary
}

pub fn by_default(rig: &Rig) {
    let machine = rig.boot(&[Kind::Virtio]);
    let (guest, nic) = (&machine.guest, &machine.nics[0]);
    let capture = guest.capture(&["-i", &nic.name, "-c", "10"]).ready();
    nic.send(&nic.frame(60), 0..10);
    let summary = capture.wait().success();
    assert_eq!(
        (summary.written, summary.clock.source.as_str()),
        (10, "ktime")
    );
}

/// What the verifier of this kernel knows of a length differs with its limit.
pub fn of_any_snaplen(rig: &Rig) {
    let machine = rig.boot(&[Kind::Virtio]);
    let (guest, nic) = (&machine.guest, &machine.nics[0]);
    let frame = nic.frame(1514);
    for snaplen in [1, 7, 8, 13, 15, 16, 31, 32, 100, 1_500, 1_536, 1_537] {
        let argument = snaplen.to_string();
        let arguments = ["-i", &nic.name, "-c", "3", "-s", &argument];
        let capture = guest.capture(&arguments).ready();
        nic.send(&frame, 0..3);
        capture.wait().success();
        let folder = files::folder();
        let packets = Recording::read(&guest.bring(folder.path())).packets;
        assert_eq!(packets.len(), 3);
        for (number, packet) in (0..).zip(&packets) {
            assert_eq!(packet.data.len(), frame.size().min(snaplen));
            frame.check(&packet.data, number);
        }
    }
}

pub fn ktime(rig: &Rig) {
    works(rig, "ktime", "bpf_ktime_get_ns");
}

pub fn tai(rig: &Rig) {
    works(rig, "tai", "bpf_ktime_get_tai_ns");
}

/// By a perf event where XDP programs may read one, else refused.
pub fn tsc(rig: &Rig) {
    if rig.kernel.reads_perf_events_in_xdp() {
        return works(rig, "tsc", "bpf_perf_event_read");
    }
    let machine = rig.boot(&[Kind::Virtio]);
    let (guest, nic) = (&machine.guest, &machine.nics[0]);
    // QEMU promises no constant rate.
    let arguments = ["-i", &nic.name, "--clock", "tsc"];
    let refused = guest.capture(&arguments).wait();
    refused.failure(1, &["not invariant", "--clock ktime", "--force"]);
    let refused = guest.capture(&[&arguments[..], &["--force"]].concat());
    let parts = ["tscap_tsc_perf", "no XDP program read the TSC", "6.16"];
    refused.wait().failure(1, &parts);
    // Nothing is left attached, and no file.
    guest.must(&["sh", "-c", "! test -e /tmp/out.pcapng"]);
    let capture = guest.capture(&["-i", &nic.name, "-c", "10"]).ready();
    nic.send(&nic.frame(60), 0..10);
    assert_eq!(capture.wait().success().written, 10);
}
