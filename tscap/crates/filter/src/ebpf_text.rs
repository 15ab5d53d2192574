//! eBPF as text, in the notation of the kernel's verifier and of `bpftool prog dump xlated`.

use std::fmt::Write as _;

use crate::ebpf::{
    BPF_ADD, BPF_ALU, BPF_ALU64, BPF_AND, BPF_ARSH, BPF_B, BPF_CALL, BPF_DIV, BPF_DW, BPF_END,
    BPF_EXIT, BPF_H, BPF_JA, BPF_JEQ, BPF_JGE, BPF_JGT, BPF_JLE, BPF_JLT, BPF_JMP, BPF_JMP32,
    BPF_JNE, BPF_JSET, BPF_LDX, BPF_LSH, BPF_MOD, BPF_MOV, BPF_MUL, BPF_NEG, BPF_OR, BPF_RSH,
    BPF_ST, BPF_STX, BPF_SUB, BPF_W, BPF_X, BPF_XOR, Instruction,
};

/// Bits of an opcode.
const CLASS: u8 = 0x07;
const OPERATION: u8 = 0xf0;
const SIZE: u8 = 0x18;

/// A fragment, an instruction a line with its number.
pub fn ebpf_listing(code: &[Instruction]) -> String {
    let mut text = String::new();
    for (number, it) in code.iter().enumerate() {
        writeln!(text, "{number:4}: {}", line(number, it)).expect("memory can be written to");
    }
    text
}

fn line(number: usize, it: &Instruction) -> String {
    let code = it.code;
    let (dst, src, off, imm) = (it.dst(), it.src(), it.off, it.imm);
    let word = |class| {
        if class == BPF_ALU || class == BPF_JMP32 {
            'w'
        } else {
            'r'
        }
    };
    let operand = |class| {
        if code & BPF_X == BPF_X {
            format!("{}{src}", word(class))
        } else {
            imm.to_string()
        }
    };
    match code & CLASS {
        class @ (BPF_ALU | BPF_ALU64) => {
            let to = format!("{}{dst}", word(class));
            match code & OPERATION {
                BPF_NEG => format!("{to} = -{to}"),
                BPF_END => format!(
                    "r{dst} = {}{imm} r{dst}",
                    if code & BPF_X == 0 { "le" } else { "be" }
                ),
                BPF_MOV => format!("{to} = {}", operand(class)),
                operation => format!("{to} {}= {}", arithmetic(operation), operand(class)),
            }
        }
        class @ (BPF_JMP | BPF_JMP32) => {
            let target = (number as i64 + 1 + i64::from(off)).to_string();
            match code & OPERATION {
                BPF_EXIT => "exit".to_owned(),
                BPF_CALL => format!("call helper#{imm}"),
                BPF_JA => format!("goto {target}"),
                operation => format!(
                    "if {}{dst} {} {} goto {target}",
                    word(class),
                    comparison(operation),
                    operand(class)
                ),
            }
        }
        BPF_LDX => format!("r{dst} = {}", place(code, src, off)),
        BPF_STX => format!("{} = r{src}", place(code, dst, off)),
        BPF_ST => format!("{} = {imm}", place(code, dst, off)),
        _ => format!("code {:#04x} r{dst} r{src} {off} {imm}", it.code),
    }
}

/// Memory at a register.
fn place(code: u8, register: u8, off: i16) -> String {
    let size = match code & SIZE {
        BPF_B => "u8",
        BPF_H => "u16",
        BPF_W => "u32",
        BPF_DW => "u64",
        _ => unreachable!("two bits have four values"),
    };
    format!("*({size} *)(r{register} {off:+})")
}

fn arithmetic(operation: u8) -> &'static str {
    match operation {
        BPF_ADD => "+",
        BPF_SUB => "-",
        BPF_MUL => "*",
        BPF_DIV => "/",
        BPF_OR => "|",
        BPF_AND => "&",
        BPF_LSH => "<<",
        BPF_RSH => ">>",
        BPF_MOD => "%",
        BPF_XOR => "^",
        BPF_ARSH => "s>>",
        _ => "?",
    }
}

fn comparison(operation: u8) -> &'static str {
    match operation {
        BPF_JEQ => "==",
        BPF_JNE => "!=",
        BPF_JGT => ">",
        BPF_JGE => ">=",
        BPF_JLT => "<",
        BPF_JLE => "<=",
        BPF_JSET => "&",
        _ => "?",
    }
}
