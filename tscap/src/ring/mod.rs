//! The consumer's side of the rings: shared memory and the walk over its
//! blocks. `tscap_common::ring` describes the layout.

mod block;
mod consumer;
mod memory;

pub mod synthetic;

pub use block::{Block, CorruptBlock, blocks};
pub use consumer::{Consumer, Run};
pub use memory::{MapError, Memory};
