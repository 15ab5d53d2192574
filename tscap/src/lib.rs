//! Packet capture for Linux whose every timestamp can be trusted.
//!
//! Folders: `cli` (arguments to plans), `command` (one runner a command), `xdp`
//! (load, attach, count), `changes` (what must be given back, and its journal),
//! `doctor` (checks of the machine), `ring` (shared memory), `engine` (the converter
//! thread), `clock` (raw stamps to wall clock), `pcapng` (the file), `measure`
//! (loss, order and delay of streams, from a file), `generator` (sends frames),
//! `load` (captures under load, also by others), `compare` (what stamps cost), `loss`
//! (where frames are lost, and a model of it), `report` (both as text and HTML), `sys`
//! (the operating system).
//! Unsafe code lives in `ring` and `sys` only.

mod causes;
pub mod changes;
pub mod cli;
pub mod clock;
pub mod command;
pub mod compare;
pub mod doctor;
pub mod engine;
mod escaped;
pub mod generator;
pub mod load;
pub mod loss;
pub mod measure;
mod numbers;
pub mod pcapng;
pub mod report;
#[allow(
    unsafe_code,
    reason = "maps memory that the kernel writes; the invariants are in its files"
)]
pub mod ring;
pub mod saved;
#[allow(unsafe_code, reason = "system calls without a safe wrapper")]
pub mod sys;
pub mod xdp;
