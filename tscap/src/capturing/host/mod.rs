//! The operating system: system calls that have no safe wrapper, and what the
//! kernel tells about interfaces, privileges, clock and machine. Each file is
//! one kernel interface; none of them knows the rest of tscap.

pub mod access;
pub mod acpi_timer;
pub mod address;
pub mod affinity;
pub mod bpf;
pub mod caps;
pub mod cgroup;
pub mod class_net;
pub mod clsact;
pub mod cpu_list;
pub mod cpuinfo;
pub mod direct_io;
pub mod epoll;
pub mod ethtool;
pub mod hpet;
pub mod huge_pages;
pub mod installed;
pub mod irq;
pub mod kernel_files;
pub mod libpcap;
pub mod link_watch;
pub mod map_value;
pub mod namespaces;
pub mod napi;
pub mod netdev;
mod netdev_family;
mod netlink;
pub mod netns;
pub mod new_file;
pub mod own_netns;
pub mod packet;
pub mod page_cache;
pub mod perf;
pub mod process;
pub mod promisc;
pub mod ptp;
pub mod random;
pub mod raw_clock;
#[cfg(test)]
pub(crate) mod recorded;
pub mod route;
pub mod rps;
pub mod scheduling;
pub mod seccomp;
pub mod shared_words;
pub mod signals;
pub mod stamped_receiver;
pub mod system;
pub mod timex;
pub mod tsc;
pub mod user;
pub mod veth;
pub mod wake;
pub mod xdp_features;
