//! What the entry of an XDP program is told of a frame: read from the kernel's own
//! structures.

use std::mem::offset_of;

use aya_obj::generated::{
    BPF_ALU64, BPF_DW, BPF_LDX, BPF_MEM, BPF_STX, BPF_SUB, BPF_W, BPF_X, bpf_insn,
};
use tscap_common::entry::EnteredFrame;

use super::btf::Btf;
use super::{KERNEL_TYPES, types};
use crate::hook::call::set_r0;
use tscap_base::kernel_files::KernelFiles;

/// Structures and their members that are read, in this order.
const MEMBERS: [(&str, &str); 9] = [
    ("xdp_buff", "data"),
    ("xdp_buff", "data_end"),
    ("xdp_buff", "rxq"),
    ("xdp_rxq_info", "dev"),
    ("xdp_rxq_info", "queue_index"),
    ("net_device", "ifindex"),
    // A structure of one pointer.
    ("net_device", "nd_net"),
    ("net", "ns"),
    ("ns_common", "inum"),
];

/// Where this kernel has what an [`EnteredFrame`] tells; offsets in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EnteredFrameLoads {
    data: i16,
    data_end: i16,
    rxq: i16,
    dev: i16,
    queue: i16,
    ifindex: i16,
    net: i16,
    netns: i16,
}

impl EnteredFrameLoads {
    /// Looks for it; `None` if this kernel does not show its types, or has others.
    pub fn find(files: &KernelFiles) -> Option<Self> {
        let bytes = types(files, KERNEL_TYPES).ok()??;
        let members = Btf::parse(&bytes).ok()?.members(&MEMBERS).ok()?;
        let offset = |at: usize| {
            let byte = members[at]
                .filter(|it| it.bit % 8 == 0 && it.bits == 0)?
                .bit
                / 8;
            i16::try_from(byte).ok()
        };
        Some(Self {
            data: offset(0)?,
            data_end: offset(1)?,
            rxq: offset(2)?,
            dev: offset(3)?,
            queue: offset(4)?,
            ifindex: offset(5)?,
            net: offset(6)?,
            netns: offset(7)?.checked_add(offset(8)?)?,
        })
    }

    /// Fills the [`EnteredFrame`] in r2 from the `struct xdp_buff` in r1; its whole length
    /// is left out.
    pub fn code(&self) -> Vec<bpf_insn> {
        vec![
            load(BPF_DW, 3, 1, self.data),
            load(BPF_DW, 4, 1, self.data_end),
            store(BPF_DW, offset_of!(EnteredFrame, data), 3),
            subtract(4, 3),
            store(BPF_W, offset_of!(EnteredFrame, first_len), 4),
            load(BPF_DW, 3, 1, self.rxq),
            load(BPF_W, 4, 3, self.queue),
            store(BPF_DW, offset_of!(EnteredFrame, queue), 4),
            load(BPF_DW, 3, 3, self.dev),
            load(BPF_W, 4, 3, self.ifindex),
            store(BPF_W, offset_of!(EnteredFrame, ifindex), 4),
            load(BPF_DW, 3, 3, self.net),
            load(BPF_W, 4, 3, self.netns),
            store(BPF_W, offset_of!(EnteredFrame, netns), 4),
        ]
    }
}

/// `to` = what is at `from` + `offset`.
fn load(size: u32, to: u8, from: u8, offset: i16) -> bpf_insn {
    let mut it = set_r0(0);
    it.code = (BPF_LDX | BPF_MEM | size) as u8;
    it.set_dst_reg(to);
    it.set_src_reg(from);
    it.off = offset;
    it
}

/// What is at r2 + `offset` = `from`.
fn store(size: u32, offset: usize, from: u8) -> bpf_insn {
    let mut it = load(size, 2, from, offset as i16);
    it.code = (BPF_STX | BPF_MEM | size) as u8;
    it
}

fn subtract(to: u8, what: u8) -> bpf_insn {
    let mut it = set_r0(0);
    it.code = (BPF_ALU64 | BPF_SUB | BPF_X) as u8;
    it.set_dst_reg(to);
    it.set_src_reg(what);
    it
}

#[cfg(test)]
mod tests {
    use super::*;
    use tscap_base::recorded::Recorded;

    #[test]
    fn the_running_kernel_has_what_is_read() {
        let Ok(bytes) = std::fs::read("/sys/kernel/btf/vmlinux") else {
            tscap_base::skip::skip("this kernel shows no types");
            return;
        };
        let machine = Recorded::veth();
        machine.put_bytes("sys/kernel/btf/vmlinux", &bytes);
        let loads = EnteredFrameLoads::find(&machine.files).expect("all of it");
        // `struct xdp_buff` begins with them (include/net/xdp.h).
        assert_eq!((loads.data, loads.data_end), (0, 8));
        let mut filled: Vec<_> = loads
            .code()
            .iter()
            .filter(|it| u32::from(it.code & 7) == BPF_STX)
            .map(|it| (it.dst_reg(), it.off))
            .collect();
        filled.sort_unstable();
        // All but the whole length.
        assert_eq!(filled, [(2, 0), (2, 8), (2, 16), (2, 20), (2, 24)]);
    }

    #[test]
    fn a_kernel_with_other_types_has_none() {
        let machine = Recorded::veth();
        assert!(EnteredFrameLoads::find(&machine.files).is_none());
        machine.put_bytes("sys/kernel/btf/vmlinux", b"no types");
        assert!(EnteredFrameLoads::find(&machine.files).is_none());
    }
}
