//! Where code finds memory in the stack of the program around it.

use std::ops::Range;

use aya_obj::generated::{
    BPF_ADD, BPF_ALU64, BPF_CALL, BPF_EXIT, BPF_JMP, BPF_JMP32, BPF_K, BPF_MOV, BPF_ST, BPF_STX,
    BPF_X, bpf_insn,
};

/// Where from the end of the stack (r10) r2 points when the instruction `call` runs, if the
/// instructions just before it say so on every path: r2 = r10 and what is added to r2.
pub(super) fn scratch_offset(code: &[bpf_insn], call: usize) -> Option<i16> {
    let mut sum = 0_i32;
    for (at, it) in code.get(..call)?.iter().enumerate().rev() {
        let operation = u32::from(it.code);
        match operation & 7 {
            BPF_JMP | BPF_JMP32 => return None,
            BPF_ST | BPF_STX => continue,
            _ if it.dst_reg() != 2 => continue,
            _ => {}
        }
        if operation == BPF_ALU64 | BPF_ADD | BPF_K {
            sum = sum.checked_add(it.imm)?;
        } else if operation == BPF_ALU64 | BPF_MOV | BPF_X && it.src_reg() == 10 {
            let found = i16::try_from(sum).ok();
            return found.filter(|_| !is_jumped_into(code, at + 1..call + 1));
        } else {
            return None;
        }
    }
    None
}

/// Whether a jump goes to one of the instructions in `range`.
fn is_jumped_into(code: &[bpf_insn], range: Range<usize>) -> bool {
    (0..).zip(code).any(|(at, it)| {
        let operation = u32::from(it.code);
        let is_jump = matches!(operation & 7, BPF_JMP | BPF_JMP32)
            && !matches!(operation & 0xf0, BPF_CALL | BPF_EXIT);
        let target = usize::try_from(at + 1 + i64::from(it.off));
        is_jump && target.is_ok_and(|target| range.contains(&target))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn it(code: u32, to: u8, from: u8, off: i16, imm: i32) -> bpf_insn {
        let mut it = bpf_insn {
            code: code as u8,
            _bitfield_align_1: [],
            _bitfield_1: Default::default(),
            off,
            imm,
        };
        it.set_dst_reg(to);
        it.set_src_reg(from);
        it
    }

    #[test]
    fn the_place_that_a_call_hands_over_is_found() {
        let from_stack = it(0xbf, 2, 10, 0, 0);
        let add = |imm| it(0x07, 2, 0, 0, imm);
        let context = it(0xbf, 1, 6, 0, 0);
        let call = it(0x85, 0, 0, 0, 1);
        let check = |code: &[bpf_insn], expected| {
            assert_eq!(scratch_offset(code, code.len() - 1), expected);
        };
        check(&[from_stack, add(-96), context, call], Some(-96));
        check(&[context, from_stack, add(-8), add(-88), call], Some(-96));
        check(&[from_stack, call], Some(0));
        // The tag in r3 comes from anywhere.
        let tag = it(0x61, 3, 6, 16, 0);
        check(&[tag, from_stack, add(-96), context, tag, call], Some(-96));
        check(&[it(0xbf, 2, 7, 0, 0), add(-96), call], None);
        check(&[from_stack, it(0x05, 0, 0, 0, 0), add(-96), call], None);
        check(&[from_stack, it(0x79, 2, 10, -8, 0), call], None);
        check(&[add(-96), call], None);
        // Another path comes to the call, or to behind the first instruction; not before.
        let jump = |off| it(0x15, 0, 0, off, 0);
        check(&[jump(2), from_stack, add(-96), call], None);
        check(&[jump(1), from_stack, add(-96), call], None);
        check(&[jump(0), from_stack, add(-96), call], Some(-96));
        // A store to where r2 points does not change r2.
        check(
            &[from_stack, add(-96), it(0x7b, 2, 1, 0, 0), call],
            Some(-96),
        );
    }
}
