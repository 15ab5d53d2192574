//! `tscap gen`: what it sends, when, and what it refuses. Needs root.

#[path = "../documents/shown.rs"]
mod shown;
#[path = "../support/mod.rs"]
mod support;

mod documents;
mod fallback;
mod faults;
mod frames;
mod pacing;
mod read_back;
mod refusals;
mod signals;
