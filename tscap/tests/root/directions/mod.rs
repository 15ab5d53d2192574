//! `tscap capture` in both directions against tcpdump on the same interfaces at once: the
//! same frames with the same bytes, lengths and directions, and an exact account of each
//! direction. docs/directions.md lists what differs, and why. Needs root.

mod attaching;
mod beside;
mod contexts;
mod devices;
mod driver;
mod frames;
mod life;
mod many;
mod queueing;
mod tcp;
mod versus;
