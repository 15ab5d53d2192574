//! `tscap convert`, which anybody may run.

mod account;
mod base;
mod filter;
mod foreign;
#[path = "../filter/corpus/frames.rs"]
mod frames;
mod log;
mod ntp;
mod own;
mod refused;
mod script;
#[path = "../documents/shown.rs"]
mod shown;
