//! Interrupts off, by two kfuncs of the kernel, whose calls are marked as that of
//! the [counter](crate::kfunc) is.

use core::mem::{MaybeUninit, transmute};

use tscap_common::config::{IRQ_RESTORE_CALL, IRQ_SAVE_CALL};

/// Of `bpf_local_irq_save` and `bpf_local_irq_restore`. The verifier tracks the word on
/// the stack: the one fills it, the other takes it, and nobody else may touch it.
type Switch = unsafe extern "C" fn(*mut MaybeUninit<u64>);

/// Does something that no interrupt of this CPU comes between.
#[inline(always)]
pub fn off<T>(work: impl FnOnce() -> T) -> T {
    let save: Switch = unsafe { transmute(IRQ_SAVE_CALL as usize) };
    let restore: Switch = unsafe { transmute(IRQ_RESTORE_CALL as usize) };
    let mut flags = MaybeUninit::uninit();
    unsafe { save(&mut flags) };
    let done = work();
    unsafe { restore(&mut flags) };
    done
}
