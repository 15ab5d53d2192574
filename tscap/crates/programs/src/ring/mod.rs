//! The consumer's side of the rings: shared memory, the walk over its blocks,
//! and their order. `tscap_common::ring` describes the layout.

mod block;
mod consumer;
mod key_record;
mod memory;
mod merge;

pub mod synthetic;

pub use block::{Block, CorruptBlock, FinalFrame, blocks, last_block};
pub use consumer::{Consumer, Run};
pub use key_record::KeyRecord;
pub use memory::{MapError, Memory};
pub use merge::{Merge, NextRing};
