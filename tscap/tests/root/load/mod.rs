//! Faults of `tscap capture` under full load: frames come flat out, and every one
//! of them is in the file, in order, or counted. Needs root.

mod account;
mod disk;
mod flood;
mod least_ring;
mod pipe;
mod rotation;
mod stopped;
mod two_interfaces;

/// Why its tests run alone.
const FILLS: &str = "fills the CPUs";
