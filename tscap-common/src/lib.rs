//! What the XDP programs and user space share: the layout of the ring, of the
//! pcapng block that a program writes into it, of the per-CPU state, and the
//! names of the values set at load time.
#![no_std]

pub mod block;
pub mod config;
pub mod ring;
pub mod state;
