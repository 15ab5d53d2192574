//! The operating system: system calls that have no safe wrapper, and what the
//! kernel tells about interfaces, privileges, clock and machine. Each file is
//! one kernel interface; none of them knows the rest of tscap.

pub mod affinity;
pub mod bpf;
pub mod caps;
pub mod ethtool;
pub mod netdev;
pub mod perf;
pub mod promisc;
pub mod system;
pub mod timex;
pub mod tsc;
