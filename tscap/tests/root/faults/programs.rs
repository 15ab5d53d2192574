//! Another XDP program on the interface.

use std::path::Path;

use aya::programs::XdpMode;
use tscap::Summary;
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::capture_on;
use tscap_testkit::files;
use tscap_testkit::frame::Frame;
use tscap_testkit::packet_socket::PacketSocket;
use tscap_testkit::probes::{self, Attached};
use tscap_testkit::root::{alone, alone_with};

/// Why tests run alone that let go of a program or a socket and look whether it is gone.
const DESCRIPTORS: &str = "children of other tests keep its descriptors for a moment";

/// Where only one program can be.
const AT_XDP: [&str; 2] = ["--hook", "xdp"];

#[test]
fn another_program_attached_is_named_and_left_alone() {
    let Some(_lock) = alone(DESCRIPTORS) else {
        return;
    };
    let bench = Bench::new("busy");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    for mode in [XdpMode::Driver, XdpMode::Skb] {
        let other = Attached::pass(&bench.rx, mode);
        let id = other.id.to_string();
        let finished = capture_on(&bench.rx, &path).with(AT_XDP).run();
        finished.failure(1, &["rx0", &id]);
        let hint = finished
            .stderr
            .lines()
            .find(|line| line.starts_with("hint: "));
        assert!(
            hint.is_some_and(|hint| hint.contains("bpftool link detach id")),
            "{hint:?}"
        );
        assert_eq!(
            bench.rx.xdp_program(),
            Some(u64::from(other.id)),
            "still there"
        );
        assert!(!path.exists(), "a file was left");
        assert_eq!(bench.rx.promiscuity(), 0, "given back");
    }
}

/// The command that a refused capture names, run; then a capture begins.
fn command_of_the_hint(bench: &Bench, file: &Path) -> String {
    let refused = capture_on(&bench.rx, file).with(AT_XDP).run();
    refused.failure(1, &["already has XDP program"]);
    let hint = refused
        .stderr
        .lines()
        .find(|line| line.starts_with("hint: "));
    let hint = hint.expect("a hint").to_owned();
    let (_, command) = hint.rsplit_once(": ").expect("a command");
    bench.rx.netns.must("sh", &["-c", command]);
    assert_eq!(bench.rx.xdp_program(), None, "after {command}");
    capture_on(&bench.rx, file).ready().stop().success();
    hint
}

#[test]
fn the_command_of_the_hint_takes_the_other_program_off() {
    let Some(_lock) = alone_with(DESCRIPTORS, &["ip", "ethtool", "bpftool"]) else {
        return;
    };
    let bench = Bench::new("off");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    // By netlink, as `ip link` and xdp-loader attach.
    let mut ebpf = probes::load("probe_pass", 0);
    let id = probes::program(&mut ebpf, "probe_pass")
        .info()
        .expect("info")
        .id();
    for mode in ["xdpdrv", "xdpgeneric"] {
        let attach = ["net", "attach", mode, "id", &id.to_string(), "dev", "rx0"];
        bench.rx.netns.must("bpftool", &attach);
        let hint = command_of_the_hint(&bench, &path);
        assert!(
            hint.ends_with(&format!("ip link set dev rx0 {mode} off")),
            "{hint}"
        );
    }
    // By a link, which this process holds.
    for mode in [XdpMode::Driver, XdpMode::Skb] {
        let _other = Attached::pass(&bench.rx, mode);
        let hint = command_of_the_hint(&bench, &path);
        let holder = format!("process {} (", std::process::id());
        assert!(
            hint.contains(&holder) && hint.contains("bpftool link detach id"),
            "{hint}"
        );
    }
}

#[test]
fn the_capture_that_the_hint_names_frees_the_interface_when_it_ends() {
    let Some(_lock) = alone(DESCRIPTORS) else {
        return;
    };
    let bench = Bench::new("holder");
    let folder = files::folder();
    let (first, second) = (folder.path().join("first"), folder.path().join("second"));
    let running = capture_on(&bench.rx, &first).ready();
    let holder = format!("process {} (tscap) holds it: end that", running.pid());
    let refused = capture_on(&bench.rx, &second).with(AT_XDP).run();
    refused.failure(1, &[&holder]);
    running.stop().success();
    capture_on(&bench.rx, &second).ready().stop().success();
}

#[test]
fn a_second_capture_at_the_same_hook_is_refused() {
    let Some(_lock) = alone(DESCRIPTORS) else {
        return;
    };
    let bench = Bench::new("second");
    let folder = files::folder();
    let (first, second) = (folder.path().join("first"), folder.path().join("second"));
    let running = capture_on(&bench.rx, &first).ready();
    let id = bench
        .rx
        .xdp_program()
        .expect("the first capture's program")
        .to_string();
    capture_on(&bench.rx, &second)
        .with(AT_XDP)
        .run()
        .failure(1, &["rx0", &id]);
    assert!(!second.exists(), "a file was left");
    running.stop().success();
}

#[test]
fn the_second_of_two_interfaces_is_busy_and_the_first_is_given_back() {
    let Some(_lock) = alone(DESCRIPTORS) else {
        return;
    };
    let bench = Bench::new("half");
    let (_tx1, rx1) = bench.add_pair(1);
    let other = Attached::pass(&rx1, XdpMode::Driver);
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let plan = capture_on(&bench.rx, &path).on(&rx1);
    let finished = plan.with(AT_XDP).run();
    finished.failure(1, &["rx1", &other.id.to_string()]);
    assert_eq!((bench.rx.xdp_program(), bench.rx.promiscuity()), (None, 0));
    assert!(!path.exists(), "a file was left");
}

/// By default nobody is refused. What a program of somebody else lets pass is captured at
/// its entry, or behind it where the kernel refuses that.
#[test]
fn a_capture_finds_a_hook_beside_a_program_of_others() {
    let Some(_lock) = alone(DESCRIPTORS) else {
        return;
    };
    let bench = Bench::new("beside");
    let folder = files::folder();
    let [first, second] = ["first", "second"].map(|name| folder.path().join(name));
    let frame = Frame::new(&bench.tx, &bench.rx, 100);
    for mode in [XdpMode::Driver, XdpMode::Skb] {
        let other = Attached::pass(&bench.rx, mode);
        let one = capture_on(&bench.rx, &first).ready();
        let two = capture_on(&bench.rx, &second).ready();
        PacketSocket::open(&bench.tx).send(&frame, 0..1_000, 0);
        for capture in [one, two] {
            let finished = capture.stop();
            let summary = finished.success();
            assert_eq!((summary.seen, summary.written), (1_000, 1_000));
            let said = match hook(&summary).as_str() {
                "tcx ingress" => format!(
                    "XDP program {} of somebody else is there, and what it drops or redirects \
                     is not seen here (cannot load the program of rx0 for fentry at ",
                    other.id
                ),
                taken => format!("before it decides about them, by {taken}"),
            };
            assert!(finished.stderr.contains(&said), "{}", finished.stderr);
        }
        assert_eq!(
            bench.rx.xdp_program(),
            Some(u64::from(other.id)),
            "still there"
        );
    }
}

/// Fentry on the program of another capture would delay its stamps.
#[test]
fn the_program_of_another_capture_is_left_alone() {
    let Some(_lock) = alone(DESCRIPTORS) else {
        return;
    };
    let bench = Bench::new("two");
    let folder = files::folder();
    let [first, second] = ["first", "second"].map(|name| folder.path().join(name));
    let frame = Frame::new(&bench.tx, &bench.rx, 100);
    let one = capture_on(&bench.rx, &first).ready();
    let two = capture_on(&bench.rx, &second).ready();
    PacketSocket::open(&bench.tx).send(&frame, 0..1_000, 0);
    let (one, two) = (one.stop(), two.stop());
    for (finished, taken) in [(&one, "native XDP"), (&two, "tcx ingress")] {
        let summary = finished.success();
        assert_eq!((summary.seen, summary.written), (1_000, 1_000));
        assert_eq!(hook(&summary), taken);
    }
    let said = "it is of another capture by tscap";
    assert!(two.stderr.contains(said), "{}", two.stderr);
}

fn hook(summary: &Summary) -> String {
    let hook = summary.interfaces[0].directions[0].hook.clone();
    hook.expect("a hook")
}
