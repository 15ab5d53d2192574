//! `tscap convert`, which anybody may run.

mod account;
mod base;
mod filter;
pub mod foreign;
mod log;
mod ntp;
mod own;
mod refused;
mod script;
