//! Where frames end that nothing is to take up the stack: a program of two instructions that
//! drops them all, as early as it may.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

use aya_obj::generated::{BPF_ALU64, BPF_EXIT, BPF_JMP, BPF_K, BPF_MOV, bpf_insn};

use super::pair::Pair;
use tscap_network::bpf::program::{Kind, Program, load};
use tscap_network::bpf::{InterfaceLink, LinkPoint};
use tscap_network::clsact::{Clsact, ClsactError, Filters, Side};

/// Its name in the kernel.
const NAME: &str = "tscap_drop";
/// `XDP_DROP` (include/uapi/linux/bpf.h).
const XDP_DROP: i32 = 1;
/// `TC_ACT_SHOT` (include/uapi/linux/pkt_cls.h).
const TC_ACT_SHOT: i32 = 2;

/// Drops what the receiving end receives before anything else sees it, as long as the link
/// lives.
pub(super) fn before_all(pair: &Pair) -> io::Result<InterfaceLink> {
    pair.rx_netns.within(|| {
        let program = returning(XDP_DROP, Kind::XDP)?;
        InterfaceLink::attach(program.as_fd(), pair.rx.index, LinkPoint::NativeXdp)
    })
}

/// Drops what the receiving end receives at tc ingress, right behind the taps of packet
/// sockets (`__netif_receive_skb_core`, net/core/dev.c), as long as the filter lives.
pub(super) fn behind_taps(pair: &Pair) -> io::Result<Clsact> {
    let attach = || {
        let program = returning(TC_ACT_SHOT, Kind::Tc)?;
        let attach = || {
            let filters = Filters::of(pair.rx.index)?;
            let filter = filters.plan(program.as_fd(), Side::Ingress)?;
            Clsact::attach(filters, filter, program.as_fd(), NAME, true)
        };
        attach().map_err(|error: ClsactError| io::Error::other(error))
    };
    pair.rx_netns.within(attach)
}

/// A program that returns the same for every frame.
fn returning(verdict: i32, kind: Kind) -> io::Result<OwnedFd> {
    let code = [
        instruction(BPF_ALU64 | BPF_MOV | BPF_K, verdict),
        instruction(BPF_JMP | BPF_EXIT, 0),
    ];
    let program = Program {
        name: NAME,
        license: c"GPL",
        code: &code,
        kind,
        module: None,
        functions: None,
        entry_of: None,
    };
    load(&program).map_err(|(error, _)| error)
}

/// One that has a constant, to or from register 0.
fn instruction(code: u32, imm: i32) -> bpf_insn {
    bpf_insn {
        code: code as u8,
        _bitfield_align_1: [],
        _bitfield_1: bpf_insn::new_bitfield_1(0, 0),
        off: 0,
        imm,
    }
}
