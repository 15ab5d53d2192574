//! `tscap convert`, which anybody may run.

mod log;
mod own;
mod script;
