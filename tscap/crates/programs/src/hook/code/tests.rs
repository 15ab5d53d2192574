use aya_obj::generated::bpf_func_id;
use tscap_common::config::{IRQ_RESTORE_CALL, IRQ_SAVE_CALL, STAMP_CALL};
use tscap_common::hook::{Hook, Slot};

use super::*;
use crate::hook::call::{Device, KFUNC, MODULE_INDEX};
use crate::hook::kfunc::TransmitKernel;
use crate::hook::place::Bound;
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
