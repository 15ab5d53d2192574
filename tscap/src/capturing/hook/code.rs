//! The code of programs with marked calls: kfuncs and the filter take their place.

use std::collections::HashMap;
use std::ffi::CString;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::sync::Arc;

use aya::maps::Map;
use aya::programs::ProgramError;
use aya::{Ebpf, EbpfError};
use aya_obj::btf::BtfError;
use aya_obj::generated::{BPF_ALU64, BPF_CALL, BPF_JMP, BPF_K, BPF_MOV, bpf_insn};
use aya_obj::{Object, ProgramSection, VerifierLog};
use tscap_common::config::{FILTER_CALL, VLAN_TAG_CALL};

use super::load::LoadError;
use super::program::Program;
use super::retry::retry_interrupted;
use super::splice::{Routine, TooLong};
use crate::capturing::filter;
use crate::capturing::filter::translate::{FrameAccess, TranslateError, scratch_offset, translate};
use crate::capturing::host::bpf;
use crate::capturing::host::bpf::program::Functions;

/// A call of a kfunc (`BPF_PSEUDO_KFUNC_CALL` in include/uapi/linux/bpf.h).
const KFUNC: u8 = 2;
/// Where the BTF of the module stands among those that a program names.
const MODULE_INDEX: i16 = 1;

/// A function of the kernel or of a module, and where programs call it.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// The number that stands in its place.
    pub marker: u32,
    /// Its id in the BTF of its module, or of the kernel.
    pub btf_id: u32,
    /// The BTF of its module.
    pub module: Option<Arc<OwnedFd>>,
}

/// The interface that a program is bound to, and how it reads the tags of its frames.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bound<'a> {
    /// Number of the interface in this thread's network namespace.
    pub ifindex: u32,
    /// The kfunc that tells the VLAN tag.
    pub vlan_tag: &'a Call,
}

/// Those programs of an object that call certain kfuncs, relocated: they use the
/// maps that aya has made.
#[derive(Debug)]
pub(crate) struct Code {
    programs: HashMap<String, (Routine, ProgramSection)>,
    license: CString,
    /// The object's own BTF.
    types: Option<OwnedFd>,
    /// The BTF of a module that they call.
    module: Option<Arc<OwnedFd>>,
}

impl Code {
    /// Of an object whose maps are those of `ebpf`, all of them: the programs that
    /// make each of `calls`.
    pub fn of(object: &[u8], ebpf: &Ebpf, calls: &[Call]) -> Result<Self, LoadError> {
        let mut object = Object::parse(object).map_err(EbpfError::from)?;
        let types = types_of(&mut object).map_err(EbpfError::from)?;
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
            let routine = Routine {
                code: calling(&function.instructions, calls)?,
                functions: function.func_info.func_info.clone(),
            };
            Some((name.clone(), (routine, program.section.clone())))
        });
        let programs = programs.collect();
        Ok(Self {
            programs,
            license: object.license,
            types,
            module: calls.iter().find_map(|call| call.module.clone()),
        })
    }

    /// The same with a filter in each program. Without one every frame is wanted.
    pub fn filtering(mut self, filter: Option<&filter::Program>) -> Result<Self, FilterError> {
        for (routine, _) in self.programs.values_mut() {
            let code = &routine.code;
            let fragment = |at: usize| {
                let is_place = is_marked(&code[at], FILTER_CALL);
                is_place.then(|| filter.map_or(Ok(vec![set_r0(1)]), |it| put_at(it, code, at)))
            };
            *routine = routine.spliced(fragment)?;
        }
        Ok(self)
    }

    /// Loads the program `name`. Only if it is `bound` it sees VLAN tags that were taken
    /// off its frames, and it can be attached there only.
    pub fn load(&self, name: &str, bound: Option<Bound<'_>>) -> Result<Program, LoadError> {
        let program = self.programs.get(name);
        let (routine, section) = program.ok_or(LoadError::Missing(
            "program of that name that calls these kfuncs",
        ))?;
        let code = reading_tags(&routine.code, bound.map(|bound| bound.vlan_tag));
        let program = bpf::program::Program {
            name,
            license: &self.license,
            code: &code,
            bound_to: bound.map(|bound| bound.ifindex),
            frags: matches!(section, ProgramSection::Xdp { frags: true, .. }),
            module: self.module.as_deref().map(|btf| btf.as_fd()),
            functions: self.types.as_ref().map(|types| Functions {
                types: types.as_fd(),
                info: &routine.functions,
            }),
        };
        let loaded = retry_interrupted(|| {
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

/// Why a filter can't be put into a program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// It has no form that the kernel takes.
    #[error(transparent)]
    Translate(#[from] TranslateError),
    /// It makes the program too long.
    #[error(transparent)]
    TooLong(#[from] TooLong),
    /// The object is not what this build expects.
    #[error("the eBPF object has no memory for a filter")]
    NoScratch,
}

/// The BTF of an object as this kernel takes it, loaded.
fn types_of(object: &mut Object) -> Result<Option<OwnedFd>, BtfError> {
    let features = aya::features().btf();
    let Some(types) =
        features.and_then(|features| object.fixup_and_sanitize_btf(features).transpose())
    else {
        return Ok(None);
    };
    let types = bpf::btf::load(&types?.to_bytes());
    types.map(Some).map_err(|io_error| BtfError::LoadError {
        io_error,
        verifier_log: VerifierLog::new(String::new()),
    })
}

/// The code with `calls` in the place of their markers; `None` if it lacks one.
fn calling(code: &[bpf_insn], calls: &[Call]) -> Option<Vec<bpf_insn>> {
    let mut code = code.to_vec();
    for call in calls {
        let marked = code.iter_mut().filter(|it| is_marked(it, call.marker));
        let patched = marked.map(|it| make(it, call));
        if patched.count() == 0 {
            return None;
        }
    }
    Some(code)
}

/// The code with the kfunc that tells the VLAN tag, or with "no tag" in its place: the
/// verifier removes what handles one then.
fn reading_tags(code: &[bpf_insn], vlan_tag: Option<&Call>) -> Vec<bpf_insn> {
    let mut code = code.to_vec();
    for it in code.iter_mut().filter(|it| is_marked(it, VLAN_TAG_CALL)) {
        if let Some(call) = vlan_tag {
            make(it, call);
        } else {
            // Any number but 0 is an error of the kfunc.
            *it = set_r0(-1);
        }
    }
    code
}

/// The filter for the place of the call `at`, whose stack it may use.
fn put_at(
    filter: &filter::Program,
    code: &[bpf_insn],
    at: usize,
) -> Result<Vec<bpf_insn>, FilterError> {
    let scratch = scratch_offset(code, at).ok_or(FilterError::NoScratch)?;
    Ok(translate(filter, &FrameAccess::XDP, scratch)?)
}

/// r0 = `value`. For a constant the verifier removes what handles the other ones.
fn set_r0(value: i32) -> bpf_insn {
    bpf_insn {
        code: (BPF_ALU64 | BPF_MOV | BPF_K) as u8,
        _bitfield_align_1: [],
        _bitfield_1: bpf_insn::new_bitfield_1(0, 0),
        off: 0,
        imm: value,
    }
}

/// Makes `instruction` a call of the kfunc.
fn make(instruction: &mut bpf_insn, call: &Call) {
    instruction.set_src_reg(KFUNC);
    instruction.off = call.module.as_ref().map_or(0, |_| MODULE_INDEX);
    instruction.imm = call.btf_id.cast_signed();
}

fn is_marked(instruction: &bpf_insn, marker: u32) -> bool {
    u32::from(instruction.code) == BPF_JMP | BPF_CALL
        && instruction.src_reg() == 0
        && instruction.imm.cast_unsigned() == marker
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
    use tscap_common::config::{IRQ_RESTORE_CALL, IRQ_SAVE_CALL, STAMP_CALL};
    use tscap_common::hook::Hook;

    use super::*;
    use crate::capturing::clock::StampPath;
    use crate::capturing::hook::PROGRAMS;
    use crate::measuring::compare::OBJECT as COMPARE;

    fn code_of(object: &[u8], name: &str) -> Vec<bpf_insn> {
        let object = Object::parse(object).unwrap();
        let key = object.programs[name].function_key();
        object.functions[&key].instructions.clone()
    }

    fn call(marker: u32, in_module: bool) -> Call {
        let null = || std::fs::File::open("/dev/null").expect("it is always there");
        Call {
            marker,
            btf_id: marker & 0xffff,
            module: in_module.then(|| Arc::new(null().into())),
        }
    }

    #[test]
    fn the_marked_call_becomes_one_of_the_kfunc() {
        let before = code_of(PROGRAMS, "tscap_tsc_kfunc");
        for (in_module, off) in [(false, 0), (true, MODULE_INDEX)] {
            let after = calling(&before, &[call(STAMP_CALL, in_module)]).unwrap();
            let mut changed = before.iter().zip(&after).filter(|(old, new)| {
                (old.imm, old.off, old.src_reg()) != (new.imm, new.off, new.src_reg())
            });
            let (old, new) = changed.next().unwrap();
            assert!(is_marked(old, STAMP_CALL) && !is_marked(new, STAMP_CALL));
            assert_eq!((new.src_reg(), new.off, new.imm), (KFUNC, off, 0x6370));
            assert_eq!((new.code, new.dst_reg()), (old.code, 0));
            assert!(changed.next().is_none(), "one call, and nothing else");
            assert_eq!(before.len(), after.len());
        }
    }

    /// A counter of a module, between two functions of the kernel.
    #[test]
    fn each_marker_becomes_its_own_kfunc() {
        let before = code_of(COMPARE, "cost_kfunc_off");
        let calls = [
            call(STAMP_CALL, true),
            call(IRQ_SAVE_CALL, false),
            call(IRQ_RESTORE_CALL, false),
        ];
        let after = calling(&before, &calls).unwrap();
        let calls_kfunc =
            |it: &&bpf_insn| u32::from(it.code) == BPF_JMP | BPF_CALL && it.src_reg() == KFUNC;
        let kfuncs = after.iter().filter(calls_kfunc);
        let mut kfuncs: Vec<_> = kfuncs.map(|it| (it.imm, it.off)).collect();
        kfuncs.dedup();
        assert_eq!(kfuncs.first(), Some(&(0x6371, 0)));
        assert_eq!(kfuncs.last(), Some(&(0x6372, 0)));
        assert!(kfuncs.contains(&(0x6370, MODULE_INDEX)), "{kfuncs:?}");
        for call in &calls {
            assert!(!after.iter().any(|it| is_marked(it, call.marker)));
        }
    }

    /// Nobody can load a program with a marker left in it.
    #[test]
    fn each_program_reads_tags_or_has_none() {
        for name in [
            "tscap_ktime",
            "tscap_tai",
            "tscap_tsc_perf",
            "tscap_tsc_kfunc",
        ] {
            let before = code_of(PROGRAMS, name);
            let at = before.iter().position(|it| is_marked(it, VLAN_TAG_CALL));
            let at = at.unwrap_or_else(|| panic!("{name} asks for no tag"));
            let call = call(VLAN_TAG_CALL, false);
            let reading = reading_tags(&before, Some(&call))[at];
            assert_eq!((reading.src_reg(), reading.imm), (KFUNC, 0x6373), "{name}");
            let without = reading_tags(&before, None);
            assert_eq!((without[at].code, without[at].imm), (0xb7, -1), "{name}");
            let left = without.iter().any(|it| is_marked(it, VLAN_TAG_CALL));
            assert!(!left, "{name}");
        }
    }

    #[test]
    fn each_program_has_a_place_for_a_filter() {
        for path in StampPath::ALL {
            let name = Hook::Xdp.program(path.domain());
            let code = code_of(PROGRAMS, name);
            assert!(code.iter().any(|it| is_marked(it, FILTER_CALL)), "{name}");
        }
    }

    #[test]
    fn programs_that_lack_one_of_the_calls_are_left_out() {
        for name in ["tscap_ktime", "tscap_tai", "tscap_tsc_perf"] {
            let code = code_of(PROGRAMS, name);
            assert!(
                calling(&code, &[call(STAMP_CALL, true)]).is_none(),
                "{name}"
            );
        }
        let both = [call(STAMP_CALL, true), call(IRQ_SAVE_CALL, false)];
        assert!(calling(&code_of(COMPARE, "cost_kfunc"), &both).is_none());
        assert!(calling(&code_of(COMPARE, "cost_ktime_off"), &both).is_none());
    }
}
