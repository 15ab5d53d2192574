//! Filters against libpcap and tcpdump: programs as text, and verdicts. Any user.

mod corpus;
mod libpcap;
mod tcpdump;
