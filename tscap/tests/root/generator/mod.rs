//! `tscap gen`: what it sends, when, and what it refuses. Needs root.

mod documents;
mod echo;
mod fallback;
mod faults;
mod frames;
mod pacing;
mod read_back;
mod refusals;
mod signals;
