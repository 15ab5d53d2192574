//! Filters against libpcap and tcpdump: programs as text, and verdicts. Any user.

mod emulator;
mod libpcap;
mod tcpdump;
mod translated;
