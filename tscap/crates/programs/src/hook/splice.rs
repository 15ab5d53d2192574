//! Puts code in the place of marked calls: every jump, call and function behind moves.

use aya_obj::generated::{
    BPF_CALL, BPF_EXIT, BPF_JMP, BPF_JMP32, BPF_PSEUDO_CALL, bpf_func_info, bpf_insn,
};

/// Bits of an opcode that say its class, and which jump it is.
const CLASS: u32 = 0x07;
const OPERATION: u32 = 0xf0;

/// The code in the place of a call leaves no room for a jump over it: jumps have 16 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{inserted} instructions in the place of a call are too many for a jump over them")]
pub struct TooLong {
    /// Instructions that were put in, all together.
    pub inserted: usize,
}

/// A program as it is loaded.
#[derive(Clone, Debug)]
pub(super) struct Routine {
    pub code: Vec<bpf_insn>,
    /// Where each function of it begins.
    pub functions: Vec<bpf_func_info>,
}

impl Routine {
    /// The same with a fragment in the place of each instruction for whose number
    /// `fragment` gives one. It is entered at its start and left behind its end.
    pub fn spliced<E: From<TooLong>>(
        &self,
        mut fragment: impl FnMut(usize) -> Option<Result<Vec<bpf_insn>, E>>,
    ) -> Result<Self, E> {
        let numbers = 0..self.code.len();
        let fragments = numbers.map(|at| fragment(at).transpose());
        let fragments: Vec<_> = fragments.collect::<Result<_, _>>()?;
        let lengths = fragments.iter().map(|it| it.as_ref().map_or(1, Vec::len));
        let mut starts = vec![0];
        for length in lengths {
            starts.push(starts.last().unwrap_or(&0) + length);
        }

        let inserted = fragments.iter().flatten().map(Vec::len).sum();
        let too_long = TooLong { inserted };
        let mut code = Vec::new();
        for (at, (instruction, fragment)) in self.code.iter().zip(fragments).enumerate() {
            match fragment {
                Some(fragment) => code.extend(fragment),
                None => code.push(moved(*instruction, at, &starts).ok_or(too_long)?),
            }
        }
        let functions = self.functions.iter().map(|function| {
            let start = starts.get(function.insn_off as usize).copied();
            Some(bpf_func_info {
                insn_off: u32::try_from(start?).ok()?,
                type_id: function.type_id,
            })
        });
        Ok(Self {
            code,
            functions: functions.collect::<Option<_>>().ok_or(too_long)?,
        })
    }
}

/// The instruction that stood at `at`, with its target where that is now. `starts` says
/// where each instruction is now.
fn moved(mut instruction: bpf_insn, at: usize, starts: &[usize]) -> Option<bpf_insn> {
    let distance = |by: i64| {
        let target = usize::try_from(i64::try_from(at).ok()? + 1 + by).ok()?;
        let (from, to) = (starts[at] + 1, *starts.get(target)?);
        Some(i64::try_from(to).ok()? - i64::try_from(from).ok()?)
    };
    let code = u32::from(instruction.code);
    let jumps = [BPF_JMP, BPF_JMP32].contains(&(code & CLASS));
    match code & OPERATION {
        _ if !jumps => {}
        BPF_EXIT => {}
        BPF_CALL => {
            if u32::from(instruction.src_reg()) == BPF_PSEUDO_CALL {
                instruction.imm = i32::try_from(distance(instruction.imm.into())?).ok()?;
            }
        }
        _ => instruction.off = i16::try_from(distance(instruction.off.into())?).ok()?,
    }
    Some(instruction)
}

#[cfg(test)]
mod tests {
    use aya_obj::generated::{BPF_ALU64, BPF_JA, BPF_K, BPF_MOV};

    use super::*;

    const MARK: i32 = 4711;

    fn instruction(code: u32, off: i16, imm: i32) -> bpf_insn {
        bpf_insn {
            code: u8::try_from(code).unwrap(),
            _bitfield_align_1: [],
            _bitfield_1: bpf_insn::new_bitfield_1(0, 0),
            off,
            imm,
        }
    }

    fn ja(off: i16) -> bpf_insn {
        instruction(BPF_JMP | BPF_JA, off, 0)
    }

    fn mov(imm: i32) -> bpf_insn {
        instruction(BPF_ALU64 | BPF_MOV | BPF_K, 0, imm)
    }

    fn call(imm: i32) -> bpf_insn {
        let mut call = instruction(BPF_JMP | BPF_CALL, 0, imm);
        call.set_src_reg(1);
        call
    }

    fn exit() -> bpf_insn {
        instruction(BPF_JMP | BPF_EXIT, 0, 0)
    }

    fn marked() -> bpf_insn {
        instruction(BPF_JMP | BPF_CALL, 0, MARK)
    }

    fn splice(code: Vec<bpf_insn>, fragment: &[bpf_insn]) -> Result<Routine, TooLong> {
        let functions = [0, 6].map(|insn_off| bpf_func_info {
            insn_off,
            type_id: insn_off + 1,
        });
        let routine = Routine {
            code,
            functions: functions.to_vec(),
        };
        routine.spliced(|at| (routine.code[at].imm == MARK).then(|| Ok(fragment.to_vec())))
    }

    /// What each instruction is, and how far it goes.
    fn shown(code: &[bpf_insn]) -> Vec<(u8, i16, i32)> {
        code.iter().map(|it| (it.code, it.off, it.imm)).collect()
    }

    #[test]
    fn all_that_goes_over_it_goes_further() {
        // A jump over it, one to it, one behind it, back over it, and a call of a function.
        let code = vec![
            ja(2),
            ja(0),
            marked(),
            call(2),
            ja(-5),
            exit(),
            mov(1),
            exit(),
        ];
        let spliced = splice(code, &[mov(7), mov(8), mov(9)]).unwrap();
        let wanted = [
            ja(4),
            ja(0),
            mov(7),
            mov(8),
            mov(9),
            call(2),
            ja(-7),
            exit(),
            mov(1),
            exit(),
        ];
        assert_eq!(shown(&spliced.code), shown(&wanted));
        let starts: Vec<_> = spliced.functions.iter().map(|it| it.insn_off).collect();
        assert_eq!(starts, [0, 8]);
    }

    #[test]
    fn each_mark_is_replaced_and_a_call_over_them_goes_further() {
        let code = vec![
            call(5),
            marked(),
            marked(),
            exit(),
            exit(),
            exit(),
            mov(1),
            exit(),
        ];
        let spliced = splice(code, &[mov(7), mov(8)]).unwrap();
        assert_eq!(spliced.code[0].imm, 7);
        assert_eq!(spliced.code.len(), 10);
        assert_eq!(spliced.functions[1].insn_off, 8);
    }

    #[test]
    fn a_jump_has_sixteen_bits() {
        let code = || vec![ja(1), marked(), exit(), exit(), exit(), exit(), exit()];
        let most = usize::try_from(i16::MAX).unwrap();
        let spliced = splice(code(), &vec![mov(7); most]).unwrap();
        assert_eq!(spliced.code[0].off, i16::MAX);
        let inserted = most + 1;
        assert_eq!(
            splice(code(), &vec![mov(7); inserted]).unwrap_err(),
            TooLong { inserted }
        );
    }
}
