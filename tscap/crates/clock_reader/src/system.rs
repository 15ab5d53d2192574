//! The counter, the kernel's clocks, and a page in memory: all that is unsafe.

#![allow(
    unsafe_code,
    reason = "shared memory, the counter and the vDSO have no safe interface"
)]

mod counter;
mod kernel_clocks;
mod mapping;

pub use counter::{KIND, read as read_counter};
pub use kernel_clocks::{coarse, precise};
pub use mapping::{Mapping, WritableMapping};
