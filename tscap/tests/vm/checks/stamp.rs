//! Receive times for a socket of another program.

use std::fs::File;
use std::net::UdpSocket;
use std::thread;

use nix::sched::{CloneFlags, setns};
use tscap_base::kernel_files::KernelFiles;
use tscap_protocol::{PORT, TimeFormat};
use tscap_testkit::capture::LIMIT;
use tscap_testkit::stamped_udp::StampedUdp;
use tscap_testkit::test_packets::{Sent, reply};

use crate::agent::{PROGRAM, REPLIES, STAMPED, TC, TSCAP};
use crate::guest::Guest;
use crate::machine::{Processor, Rig};

use super::directions::{PAIR, is_at_least};

/// Datagrams that a socket is sent.
pub const MANY: usize = 200;
/// More than any bound in a machine that is emulated.
const BOUND_NS: u64 = 1_000_000;
/// fq would hold back, or drop, what has a receive time: that is some decades later than the
/// clock that it goes by.
const LONGEST_NS: u64 = 5_000_000_000;

/// Another namespace behind `vc`, by this machine; its process is in the file [`FAR`].
const ROUTER: &str = "unshare -n sleep 1001 >/dev/null 2>&1 & \
    echo $! > /tmp/far && ip link add vc type veth && sleep 1 && ip link set veth0 netns $! && \
    nsenter -t $! -n sh -c 'ip addr add 10.10.0.2/24 dev veth0 && ip link set veth0 up && \
        ip route add default via 10.10.0.1' && \
    ip addr add 10.10.0.1/24 dev vc && ip link set vc up && \
    echo 1 > /proc/sys/net/ipv4/ip_forward";
/// Where that writes the number of the process.
const FAR: &str = "/tmp/far";

/// In the guest: a socket with an address that asks for receive times, and one that sends it
/// datagrams, each in the namespace of the process with a number.
pub fn exchange(mut arguments: impl Iterator<Item = String>) {
    let mut next = || arguments.next().expect("address, receiver, sender");
    let (address, receiver, sender) = (next(), next(), next());
    let receiver = bound_in(&receiver, (address, 0));
    let udp = StampedUdp::of(bound_in(&sender, ("0.0.0.0".into(), 0)), receiver);
    for exchange in udp.exchanges(MANY) {
        exchange.is_within(BOUND_NS);
        let took_ns = exchange.received.0 - exchange.sent.0;
        assert!(took_ns < LONGEST_NS, "{exchange:?}");
    }
}

/// In the guest: replies from one address to another, each in the namespace of the process with a
/// number, which all get their times.
pub fn reply_from(mut arguments: impl Iterator<Item = String>) {
    let mut socket = |port| {
        let mut next = || arguments.next().expect("address and process, twice");
        let (address, process) = (next(), next());
        bound_in(&process, (address, port))
    };
    let (sender, receiver) = (socket(PORT), socket(0));
    let there = receiver.local_addr().expect("an address");
    sender.connect(there).expect("connect");
    receiver.set_read_timeout(Some(LIMIT)).expect("a limit");
    for sequence in 0..MANY as u32 {
        let packet = reply(sequence, 44, TimeFormat::Ntp);
        let sent = Sent::by(&packet, || {
            sender.send(&packet).expect("send a packet");
        });
        let mut arrived = [0; 64];
        let length = receiver.recv(&mut arrived).expect("receive a packet");
        sent.has_its_time(&arrived[..length]);
    }
}

fn bound_in(process: &str, address: (String, u16)) -> UdpSocket {
    let path = KernelFiles::live().proc(format!("{process}/ns/net"));
    let bound = thread::spawn(move || {
        let netns = File::open(path).expect("a namespace");
        setns(netns, CloneFlags::CLONE_NEWNET).expect("enter it");
        UdpSocket::bind(address).expect("bind")
    });
    bound.join().expect("a socket")
}

/// Makes the first namespace; gives the process that holds it, the only one that sleeps.
fn pair(guest: &Guest) -> String {
    guest.must(&["sh", "-c", PAIR]);
    guest.must(&["pidof", "sleep"]).trim().to_owned()
}

/// Stamps at `va` while datagrams go from the namespace of one process to an address in that
/// of another.
fn stamped(guest: &Guest, clock: &str, from: &str, (address, to): (&str, &str)) {
    let stamping = guest.start(&[TSCAP, "stamp", "-i", "va", "--clock", clock, "--json"]);
    let stamping = stamping.ready();
    guest.must(&[PROGRAM, STAMPED, address, to, from]);
    let finished = stamping.stop();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    let said = finished.end.expect("a summary");
    let stamped = said["stamped"].as_u64().expect("a number");
    assert!(stamped >= MANY as u64 / 2, "{said}");
    assert_eq!(said["adds_up"], true, "{said}");
}

/// By each clock of the kernel; where there is no tcx it says so, and attaches nothing.
pub fn of_a_socket(rig: &Rig) {
    let machine = rig.boot_on(Processor::ConstantTsc, &[]);
    let guest = &machine.guest;
    let near = pair(guest);
    if !is_at_least(guest, (6, 6)) {
        let refused = guest.start(&[TSCAP, "stamp", "-i", "va"]).wait();
        refused.failure(1, &["no tcx", "Linux 6.6"]);
        return;
    }
    for clock in ["ktime", "tai"] {
        stamped(guest, clock, &near, ("10.9.0.1", "1"));
    }
}

/// What is stamped and goes on to another interface is not held back there.
pub fn forwarded_by_fq(rig: &Rig) {
    let machine = rig.boot_on(Processor::ConstantTsc, &[]);
    let guest = &machine.guest;
    let near = pair(guest);
    if !is_at_least(guest, (6, 6)) {
        return;
    }
    guest.must(&["sh", "-c", ROUTER]);
    let route = "ip route add default via 10.9.0.1";
    guest.must(&["sh", "-c", &format!("nsenter -t {near} -n {route}")]);
    guest.must(&[TC, "qdisc", "replace", "dev", "vc", "root", "fq"]);
    let far = String::from_utf8(guest.read(FAR)).expect("a number");
    stamped(guest, "ktime", &near, ("10.10.0.2", far.trim()));
}

/// In replies of another program, with either clock of the kernel.
pub fn send_times(rig: &Rig) {
    let machine = rig.boot_on(Processor::ConstantTsc, &[]);
    let guest = &machine.guest;
    let near = pair(guest);
    let stamping = [TSCAP, "stamp", "-i", "va", "--send-times", "862"];
    if !is_at_least(guest, (6, 6)) {
        let refused = guest.start(&stamping).wait();
        refused.failure(1, &["no tcx", "Linux 6.6"]);
        return;
    }
    for clock in ["ktime", "tai"] {
        let options = ["--clock", clock, "--json"];
        let running = guest.start(&[&stamping[..], &options].concat()).ready();
        guest.must(&[PROGRAM, REPLIES, "10.9.0.1", "1", "10.9.0.2", &near]);
        let finished = running.stop();
        assert_eq!(finished.code, Some(0), "{}", finished.stderr);
        let said = finished.end.expect("a summary");
        assert_eq!(said["send_times"]["written"], MANY, "{said}");
        assert_eq!(said["adds_up"], true, "{said}");
    }
}
