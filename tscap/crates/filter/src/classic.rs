//! Classic BPF: the instructions, and programs that are known to be sound.

use std::ops::Range;

pub use crate::libpcap::Instruction;

/// Most instructions of a program. The kernel's own limit is 4096 (`BPF_MAXINSNS`);
/// 800 hosts make 4,559.
pub const MOST_INSTRUCTIONS: usize = 65_536;
/// Words of scratch memory (`BPF_MEMWORDS`).
pub const SCRATCH_WORDS: u32 = 16;

/// How many bytes a load reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// 1.
    Byte,
    /// 2, in network order.
    Half,
    /// 4, in network order.
    Word,
}

impl Size {
    /// How many bytes a load of this size reads: 1, 2 or 4.
    pub fn bytes(self) -> u32 {
        match self {
            Self::Byte => 1,
            Self::Half => 2,
            Self::Word => 4,
        }
    }
}

/// Arithmetic of A with an operand, modulo 2³².
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alu {
    /// A + operand.
    Add,
    /// A − operand.
    Sub,
    /// A · operand.
    Mul,
    /// A / operand; by zero rejects the frame.
    Div,
    /// A | operand.
    Or,
    /// A & operand.
    And,
    /// A << operand; 0 from 32 on.
    Lsh,
    /// A >> operand; 0 from 32 on.
    Rsh,
    /// A % operand; by zero rejects the frame.
    Mod,
    /// A ^ operand.
    Xor,
}

/// A test of A, without a sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    /// A = operand.
    Equal,
    /// A > operand.
    Greater,
    /// A ≥ operand.
    GreaterOrEqual,
    /// A & operand ≠ 0.
    AnyBit,
}

/// What an instruction computes with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// Its constant.
    K,
    /// The register X.
    X,
}

/// What an instruction does. A, X and the scratch memory M are 0 at the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A = the frame's bytes at K.
    LoadAbsolute(Size),
    /// A = the frame's bytes at X + K.
    LoadIndirect(Size),
    /// A = the frame's length.
    LoadLength,
    /// A = K.
    LoadConstant,
    /// A = M\[K\].
    LoadScratch,
    /// X = 4 · (the frame's byte at K & 15): the length of an IPv4 header.
    LoadXHeaderLength,
    /// X = the frame's length.
    LoadXLength,
    /// X = K.
    LoadXConstant,
    /// X = M\[K\].
    LoadXScratch,
    /// M\[K\] = A.
    Store,
    /// M\[K\] = X.
    StoreX,
    /// A = A op operand.
    Alu(Alu, Operand),
    /// A = −A.
    Negate,
    /// X = A.
    ToX,
    /// A = X.
    ToA,
    /// Goes on K instructions further.
    Jump,
    /// Goes on JT or JF instructions further.
    Branch(Test, Operand),
    /// The verdict is K.
    ReturnConstant,
    /// The verdict is A.
    ReturnA,
}

impl Operation {
    /// Of an operation code (include/uapi/linux/bpf_common.h and filter.h); `None` if
    /// there is no such instruction.
    pub fn decode(code: u16) -> Option<Self> {
        Some(match code {
            0x20 => Self::LoadAbsolute(Size::Word),
            0x28 => Self::LoadAbsolute(Size::Half),
            0x30 => Self::LoadAbsolute(Size::Byte),
            0x40 => Self::LoadIndirect(Size::Word),
            0x48 => Self::LoadIndirect(Size::Half),
            0x50 => Self::LoadIndirect(Size::Byte),
            0x80 => Self::LoadLength,
            0x00 => Self::LoadConstant,
            0x60 => Self::LoadScratch,
            0xb1 => Self::LoadXHeaderLength,
            0x81 => Self::LoadXLength,
            0x01 => Self::LoadXConstant,
            0x61 => Self::LoadXScratch,
            0x02 => Self::Store,
            0x03 => Self::StoreX,
            0x84 => Self::Negate,
            0x07 => Self::ToX,
            0x87 => Self::ToA,
            0x05 => Self::Jump,
            0x06 => Self::ReturnConstant,
            0x16 => Self::ReturnA,
            _ => {
                let operand = if code & 0x08 == 0 {
                    Operand::K
                } else {
                    Operand::X
                };
                match code & !0x08 {
                    0x04 => Self::Alu(Alu::Add, operand),
                    0x14 => Self::Alu(Alu::Sub, operand),
                    0x24 => Self::Alu(Alu::Mul, operand),
                    0x34 => Self::Alu(Alu::Div, operand),
                    0x44 => Self::Alu(Alu::Or, operand),
                    0x54 => Self::Alu(Alu::And, operand),
                    0x64 => Self::Alu(Alu::Lsh, operand),
                    0x74 => Self::Alu(Alu::Rsh, operand),
                    0x94 => Self::Alu(Alu::Mod, operand),
                    0xa4 => Self::Alu(Alu::Xor, operand),
                    0x15 => Self::Branch(Test::Equal, operand),
                    0x25 => Self::Branch(Test::Greater, operand),
                    0x35 => Self::Branch(Test::GreaterOrEqual, operand),
                    0x45 => Self::Branch(Test::AnyBit, operand),
                    _ => return None,
                }
            }
        })
    }
}

/// Why instructions are no program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProgramError {
    /// There is none.
    #[error("the program is empty")]
    Empty,
    /// There are too many.
    #[error("the program has {0} instructions, {MOST_INSTRUCTIONS} is the most")]
    TooLong(usize),
    /// One of them, counted from 0, is wrong.
    #[error("instruction {number} {fault}")]
    Instruction {
        /// Its number.
        number: usize,
        /// What is wrong.
        fault: Fault,
    },
}

/// What is wrong with an instruction.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// No such operation.
    #[error("has the unknown operation code {0:#x}")]
    Unknown(u16),
    /// Beyond either end.
    #[error("jumps to instruction {target} of a program of {length}")]
    Outside {
        /// Where to.
        target: i64,
        /// Number of instructions.
        length: usize,
    },
    /// An endless loop.
    #[error("jumps to itself")]
    Loop,
    /// No such word.
    #[error("uses word {0} of the scratch memory, which has {SCRATCH_WORDS}")]
    Scratch(u32),
    /// Without a result.
    #[error("divides by the constant 0")]
    DividesByZero,
    /// The last one is something else.
    #[error("is the last one and no return")]
    NoReturn,
}

/// A program that is known to be sound: its instructions exist, its jumps end inside,
/// and the last instruction is a return. Only `ja` jumps back, as `protochain` of
/// libpcap makes it do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    instructions: Vec<Instruction>,
    loops: Vec<Range<usize>>,
}

impl Program {
    /// Checks the instructions.
    ///
    /// # Errors
    /// The first one that is wrong, and what is wrong with it.
    pub fn new(instructions: Vec<Instruction>) -> Result<Self, ProgramError> {
        let length = instructions.len();
        if length > MOST_INSTRUCTIONS {
            return Err(ProgramError::TooLong(length));
        }
        for (number, instruction) in instructions.iter().enumerate() {
            check(number, instruction, length)
                .map_err(|fault| ProgramError::Instruction { number, fault })?;
        }
        match instructions.last().map(|last| last.operation()) {
            None => Err(ProgramError::Empty),
            Some(Operation::ReturnConstant | Operation::ReturnA) => Ok(Self {
                loops: loops(&instructions),
                instructions,
            }),
            Some(_) => Err(ProgramError::Instruction {
                number: length - 1,
                fault: Fault::NoReturn,
            }),
        }
    }

    /// The program that gives each frame one verdict.
    pub fn constant(verdict: u32) -> Self {
        Self {
            instructions: vec![Instruction {
                code: 0x06,
                jt: 0,
                jf: 0,
                k: verdict,
            }],
            loops: Vec::new(),
        }
    }

    /// Its instructions.
    pub fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }

    /// Stretches that run more than once, in order and apart from one another: each from
    /// where a jump goes back to up to that jump.
    pub fn loops(&self) -> &[Range<usize>] {
        &self.loops
    }

    /// The number, in [`Self::loops`], of the loop that an instruction is in.
    pub(crate) fn loop_around(&self, number: usize) -> Option<usize> {
        let next = self.loops.partition_point(|range| range.end <= number);
        self.loops
            .get(next)
            .filter(|range| range.contains(&number))
            .map(|_| next)
    }

    /// Whether there is a return that accepts.
    pub fn can_match(&self) -> bool {
        self.instructions.iter().any(|it| match it.operation() {
            Operation::ReturnConstant => it.k != 0,
            Operation::ReturnA => true,
            _ => false,
        })
    }
}

impl Instruction {
    /// What it does.
    ///
    /// # Panics
    /// If it is not one of a [`Program`]: those are known to exist.
    pub fn operation(&self) -> Operation {
        Operation::decode(self.code).expect("checked by Program::new")
    }

    /// How far an unconditional jump goes, beyond the next instruction; negative: back.
    pub fn jump(&self) -> i64 {
        i64::from(self.k.cast_signed())
    }
}

/// The stretches that run more than once, those that overlap as one.
fn loops(instructions: &[Instruction]) -> Vec<Range<usize>> {
    let mut loops: Vec<Range<usize>> = Vec::new();
    for (number, it) in instructions.iter().enumerate() {
        if it.operation() != Operation::Jump || it.jump() >= 0 {
            continue;
        }
        let back = usize::try_from(-it.jump()).expect("checked: inside the program");
        let mut start = number + 1 - back;
        while let Some(last) = loops.pop_if(|last| last.end > start) {
            start = start.min(last.start);
        }
        loops.push(start..number + 1);
    }
    loops
}

fn check(number: usize, it: &Instruction, length: usize) -> Result<(), Fault> {
    let inside = |offset: i64| {
        let target = number as i64 + 1 + offset;
        match usize::try_from(target) {
            Ok(target) if target < length => Ok(()),
            _ => Err(Fault::Outside { target, length }),
        }
    };
    match Operation::decode(it.code).ok_or(Fault::Unknown(it.code))? {
        Operation::Jump => match it.jump() {
            -1 => Err(Fault::Loop),
            offset => inside(offset),
        },
        Operation::Branch(..) => inside(it.jt.into()).and_then(|()| inside(it.jf.into())),
        Operation::LoadScratch | Operation::LoadXScratch | Operation::Store | Operation::StoreX
            if it.k >= SCRATCH_WORDS =>
        {
            Err(Fault::Scratch(it.k))
        }
        Operation::Alu(Alu::Div | Alu::Mod, Operand::K) if it.k == 0 => Err(Fault::DividesByZero),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
