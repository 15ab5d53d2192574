//! The code of programs with marked calls: kfuncs and the filter take their place.

use std::collections::HashMap;
use std::ffi::CString;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::sync::Arc;

use aya::maps::Map;
use aya::programs::ProgramError;
use aya::{Ebpf, EbpfError};
use aya_obj::btf::BtfError;
use aya_obj::generated::{BPF_CALL, BPF_JMP, bpf_insn};
use aya_obj::{Object, ProgramSection, VerifierLog};
use tscap_common::config::{
    BUFFER_CHECKSUM_CALL, CHECKSUM_PARTIAL_CALL, ENTERED_FRAME_CALL, FILTER_CALL,
    FILTER_TAGGED_CALL, HARDWARE_STAMP_CALL, OWN_INDEX_CALL, OWN_NETNS_CALL, SLOT_CALL,
    VERDICT_CALL, VLAN_TAG_CALL,
};

use super::call::{Call, call_of, set_r0};
use super::kfunc::counter_of;
use super::load_error::{FilterError, LoadError};
use super::order;
use super::place::Place;
use super::program::Program;
use super::retry::retry_interrupted;
use super::scratch_offset::scratch_offset;
use super::splice::Routine;
use tscap_filter as filter;
use tscap_filter::translate::{FrameAccess, translate};
use tscap_network::bpf;
use tscap_network::bpf::program::{Functions, Kind, code_of};

/// Answers of a program at XDP (`enum xdp_action` in include/uapi/linux/bpf.h).
const XDP_DROP: i32 = 1;
const XDP_PASS: i32 = 2;
/// Those programs of an object that call certain kfuncs, relocated: they use the
/// maps that aya has made.
#[derive(Debug)]
pub struct Code {
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
            let routine = for_this_architecture(routine);
            Some(routine.map(|it| (name.clone(), (it, program.section.clone()))))
        });
        let programs = programs.collect::<Result<_, _>>()?;
        Ok(Self {
            programs,
            license: object.license,
            types,
            module: calls.iter().find_map(|call| call.module.clone()),
        })
    }

    /// Loads the program `name` for its `place`. Only if it is bound, a program at XDP sees
    /// VLAN tags that were taken off its frames, and it can be attached there only.
    pub fn load(&self, name: &str, place: &Place<'_>) -> Result<Program, LoadError> {
        let program = self.programs.get(name);
        let (routine, section) = program.ok_or(LoadError::Missing(
            "program of that name that calls these kfuncs",
        ))?;
        let access = access(name, section);
        let routine = routine.spliced(|at| fragment(&routine.code, at, &access, place))?;
        let program = bpf::program::Program {
            name,
            license: &self.license,
            code: &routine.code,
            kind: match section {
                ProgramSection::SchedClassifier => Kind::Tc,
                ProgramSection::BtfTracePoint => Kind::Tracepoint {
                    btf_id: place
                        .transmit
                        .ok_or(LoadError::Missing("tracepoint"))?
                        .tracepoint,
                },
                ProgramSection::FEntry { .. } => Kind::Entry,
                ProgramSection::SocketFilter => Kind::SocketFilter,
                ProgramSection::CgroupSkb { .. } => Kind::Cgroup,
                // Of netfilter: aya knows no section for it.
                ProgramSection::RawTracePoint => Kind::Netfilter,
                ProgramSection::FExit { .. } => Kind::Exit {
                    btf_id: place.layer.ok_or(LoadError::Missing("layer"))?.function,
                },
                _ => Kind::Xdp {
                    frags: matches!(section, ProgramSection::Xdp { frags: true, .. }),
                    bound_to: place.bound.map(|bound| bound.ifindex),
                },
            },
            module: self.module.as_deref().map(|btf| btf.as_fd()),
            functions: self.types.as_ref().map(|types| Functions {
                types: types.as_fd(),
                info: &routine.functions,
            }),
            entry_of: place.entry.map(|entry| entry.entered()),
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

/// Without atomic operations that this architecture needs none of for the order of accesses.
fn for_this_architecture(routine: Routine) -> Result<Routine, FilterError> {
    if tscap_arch::KEEPS_ORDER {
        routine.spliced(|at| order::plain(&routine.code, at).map(Ok))
    } else {
        Ok(routine)
    }
}

/// How a program reaches its frames.
fn access(name: &str, section: &ProgramSection) -> FrameAccess {
    match section {
        ProgramSection::SchedClassifier if name.starts_with("tscap_out_") => FrameAccess::SKB_OUT,
        ProgramSection::SchedClassifier => FrameAccess::SKB_IN,
        ProgramSection::BtfTracePoint => FrameAccess::TRANSMITTED,
        ProgramSection::FEntry { .. } => FrameAccess::ENTERED,
        ProgramSection::SocketFilter => FrameAccess::TAPPED,
        _ => FrameAccess::XDP,
    }
}

/// What takes the place of the instruction `at`, if that is a marked call. Where a constant
/// does, the verifier removes what handles other values.
fn fragment(
    code: &[bpf_insn],
    at: usize,
    access: &FrameAccess,
    place: &Place<'_>,
) -> Option<Result<Vec<bpf_insn>, FilterError>> {
    let instruction = &code[at];
    let fragment = match marker(instruction)? {
        marker @ (FILTER_CALL | FILTER_TAGGED_CALL) => match (place.filter, marker) {
            (None, _) => set_r0(1),
            (Some(filter), FILTER_CALL) => return Some(put_at(filter, access, code, at)),
            (Some(filter), _) => {
                return Some(put_at(filter, &access.with_tag_beside(), code, at));
            }
        },
        SLOT_CALL => set_r0(place.slot.0.cast_signed()),
        VERDICT_CALL => set_r0(verdict(place.ends_frames)),
        // Any number but 0 is an error of the kfunc.
        VLAN_TAG_CALL => {
            let call = place.bound.and_then(|bound| bound.vlan_tag);
            call.map_or(set_r0(-1), call_of)
        }
        HARDWARE_STAMP_CALL => {
            let call = place.bound.and_then(|bound| bound.hardware_stamp);
            call.map_or(set_r0(-1), call_of)
        }
        ENTERED_FRAME_CALL => return place.entry.map(|entry| Ok(entry.loads.code())),
        CHECKSUM_PARTIAL_CALL => match place.checksum {
            Some(kfunc) => return Some(Ok(kfunc.code())),
            None => set_r0(0),
        },
        BUFFER_CHECKSUM_CALL => match place.checksum {
            Some(kfunc) => return Some(Ok(kfunc.code_of_buffer(1))),
            None => set_r0(0),
        },
        OWN_INDEX_CALL => set_r0(place.device.index.cast_signed()),
        OWN_NETNS_CALL => set_r0(place.device.netns.cast_signed()),
        marker if counter_of(marker).is_some() => {
            match (place.counters, scratch_offset(code, at)) {
                (Some(counters), Some(scratch)) => return counters.code(marker, scratch).map(Ok),
                (Some(_), None) => return Some(Err(FilterError::NoScratch)),
                (None, _) => set_r0(0),
            }
        }
        marker => {
            let before_driver = place.transmit.and_then(|kernel| kernel.code(marker));
            before_driver.or_else(|| place.layer?.code(marker))?
        }
    };
    Some(Ok(vec![fragment]))
}

/// What a program at XDP answers for each frame.
const fn verdict(ends_frames: bool) -> i32 {
    if ends_frames { XDP_DROP } else { XDP_PASS }
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
        let patched = marked.map(|it| *it = call_of(call));
        if patched.count() == 0 {
            return None;
        }
    }
    Some(code)
}

/// The filter for the place of the call `at`, whose stack it may use.
fn put_at(
    filter: &filter::Program,
    access: &FrameAccess,
    code: &[bpf_insn],
    at: usize,
) -> Result<Vec<bpf_insn>, FilterError> {
    let scratch = scratch_offset(code, at).ok_or(FilterError::NoScratch)?;
    Ok(code_of(&translate(filter, access, scratch)?))
}

/// The number of the helper that an instruction calls.
fn marker(instruction: &bpf_insn) -> Option<u32> {
    let is_call = u32::from(instruction.code) == BPF_JMP | BPF_CALL && instruction.src_reg() == 0;
    is_call.then_some(instruction.imm.cast_unsigned())
}

fn is_marked(instruction: &bpf_insn, number: u32) -> bool {
    marker(instruction) == Some(number)
}

/// Of the kinds of maps that our objects have.
fn descriptor(map: &Map) -> Option<BorrowedFd<'_>> {
    match map {
        Map::Array(map) | Map::PerCpuArray(map) | Map::PerfEventArray(map) | Map::DevMap(map) => {
            Some(map.fd().as_fd())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
