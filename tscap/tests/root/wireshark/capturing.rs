//! Captures that tshark and dumpcap read.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;
use std::time::{SystemTime, UNIX_EPOCH};

use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::unistd::Pid;
use tscap_testkit::bench::Bench;
use tscap_testkit::lines::Lines;
use tscap_testkit::peers;
use tscap_testkit::recording::Recording;
use tscap_testkit::root::root_with;

use super::user::{LIMIT, PROGRAMS, Pings, User, succeeds};

/// Offset of the protocol in an IPv4 header behind an Ethernet header, and ICMP.
const PROTOCOL: (usize, u8) = (23, 1);

fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    u64::try_from(now.expect("after 1970").as_nanos()).expect("before 2554")
}

#[test]
fn tshark_captures_a_count_by_a_filter() {
    let Some(_lock) = root_with(&PROGRAMS) else {
        return;
    };
    let bench = Bench::new("count");
    bench.add_addresses();
    let user = User::new();
    let path = user.file("out.pcapng");
    let before = now();
    let pings = Pings::on(&bench);
    let arguments = [
        "-i",
        "tscap-rx0",
        "-f",
        "icmp",
        "-c",
        "20",
        "-w",
        "out.pcapng",
    ];
    let done = user.tshark(&bench.rx.netns, &arguments);
    drop(pings);
    assert!(done.status.success(), "{}", done.stderr);
    // What tscap says there is an error for tshark.
    assert!(!done.stderr.contains("extcap"), "{}", done.stderr);

    let recording = Recording::read(&path);
    let packets = &recording.packets;
    assert_eq!(packets.len(), 20);
    let icmp = |data: &[u8]| data[PROTOCOL.0] == PROTOCOL.1;
    assert!(packets.iter().all(|it| icmp(&it.data)));
    let within = before..now();
    assert!(packets.iter().all(|it| within.contains(&it.nanos)));
    let finer = packets.iter().any(|it| it.nanos % 1000 != 0);
    assert!(finer, "no time is finer than a microsecond");
    let interface = &recording.interfaces[0];
    assert_eq!((&*interface.name, interface.nanoseconds), ("rx0", true));
    assert_eq!(interface.filter.as_deref(), Some("icmp"));
    assert_eq!(interface.custom["hooks"]["in"], "native XDP");
    peers::agree_on(&path, 20);
    // The reader has gone: so does the capture, and takes its program along.
    user.wait_for_the_end_of_tscap();
    assert_eq!(bench.rx.xdp_program(), None);
}

#[test]
fn options_reach_the_capture() {
    let Some(_lock) = root_with(&PROGRAMS) else {
        return;
    };
    let bench = Bench::new("options");
    bench.add_addresses();
    let user = User::new();
    let _pings = Pings::on(&bench);
    let arguments = [
        "-i",
        "tscap-rx0",
        "-f",
        "icmp",
        "-c",
        "10",
        "-w",
        "out.pcapng",
        "-o",
        "extcap.tscap_rx0.direction:in",
        "-o",
        "extcap.tscap_rx0.clock:tai",
        "-o",
        "extcap.tscap_rx0.hook:tcx",
        "-o",
        "extcap.tscap_rx0.snaplen:60",
        "-o",
        "extcap.tscap_rx0.keepraw:true",
        "-o",
        "extcap.tscap_rx0.verbose:true",
    ];
    let done = user.tshark(&bench.rx.netns, &arguments);
    let recording = Recording::read(&user.file("out.pcapng"));
    assert_eq!(recording.packets.len(), 10, "{}", done.stderr);
    let mac = &bench.rx.mac[..];
    for packet in &recording.packets {
        assert_eq!((packet.data.len(), packet.origlen), (60, 98));
        assert_eq!((&packet.data[..6], packet.has_raw), (mac, true));
    }
    let custom = &recording.interfaces[0].custom;
    assert_eq!(custom["stamp"]["source"], "tai");
    assert_eq!(custom["hooks"]["in"], "tcx ingress");
    let ready = "ready: capturing on rx0 (in: tcx ingress), clock tai";
    assert!(done.stderr.contains(ready), "{}", done.stderr);
}

#[test]
fn two_interfaces_until_a_time_is_over() {
    let Some(_lock) = root_with(&PROGRAMS) else {
        return;
    };
    let bench = Bench::new("two");
    bench.add_addresses();
    let (tx, rx) = bench.add_pair(1);
    tx.netns
        .ip(&["address", "add", "10.9.1.1/24", "dev", &tx.name]);
    rx.netns
        .ip(&["address", "add", "10.9.1.2/24", "dev", &rx.name]);
    let user = User::new();
    let _pings = (Pings::on(&bench), Pings::to(&bench, "10.9.1.2"));
    let arguments = [
        "-i",
        "tscap-rx0",
        "-i",
        "tscap-rx1",
        "-a",
        "duration:3",
        "-w",
        "out.pcapng",
    ];
    let done = user.tshark(&bench.rx.netns, &arguments);
    assert!(done.status.success(), "{}", done.stderr);
    user.wait_for_the_end_of_tscap();
    let recording = Recording::read(&user.file("out.pcapng"));
    let mut names: Vec<_> = recording.interfaces.iter().map(|it| &*it.name).collect();
    // In the order in which dumpcap heard of them.
    names.sort_unstable();
    assert_eq!(names, ["rx0", "rx1"]);
    for interface in 0..2 {
        let count = recording.packets_of(interface).count();
        assert!(count > 10, "{count} packets of interface {interface}");
    }
}

/// Each looks at the interface, and then attaches: the other one may be there meanwhile.
#[test]
fn captures_of_one_interface_start_at_the_same_moment() {
    let Some(_lock) = root_with(&PROGRAMS) else {
        return;
    };
    let bench = Bench::new("same");
    bench.add_addresses();
    let user = User::new();
    let _pings = Pings::on(&bench);
    for round in 0..2 {
        let arguments = [
            "-i",
            "tscap-any",
            "-i",
            "tscap-rx0",
            "-f",
            "icmp",
            "-a",
            "duration:2",
            "-w",
            "out.pcapng",
        ];
        let done = user.tshark(&bench.rx.netns, &arguments);
        assert!(done.status.success(), "{round}: {}", done.stderr);
        let recording = Recording::read(&user.file("out.pcapng"));
        let of = |number| recording.packets_of(number).count();
        let of_rx0 = |number: &usize| recording.interfaces[*number].name == "rx0";
        let mut counts = (0..recording.interfaces.len()).filter(of_rx0).map(of);
        assert!(counts.all(|count| count > 10), "{round}: {recording:?}");
        user.wait_for_the_end_of_tscap();
    }
}

#[test]
fn what_is_wrong_is_shown_and_ends_the_capture() {
    let Some(_lock) = root_with(&PROGRAMS) else {
        return;
    };
    let bench = Bench::new("wrong");
    let fit = User::new();
    let unfit = User::with("cap_net_raw+ep");
    let cases: [(&User, &[&str], &str); 4] = [
        (
            &fit,
            &["-f", "icmp and"],
            "tscap: cannot compile the filter \"icmp and\"",
        ),
        (
            &fit,
            &["-o", "extcap.tscap_rx0.clock:sundial"],
            "invalid value 'sundial'",
        ),
        (
            &fit,
            &["-o", "extcap.tscap_rx0.snaplen:999999"],
            "--snaplen",
        ),
        (&unfit, &[], "CAP_BPF"),
    ];
    for (user, more, part) in cases {
        let first = ["-i", "tscap-rx0", "-w", "out.pcapng"];
        let done = user.tshark(&bench.rx.netns, &[&first, more].concat());
        assert!(!done.status.success(), "{more:?}");
        let error = done.stderr.split("Error by extcap pipe: ").nth(1);
        let error = error.unwrap_or_else(|| panic!("{more:?}: {}", done.stderr));
        assert!(error.contains(part), "{more:?}: {error}");
        assert!(error.contains("\nhint: "), "{more:?}: {error}");
    }
}

/// Also what Wireshark does when Stop is pressed: SIGTERM, then it reads to the end.
#[test]
fn dumpcap_reads_the_pipe_to_its_last_statistics() {
    let Some(_lock) = root_with(&PROGRAMS) else {
        return;
    };
    let bench = Bench::new("pipe");
    bench.add_addresses();
    let user = User::new();
    let fifo = user.file("fifo");
    nix::unistd::mkfifo(&fifo, Mode::S_IRUSR | Mode::S_IWUSR).expect("a named pipe");
    fs::set_permissions(&fifo, Permissions::from_mode(0o666)).expect("a pipe for everybody");

    let mut tscap = user.command(&bench.rx.netns, "./extcap/tscap");
    tscap.args([
        "--capture",
        "--extcap-interface",
        "tscap-rx0",
        "--fifo",
        "fifo",
    ]);
    tscap.args(["--verbose"]).stderr(Stdio::piped());
    let mut tscap = tscap.spawn().expect("start tscap");
    let stderr = Lines::collect(tscap.stderr.take().expect("piped"));
    let mut dumpcap = user.command(&bench.rx.netns, "dumpcap");
    dumpcap
        .args(["-i", "fifo", "-w", "out.pcapng"])
        .stderr(Stdio::piped());
    let dumpcap = dumpcap.spawn().expect("start dumpcap");

    let ready = stderr.wait_for(LIMIT, |line| line.starts_with("ready: "));
    assert!(ready.is_some(), "{}", stderr.so_far());
    // These alone, each there and back.
    let count = ["-q", "-c", "10", "-i", "0.01", "10.9.0.2"];
    bench.tx.netns.must("ping", &count);
    kill(Pid::from_raw(tscap.id().cast_signed()), Signal::SIGTERM).expect("SIGTERM");
    succeeds(tscap, "tscap");
    succeeds(dumpcap, "dumpcap");

    let recording = Recording::read(&user.file("out.pcapng"));
    let icmp = recording
        .packets
        .iter()
        .filter(|it| it.data[PROTOCOL.0] == PROTOCOL.1);
    assert_eq!(icmp.count(), 20);
    let totals = &recording.last_statistics(0).custom["totals"];
    assert_eq!(totals["written"], recording.packets.len());
    assert_eq!(totals["seen"], totals["written"]);
}
