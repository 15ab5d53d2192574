//! The time-stamp counter through a perf event of the `msr` PMU: the only way
//! that a stock kernel gives XDP (`bpf_perf_event_read`, since about 6.16).

use aya_ebpf::bindings::{
    BPF_F_CURRENT_CPU,
    xdp_action::{XDP_DROP, XDP_PASS},
};
use aya_ebpf::helpers::generated::{bpf_ktime_get_ns, bpf_perf_event_read};
use aya_ebpf::macros::{map, xdp};
use aya_ebpf::maps::{Array, PerfEventArray};
use aya_ebpf::programs::XdpContext;
use tscap_common::state::{TSC_BRACKETS, TscBracket};

use crate::kfunc;

/// One event per CPU, opened by user space.
#[map]
static TSC_EVENTS: PerfEventArray<u64> = PerfEventArray::new(0);

/// Where the programs for brackets leave what they read.
#[map(name = "TSC_BRACKETS")]
static BRACKETS: Array<[TscBracket; TSC_BRACKETS]> = Array::with_max_entries(1, 0);

/// Cycles since this CPU's event was enabled, or a negative errno.
#[inline(always)]
pub fn read() -> u64 {
    unsafe { bpf_perf_event_read((&raw const TSC_EVENTS).cast_mut().cast(), BPF_F_CURRENT_CPU) }
}

/// What [`read`] gave, if it is a count (errors are -4095..-1, as for system calls).
#[inline(always)]
pub fn checked(stamp: u64) -> Option<u64> {
    (stamp as i64 >= 0).then_some(stamp)
}

/// Brackets readings of this CPU's event with CLOCK_MONOTONIC, as many as there
/// is room for: user space runs it on each CPU to find the event's offset to the
/// TSC.
#[xdp(frags)]
pub fn tscap_tsc_bracket(_ctx: XdpContext) -> u32 {
    take_brackets(read)
}

/// The same of the kfunc: user space finds out by it what that counts.
#[xdp(frags)]
pub fn tscap_kfunc_bracket(_ctx: XdpContext) -> u32 {
    take_brackets(kfunc::read)
}

#[inline(always)]
fn take_brackets(read: impl Fn() -> u64) -> u32 {
    let Some(brackets) = BRACKETS.get_ptr_mut(0) else {
        return XDP_DROP;
    };
    let mut index = 0;
    while index < TSC_BRACKETS {
        let before = unsafe { bpf_ktime_get_ns() };
        let cycles = read();
        let after = unsafe { bpf_ktime_get_ns() };
        unsafe {
            (*brackets)[index] = TscBracket {
                before,
                cycles,
                after,
            }
        };
        index += 1;
    }
    XDP_PASS
}
