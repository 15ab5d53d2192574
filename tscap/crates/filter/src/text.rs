//! Programs as text, in the three forms of tcpdump.

use std::fmt::Write as _;

use super::ancillary::short_name;
use super::classic::{Alu, Instruction, Operand, Operation, Program, Size, Test};

impl Program {
    /// For people, an instruction a line: as `tcpdump -d` prints it.
    pub fn listing(&self) -> String {
        lines(self, line)
    }

    /// As a part of a C program: `tcpdump -dd`.
    pub fn c_code(&self) -> String {
        lines(self, |_, it| {
            format!(
                "{{ {:#x}, {}, {}, 0x{:08x} }},",
                it.code, it.jt, it.jf, it.k
            )
        })
    }

    /// As decimal numbers, of which the first is how many instructions follow:
    /// `tcpdump -ddd`. [`super::parse`] reads it.
    pub fn decimal(&self) -> String {
        let numbers = lines(self, |_, it| {
            format!("{} {} {} {}", it.code, it.jt, it.jf, it.k)
        });
        format!("{}\n{numbers}", self.instructions().len())
    }
}

fn lines(program: &Program, line: impl Fn(usize, &Instruction) -> String) -> String {
    let mut text = String::new();
    for (number, it) in program.instructions().iter().enumerate() {
        writeln!(text, "{}", line(number, it)).expect("memory can be written to");
    }
    text
}

fn line(number: usize, it: &Instruction) -> String {
    let operation = it.operation();
    let (name, operand) = (name(operation), operand(operation, number, it));
    if let Operation::Branch(..) = operation {
        let next = number + 1;
        let (yes, no) = (next + usize::from(it.jt), next + usize::from(it.jf));
        return format!("({number:03}) {name:<8} {operand:<16} jt {yes}\tjf {no}");
    }
    format!("({number:03}) {name:<8} {operand}")
}

fn name(operation: Operation) -> &'static str {
    match operation {
        Operation::LoadAbsolute(size) | Operation::LoadIndirect(size) => match size {
            Size::Byte => "ldb",
            Size::Half => "ldh",
            Size::Word => "ld",
        },
        Operation::LoadLength | Operation::LoadConstant | Operation::LoadScratch => "ld",
        Operation::LoadXHeaderLength => "ldxb",
        Operation::LoadXLength | Operation::LoadXConstant | Operation::LoadXScratch => "ldx",
        Operation::Store => "st",
        Operation::StoreX => "stx",
        Operation::Alu(alu, _) => match alu {
            Alu::Add => "add",
            Alu::Sub => "sub",
            Alu::Mul => "mul",
            Alu::Div => "div",
            Alu::Or => "or",
            Alu::And => "and",
            Alu::Lsh => "lsh",
            Alu::Rsh => "rsh",
            Alu::Mod => "mod",
            Alu::Xor => "xor",
        },
        Operation::Negate => "neg",
        Operation::ToX => "tax",
        Operation::ToA => "txa",
        Operation::Jump => "ja",
        Operation::Branch(test, _) => match test {
            Test::Equal => "jeq",
            Test::Greater => "jgt",
            Test::GreaterOrEqual => "jge",
            Test::AnyBit => "jset",
        },
        Operation::ReturnConstant | Operation::ReturnA => "ret",
    }
}

/// Constants have a sign where libpcap gives them one.
fn operand(operation: Operation, number: usize, it: &Instruction) -> String {
    let (k, signed) = (it.k, it.k.cast_signed());
    match operation {
        Operation::LoadAbsolute(_) => match short_name(k) {
            Some(name) => format!("[{name}]"),
            None => format!("[{signed}]"),
        },
        Operation::LoadIndirect(_) => format!("[x + {signed}]"),
        Operation::LoadLength | Operation::LoadXLength => "#pktlen".to_owned(),
        Operation::LoadConstant
        | Operation::LoadXConstant
        | Operation::Branch(_, Operand::K)
        | Operation::Alu(Alu::And | Alu::Or | Alu::Xor, Operand::K) => format!("#{k:#x}"),
        Operation::LoadScratch | Operation::LoadXScratch | Operation::Store | Operation::StoreX => {
            format!("M[{k}]")
        }
        Operation::LoadXHeaderLength => format!("4*([{signed}]&0xf)"),
        Operation::Alu(_, Operand::K) | Operation::ReturnConstant => format!("#{signed}"),
        Operation::Alu(_, Operand::X) | Operation::Branch(_, Operand::X) => "x".to_owned(),
        Operation::Jump => (number as i64 + 1 + it.jump()).to_string(),
        Operation::Negate | Operation::ToX | Operation::ToA | Operation::ReturnA => String::new(),
    }
}
