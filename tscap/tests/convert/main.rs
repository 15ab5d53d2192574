//! `tscap convert`, which anybody may run.

mod base;
mod log;
mod own;
mod script;
#[path = "../documents/shown.rs"]
mod shown;
