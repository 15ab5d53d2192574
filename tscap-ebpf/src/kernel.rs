//! The kernel's own structures: what user space puts in the place of marked calls.

use core::ffi::c_void;
use core::mem::transmute;

use tscap_common::config::{OWN_INDEX_CALL, OWN_NETNS_CALL};
use tscap_common::kernel_field::KernelField;

/// A member of a structure of the kernel's.
#[inline(always)]
pub fn read(field: KernelField, of: *const c_void) -> u64 {
    let load: unsafe extern "C" fn(*const c_void) -> u64 =
        unsafe { transmute(field.call() as usize) };
    unsafe { load(of) }
}

/// A constant.
#[inline(always)]
pub fn constant(call: u32) -> u32 {
    let constant: unsafe extern "C" fn() -> u64 = unsafe { transmute(call as usize) };
    unsafe { constant() as u32 }
}

/// Whether the program takes packets of the interface with this number.
#[inline(always)]
pub fn is_own_index(index: u32) -> bool {
    index == constant(OWN_INDEX_CALL)
}

/// Whether the program's interface is in this `struct net`.
#[inline(always)]
pub fn is_own_namespace(namespace: *const c_void) -> bool {
    read(KernelField::Inode, namespace) as u32 == constant(OWN_NETNS_CALL)
}
