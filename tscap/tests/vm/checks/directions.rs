//! What an interface sends, beside what it receives: by tcx, or by clsact where the kernel
//! has no tcx.

use nix::sys::signal::Signal;

use tscap_testkit::files;
use tscap_testkit::recording::Recording;

use crate::agent::{MODULE, TSCAP};
use crate::guest::Guest;
use crate::machine::{Processor, Rig};

/// Echo requests, and so many answers.
const ECHOES: u64 = 4;
/// Makes `va` here and its other end in a namespace of its own, which answers echoes.
pub const PAIR: &str = "unshare -n sleep 1000 >/dev/null 2>&1 & \
    ip link add va type veth && sleep 1 && ip link set veth0 netns $! && \
    nsenter -t $! -n sh -c 'ip addr add 10.9.0.2/24 dev veth0 && ip link set veth0 up' && \
    ip addr add 10.9.0.1/24 dev va && ip link set va up";

/// Sends echo requests out of `va`, all of which are answered.
fn echo(guest: &Guest) {
    guest.must(&["ping", "-c", &ECHOES.to_string(), "10.9.0.2"]);
}

/// Whether the kernel is of this version or later.
pub fn is_at_least(guest: &Guest, version: (u32, u32)) -> bool {
    let release = guest.must(&["uname", "-r"]);
    let mut numbers = release.split('.').map(|part| part.parse().unwrap_or(0));
    let mut number = || numbers.next().unwrap_or(0);
    (number(), number()) >= version
}

/// Whether the kernel has tcx: since 6.6.
pub fn has_tcx(guest: &Guest) -> bool {
    is_at_least(guest, (6, 6))
}

/// Frames that `va` has sent, by its own count.
fn sent(guest: &Guest) -> u64 {
    let count = guest.must(&["cat", "/sys/class/net/va/statistics/tx_packets"]);
    count.trim().parse().expect("a number")
}

/// At the tracepoint, where the kernel has what that takes: since 6.12. Every frame that the
/// interface counts is there, whether a process or a softirq sent it.
pub fn before_the_driver(rig: &Rig) {
    let machine = rig.boot_on(Processor::ConstantTsc, &[]);
    let guest = &machine.guest;
    guest.must(&["sh", "-c", PAIR]);
    let driver = ["-Q", "inout", "-i", "va", "--egress-point", "driver"];
    if !is_at_least(guest, (6, 12)) {
        let refused = guest.capture(&driver).wait();
        let why = ["before the driver", "bpf_dynptr_from_skb", "Linux 6.12"];
        refused.failure(1, &why);
        // What is received needs none of it.
        let capture = guest.capture(&["-Q", "in", "-i", "va"]).ready();
        echo(guest);
        assert!(capture.stop().success().written >= ECHOES);
        return;
    }
    guest.must(&["insmod", MODULE]);
    let by_module = ["--clock", "tsc:module", "--force"];
    for clock in [&[][..], &["--clock", "tai"], &by_module] {
        let capture = guest.capture(&[&driver[..], clock].concat()).ready();
        let before = sent(guest);
        echo(guest);
        // The answers to these are sent by softirqs.
        let asks = "nsenter -t $(pidof sleep) -n ping -c 10 -i 0.1 10.9.0.1";
        guest.must(&["sh", "-c", asks]);
        let counted = sent(guest) - before;
        let summary = capture.stop().success();
        let of_each = &summary.interfaces[0].directions;
        let out = of_each.iter().find(|it| it.direction == "out");
        let out = out.expect("sent frames");
        assert_eq!(out.hook.as_deref(), Some("driver egress"));
        assert!(out.totals.add_up() && counted >= ECHOES + 10);
        assert_eq!((out.totals.seen, out.totals.written), (counted, counted));
    }
}

pub fn both(rig: &Rig) {
    let machine = rig.boot_on(Processor::ConstantTsc, &[]);
    let guest = &machine.guest;
    let [received, sent] = if has_tcx(guest) {
        ["tcx ingress", "tcx egress"]
    } else {
        ["clsact ingress", "clsact egress"]
    };
    guest.must(&["sh", "-c", PAIR]);
    // The module has its kfuncs for programs of both kinds.
    guest.must(&["insmod", MODULE]);
    let xdp = ("xdp", "native XDP");
    let by_module = ["--clock", "tsc:module", "--force"];
    for ((choice, received), clock) in [
        (xdp, &[][..]),
        (("tcx", received), &[]),
        (("tcx", received), &by_module),
    ] {
        let arguments = ["-Q", "inout", "-i", "va", "--hook", choice];
        let capture = guest.capture(&[&arguments[..], clock].concat()).ready();
        echo(guest);
        let summary = capture.stop().success();
        let of_each = &summary.interfaces[0].directions;
        let hooks: Vec<_> = of_each.iter().filter_map(|it| it.hook.as_deref()).collect();
        assert_eq!(hooks, [received, sent]);
        for direction in of_each {
            let totals = direction.totals;
            assert!(totals.add_up() && totals.written >= ECHOES, "{direction:?}");
        }
        let folder = files::folder();
        let packets = Recording::read(&guest.bring(folder.path())).packets;
        // The type of an ICMP message: 8 asks, 0 answers. Bits 0 and 1 of the flags: 2 is
        // sent, 1 received.
        for (asks, flags) in [(8, 2), (0, 1)] {
            let echoes = packets
                .iter()
                .filter(|it| it.data[12..14] == [8, 0] && it.data[23] == 1 && it.data[34] == asks);
            let ways: Vec<_> = echoes.map(|it| it.flags.map(|all| all & 3)).collect();
            assert_eq!(ways, [Some(flags); ECHOES as usize]);
        }
    }
}

/// A filter outlives a capture that is killed: `tscap restore` removes it, and nothing
/// needs to where the kernel has tcx.
pub fn given_back(rig: &Rig) {
    let machine = rig.boot(&[]);
    let guest = &machine.guest;
    guest.must(&["sh", "-c", PAIR]);
    let capture = guest.capture(&["-Q", "out", "-i", "va"]).ready();
    capture.stop_with(Signal::SIGKILL);
    let restored = guest.run(&[TSCAP, "restore"]);
    let reported = [restored.stdout, restored.stderr].concat();
    assert!(restored.status.success(), "{reported}");
    assert_eq!(reported.contains("clsact"), !has_tcx(guest), "{reported}");
    let again = guest.run(&[TSCAP, "restore"]);
    let reported = [again.stdout, again.stderr].concat();
    assert!(!reported.contains("clsact"), "{reported}");
    let capture = guest.capture(&["-Q", "out", "-i", "va"]).ready();
    echo(guest);
    assert!(capture.stop().success().written >= ECHOES);
}

/// Interfaces join and leave, and one capture is in two namespaces.
pub fn joined(rig: &Rig) {
    let machine = rig.boot(&[]);
    let guest = &machine.guest;
    let sent = if has_tcx(guest) {
        "tcx egress"
    } else {
        "clsact egress"
    };
    let capture = guest.capture(&["-Q", "inout", "-i", "v*"]).ready();
    guest.must(&["sh", "-c", PAIR]);
    // Notes, for people and for those who read JSON.
    capture.wait_line("note: va (");
    echo(guest);
    guest.must(&["ip", "link", "delete", "va"]);
    capture.wait_line("note: va (in: native XDP");
    guest.must(&["sh", "-c", "ip link add vc type veth && ip link set vc up"]);
    capture.wait_line("note: vc (");
    guest.must(&["ip", "link", "delete", "vc"]);
    let summary = capture.stop().success();
    let of_va = summary.interfaces.iter().find(|it| it.name == "va");
    let of_va = of_va.expect("va has joined");
    let hooks: Vec<_> = of_va
        .directions
        .iter()
        .filter_map(|it| it.hook.as_deref())
        .collect();
    assert_eq!(hooks, ["native XDP", sent]);
    assert!(of_va.written >= 2 * ECHOES, "{of_va:?}");

    guest.must(&["sh", "-c", PAIR]);
    let pid = guest.must(&["pidof", "sleep"]);
    // The latest one is named first.
    let pid = pid.split_whitespace().next().expect("a process");
    let capture = guest.capture(&["-Q", "inout", "--netns", pid]).ready();
    echo(guest);
    let summary = capture.stop().success();
    let names: Vec<_> = summary
        .interfaces
        .iter()
        .map(|it| it.name.as_str())
        .collect();
    assert_eq!(names, ["veth0"]);
    assert!(summary.written >= 2 * ECHOES, "{summary:?}");
    let label = format!("network namespace {pid}");
    assert_eq!(summary.interfaces[0].namespace, Some(label));
}

/// Root goes on as another user, who attaches to an interface that joins, and detaches from
/// it; without tcx by filters that a process of root's has in its journal.
pub fn by_another_user(rig: &Rig) {
    let machine = rig.boot(&[]);
    let guest = &machine.guest;
    let user = "mkdir -p /etc && echo nobody:x:65534:65534::/:/bin/false > /etc/passwd";
    guest.must(&["sh", "-c", user]);
    let arguments = ["-Q", "inout", "-i", "v*", "-Z", "nobody"];
    let capture = guest.capture(&arguments).ready();
    guest.must(&["sh", "-c", PAIR]);
    capture.wait_line("note: va (");
    let users = "for it in $(pidof tscap); do grep Uid /proc/$it/status; done";
    let users = guest.must(&["sh", "-c", users]);
    assert!(users.contains("65534\t65534\t65534"), "{users}");
    echo(guest);
    let summary = capture.stop().success();
    assert!(summary.written >= 2 * ECHOES, "{summary:?}");
    let disciplines = guest.must(&["tc", "qdisc", "show", "dev", "va"]);
    assert!(!disciplines.contains("clsact"), "{disciplines}");
    assert_eq!(guest.must(&[TSCAP, "restore"]).trim(), "nothing to restore");
}
