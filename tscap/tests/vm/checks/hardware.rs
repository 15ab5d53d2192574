//! Hardware stamps, on a network interface that knows when it stamped each frame.

use std::path::Path;
use std::process::Command;

use nix::sys::signal::Signal;
use tscap_programs::hook::Layer;
use tscap_report::saved::Saved;
use tscap_testkit::command::tscap_path;
use tscap_testkit::files;
use tscap_testkit::peers;
use tscap_testkit::recording::{Packet, Recording};

use crate::agent::{DATAGRAMS, NIC_MODULE, PROGRAM, SEND, TSCAP};
use crate::guest::Guest;
use crate::machine::Rig;
use crate::nic::Kind;

/// The interfaces of the module: what is sent on one is received on the other.
const SENDS: &str = "tnictx";
const RECEIVES: &str = "tnicrx";
/// Frames of a capture, of which each tenth has no stamp.
const FRAMES: u64 = 200;
/// Behind the Ethernet header: CLOCK_MONOTONIC when the interface stamped the frame.
const TRUTH: std::ops::Range<usize> = 14..22;

/// Loads the module; says why there is nothing to check on older kernels.
fn load(rig: &Rig, guest: &Guest, with: &[&str]) -> bool {
    if !rig.kernel.has_stamping_nic() {
        let refused = guest.capture(&["-i", "eth0", "--hw-stamps"]).wait();
        refused.failure(1, &["cannot take hardware stamps on eth0"]);
        return false;
    }
    guest.must(&[&["insmod", NIC_MODULE][..], with].concat());
    for name in [SENDS, RECEIVES] {
        guest.must(&["ip", "link", "set", name, "up"]);
    }
    true
}

fn send(guest: &Guest, frames: u64) {
    let lengths = vec!["100"; frames as usize];
    guest.must(&[&[PROGRAM, SEND, SENDS][..], &lengths].concat());
}

/// How far the time of a frame's hardware stamp is from what it was, ns, where CLOCK_REALTIME
/// is ahead of CLOCK_MONOTONIC by `offset`.
fn error(packet: &Packet, offset: i64) -> Option<u64> {
    let (_, delay) = packet.hardware?;
    let stamped = packet.nanos.wrapping_add_signed(-delay);
    let truth = u64::from_ne_bytes(packet.data[TRUTH].try_into().expect("8 bytes"));
    Some(stamped.abs_diff(truth.wrapping_add_signed(offset)))
}

fn offset(recording: &Recording) -> i64 {
    let segments = &recording.last_statistics(0).custom["clock"]["segments"];
    segments[0]["mono_to_real"]["low"]
        .as_i64()
        .expect("a number")
}

pub fn stamps_within_the_bound(rig: &Rig) {
    let machine = rig.boot(&[Kind::Virtio]);
    let guest = &machine.guest;
    if !load(rig, guest, &[]) {
        return;
    }
    let folder = files::folder();
    for clock in ["ktime", "tai"] {
        let arguments = ["-i", RECEIVES, "--clock", clock, "--hw-stamps=set"];
        let capture = guest.capture(&arguments).ready();
        send(guest, FRAMES);
        guest.wait_recorded(FRAMES);
        let finished = capture.stop();
        let summary = finished.success();
        assert_eq!((summary.seen, summary.written), (FRAMES, FRAMES));
        let hardware = summary.interfaces[0].hardware.as_ref().expect("asked for");
        assert_eq!(hardware.stamping.clock.as_deref(), Some("/dev/ptp0"));
        assert_eq!(hardware.stamping.rx_filter.as_deref(), Some("all"));
        let frames = &hardware.frames;
        assert_eq!(frames.without, FRAMES / 10, "{frames:?}");
        assert_eq!(frames.frames.with + frames.without, FRAMES, "{frames:?}");
        // The thread that reads the clock can be late in a machine like this.
        let unknown = frames.frames.unconverted + frames.frames.ambiguous;
        assert!(unknown <= FRAMES / 4, "{frames:?}");

        let path = guest.bring(folder.path());
        peers::agree_on(&path, FRAMES);
        let recording = Recording::read(&path);
        let with = recording.packets.iter().filter(|it| it.hardware.is_some());
        assert_eq!(with.count() as u64, frames.frames.with);
        let said = &recording.last_statistics(0).custom["hardware"];
        assert_eq!(said["with"], frames.frames.with);
        let bound = frames.bound_ns.expect("its clock is known");
        assert_eq!(said["bound_ns"], bound);
        let offset = offset(&recording);
        let converted = |packet: &&Packet| packet.hardware.is_some_and(|it| it.1 != i64::MIN);
        let errors: Vec<_> = recording
            .packets
            .iter()
            .filter(converted)
            .filter_map(|packet| error(packet, offset))
            .collect();
        let unconverted = frames.frames.unconverted;
        assert_eq!(errors.len() as u64, frames.frames.with - unconverted);
        let off = errors.iter().filter(|error| **error > bound).count() as u64;
        let greatest = errors.iter().max();
        assert!(
            off <= frames.frames.ambiguous,
            "{clock}: {off} off, by {greatest:?} > {bound}: {frames:?}"
        );
        println!("{clock}: bound {bound}, greatest error {greatest:?}: {hardware:?}");
        let delay = hardware.delay.as_ref().expect("delays");
        assert_eq!(delay.frames, errors.len() as u64);
        assert!(
            delay.least_ns >= -i64::try_from(bound).expect("small"),
            "{delay:?}"
        );
        carried_through(&path, &recording);
    }
}

/// `tscap convert` leaves the option as it is.
fn carried_through(path: &Path, recording: &Recording) {
    let converted = path.with_file_name("converted.pcapng");
    let mut convert = Command::new(tscap_path());
    convert.args(["convert", "--time-base", "monotonic"]);
    let done = convert.arg(path).arg("-w").arg(&converted).output();
    let done = done.expect("start tscap");
    assert!(done.status.success(), "{done:?}");
    let stamps = |it: &Recording| it.packets.iter().map(|it| it.hardware).collect::<Vec<_>>();
    assert_eq!(stamps(&Recording::read(&converted)), stamps(recording));
}

pub fn reported_or_set(rig: &Rig) {
    let machine = rig.boot(&[Kind::Virtio]);
    let guest = &machine.guest;
    if !load(rig, guest, &[]) {
        return;
    }
    let filter = || {
        let capture = guest.capture(&["-i", RECEIVES, "--hw-stamps"]).ready();
        send(guest, 10);
        guest.wait_recorded(10);
        let finished = capture.stop();
        let summary = finished.success();
        let hardware = summary.interfaces[0].hardware.clone().expect("asked for");
        let is_reported = finished
            .stderr
            .contains("its receive filter of hardware stamps is none");
        assert_eq!(
            is_reported,
            hardware.frames.frames.with == 0,
            "{}",
            finished.stderr
        );
        hardware.stamping.rx_filter.expect("it tells")
    };
    assert_eq!(filter(), "none", "nobody has set it");
    let set = ["-i", RECEIVES, "--hw-stamps=set"];
    guest.capture(&set).ready().stop().success();
    assert_eq!(filter(), "none", "given back");
    let killed = guest.capture(&set).ready().stop_with(Signal::SIGKILL);
    assert_eq!(killed.signal, Some(9));
    assert_eq!(filter(), "all", "a killed run can't give it back");
    let restored = guest.must(&[TSCAP, "restore"]);
    let expected = format!("restored the receive filter of {RECEIVES}'s hardware stamps: none");
    assert_eq!(restored, expected);
    assert_eq!(filter(), "none");
}

/// Frames are held between their stamps and XDP: so long, and not much longer, is each between
/// these layers.
pub fn between_hardware_and_xdp(rig: &Rig) {
    const HOLD_NS: i64 = 300_000;
    let machine = rig.boot(&[Kind::Virtio]);
    let guest = &machine.guest;
    if !load(rig, guest, &["hold_us=300"]) {
        return;
    }
    // A killed run leaves what it has set.
    let set = guest.capture(&["-i", RECEIVES, "--hw-stamps=set"]).ready();
    assert_eq!(set.stop_with(Signal::SIGKILL).signal, Some(9));
    let layers = ["--layers", "hw,xdp,tcx", "--json"];
    let running = guest.start(&[&[TSCAP, "qos", "-i", RECEIVES][..], &layers].concat());
    let running = running.ready();
    guest.must(&[PROGRAM, DATAGRAMS, SENDS, &FRAMES.to_string()]);
    let finished = running.stop();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    let Ok(Saved::Residences(found)) = Saved::from_json(&finished.stdout) else {
        panic!("{}", finished.stdout);
    };
    assert_eq!(found.absent, [], "{}", finished.stderr);
    let names: Vec<_> = found.layers.iter().map(|it| it.layer).collect();
    assert_eq!(names, [Layer::Hw, Layer::Xdp, Layer::Tcx]);
    let (hardware, xdp) = (&found.layers[0], &found.layers[1]);
    assert!(
        hardware.hook.contains("/dev/ptp0, receive filter all"),
        "{hardware:?}"
    );
    let account = &hardware.account;
    assert!(account.adds_up() && hardware.cost.is_none(), "{hardware:?}");
    assert_eq!((account.seen, xdp.account.keyed), (FRAMES, FRAMES));
    assert_eq!(account.unrecorded["without_stamp"], FRAMES / 10);
    // The thread that reads the clock can be late in a machine like this.
    let unconverted = account.unrecorded.get("unconverted").copied().unwrap_or(0);
    assert!(unconverted <= FRAMES / 4, "{account:?}");
    assert_eq!(account.first, account.keyed);
    assert_eq!(xdp.account.came, account.keyed);
    let flow = &found.flows[0];
    let step = &flow.residences[0];
    assert_eq!(
        (step.from, step.to, step.went_back),
        (Layer::Hw, Layer::Xdp, 0)
    );
    let figures = step.figures.expect("packets");
    let bound = i64::try_from(figures.bound_ns.expect("it is known")).expect("small");
    println!("hw to xdp: {figures:?}");
    assert!(figures.n + flow.in_cost_turns >= account.keyed, "{flow:?}");
    assert!(
        bound < 100_000 && figures.min_ns >= HOLD_NS - bound,
        "{figures:?}"
    );
    assert!(
        figures.p50_ns.expect("of many") < 10 * HOLD_NS,
        "{figures:?}"
    );
}
