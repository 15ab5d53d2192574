//! What the kernel counts on this CPU. How it is read is not known here: marked calls stand
//! in its place, as for the kfuncs. Where nobody can read it, each counter is 0.

use core::ffi::c_void;
use core::mem::{MaybeUninit, transmute};

use tscap_common::config::COUNTER_SCRATCH_BYTES;
use tscap_common::kernel_counter::KernelCounter;

/// 8-byte aligned.
type Scratch = MaybeUninit<[u64; COUNTER_SCRATCH_BYTES / 8]>;

/// What a counter is now.
#[inline(always)]
fn read(counter: KernelCounter) -> u64 {
    let mut scratch = Scratch::uninit();
    let read: unsafe extern "C" fn(*mut c_void, *mut Scratch) -> u64 =
        unsafe { transmute(counter.call() as usize) };
    unsafe { read(core::ptr::null_mut(), &mut scratch) }
}

/// Interrupts of any kind so far, low 32 bits.
#[inline(always)]
pub fn interrupts() -> u32 {
    let of_devices = read(KernelCounter::DeviceInterrupts);
    of_devices.wrapping_add(read(KernelCounter::CpuInterrupts)) as u32
}

/// The others before a stamp, those that are looked at first.
#[derive(Clone, Copy)]
pub struct Before {
    pub stolen_ns: u64,
    pub accounted_ns: u64,
    pub other_softirqs: u32,
}

impl Before {
    #[inline(always)]
    pub fn now() -> Self {
        Self {
            stolen_ns: read(KernelCounter::Stolen),
            accounted_ns: read(KernelCounter::Accounted),
            other_softirqs: read(KernelCounter::OtherSoftirqs) as u32,
        }
    }
}
