use super::*;

fn it(code: u16, jt: u8, jf: u8, k: u32) -> Instruction {
    Instruction { code, jt, jf, k }
}

const RETURN: Instruction = Instruction {
    code: 0x06,
    jt: 0,
    jf: 0,
    k: 1,
};

#[test]
fn what_is_wrong_is_named_with_its_number() {
    let check = |instructions: &[Instruction], expected: &str| {
        let error = Program::new(instructions.to_vec()).unwrap_err();
        assert_eq!(error.to_string(), expected);
    };
    check(&[], "the program is empty");
    let long = vec![RETURN; MOST_INSTRUCTIONS + 1];
    check(
        &long,
        "the program has 65537 instructions, 65536 is the most",
    );
    check(
        &[it(0x0e, 0, 0, 0), RETURN],
        "instruction 0 has the unknown operation code 0xe",
    );
    check(
        &[it(0x107, 0, 0, 0), RETURN],
        "instruction 0 has the unknown operation code 0x107",
    );
    check(
        &[it(0x15, 0, 1, 0), RETURN],
        "instruction 0 jumps to instruction 2 of a program of 2",
    );
    check(
        &[it(0x15, 1, 0, 0), RETURN],
        "instruction 0 jumps to instruction 2 of a program of 2",
    );
    check(
        &[RETURN, it(0x05, 0, 0, 0x7fff_ffff), RETURN],
        "instruction 1 jumps to instruction 2147483649 of a program of 3",
    );
    check(
        &[RETURN, it(0x05, 0, 0, 3_u32.wrapping_neg()), RETURN],
        "instruction 1 jumps to instruction -1 of a program of 3",
    );
    check(
        &[it(0x05, 0, 0, u32::MAX), RETURN],
        "instruction 0 jumps to itself",
    );
    check(
        &[it(0x02, 0, 0, 16), RETURN],
        "instruction 0 uses word 16 of the scratch memory, which has 16",
    );
    check(
        &[it(0x34, 0, 0, 0), RETURN],
        "instruction 0 divides by the constant 0",
    );
    check(
        &[RETURN, it(0x07, 0, 0, 0)],
        "instruction 1 is the last one and no return",
    );
}

#[test]
fn long_programs_are_taken() {
    // More than the kernel takes of a socket's filter.
    let mut instructions = vec![it(0x04, 0, 0, 1); 4_999];
    instructions.push(it(0x16, 0, 0, 0));
    let program = Program::new(instructions).unwrap();
    let verdict = program.verdict(&crate::Frame::received(&[]));
    assert_eq!(verdict, 4_999);
}

#[test]
fn loops_that_overlap_are_one() {
    let back = |count: u32| it(0x05, 0, 0, count.wrapping_neg());
    let nop = it(0x07, 0, 0, 0);
    let loops = |instructions: &[Instruction]| {
        let program = Program::new(instructions.to_vec()).unwrap();
        let loops = program.loops().iter();
        loops
            .map(|range| (range.start, range.end))
            .collect::<Vec<_>>()
    };
    assert_eq!(loops(&[nop, nop, back(2), nop, RETURN]), [(1, 3)]);
    assert_eq!(
        loops(&[nop, back(2), nop, back(2), RETURN]),
        [(0, 2), (2, 4)]
    );
    assert_eq!(loops(&[nop, back(2), nop, back(3), RETURN]), [(0, 4)]);
    assert_eq!(loops(&[nop, nop, back(2), back(4), RETURN]), [(0, 4)]);
}

#[test]
fn only_a_return_that_accepts_can_match() {
    assert!(Program::constant(1).can_match());
    assert!(!Program::constant(0).can_match());
    assert!(Program::new(vec![it(0x16, 0, 0, 0)]).unwrap().can_match());
}
