//! Calls of kfuncs, as instructions, and devices that programs compare with.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use aya_obj::generated::{BPF_ALU64, BPF_CALL, BPF_JMP, BPF_K, BPF_MOV, bpf_insn};

/// A call of a kfunc (`BPF_PSEUDO_KFUNC_CALL` in include/uapi/linux/bpf.h).
pub(super) const KFUNC: u8 = 2;
/// Where the BTF of the module stands among those that a program names.
pub(super) const MODULE_INDEX: i16 = 1;

/// A function of the kernel or of a module, and where programs call it.
#[derive(Clone, Debug)]
pub struct Call {
    /// The number that stands in its place.
    pub marker: u32,
    /// Its id in the BTF of its module, or of the kernel.
    pub btf_id: u32,
    /// The BTF of its module.
    pub module: Option<Arc<OwnedFd>>,
}

/// A device of the machine; number 0 is none. Numbers are unique in a network namespace only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Device {
    pub index: u32,
    /// Inode number of its namespace.
    pub netns: u32,
}

/// r0 = `value`.
pub(super) fn set_r0(value: i32) -> bpf_insn {
    bpf_insn {
        code: (BPF_ALU64 | BPF_MOV | BPF_K) as u8,
        _bitfield_align_1: [],
        _bitfield_1: bpf_insn::new_bitfield_1(0, 0),
        off: 0,
        imm: value,
    }
}

/// A call of the kfunc.
pub(super) fn call_of(call: &Call) -> bpf_insn {
    let mut instruction = set_r0(call.btf_id.cast_signed());
    instruction.code = (BPF_JMP | BPF_CALL) as u8;
    instruction.set_src_reg(KFUNC);
    instruction.off = call.module.as_ref().map_or(0, |_| MODULE_INDEX);
    instruction
}
