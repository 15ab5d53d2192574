//! What the XDP programs and user space share: the layout of the ring, of the
//! pcapng block that a program writes into it, of the per-CPU state, of the
//! generator's frames, and the names of the values set at load time.
#![no_std]

pub mod block;
pub mod compare;
pub mod config;
mod counts;
pub mod entry;
pub mod gaps;
pub mod generator;
pub mod hook;
pub mod kernel_counter;
pub mod kernel_field;
pub mod key;
pub mod outcome;
pub mod ring;
pub mod send_times;
pub mod sighting;
pub mod stamping;
pub mod state;
pub mod stream;
