//! The stack memory of a filter.

use std::ops::Range;

use aya_obj::generated::{
    BPF_ADD, BPF_ALU64, BPF_CALL, BPF_EXIT, BPF_JMP, BPF_JMP32, BPF_K, BPF_MOV, BPF_ST, BPF_STX,
    BPF_X, bpf_insn,
};

use super::{SCRATCH_BYTES, TranslateError};
use crate::classic::SCRATCH_WORDS;

/// Bytes of a program's stack (`MAX_BPF_STACK`).
const STACK: i16 = 512;
/// Where the scratch memory's words of classic BPF begin.
const WORDS: i16 = 24;

const _: () = assert!(SCRATCH_BYTES == WORDS as usize + 4 * SCRATCH_WORDS as usize);

/// The memory, by its offset from the end of the stack.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scratch(i16);

impl Scratch {
    pub fn at(offset: i16) -> Result<Self, TranslateError> {
        let most = -(SCRATCH_BYTES as i16);
        if !(-STACK..=most).contains(&offset) || offset % 8 != 0 {
            return Err(TranslateError::Scratch(offset));
        }
        Ok(Self(offset))
    }

    /// The context, 8 bytes.
    pub fn context(self) -> i16 {
        self.0
    }

    /// The frame's length, 4 bytes.
    pub fn length(self) -> i16 {
        self.0 + 8
    }

    /// A or X while a helper is called, 4 bytes.
    pub fn kept(self) -> i16 {
        self.0 + 12
    }

    /// What a helper has loaded, up to 4 bytes.
    pub fn loaded(self) -> i16 {
        self.0 + 16
    }

    /// The VLAN tag beside the frame, 4 bytes.
    pub fn tag(self) -> i16 {
        self.0 + 20
    }

    /// A word of the scratch memory of classic BPF.
    pub fn word(self, number: u32) -> i16 {
        self.0 + WORDS + 4 * number as i16
    }
}

/// Where from the end of the stack (r10) r2 points when the instruction `call` runs, if the
/// instructions just before it say so on every path: r2 = r10 and what is added to r2.
pub fn scratch_offset(code: &[bpf_insn], call: usize) -> Option<i16> {
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

    #[test]
    fn the_memory_must_be_in_the_stack() {
        for offset in [0, -8, -80, -84, -89, -520, 8] {
            assert!(Scratch::at(offset).is_err(), "{offset}");
        }
        for offset in [-88, -96, -512] {
            assert!(Scratch::at(offset).is_ok(), "{offset}");
        }
    }
}
