//! XDP programs of somebody else: `agent others <mode> <program> [<next program>]
//! <interface> …`, in the guest. SIGUSR1 puts the next program in the place of the first
//! one; SIGINT ends it, and they go.

use std::os::fd::{AsFd as _, OwnedFd};

use aya_obj::generated::bpf_insn;
use nix::sys::signal::{SigSet, Signal};
use tscap_network::bpf::program::{Kind, Program, load};
use tscap_network::bpf::{InterfaceLink, LinkPoint};
use tscap_network::netdev;
use tscap_network::packet::PacketSocket;
use tscap_testkit::frame::Frame;
use tscap_testkit::probes;

/// The name of one that has no types.
pub const WITHOUT_TYPES: &str = "no_types";

/// Attaches them, and waits for signals.
pub fn hold(mut arguments: impl Iterator<Item = String>) {
    let mut next = || arguments.next().expect("another argument");
    let at = match next().as_str() {
        "native" => LinkPoint::NativeXdp,
        "generic" => LinkPoint::GenericXdp,
        other => panic!("no mode {other}"),
    };
    let programs = next();
    let mut programs = programs.split(',').map(descriptor);
    let mut program = programs.next().expect("a program");
    let mut signals = SigSet::empty();
    for signal in [Signal::SIGUSR1, Signal::SIGINT] {
        signals.add(signal);
    }
    signals.thread_block().expect("block signals");
    let links: Vec<_> = arguments
        .map(|name| {
            let link = netdev::by_name(&name).expect("asks").expect("an interface");
            InterfaceLink::attach(program.as_fd(), link.index, at).expect("attaches")
        })
        .collect();
    eprintln!("attached");
    while signals.wait().expect("waits") == Signal::SIGUSR1 {
        program = programs.next().expect("another program");
        for link in &links {
            link.replace(program.as_fd()).expect("takes its place");
        }
        eprintln!("replaced");
    }
}

/// `agent send <interface> <length> …`: sends a [`frame`] of each length.
pub fn send(mut arguments: impl Iterator<Item = String>) {
    let name = arguments.next().expect("an interface");
    let link = netdev::by_name(&name).expect("asks").expect("an interface");
    let socket = PacketSocket::open(link.index).expect("a socket");
    for (number, size) in (0..).zip(arguments) {
        let frame = frame(size.parse().expect("a length"));
        socket.send(&frame.bytes(number)).expect("sends");
    }
}

/// `agent datagrams <interface> <count>`: sends so many UDP datagrams, each with an IP id of its
/// own.
pub fn send_datagrams(mut arguments: impl Iterator<Item = String>) {
    let name = arguments.next().expect("an interface");
    let count = arguments.next().expect("a number");
    let link = netdev::by_name(&name).expect("asks").expect("an interface");
    let socket = PacketSocket::open(link.index).expect("a socket");
    for id in 0..count.parse::<u16>().expect("a number") {
        socket.send(&datagram(id)).expect("sends");
    }
}

/// Of 58 zeros, without checksums.
fn datagram(id: u16) -> Vec<u8> {
    const BYTES: usize = 58;
    let length = |of: usize| (of as u16).to_be_bytes();
    let mut ip = vec![0x45, 0];
    ip.extend([length(28 + BYTES), id.to_be_bytes(), [0, 0]].concat());
    ip.extend([64, 17, 0, 0, 10, 9, 0, 1, 10, 9, 0, 2]);
    let ports = [49_152_u16, 9].map(u16::to_be_bytes).concat();
    let udp = [&ports[..], &length(8 + BYTES), &[0; 2 + BYTES]].concat();
    let addresses = [[2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 1]].concat();
    [addresses, vec![0x08, 0x00], ip, udp].concat()
}

/// What is sent.
pub fn frame(size: usize) -> Frame {
    Frame::between([0x02, 0, 0, 0, 0, 0x01], [0x02, 0, 0, 0, 0, 0x02], size)
}

fn descriptor(name: &str) -> OwnedFd {
    if name == WITHOUT_TYPES {
        return without_types();
    }
    let mut ebpf = probes::load(name, 0);
    let program = probes::program(&mut ebpf, name);
    let fd = program.fd().expect("it is loaded").as_fd();
    fd.try_clone_to_owned().expect("a descriptor")
}

/// A program that drops every frame.
fn without_types() -> OwnedFd {
    let instruction = |code, imm| bpf_insn {
        code,
        _bitfield_align_1: [],
        _bitfield_1: bpf_insn::new_bitfield_1(0, 0),
        off: 0,
        imm,
    };
    let program = load(&Program {
        name: WITHOUT_TYPES,
        license: c"GPL",
        // r0 = XDP_DROP; exit
        code: &[instruction(0xb7, 1), instruction(0x95, 0)],
        kind: Kind::XDP,
        module: None,
        functions: None,
        entry_of: None,
    });
    program.expect("two instructions load")
}
