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
use tscap_common::config::{
    BUFFER_CHECKSUM_CALL, CHECKSUM_PARTIAL_CALL, ENTERED_FRAME_CALL, FILTER_CALL,
    FILTER_TAGGED_CALL, HARDWARE_STAMP_CALL, OWN_INDEX_CALL, OWN_NETNS_CALL, SLOT_CALL,
    VERDICT_CALL, VLAN_TAG_CALL,
};
use tscap_common::hook::Slot;

use super::entry::Entry;
use super::kfunc::{ChecksumKfunc, KernelCounters, LayerKernel, TransmitKernel, counter_of};
use super::load::LoadError;
use super::program::Program;
use super::retry::retry_interrupted;
use super::scratch_offset::scratch_offset;
use super::splice::{Routine, TooLong};
use tscap_filter as filter;
use tscap_filter::translate::{FrameAccess, TranslateError, translate};
use tscap_network::bpf;
use tscap_network::bpf::program::{Functions, Kind, code_of};

/// A call of a kfunc (`BPF_PSEUDO_KFUNC_CALL` in include/uapi/linux/bpf.h).
const KFUNC: u8 = 2;
/// Answers of a program at XDP (`enum xdp_action` in include/uapi/linux/bpf.h).
const XDP_DROP: i32 = 1;
const XDP_PASS: i32 = 2;
/// Where the BTF of the module stands among those that a program names.
const MODULE_INDEX: i16 = 1;

/// A function of the kernel or of a module, and where programs call it.
#[derive(Clone, Debug)]
pub struct Call {
    /// The number that stands in its place.
    pub marker: u32,
    /// Its id in the BTF of its module, or of the kernel.
    pub btf_id: u32,
    /// The BTF of its module.
    pub module: Option<Arc<OwnedFd>>,
}

/// What makes a loaded program one of its own.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// Its place in the capture.
    pub slot: Slot,
    /// Frames that it rejects are counted only.
    pub filter: Option<&'a filter::Program>,
    /// The interface that it is bound to.
    pub bound: Option<Bound<'a>>,
    /// What tells the state of a socket buffer's checksum, if anything does.
    pub checksum: Option<&'a ChecksumKfunc>,
    /// Of a program at a tracepoint: where the kernel has what it reads.
    pub transmit: Option<&'a TransmitKernel>,
    /// Of a program at a layer behind the interface: the same.
    pub layer: Option<&'a LayerKernel>,
    /// The XDP program at whose entry it runs.
    pub entry: Option<&'a Entry>,
    /// Where the kernel has what it counts; without it each counter is 0.
    pub counters: Option<&'a KernelCounters>,
    /// Of a program at a tracepoint or an entry: the one device whose frames it takes.
    pub device: Device,
    /// Of a program at XDP: whether frames end in it.
    pub ends_frames: bool,
}

/// A device of the machine; number 0 is none. Numbers are unique in a network namespace only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Device {
    pub index: u32,
    /// Inode number of its namespace.
    pub netns: u32,
}

impl Place<'_> {
    /// The first one, without a filter.
    pub const FIRST: Self = Self {
        slot: Slot(0),
        filter: None,
        bound: None,
        checksum: None,
        transmit: None,
        layer: None,
        entry: None,
        counters: None,
        device: Device { index: 0, netns: 0 },
        ends_frames: false,
    };
}

/// The interface that a program is bound to, and how it reads what is beside its frames.
#[derive(Clone, Copy, Debug)]
pub struct Bound<'a> {
    /// Number of the interface in this thread's network namespace.
    pub ifindex: u32,
    /// The kfunc that tells the VLAN tag, if it is asked.
    pub vlan_tag: Option<&'a Call>,
    /// The kfunc that tells the hardware stamp, if it is asked.
    pub hardware_stamp: Option<&'a Call>,
}

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
            entry_of: place.entry.map(Entry::entered),
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
    #[error("the eBPF object has no memory for the code in the place of a call")]
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

/// r0 = `value`.
pub(super) fn set_r0(value: i32) -> bpf_insn {
    bpf_insn {
        code: (BPF_ALU64 | BPF_MOV | BPF_K) as u8,
        _bitfield_align_1: [],
        _bitfield_1: bpf_insn::new_bitfield_1(0, 0),
        off: 0,
        imm: value,
    }
}

/// A call of the kfunc.
pub(super) fn call_of(call: &Call) -> bpf_insn {
    let mut instruction = set_r0(call.btf_id.cast_signed());
    instruction.code = (BPF_JMP | BPF_CALL) as u8;
    instruction.set_src_reg(KFUNC);
    instruction.off = call.module.as_ref().map_or(0, |_| MODULE_INDEX);
    instruction
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
mod tests {
    use aya_obj::generated::bpf_func_id;
    use tscap_common::config::{IRQ_RESTORE_CALL, IRQ_SAVE_CALL, STAMP_CALL};
    use tscap_common::hook::Hook;

    use super::*;
    use crate::hook::{COMPARE_PROGRAMS as COMPARE, PROGRAMS};
    use tscap_clock::StampPath;

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

    fn placed(name: &str, place: &Place<'_>) -> Vec<bpf_insn> {
        let code = code_of(PROGRAMS, name);
        let numbers = 0..code.len();
        let fragments = numbers.flat_map(|at| {
            let fragment = fragment(&code, at, &FrameAccess::XDP, place);
            fragment.unwrap_or_else(|| Ok(vec![code[at]])).unwrap()
        });
        fragments.collect()
    }

    /// What stands in the place of an object's calls with this marker. LLVM can have made
    /// several of one.
    fn in_place_of(name: &str, marker: u32, placed: &[bpf_insn]) -> Vec<(u8, u8, i32)> {
        let code = code_of(PROGRAMS, name);
        let marked = code.iter().zip(placed);
        let marked = marked.filter(|(it, _)| is_marked(it, marker));
        let mut places: Vec<_> = marked
            .map(|(_, now)| (now.code, now.src_reg(), now.imm))
            .collect();
        places.dedup();
        places
    }

    const MOVE: u8 = 0xb7;
    const HOOKS: [Hook; 4] = [Hook::Xdp, Hook::TcIngress, Hook::TcEgress, Hook::Transmit];

    /// Nobody can load a program with a marker left in it.
    #[test]
    fn each_program_gets_a_place_of_its_own() {
        let slot = Slot(4711);
        let kernel = TransmitKernel::anywhere();
        let device = Device {
            index: 815,
            netns: u32::MAX,
        };
        for (hook, path) in HOOKS
            .into_iter()
            .flat_map(|it| StampPath::ALL.map(|of| (it, of)))
        {
            let name = hook.program(path.domain());
            let place = Place {
                slot,
                transmit: Some(&kernel),
                device,
                ..Place::FIRST
            };
            let placed = placed(name, &place);
            let slots = in_place_of(name, SLOT_CALL, &placed);
            assert_eq!(slots, [(MOVE, 0, 4711)], "{name}");
            let is_before_driver = hook == Hook::Transmit;
            for (marker, constant) in [(OWN_INDEX_CALL, 815), (OWN_NETNS_CALL, -1)] {
                let expected = is_before_driver.then_some((MOVE, 0, constant));
                let found = in_place_of(name, marker, &placed);
                assert_eq!(found, Vec::from_iter(expected), "{name}");
            }
            for marker in [FILTER_CALL, FILTER_TAGGED_CALL] {
                assert_eq!(in_place_of(name, marker, &placed), [(MOVE, 0, 1)], "{name}");
            }
            let ours = (FILTER_CALL & !0xff)..(FILTER_CALL | 0xff);
            let mut left = placed.iter().filter_map(marker);
            let left = left.find(|it| ours.contains(it) && *it != STAMP_CALL);
            assert_eq!(left, None, "{name}");
        }
    }

    #[test]
    fn a_program_at_xdp_reads_what_is_beside_frames_or_has_none() {
        const NONE: (u8, u8, i32) = (MOVE, 0, -1);
        for path in StampPath::ALL {
            let name = Hook::Xdp.program(path.domain());
            let calls = [VLAN_TAG_CALL, HARDWARE_STAMP_CALL].map(|it| call(it, false));
            let [vlan_tag, hardware_stamp] = calls.each_ref();
            for (bound, tag, stamp) in [
                (None, NONE, NONE),
                (Some((Some(vlan_tag), None)), (0x85, KFUNC, 0x6373), NONE),
                (
                    Some((None, Some(hardware_stamp))),
                    NONE,
                    (0x85, KFUNC, 0x637f),
                ),
            ] {
                let place = Place {
                    bound: bound.map(|(vlan_tag, hardware_stamp)| Bound {
                        ifindex: 3,
                        vlan_tag,
                        hardware_stamp,
                    }),
                    ..Place::FIRST
                };
                let placed = placed(name, &place);
                let found = in_place_of(name, VLAN_TAG_CALL, &placed);
                assert_eq!(found, [tag], "{name}");
                let found = in_place_of(name, HARDWARE_STAMP_CALL, &placed);
                assert_eq!(found, [stamp], "{name}");
            }
        }
    }

    /// The kernel's `enum xdp_action` (linux/bpf.h): 1 drops, 2 passes on.
    #[test]
    fn a_program_at_xdp_has_one_verdict_as_a_constant() {
        for path in StampPath::ALL {
            let name = Hook::Xdp.program(path.domain());
            for (ends_frames, expected) in [(false, 2), (true, 1)] {
                let place = Place {
                    ends_frames,
                    ..Place::FIRST
                };
                let placed = placed(name, &place);
                let verdicts = in_place_of(name, VERDICT_CALL, &placed);
                assert_eq!(verdicts, [(MOVE, 0, expected)], "{name}");
            }
            let hooks = HOOKS.into_iter().filter(|hook| *hook != Hook::Xdp);
            for hook in hooks {
                let name = hook.program(path.domain());
                let code = code_of(PROGRAMS, name);
                assert!(!code.iter().any(|it| is_marked(it, VERDICT_CALL)), "{name}");
            }
        }
    }

    /// The kernel's counters are looked at outside of both checkpoints, in every program that
    /// measures on frames, and are 0 where there are none.
    #[test]
    fn counters_are_outside_of_what_is_measured() {
        const CHECKPOINT: u32 = bpf_func_id::BPF_FUNC_ktime_get_ns as u32;
        for clock in [
            "none",
            "ktime",
            "tai",
            "tsc",
            "kfunc",
            "ktime_off",
            "tsc_off",
            "kfunc_off",
        ] {
            let code = code_of(COMPARE, &format!("cost_{clock}"));
            let places = |is_one: fn(u32) -> bool| {
                let marked = code
                    .iter()
                    .enumerate()
                    .filter_map(|(at, it)| Some((at, marker(it)?)));
                let places = marked
                    .filter(move |(_, marker)| is_one(*marker))
                    .map(|(at, _)| at);
                places.collect::<Vec<_>>()
            };
            let checkpoints = places(|marker| marker == CHECKPOINT);
            let counters = places(|marker| counter_of(marker).is_some());
            let (first, last) = (checkpoints[0], checkpoints[checkpoints.len() - 1]);
            assert_eq!(
                counters.iter().filter(|at| **at < first).count(),
                5,
                "{clock}"
            );
            assert_eq!(
                counters.iter().filter(|at| **at > last).count(),
                2,
                "{clock}"
            );
            assert_eq!(counters.len(), 7, "{clock}");
            for at in counters {
                assert!(scratch_offset(&code, at).is_some(), "{clock}");
                let none = fragment(&code, at, &FrameAccess::XDP, &Place::FIRST);
                let none = none.expect("a marked call").expect("no filter");
                assert_eq!((none.len(), none[0].code, none[0].imm), (1, MOVE, 0));
            }
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
