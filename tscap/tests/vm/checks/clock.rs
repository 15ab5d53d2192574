//! The system clock is set and slewed for real, under traffic.

use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use serde_json::Value;
use tscap::Summary;
use tscap_testkit::brackets;
use tscap_testkit::command::tscap_path;
use tscap_testkit::files;
use tscap_testkit::peers;
use tscap_testkit::recording::{Packet, Recording};

use crate::agent::MODULE;
use crate::guest::{Guest, Program};
use crate::machine::{Machine, Processor, Rig};
use crate::nic::Kind;

/// Frames of a capture, some 2 ms apart: for a second and more after the change.
const FRAMES: u64 = 1_000;
const PERIOD: Duration = Duration::from_millis(2);
/// The clock changes when so many have been recorded.
const BEFORE: u64 = 200;
const SECOND: i64 = 1_000_000_000;

/// A machine where every clock stamps, the TSC by the kernel module.
fn boot(rig: &Rig) -> Machine {
    let machine = rig.boot_on(Processor::ConstantTsc, &[Kind::Virtio]);
    machine.guest.must(&["insmod", MODULE]);
    machine
}

/// Captures with a test program that reads CLOCK_TAI around each stamp, and
/// calls `change` under way. Returns the summary, and how many frames have a
/// time that is off by more than the bound.
fn capture(
    machine: &Machine,
    source: &str,
    change: impl Fn(&Guest, &Program<'_>),
) -> (Summary, u64) {
    let (guest, nic) = (&machine.guest, &machine.nics[0]);
    let by_module = source == "tsc";
    let program = if by_module {
        "probe_bracket_kfunc".into()
    } else {
        format!("probe_bracket_{source}")
    };
    let count = FRAMES.to_string();
    let arguments = ["-i", &nic.name, "--clock", source, "-c", &count];
    let forced = if by_module {
        &["--force", "--keep-raw"][..]
    } else {
        &[]
    };
    let arguments = [&arguments[..], forced].concat();
    let capture = guest.capture_by(&program, &arguments).ready();
    thread::scope(|scope| {
        scope.spawn(|| nic.send_paced(&nic.frame(100), 0..FRAMES, PERIOD));
        guest.wait_recorded(BEFORE);
        change(guest, &capture);
    });
    let summary = capture.wait().success();
    assert_eq!(summary.written, FRAMES);
    let folder = files::folder();
    let path = guest.bring(folder.path());
    peers::agree_on(&path, FRAMES);
    let bound = summary.clock.host_bound_ns;
    let recording = Recording::read(&path);
    let packets = &recording.packets;
    assert!(packets.iter().all(|packet| packet.has_raw == by_module));
    assert_eq!(off_by_more(&packets[..BEFORE as usize], bound), 0);
    if by_module {
        stamped_again(&path, &summary);
    }
    (summary, off_by_more(packets, bound))
}

fn off_by_more(packets: &[Packet], bound: u64) -> u64 {
    // The guest has never heard of leap seconds: its TAI is its UTC.
    let off = packets
        .iter()
        .filter(|packet| brackets::outside(packet, 0) > bound);
    off.count() as u64
}

/// Converts what kept its raw stamps by the history of its own clock.
fn stamped_again(path: &Path, live: &Summary) {
    let converted = path.with_file_name("converted.pcapng");
    let mut convert = Command::new(tscap_path());
    convert.arg("convert").arg(path).arg("-w").arg(&converted);
    let done = convert.arg("--json").output().expect("start tscap");
    assert!(done.status.success(), "{done:?}");
    let said: Value = serde_json::from_slice(&done.stdout).expect("JSON");
    let left = said["left"].as_u64().expect("a number");
    let bound = said["bound_ns"]["max"].as_u64().expect("a bound");
    assert!(left <= live.clock.ambiguous, "{said}");
    let off = off_by_more(&Recording::read(&converted).packets, bound);
    assert!(off <= left, "{off} off: {said}");
}

fn set(rig: &Rig, by: i64) {
    let machine = boot(rig);
    for source in ["ktime", "tai", "tsc"] {
        let (summary, off) = capture(&machine, source, |guest, capture| {
            guest.step_clock(by);
            capture.wait_line("warning: the system clock was set by ");
        });
        let clock = &summary.clock;
        assert_eq!((clock.steps, clock.segments.len()), (1, 2), "{source}");
        // Some time passes between the agent's reading and its setting.
        let step = clock.segments[1].step_ns;
        assert!((by - SECOND / 4..=by).contains(&step), "{source}: {step}");
        // Only stamps from the moment of the step itself may be off, and those
        // are counted.
        assert!(off <= clock.ambiguous, "{source}: {off} off: {clock:?}");
        assert!(clock.ambiguous < FRAMES / 2, "{source}: {clock:?}");
    }
}

pub fn set_forward(rig: &Rig) {
    set(rig, SECOND);
}

pub fn set_back(rig: &Rig) {
    set(rig, -SECOND);
}

/// By a twentieth: `ktime` and `tai` are slewed alike, the TSC is not.
pub fn slewed(rig: &Rig) {
    let machine = boot(rig);
    for (source, tick) in [("ktime", "10500"), ("tai", "9500"), ("tsc", "10000")] {
        let (summary, off) = capture(&machine, source, |guest, _| {
            guest.must(&["adjtimex", "-q", "-t", tick]);
            let shown = guest.must(&["adjtimex"]);
            assert!(shown.contains(tick), "{shown}");
        });
        let clock = &summary.clock;
        assert_eq!((clock.steps, clock.segments.len()), (0, 1), "{source}");
        assert_eq!((off, clock.ambiguous), (0, 0), "{source}: {clock:?}");
    }
}
