//! Devices of each type that this kernel has: what is captured of them, and what is refused.

use tscap_testkit::files;
use tscap_testkit::recording::Recording;

use crate::agent;
use crate::guest::Guest;
use crate::machine::Rig;

/// Echo requests, and so many answers.
const ECHOES: usize = 4;
/// A veth whose other end is in a namespace of its own, `far`: 10.9.0.1 and 10.9.0.2. The
/// guests have no IPv6.
const FAR: &str = "/ip netns add far && /ip link add va type veth peer name vb netns far && \
    /ip addr add 10.9.0.1/24 dev va && /ip -n far addr add 10.9.0.2/24 dev vb && \
    /ip link set va up && /ip -n far link set vb up";
/// Tunnels that carry packets, and their modules.
const TUNNELS: [[&str; 2]; 2] = [["ipip", "ipip"], ["gre", "ip_gre"]];
/// Devices that can't be captured: what makes each, and a word of why.
const REFUSED: [[&str; 3]; 7] = [
    [
        "mgre",
        "type gre key 7 local 10.9.0.1",
        "outer IP and GRE headers",
    ],
    [
        "mcgre",
        "type gre local 10.9.0.1 remote 224.0.0.9",
        "outer IP and GRE headers",
    ],
    ["nlmon0", "type nlmon", "netlink messages"],
    ["vsockmon0", "type vsockmon", "virtual machine sockets"],
    ["vrf0", "type vrf table 9", "seen at its ports alone"],
    [
        "ipvl0",
        "link va type ipvlan mode l3s",
        "passes no hook of its own",
    ],
    [
        "vti0",
        "type vti key 5 local 10.9.0.1 remote 10.9.0.2",
        "-Q out takes what it sends",
    ],
];

fn sh(guest: &Guest, script: &str) -> String {
    guest.must(&["sh", "-c", script])
}

/// Makes the tunnel `ipt` of a kind, with its other end in the namespace.
fn tunnel(guest: &Guest, [kind, module]: [&str; 2]) {
    sh(
        guest,
        &format!(
            "modprobe {module} && \
             /ip link add ipt type {kind} local 10.9.0.1 remote 10.9.0.2 && \
             /ip -n far link add ipt type {kind} local 10.9.0.2 remote 10.9.0.1 && \
             /ip addr add 10.8.0.1/24 dev ipt && /ip -n far addr add 10.8.0.2/24 dev ipt && \
             /ip link set ipt up && /ip -n far link set ipt up"
        ),
    );
}

/// Whether it is an IPv4 packet of that many bytes, with an echo request or an answer to one.
fn is_echo(data: &[u8]) -> bool {
    let length = usize::from(u16::from_be_bytes([data[2], data[3]]));
    data[0] == 0x45 && length == data.len() && data[9] == 1 && [0, 8].contains(&data[20])
}

/// Each frame of a tunnel is the packet, in either direction.
pub fn tunnels(rig: &Rig) {
    let machine = rig.boot(&[]);
    let guest = &machine.guest;
    sh(guest, FAR);
    for kind @ [name, ..] in TUNNELS {
        tunnel(guest, kind);
        let capture = guest.capture(&["-i", "ipt", "-Q", "inout"]).ready();
        guest.must(&["ping", "-c", &ECHOES.to_string(), "10.8.0.2"]);
        capture.stop().success();
        let folder = files::folder();
        let recording = Recording::read(&guest.bring(folder.path()));
        let packets: Vec<_> = recording.packets_of(0).collect();
        let strange = packets.iter().find(|it| !is_echo(&it.data));
        assert!(strange.is_none(), "{name}: {strange:02x?}");
        assert_eq!(packets.len(), 2 * ECHOES, "{name}");
        sh(guest, "/ip link del ipt && /ip -n far link del ipt");
    }
}

/// What begins with something else is refused by its name, and left out of `any` aloud.
pub fn refused(rig: &Rig) {
    let machine = rig.boot(&[]);
    let guest = &machine.guest;
    sh(guest, FAR);
    sh(guest, "modprobe -a ip_gre ip_vti ipvlan nlmon vsockmon vrf");
    for [name, how, why] in REFUSED {
        sh(
            guest,
            &format!("/ip link add {name} {how} && /ip link set {name} up"),
        );
        let refused = guest.capture(&["-i", name]).wait();
        refused.failure(1, &["cannot capture on", name, why]);
    }
    let capture = guest.capture(&["-i", "any"]).ready();
    guest.must(&["ping", "-c", &ECHOES.to_string(), "10.9.0.2"]);
    // News of each of them once more.
    let again = REFUSED.map(|[name, ..]| format!("/ip link set {name} alias again"));
    sh(guest, &again.join(" && "));
    let finished = capture.stop();
    finished.success();
    for [name, _, why] in REFUSED {
        // Those with one reason are in one line.
        let names = |line: &str| {
            let head = line.split_once(" left out: ").map(|(head, _)| head);
            let mut words = head.unwrap_or_default().split([' ', ',']);
            words.any(|word| word == name)
        };
        let lines = finished.stderr.lines().filter(|line| names(line));
        assert_eq!(lines.count(), 1, "{name}: {}", finished.stderr);
        assert!(finished.stderr.contains(why), "{}", finished.stderr);
    }
    let capture = guest.capture(&["-i", "vti0", "-Q", "out"]).ready();
    capture.stop().success();
    let list = guest.must(&[agent::TSCAP, "-D"]);
    assert!(list.contains("netlink messages"), "{list}");
}
