//! The code of programs that call a kfunc: their marked calls are patched.

use std::collections::HashMap;
use std::ffi::CString;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd};

use aya::maps::Map;
use aya::programs::ProgramError;
use aya::{Ebpf, EbpfError};
use aya_obj::generated::{BPF_CALL, BPF_JMP, bpf_insn};
use aya_obj::{Object, ProgramSection, VerifierLog};
use tscap_common::config::KFUNC_CALL;

use super::kfunc::Kfunc;
use super::load::LoadError;
use super::program::Program;
use super::retried::retried;
use crate::sys::bpf;

/// A call of a kfunc (`BPF_PSEUDO_KFUNC_CALL` in include/uapi/linux/bpf.h).
const KFUNC: u8 = 2;
/// Where the BTF of the module stands among those that a program names.
const MODULE_INDEX: i16 = 1;

/// The programs of an object, relocated: they use the maps that aya has made.
#[derive(Debug)]
pub(crate) struct Code {
    programs: HashMap<String, (Vec<bpf_insn>, ProgramSection)>,
    license: CString,
}

impl Code {
    /// Of an object whose maps are those of `ebpf`, all of them.
    pub fn of(object: &[u8], ebpf: &Ebpf) -> Result<Self, LoadError> {
        let mut object = Object::parse(object).map_err(EbpfError::from)?;
        let maps = std::mem::take(&mut object.maps);
        let text = object.functions.keys().map(|(section, _)| *section);
        let text = text.collect();
        let made = maps.iter().filter_map(|(name, map)| {
            let fd = descriptor(ebpf.map(name)?)?;
            Some((name.as_str(), fd.as_raw_fd(), map))
        });
        let relocated = object.relocate_maps(made, &text);
        let relocated = relocated.and_then(|()| object.relocate_calls(&text));
        relocated.map_err(EbpfError::from)?;
        let programs = object.programs.iter().filter_map(|(name, program)| {
            let function = object.functions.get(&program.function_key())?;
            let code = (function.instructions.clone(), program.section.clone());
            Some((name.clone(), code))
        });
        Ok(Self {
            programs: programs.collect(),
            license: object.license,
        })
    }

    /// Loads the program `name` with its calls of `kfunc`.
    pub fn load(&self, name: &str, kfunc: &Kfunc) -> Result<Program, LoadError> {
        let code = self.programs.get(name);
        let code = code.and_then(|(code, section)| Some((calling(code, kfunc)?, section)));
        let (code, section) = code.ok_or(LoadError::Missing(
            "program of that name that calls a kfunc",
        ))?;
        let program = bpf::program::Program {
            name,
            license: &self.license,
            code: &code,
            frags: matches!(section, ProgramSection::Xdp { frags: true, .. }),
            module: kfunc.module(),
        };
        let loaded = retried(|| {
            bpf::program::load(&program).map_err(|(io_error, log)| ProgramError::LoadError {
                io_error,
                verifier_log: VerifierLog::new(log),
            })
        });
        let loaded = loaded.map_err(|source| LoadError::Program {
            program: name.to_owned(),
            source,
        })?;
        Ok(loaded.into())
    }
}

/// The code with every marked call made one of `kfunc`; `None` if there is none.
fn calling(code: &[bpf_insn], kfunc: &Kfunc) -> Option<Vec<bpf_insn>> {
    let mut code = code.to_vec();
    let mut calls = 0;
    for call in code.iter_mut().filter(|it| is_marked(it)) {
        call.set_src_reg(KFUNC);
        call.off = kfunc.module().map_or(0, |_| MODULE_INDEX);
        call.imm = kfunc.btf_id.cast_signed();
        calls += 1;
    }
    (calls > 0).then_some(code)
}

fn is_marked(instruction: &bpf_insn) -> bool {
    u32::from(instruction.code) == BPF_JMP | BPF_CALL
        && instruction.src_reg() == 0
        && instruction.imm.cast_unsigned() == KFUNC_CALL
}

/// Of the kinds of maps that our objects have.
fn descriptor(map: &Map) -> Option<BorrowedFd<'_>> {
    match map {
        Map::Array(map) | Map::PerCpuHashMap(map) | Map::PerfEventArray(map) | Map::DevMap(map) => {
            Some(map.fd().as_fd())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::TscPath;
    use crate::xdp::PROGRAMS;

    fn code_of(name: &str) -> Vec<bpf_insn> {
        let object = Object::parse(PROGRAMS).unwrap();
        let key = object.programs[name].function_key();
        object.functions[&key].instructions.clone()
    }

    #[test]
    fn the_marked_call_becomes_one_of_the_kfunc() {
        let before = code_of("tscap_tsc_kfunc");
        for (path, off) in [(TscPath::Kernel, 0), (TscPath::Module, MODULE_INDEX)] {
            let after = calling(&before, &Kfunc::made(path, 4_711)).unwrap();
            let mut changed = before.iter().zip(&after).filter(|(old, new)| {
                (old.imm, old.off, old.src_reg()) != (new.imm, new.off, new.src_reg())
            });
            let (old, new) = changed.next().unwrap();
            assert!(is_marked(old) && !is_marked(new));
            assert_eq!((new.src_reg(), new.off, new.imm), (KFUNC, off, 4_711));
            assert_eq!((new.code, new.dst_reg()), (old.code, 0));
            assert!(changed.next().is_none(), "one call, and nothing else");
            assert_eq!(before.len(), after.len());
        }
    }

    #[test]
    fn other_programs_call_no_kfunc() {
        let kfunc = Kfunc::made(TscPath::Module, 4_711);
        for name in ["tscap_ktime", "tscap_tai", "tscap_tsc_perf"] {
            assert!(calling(&code_of(name), &kfunc).is_none(), "{name}");
        }
    }
}
