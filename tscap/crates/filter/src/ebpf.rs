//! Instructions of eBPF, and the parts of their operation codes, by the names of
//! include/uapi/linux/bpf.h and bpf_common.h.

/// An instruction: `struct bpf_insn`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Insn {
    /// The operation.
    pub code: u8,
    /// The register that it changes or compares, 0 to 10.
    pub dst: u8,
    /// The other register, 0 to 10; of a call what kind of call it is.
    pub src: u8,
    /// How far a jump goes, instructions, or where in memory, bytes.
    pub off: i16,
    /// A constant.
    pub imm: i32,
}

#[allow(
    missing_docs,
    reason = "names and values are those of the kernel's headers"
)]
mod codes {
    // A class of instructions.
    pub const BPF_LDX: u32 = 0x01;
    pub const BPF_ST: u32 = 0x02;
    pub const BPF_STX: u32 = 0x03;
    pub const BPF_ALU: u32 = 0x04;
    pub const BPF_JMP: u32 = 0x05;
    pub const BPF_JMP32: u32 = 0x06;
    pub const BPF_ALU64: u32 = 0x07;
    // Where the second operand is: in the instruction (K), or in a register (X).
    pub const BPF_K: u32 = 0x00;
    pub const BPF_X: u32 = 0x08;
    // How many bytes an access to memory has, or how it addresses them.
    pub const BPF_W: u32 = 0x00;
    pub const BPF_H: u32 = 0x08;
    pub const BPF_B: u32 = 0x10;
    pub const BPF_DW: u32 = 0x18;
    pub const BPF_MEM: u32 = 0x60;
    // An operation of arithmetic.
    pub const BPF_ADD: u32 = 0x00;
    pub const BPF_SUB: u32 = 0x10;
    pub const BPF_MUL: u32 = 0x20;
    pub const BPF_DIV: u32 = 0x30;
    pub const BPF_OR: u32 = 0x40;
    pub const BPF_AND: u32 = 0x50;
    pub const BPF_LSH: u32 = 0x60;
    pub const BPF_RSH: u32 = 0x70;
    pub const BPF_NEG: u32 = 0x80;
    pub const BPF_MOD: u32 = 0x90;
    pub const BPF_XOR: u32 = 0xa0;
    pub const BPF_MOV: u32 = 0xb0;
    pub const BPF_ARSH: u32 = 0xc0;
    pub const BPF_END: u32 = 0xd0;
    // A jump, by what it tests; a call; the end.
    pub const BPF_JA: u32 = 0x00;
    pub const BPF_JEQ: u32 = 0x10;
    pub const BPF_JGT: u32 = 0x20;
    pub const BPF_JGE: u32 = 0x30;
    pub const BPF_JSET: u32 = 0x40;
    pub const BPF_JNE: u32 = 0x50;
    pub const BPF_CALL: u32 = 0x80;
    pub const BPF_EXIT: u32 = 0x90;
    pub const BPF_JLT: u32 = 0xa0;
    pub const BPF_JLE: u32 = 0xb0;
}

pub use codes::*;
