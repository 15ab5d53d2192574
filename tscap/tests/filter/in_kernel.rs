//! A filter in the kernel, by itself.

use std::os::fd::OwnedFd;

use aya_obj::generated::{BPF_EXIT, BPF_JMP, bpf_insn};
use tscap::capturing::filter::Program;
use tscap::capturing::filter::translate::{FrameAccess, SCRATCH_BYTES, TranslateError, translate};
use tscap::capturing::host::bpf::program::{self, load};

/// A filter for XDP whose scratch memory is all of the stack.
pub fn translated(program: &Program) -> Result<Vec<bpf_insn>, TranslateError> {
    translate(program, &FrameAccess::XDP, -(SCRATCH_BYTES as i16))
}

/// Loads a program that is a filter and nothing else: it returns the verdict.
pub fn loaded(name: &str, code: Vec<bpf_insn>) -> OwnedFd {
    let exit = bpf_insn {
        code: (BPF_JMP | BPF_EXIT) as u8,
        _bitfield_align_1: [],
        _bitfield_1: Default::default(),
        off: 0,
        imm: 0,
    };
    let code = [code, vec![exit]].concat();
    let program = program::Program {
        name: "filter",
        license: c"GPL",
        code: &code,
        frags: true,
        bound_to: None,
        module: None,
        functions: None,
    };
    load(&program).unwrap_or_else(|(error, log)| {
        let mut tail = log.len().saturating_sub(3_000);
        while !log.is_char_boundary(tail) {
            tail += 1;
        }
        panic!("{name}: {error}\n{}", &log[tail..])
    })
}
