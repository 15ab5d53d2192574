//! A bond, whose ports carry its frames.

use tscap::Summary;
use tscap_testkit::files;
use tscap_testkit::recording::Recording;

use crate::guest::Guest;
use crate::machine::Rig;

/// Echo requests, and so many answers.
const ECHOES: usize = 4;
/// A bond of one port, whose other end in a namespace of its own answers echoes.
const BOND: &str = "unshare -n sleep 1000 >/dev/null 2>&1 & \
    ip link add va type veth && sleep 1 && ip link set veth0 netns $! && \
    nsenter -t $! -n sh -c 'ip addr add 10.9.0.2/24 dev veth0 && ip link set veth0 up' && \
    modprobe bonding && echo active-backup > /sys/class/net/bond0/bonding/mode && \
    echo +va > /sys/class/net/bond0/bonding/slaves && \
    ip addr add 10.9.0.1/24 dev bond0 && ip link set bond0 up && ip link set va up";

fn echo(guest: &Guest) {
    guest.must(&["ping", "-c", &ECHOES.to_string(), "10.9.0.2"]);
}

fn hooks(summary: &Summary, name: &str) -> Vec<String> {
    let mut interfaces = summary.interfaces.iter();
    let found = interfaces.find(|it| it.name == name).expect("an interface");
    let directions = found.directions.iter();
    directions.filter_map(|it| it.hook.clone()).collect()
}

/// How many echoes, and answers to them, of each interface are in the file of the last
/// capture: received and sent.
fn echoes(guest: &Guest) -> Vec<[usize; 2]> {
    let folder = files::folder();
    let recording = Recording::read(&guest.bring(folder.path()));
    let of = |index: usize, way: u32| {
        let packets = recording.packets_of(index);
        let icmp = packets.filter(|it| it.data[12..14] == [8, 0] && it.data[23] == 1);
        // Bits 0 and 1 of the flags: 1 is received, 2 sent.
        icmp.filter(|it| it.flags.map(|all| all & 3) == Some(way))
            .count()
    };
    let indices = 0..recording.interfaces.len();
    indices.map(|index| [of(index, 1), of(index, 2)]).collect()
}

/// Under the bond's name each frame is there once, in either direction.
pub fn of_the_bond(rig: &Rig) {
    let machine = rig.boot(&[]);
    let guest = &machine.guest;
    guest.must(&["sh", "-c", BOND]);
    echo(guest);
    // The bond's frames come by way of it.
    let listening = guest.capture(&["-i", "va", "--tap"]).wait();
    listening.failure(1, &["cannot listen on va", "it is a port of bond0"]);
    for choice in ["auto", "tcx"] {
        let arguments = ["-Q", "inout", "-i", "bond0", "--hook", choice];
        let capture = guest.capture(&arguments).ready();
        echo(guest);
        let summary = capture.stop().success();
        let received = &hooks(&summary, "bond0")[0];
        assert_eq!(received == "native XDP", choice == "auto", "{received}");
        assert_eq!(echoes(guest), [[ECHOES; 2]]);
    }
}

/// Beside the bond, its ports each have a description of their own.
pub fn of_the_bond_and_its_port(rig: &Rig) {
    let machine = rig.boot(&[]);
    let guest = &machine.guest;
    guest.must(&["sh", "-c", BOND]);
    echo(guest);
    let arguments = ["-Q", "inout", "-i", "bond0", "-i", "va"];
    let capture = guest.capture(&arguments).ready();
    echo(guest);
    let summary = capture.stop().success();
    let (bond, port) = (hooks(&summary, "bond0"), hooks(&summary, "va"));
    assert_eq!(bond[0], "native XDP");
    assert!(port[0].ends_with(" ingress"), "{port:?}");
    assert_eq!(echoes(guest), [[ECHOES; 2]; 2]);
}
