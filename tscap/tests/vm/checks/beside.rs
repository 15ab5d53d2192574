//! Beside an XDP program of somebody else: what it drops is captured at its entry.

use nix::sys::signal::Signal;
use tscap_filter::{Filter, Frame};
use tscap_testkit::files;
use tscap_testkit::finished::Finished;
use tscap_testkit::recording::Recording;

use crate::agent;
use crate::guest::{Guest, Program};
use crate::machine::{Processor, Rig};
use crate::nic::Kind;
use crate::others::{self, WITHOUT_TYPES};

/// Frames of a capture.
const FRAMES: u64 = 300;

/// Attaches programs of somebody else, the first of them at once.
fn attach<'a>(guest: &'a Guest, mode: &str, programs: &str, on: &[&str]) -> Program<'a> {
    let line = [agent::PROGRAM, agent::OTHERS, mode, programs];
    let program = guest.start(&[&line, on].concat());
    program.wait_line("attached");
    program
}

fn hook(finished: &Finished) -> String {
    let summary = finished.summary();
    let hook = summary.interfaces[0].directions[0].hook.clone();
    hook.expect("a hook")
}

/// By each clock, natively and generically; the bytes are whole.
pub fn dropped_frames(rig: &Rig) {
    let machine = rig.boot(&[Kind::Virtio]);
    let (guest, nic) = (&machine.guest, &machine.nics[0]);
    let frame = nic.frame(100);
    for (mode, clock) in [("native", "ktime"), ("native", "tai"), ("generic", "ktime")] {
        let other = attach(guest, mode, "probe_drop", &["eth0"]);
        let capture = guest.capture(&["-i", "eth0", "--clock", clock]).ready();
        nic.send(&frame, 0..FRAMES);
        guest.wait_recorded(FRAMES);
        let finished = capture.stop();
        let summary = finished.success();
        assert_eq!((summary.seen, summary.written), (FRAMES, FRAMES));
        let taken = hook(&finished);
        assert!(taken.starts_with("fentry on probe_drop (id "), "{taken}");
        assert_eq!(taken.contains("generic XDP"), mode == "generic", "{taken}");
        assert!(finished.stderr.contains(&taken), "{}", finished.stderr);
        let folder = files::folder();
        let recording = Recording::read(&guest.bring(folder.path()));
        assert_eq!(recording.interfaces[0].custom["hooks"]["in"], *taken);
        assert!(recording.packets.is_sorted_by_key(|it| it.nanos));
        for (number, packet) in (0..).zip(&recording.packets) {
            assert_eq!(packet.data, frame.bytes(number));
        }
        other.stop_with(Signal::SIGINT);
    }
}

/// Behind it, where nothing that it drops is seen, and that is said.
pub fn without_types(rig: &Rig) {
    let machine = rig.boot(&[Kind::Virtio]);
    let (guest, nic) = (&machine.guest, &machine.nics[0]);
    let _other = attach(guest, "native", WITHOUT_TYPES, &["eth0"]);
    let capture = guest.capture(&["-i", "eth0"]).ready();
    nic.send(&nic.frame(100), 0..FRAMES);
    let finished = capture.stop();
    assert_eq!(finished.success().seen, 0);
    assert!(hook(&finished).ends_with(" ingress"), "{}", hook(&finished));
    let reason = "it was loaded without types (BTF)";
    assert!(finished.stderr.contains(reason), "{}", finished.stderr);
}

/// Frames of every length, and cut where asked.
pub fn of_any_length(rig: &Rig) {
    let machine = rig.boot(&[Kind::Virtio]);
    let (guest, nic) = (&machine.guest, &machine.nics[0]);
    let _other = attach(guest, "native", "probe_drop", &["eth0"]);
    let sizes: Vec<_> = (14..80)
        .chain((80..1514).step_by(31))
        .chain([1514])
        .collect();
    for snaplen in [77, 262_144] {
        let snaplen_argument = snaplen.to_string();
        let capture = guest
            .capture(&["-i", "eth0", "-s", &snaplen_argument])
            .ready();
        for (number, size) in (0..).zip(&sizes) {
            nic.send(&nic.frame(*size), number..number + 1);
        }
        guest.wait_recorded(sizes.len() as u64);
        assert!(hook(&capture.stop()).starts_with("fentry on"));
        let folder = files::folder();
        let recording = Recording::read(&guest.bring(folder.path()));
        for ((number, packet), size) in (0..).zip(&recording.packets).zip(&sizes) {
            let bytes = nic.frame(*size).bytes(number);
            assert_eq!(packet.origlen as usize, *size);
            assert_eq!(packet.data, bytes[..snaplen.min(*size)]);
        }
    }
}

/// Of frames in several buffers the first one is kept; the length is the whole one's.
pub fn of_several_buffers(rig: &Rig) {
    let machine = rig.boot(&[]);
    let guest = &machine.guest;
    // The other end gets the name veth0.
    guest.must(&["ip", "link", "add", "va", "type", "veth"]);
    for end in ["va", "veth0"] {
        guest.must(&["ip", "link", "set", end, "mtu", "9000"]);
        guest.must(&["ip", "link", "set", end, "up"]);
    }
    let _other = attach(guest, "native", "probe_drop", &["veth0"]);
    let capture = guest.capture(&["-i", "veth0"]).ready();
    let sizes = [1514, 3000, 3600, 4096, 6000, 9014];
    let texts = sizes.map(|size| size.to_string());
    let line = [agent::PROGRAM, agent::SEND, "va"].into_iter();
    guest.must(
        &line
            .chain(texts.iter().map(String::as_str))
            .collect::<Vec<_>>(),
    );
    guest.wait_recorded(sizes.len() as u64);
    let finished = capture.stop();
    assert_eq!(finished.success().written, sizes.len() as u64);
    assert!(hook(&finished).starts_with("fentry on"));
    let folder = files::folder();
    let recording = Recording::read(&guest.bring(folder.path()));
    for ((number, packet), size) in (0..).zip(&recording.packets).zip(sizes) {
        let bytes = others::frame(size).bytes(number);
        assert_eq!(packet.origlen as usize, size);
        let kept = packet.data.len();
        assert_eq!(packet.data, bytes[..kept]);
        assert_eq!(kept == size, size <= 3000, "{kept} of {size}");
        assert!(kept >= 1514, "{kept} of {size}");
    }
}

/// Verdicts are those of the interpreter, of loads at places known and not.
pub fn filtered(rig: &Rig) {
    let machine = rig.boot(&[Kind::Virtio]);
    let (guest, nic) = (&machine.guest, &machine.nics[0]);
    let _other = attach(guest, "native", "probe_drop", &["eth0"]);
    let tagged = nic.frame(100).tagged(0x8100, 42);
    let frames = [nic.frame(100), nic.frame(600), tagged, nic.frame(60)];
    for (expression, matches) in [
        ("ether proto 0x88b5", 3),
        ("vlan 42", 1),
        ("greater 200", 1),
        ("inbound", 4),
        ("ether[37] = 1 and ether[36] = 0", 1),
        ("ether[599] >= 0", 1),
        ("ether[ether[37] + 598] >= 0", 1),
        ("udp port 53", 0),
    ] {
        let filter = Filter::from_expression(expression).expect("an expression");
        let expected: Vec<_> = (0..)
            .zip(&frames)
            .map(|(number, frame)| frame.bytes(number))
            .filter(|bytes| filter.program.verdict(&Frame::received(bytes)) != 0)
            .collect();
        assert_eq!(expected.len(), matches, "{expression}");
        let code = filter.program.decimal().trim_end().replace('\n', ",");
        let write = format!("echo '{code}' > /tmp/filter");
        guest.must(&["/bin/busybox", "sh", "-c", &write]);
        let arguments = ["-i", "eth0", "--filter-bytecode", "/tmp/filter"];
        let capture = guest.capture(&arguments).ready();
        for (number, frame) in (0..).zip(&frames) {
            nic.send(frame, number..number + 1);
        }
        guest.wait_received(frames.len() as u64);
        let finished = capture.stop();
        let summary = finished.success();
        assert_eq!((summary.seen, summary.written), (4, matches as u64));
        assert!(hook(&finished).starts_with("fentry on"));
        let folder = files::folder();
        let recording = Recording::read(&guest.bring(folder.path()));
        let captured: Vec<_> = recording.packets.into_iter().map(|it| it.data).collect();
        assert_eq!(captured, expected, "{expression}");
    }
}

/// One program on two interfaces, of which one or both are captured.
pub fn of_one_of_two_interfaces(rig: &Rig) {
    let machine = rig.boot(&[Kind::Virtio, Kind::Virtio]);
    let (guest, nics) = (&machine.guest, &machine.nics);
    let _other = attach(guest, "native", "probe_drop", &["eth0", "eth1"]);
    let send = || {
        nics[1].send(&nics[1].frame(64), 0..FRAMES);
        nics[0].send(&nics[0].frame(64), 0..FRAMES / 3);
    };
    let one = guest.capture(&["-i", "eth0"]).ready();
    let both = guest
        .capture_to("/tmp/both", &["-i", "eth0", "-i", "eth1"])
        .ready();
    send();
    guest.wait_recorded(FRAMES + FRAMES / 3);
    let (one, both) = (one.stop().success(), both.stop().success());
    let written = |summary: &tscap::Summary| {
        let each = summary.interfaces.iter();
        each.map(|it| (it.seen, it.written)).collect::<Vec<_>>()
    };
    assert_eq!(written(&one), [(FRAMES / 3, FRAMES / 3)]);
    assert_eq!(written(&both), [(FRAMES / 3, FRAMES / 3), (FRAMES, FRAMES)]);
}

/// The kernel module's counter, also there.
pub fn by_the_module(rig: &Rig) {
    let machine = rig.boot_on(Processor::ConstantTsc, &[Kind::Virtio]);
    let (guest, nic) = (&machine.guest, &machine.nics[0]);
    guest.must(&["insmod", agent::MODULE]);
    let _other = attach(guest, "native", "probe_drop", &["eth0"]);
    let clock = ["--clock", "tsc:module", "--force"];
    let capture = guest
        .capture(&[&["-i", "eth0"], &clock[..]].concat())
        .ready();
    nic.send(&nic.frame(100), 0..FRAMES);
    guest.wait_recorded(FRAMES);
    let finished = capture.stop();
    assert_eq!(finished.success().written, FRAMES);
    assert!(
        hook(&finished).starts_with("fentry on"),
        "{}",
        finished.stderr
    );
}

/// The program is replaced, goes and comes back, as when somebody's agent restarts: each time
/// the capture goes along and says so.
pub fn replaced(rig: &Rig) {
    let machine = rig.boot(&[Kind::Virtio]);
    let (guest, nic) = (&machine.guest, &machine.nics[0]);
    let frame = nic.frame(100);
    let other = attach(guest, "native", "probe_drop,probe_pass", &["eth0"]);
    let capture = guest.capture(&["-i", "eth0"]).ready();
    let goes_along = |hook: &str| {
        let line = format!("warning: eth0: received frames are captured at {hook}");
        let line = capture.wait_line(&line);
        assert!(line.contains("ms may be missing"), "{line}");
        line
    };
    nic.send(&frame, 0..FRAMES);
    guest.wait_recorded(FRAMES);
    other.signal(Signal::SIGUSR1);
    goes_along("fentry on probe_pass (id ");
    nic.send(&frame, FRAMES..2 * FRAMES);
    guest.wait_recorded(2 * FRAMES);
    other.stop_with(Signal::SIGINT);
    let tc = if rig.kernel.has_tcx() {
        "tcx ingress"
    } else {
        "clsact ingress"
    };
    assert!(goes_along(tc).contains("in the network stack"));
    nic.send(&frame, 2 * FRAMES..3 * FRAMES);
    guest.wait_recorded(3 * FRAMES);
    let _other = attach(guest, "native", "probe_drop", &["eth0"]);
    goes_along("fentry on probe_drop (id ");
    nic.send(&frame, 3 * FRAMES..4 * FRAMES);
    guest.wait_recorded(4 * FRAMES);
    let finished = capture.stop();
    let summary = finished.success();
    assert_eq!((summary.seen, summary.written), (4 * FRAMES, 4 * FRAMES));
    assert!(hook(&finished).starts_with("fentry on probe_drop"));
    let folder = files::folder();
    let recording = Recording::read(&guest.bring(folder.path()));
    for (number, packet) in (0..).zip(&recording.packets) {
        assert_eq!(packet.data, frame.bytes(number), "each once");
    }
}

/// libxdp's dispatcher, which runs xdp-filter. Of one with a single program kernels have
/// refused the entry (EBUSY on 6.12): then that is said, and the next dispatcher, which a
/// second program makes, is tried again.
pub fn a_dispatcher(rig: &Rig) {
    let machine = rig.boot(&[Kind::Virtio]);
    let (guest, nic) = (&machine.guest, &machine.nics[0]);
    guest.must(&["mount", "-t", "bpf", "bpf", "/sys/fs/bpf"]);
    let libraries = rig.kernel.architecture.triplet();
    let object = format!("/usr/lib/{libraries}/bpf/xdpfilt_dny_all.o");
    let load = [agent::XDP_LOADER, "load", "-m", "native", "eth0", &object];
    guest.must(&load);
    let capture = guest.capture(&["-i", "eth0"]);
    let ready = capture.wait_line("ready: ");
    let frame = nic.frame(100);
    let mut expected = 0;
    if ready.contains("in: fentry on xdp_dispatcher (id ") {
        nic.send(&frame, 0..FRAMES);
        expected += FRAMES;
        guest.wait_recorded(expected);
    } else {
        let said = capture.wait_line("warning: eth0: XDP program ");
        assert!(
            said.contains("fentry at native XDP: Device or resource busy"),
            "{said}"
        );
    }
    guest.must(&load);
    capture.wait_line("warning: eth0: received frames are captured at fentry on xdp_dispatcher");
    nic.send(&frame, 0..FRAMES);
    expected += FRAMES;
    guest.wait_recorded(expected);
    assert_eq!(capture.stop().success().written, expected);
}
