//! eBPF instructions with jumps to labels.

use crate::ebpf::{
    BPF_ALU, BPF_ALU64, BPF_CALL, BPF_END, BPF_JA, BPF_JMP, BPF_JMP32, BPF_K, BPF_LDX, BPF_MEM,
    BPF_MOV, BPF_ST, BPF_STX, BPF_W, BPF_X, Instruction,
};

use super::TranslateError;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Register {
    R0 = 0,
    R1 = 1,
    R2 = 2,
    R3 = 3,
    R4 = 4,
    R5 = 5,
    /// The end of the stack, which only grows down.
    Frame = 10,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Source {
    Constant(u32),
    Register(Register),
}

/// Bytes of a memory access (`BPF_W`, … in include/uapi/linux/bpf_common.h).
#[derive(Clone, Copy, Debug)]
pub(super) enum Width {
    Byte = 0x10,
    Half = 0x08,
    Word = 0x00,
    Double = 0x18,
}

/// A place that jumps go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Label(usize);

/// Code in the making.
#[derive(Debug, Default)]
pub(super) struct Assembler {
    code: Vec<Instruction>,
    /// Where each label is, once that is known.
    labels: Vec<Option<usize>>,
    /// Jumps, and where they go.
    jumps: Vec<(usize, Label)>,
}

impl Assembler {
    /// A label whose place comes later.
    pub fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    /// The label is here.
    pub fn bind(&mut self, label: Label) {
        self.labels[label.0] = Some(self.code.len());
    }

    /// Whether any jump goes to the label.
    pub fn is_used(&self, label: Label) -> bool {
        self.jumps.iter().any(|(_, target)| *target == label)
    }

    /// 32-bit arithmetic; the upper half of the register becomes 0.
    pub fn alu32(&mut self, operation: u8, to: Register, source: Source) {
        self.with_source(BPF_ALU | operation, to, 0, source);
    }

    /// 64-bit arithmetic.
    pub fn alu64(&mut self, operation: u8, to: Register, source: Source) {
        self.with_source(BPF_ALU64 | operation, to, 0, source);
    }

    pub fn mov64(&mut self, to: Register, from: Register) {
        self.alu64(BPF_MOV, to, Source::Register(from));
    }

    pub fn mov32(&mut self, to: Register, source: Source) {
        self.alu32(BPF_MOV, to, source);
    }

    /// Turns network order into the host's; the rest of the register becomes 0.
    pub fn network_to_host(&mut self, register: Register, bits: i32) {
        // BPF_X: to big endian, which is from big endian.
        self.push(BPF_ALU | BPF_END | BPF_X, register, Register::R0, 0, bits);
    }

    pub fn load(&mut self, width: Width, to: Register, base: Register, offset: i16) {
        self.push(BPF_LDX | BPF_MEM | width as u8, to, base, offset, 0);
    }

    pub fn store(&mut self, width: Width, base: Register, offset: i16, from: Register) {
        self.push(BPF_STX | BPF_MEM | width as u8, base, from, offset, 0);
    }

    /// Writes 4 bytes of 0.
    pub fn store_zero(&mut self, base: Register, offset: i16) {
        self.push(BPF_ST | BPF_MEM | BPF_W, base, Register::R0, offset, 0);
    }

    /// Calls a helper: r0 is its result, r1 to r5 are lost.
    pub fn call(&mut self, helper: u32) {
        self.push(
            BPF_JMP | BPF_CALL,
            Register::R0,
            Register::R0,
            0,
            helper.cast_signed(),
        );
    }

    pub fn goto(&mut self, label: Label) {
        self.jumps.push((self.code.len(), label));
        self.push(BPF_JMP | BPF_JA, Register::R0, Register::R0, 0, 0);
    }

    /// Compares the lower halves of registers.
    pub fn branch32(&mut self, test: u8, left: Register, right: Source, label: Label) {
        self.jumps.push((self.code.len(), label));
        self.with_source(BPF_JMP32 | test, left, 0, right);
    }

    pub fn branch64(&mut self, test: u8, left: Register, right: Source, label: Label) {
        self.jumps.push((self.code.len(), label));
        self.with_source(BPF_JMP | test, left, 0, right);
    }

    /// The code, with every jump in its place.
    pub fn finish(mut self) -> Result<Vec<Instruction>, TranslateError> {
        for (from, label) in &self.jumps {
            let to = self.labels[label.0].expect("every label is bound");
            let offset = to as i64 - *from as i64 - 1;
            let length = self.code.len();
            self.code[*from].off =
                i16::try_from(offset).map_err(|_| TranslateError::TooFar { length })?;
        }
        Ok(self.code)
    }

    fn with_source(&mut self, code: u8, to: Register, offset: i16, source: Source) {
        match source {
            Source::Constant(k) => {
                self.push(code | BPF_K, to, Register::R0, offset, k.cast_signed())
            }
            Source::Register(from) => self.push(code | BPF_X, to, from, offset, 0),
        }
    }

    fn push(&mut self, code: u8, to: Register, from: Register, off: i16, imm: i32) {
        let instruction = Instruction::new(code, to as u8, from as u8, off, imm);
        self.code.push(instruction);
    }
}
