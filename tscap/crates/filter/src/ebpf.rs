//! An instruction of eBPF, and the constants that its fields are made of, as the kernel's
//! `<linux/bpf.h>` and `<linux/bpf_common.h>` have them. Names are those of these headers.

/// An instruction of eBPF: `struct bpf_insn` of `<linux/bpf.h>`, on a little-endian machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Instruction {
    /// Class, operation and source, or class, mode and size.
    pub code: u8,
    /// The destination in the lower half, the source in the upper one.
    registers: u8,
    /// Distance of a jump in instructions, or offset of a memory access in bytes.
    pub off: i16,
    /// The constant operand, or the number of a function that is called.
    pub imm: i32,
}

const _: () = assert!(size_of::<Instruction>() == 8);

impl Instruction {
    /// An instruction with destination `dst` and source `src`, which are numbers of registers:
    /// at most 10.
    pub const fn new(code: u8, dst: u8, src: u8, off: i16, imm: i32) -> Self {
        debug_assert!(dst <= 10 && src <= 10);
        Self {
            code,
            registers: src << 4 | dst,
            off,
            imm,
        }
    }

    /// Number of the destination register.
    pub const fn dst(self) -> u8 {
        self.registers & 0x0f
    }

    /// Number of the source register.
    pub const fn src(self) -> u8 {
        self.registers >> 4
    }

    /// As it lies in memory when it is given to the kernel.
    pub fn to_bytes(self) -> [u8; 8] {
        let [off_0, off_1] = self.off.to_le_bytes();
        let [imm_0, imm_1, imm_2, imm_3] = self.imm.to_le_bytes();
        [
            self.code,
            self.registers,
            off_0,
            off_1,
            imm_0,
            imm_1,
            imm_2,
            imm_3,
        ]
    }
}

/// Defines constants, and a list of them by which they are compared with another definition.
macro_rules! constants {
    ($($(#[$about:meta])* $name:ident = $value:literal,)*) => {
        $($(#[$about])* pub const $name: u8 = $value;)*

        /// All constants of this module with their names.
        pub const CONSTANTS: &[(&str, u8)] = &[$((stringify!($name), $name),)*];
    };
}

constants! {
    /// Class: loads from memory.
    BPF_LDX = 0x01,
    /// Class: stores a constant.
    BPF_ST = 0x02,
    /// Class: stores a register.
    BPF_STX = 0x03,
    /// Class: 32-bit arithmetic.
    BPF_ALU = 0x04,
    /// Class: jumps, calls and the exit; comparisons of 64 bits.
    BPF_JMP = 0x05,
    /// Class: jumps by comparisons of 32 bits.
    BPF_JMP32 = 0x06,
    /// Class: 64-bit arithmetic.
    BPF_ALU64 = 0x07,

    /// Size: 4 bytes.
    BPF_W = 0x00,
    /// Size: 2 bytes.
    BPF_H = 0x08,
    /// Size: 1 byte.
    BPF_B = 0x10,
    /// Size: 8 bytes.
    BPF_DW = 0x18,

    /// Mode of loads and stores: memory at a register and an offset.
    BPF_MEM = 0x60,

    /// Source: the constant.
    BPF_K = 0x00,
    /// Source: the source register; with [`BPF_END`], to big endian.
    BPF_X = 0x08,

    /// Arithmetic: adds.
    BPF_ADD = 0x00,
    /// Arithmetic: subtracts.
    BPF_SUB = 0x10,
    /// Arithmetic: multiplies.
    BPF_MUL = 0x20,
    /// Arithmetic: divides, unsigned.
    BPF_DIV = 0x30,
    /// Arithmetic: bitwise or.
    BPF_OR = 0x40,
    /// Arithmetic: bitwise and.
    BPF_AND = 0x50,
    /// Arithmetic: shifts left.
    BPF_LSH = 0x60,
    /// Arithmetic: shifts right, unsigned.
    BPF_RSH = 0x70,
    /// Arithmetic: negates.
    BPF_NEG = 0x80,
    /// Arithmetic: remainder, unsigned.
    BPF_MOD = 0x90,
    /// Arithmetic: bitwise exclusive or.
    BPF_XOR = 0xa0,
    /// Arithmetic: copies the source.
    BPF_MOV = 0xb0,
    /// Arithmetic: shifts right, signed.
    BPF_ARSH = 0xc0,
    /// Arithmetic: changes the order of bytes.
    BPF_END = 0xd0,

    /// Jump: always.
    BPF_JA = 0x00,
    /// Jump: if equal.
    BPF_JEQ = 0x10,
    /// Jump: if greater, unsigned.
    BPF_JGT = 0x20,
    /// Jump: if greater or equal, unsigned.
    BPF_JGE = 0x30,
    /// Jump: if both have a bit in common.
    BPF_JSET = 0x40,
    /// Jump: if not equal.
    BPF_JNE = 0x50,
    /// Jump: if less, unsigned.
    BPF_JLT = 0xa0,
    /// Jump: if less or equal, unsigned.
    BPF_JLE = 0xb0,
    /// Calls a function.
    BPF_CALL = 0x80,
    /// Leaves the program.
    BPF_EXIT = 0x90,
}
