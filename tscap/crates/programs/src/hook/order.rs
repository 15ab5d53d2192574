//! Atomic operations of programs that are there for the order of loads and stores alone: where
//! CPUs keep that anyway, plain accesses take their place (`tscap-ebpf/src/lib.rs` has them).

use aya_obj::generated::{
    BPF_ALU64, BPF_ATOMIC, BPF_DW, BPF_FETCH, BPF_K, BPF_LDX, BPF_MEM, BPF_MOV, BPF_OR, BPF_STX,
    BPF_XCHG, bpf_insn,
};

/// What takes the place of the instruction `at`, if it is of such an operation.
///
/// - A store that publishes what was stored before it is an exchange, whose other result nothing
///   uses: a store.
/// - A load after what was loaded before it is `r = 0; r = fetch_or(address, r)`: a load.
pub(super) fn plain(code: &[bpf_insn], at: usize) -> Option<Vec<bpf_insn>> {
    if operation(&code[at]) == Some(BPF_XCHG) {
        return Some(vec![bpf_insn {
            code: (BPF_STX | BPF_MEM | BPF_DW) as u8,
            imm: 0,
            ..code[at]
        }]);
    }
    if is_ordered_load(code, at + 1) {
        return Some(Vec::new());
    }
    is_ordered_load(code, at).then(|| {
        let (to, from) = (code[at].src_reg(), code[at].dst_reg());
        vec![bpf_insn {
            code: (BPF_LDX | BPF_MEM | BPF_DW) as u8,
            imm: 0,
            _bitfield_1: bpf_insn::new_bitfield_1(to, from),
            ..code[at]
        }]
    })
}

/// Whether the instruction `at` and the one before it are a load by `fetch_or`.
fn is_ordered_load(code: &[bpf_insn], at: usize) -> bool {
    let Some([before, it]) = at.checked_sub(1).and_then(|from| code.get(from..=at)) else {
        return false;
    };
    let zeroes = u32::from(before.code) == BPF_ALU64 | BPF_MOV | BPF_K
        && before.imm == 0
        && before.dst_reg() == it.src_reg();
    operation(it) == Some(BPF_OR | BPF_FETCH) && zeroes
}

/// Which atomic operation of 64 bits an instruction is.
fn operation(instruction: &bpf_insn) -> Option<u32> {
    let is_atomic = u32::from(instruction.code) == BPF_STX | BPF_ATOMIC | BPF_DW;
    is_atomic.then_some(instruction.imm.cast_unsigned())
}

#[cfg(test)]
mod tests {
    use aya_obj::Object;

    use super::super::splice::{Routine, TooLong};
    use super::super::{COMPARE_PROGRAMS, KEY_PROGRAMS, LAYER_PROGRAMS, PROGRAMS, stamper};
    use super::*;

    /// As the kernel has it: opcode, registers, offset, constant.
    fn bytes(instruction: &bpf_insn) -> [u8; 8] {
        let [low, high] = instruction.off.to_le_bytes();
        let registers = instruction.src_reg() << 4 | instruction.dst_reg();
        let [a, b, c, d] = instruction.imm.to_le_bytes();
        [instruction.code, registers, low, high, a, b, c, d]
    }

    fn is_atomic(instruction: &bpf_insn) -> bool {
        let code = u32::from(instruction.code);
        code & 0x07 == BPF_STX && code & 0xe0 == BPF_ATOMIC
    }

    fn made_plain(code: &[bpf_insn]) -> Vec<bpf_insn> {
        let routine = Routine {
            code: code.to_vec(),
            functions: Vec::new(),
        };
        let plain = routine.spliced(|at| plain(code, at).map(Ok::<_, TooLong>));
        plain.unwrap().code
    }

    /// The code of each program and function of an object.
    fn codes(object: &[u8]) -> Vec<Vec<bpf_insn>> {
        let object = Object::parse(object).unwrap();
        let functions = object.functions.into_values();
        functions.map(|function| function.instructions).collect()
    }

    /// Each exchange becomes the store with its registers and its offset, and nothing else is
    /// changed.
    #[test]
    fn a_ring_is_published_by_a_plain_store() {
        for object in [PROGRAMS, KEY_PROGRAMS, LAYER_PROGRAMS, COMPARE_PROGRAMS] {
            let mut exchanges = 0;
            for code in codes(object) {
                let plain = made_plain(&code);
                assert_eq!(code.len(), plain.len());
                for (before, after) in code.iter().zip(&plain) {
                    let [mut before, after] = [before, after].map(bytes);
                    if before[0] == 0xdb {
                        assert_eq!(before[4..], [0xe1, 0, 0, 0], "another atomic operation");
                        exchanges += 1;
                        before[0] = 0x7b;
                        before[4] = 0;
                    }
                    assert_eq!(before, after);
                }
                assert!(!plain.iter().any(is_atomic));
            }
            assert!(exchanges > 0, "an object without one");
        }
    }

    /// `r = 0; r = fetch_or(address, r)` becomes one load.
    #[test]
    fn a_latch_is_read_by_plain_loads() {
        let mut loads = 0;
        for code in codes(stamper::OBJECT) {
            let plain = made_plain(&code);
            assert!(!plain.iter().any(is_atomic));
            let pairs = code.windows(2).filter(|pair| is_atomic(&pair[1]));
            let expected = pairs.map(|pair| {
                let [zero, [code, registers, low, high, operation, ..]] =
                    [&pair[0], &pair[1]].map(bytes);
                assert_eq!((code, operation), (0xdb, 0x41));
                assert_eq!(zero, [0xb7, registers >> 4, 0, 0, 0, 0, 0, 0]);
                let swapped = registers.rotate_left(4);
                [0x79, swapped, low, high, 0, 0, 0, 0]
            });
            let expected: Vec<_> = expected.collect();
            assert_eq!(code.len(), plain.len() + expected.len());
            for load in &expected {
                assert!(plain.iter().any(|it| bytes(it) == *load), "{load:x?}");
            }
            loads += expected.len();
        }
        assert!(loads > 0);
    }

    #[test]
    fn other_atomic_operations_stay() {
        let mut of = bpf_insn {
            code: (BPF_STX | BPF_ATOMIC | BPF_DW) as u8,
            _bitfield_align_1: [],
            _bitfield_1: bpf_insn::new_bitfield_1(1, 2),
            off: 0,
            imm: (BPF_OR | BPF_FETCH).cast_signed(),
        };
        let zero = |register| bpf_insn {
            code: (BPF_ALU64 | BPF_MOV | BPF_K) as u8,
            _bitfield_1: bpf_insn::new_bitfield_1(register, 0),
            imm: 0,
            ..of
        };
        assert!(plain(&[zero(2), of], 1).is_some());
        // Bits are added.
        assert!(plain(&[zero(3), of], 1).is_none());
        assert!(plain(&[of], 0).is_none());
        // Added without being asked for what was there.
        of.imm = BPF_OR.cast_signed();
        assert!(plain(&[zero(2), of], 1).is_none());
    }
}
