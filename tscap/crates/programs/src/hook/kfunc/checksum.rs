//! Whether a socket buffer's checksum is yet to be filled in: read from the kernel's own
//! structure.

use aya_obj::generated::{
    BPF_ADD, BPF_ALU64, BPF_AND, BPF_B, BPF_K, BPF_LDX, BPF_MEM, BPF_RSH, bpf_insn,
};
use tscap_common::config::CHECKSUM_PARTIAL_CALL;

use super::btf::{Btf, Member};
use super::{KERNEL_TYPES, call_in, types};
use crate::hook::call::{Call, call_of, set_r0};
use tscap_base::kernel_files::KernelFiles;

/// Bits of `skb->ip_summed` (include/linux/skbuff.h). All are set for `CHECKSUM_PARTIAL`,
/// and for nothing else.
const BITS: u32 = 2;

/// The kfunc of the kernel that gives a program at tc the `struct sk_buff` of its context,
/// since Linux 6.2, and where `ip_summed` is in that.
#[derive(Clone, Debug)]
pub struct ChecksumKfunc {
    call: Call,
    /// Offset of the byte that has it.
    byte: i16,
    /// Its lowest bit in that byte.
    bit: i32,
}

impl ChecksumKfunc {
    /// Looks for it; `None` where nobody can tell the state of a checksum.
    pub fn find(files: &KernelFiles) -> Option<Self> {
        let bytes = types(files, KERNEL_TYPES).ok()??;
        let types = Btf::parse(&bytes).ok()?;
        let call = call_in(&types, "bpf_cast_to_kern_ctx", CHECKSUM_PARTIAL_CALL).ok()?;
        let Member { bit, bits } = types.member("sk_buff", "ip_summed").ok()??;
        let is_in_a_byte = bits == BITS && bit % 8 + BITS <= 8;
        is_in_a_byte.then_some(Self {
            call,
            byte: i16::try_from(bit / 8).ok()?,
            bit: i32::try_from(bit % 8).ok()?,
        })
    }

    /// The context of a program at tc in r1 to r0: 1 if the checksum is yet to be filled
    /// in, else 0.
    pub fn code(&self) -> Vec<bpf_insn> {
        let mut code = vec![call_of(&self.call)];
        code.extend(self.code_of_buffer(0));
        code
    }

    /// The same of a `struct sk_buff` in register number `buffer`.
    pub fn code_of_buffer(&self, buffer: u8) -> Vec<bpf_insn> {
        let r0 = |operation, value| {
            let mut instruction = set_r0(value);
            instruction.code = (BPF_ALU64 | operation | BPF_K) as u8;
            instruction
        };
        let mut load = set_r0(0);
        load.code = (BPF_LDX | BPF_MEM | BPF_B) as u8;
        load.off = self.byte;
        load.set_src_reg(buffer);
        let all = (1 << BITS) - 1;
        vec![
            load,
            r0(BPF_RSH, self.bit),
            r0(BPF_AND, all),
            // 1 goes over the top of the field where all bits are set.
            r0(BPF_ADD, 1),
            r0(BPF_RSH, BITS.cast_signed()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::super::btf::tests::sk_buff;
    use super::*;
    use tscap_base::recorded::Recorded;

    const FUNCTION: (u32, &str, usize) = (12 << 24, "bpf_cast_to_kern_ctx", 0);

    fn find(kernel: &[u8]) -> Option<ChecksumKfunc> {
        let machine = Recorded::veth();
        machine.put_bytes("sys/kernel/btf/vmlinux", kernel);
        ChecksumKfunc::find(&machine.files)
    }

    #[test]
    fn the_byte_with_the_state_is_read() {
        let found = find(&sk_buff(37, 2, &[FUNCTION])).expect("all that it needs");
        let code = found.code();
        let code = code.iter().map(|it| (it.code, it.off, it.imm));
        // Bit 37 is bit 5 of byte 4.
        let wanted = [
            (0x85, 0, 5),
            (0x71, 4, 0),
            (0x77, 0, 5),
            (0x57, 0, 3),
            (0x07, 0, 1),
            (0x77, 0, 2),
        ];
        assert!(code.clone().eq(wanted), "{:?}", code.collect::<Vec<_>>());
    }

    #[test]
    fn a_kernel_without_the_kfunc_or_such_a_field_tells_nothing() {
        assert!(find(&sk_buff(37, 2, &[])).is_none());
        assert!(find(b"no types").is_none());
        assert!(ChecksumKfunc::find(&Recorded::veth().files).is_none());
        // Of another width, and over the end of a byte.
        assert!(find(&sk_buff(36, 3, &[FUNCTION])).is_none());
        assert!(find(&sk_buff(39, 2, &[FUNCTION])).is_none());
    }
}
