//! Accesses to memory that user space shares, in an order that its CPUs see. BPF's own
//! instructions for that need Linux 6.15; an atomic operation that gives back the former value is
//! fully ordered on every kernel and architecture. Where CPUs keep loads and stores in order anyway
//! (x86-64), user space puts plain ones in their places when it loads a program
//! (`tscap/crates/programs/src/hook/order.rs`), so programs have no other such operations.
//!
//! It is a crate of its own because only instructions, which need an unstable feature, stand for
//! these operations.
#![no_std]
#![feature(asm_experimental_arch)]

use core::arch::asm;
use core::sync::atomic::{Ordering, compiler_fence};

/// Stores `value` once everything before has been stored: an exchange.
///
/// # Safety
/// As of `ptr::write_volatile`.
#[inline(always)]
pub unsafe fn store_release(address: *mut u64, value: u64) {
    compiler_fence(Ordering::Release);
    unsafe {
        asm!(
            "{value} = xchg_64({address} + 0, {value})",
            address = in(reg) address,
            value = inout(reg) value => _,
            options(nostack),
        );
    }
}

/// Loads a value once everything before has been loaded: no bit is added to it. Its memory must be
/// writable.
///
/// # Safety
/// As of `ptr::write_volatile`.
#[inline(always)]
pub unsafe fn load_in_order(address: *const u64) -> u64 {
    let value;
    compiler_fence(Ordering::SeqCst);
    unsafe {
        asm!(
            "{value} = 0",
            "{value} = atomic_fetch_or((u64 *)({address} + 0), {value})",
            address = in(reg) address,
            value = out(reg) value,
            options(nostack),
        );
    }
    value
}
