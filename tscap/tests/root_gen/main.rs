//! `tscap gen`: what it sends, when, and what it refuses. Needs root.

#[path = "../support/mod.rs"]
mod support;

mod fallback;
mod faults;
mod frames;
mod pacing;
mod read_back;
mod readme;
mod refusals;
mod signals;
