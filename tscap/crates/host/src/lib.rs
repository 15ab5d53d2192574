//! The operating system: processes, files, privileges, CPUs. Each file is one kernel
//! interface; none of them knows the rest of tscap.

#![allow(unsafe_code, reason = "system calls without a safe wrapper")]

pub mod access;
pub mod affinity;
pub mod caps;
pub mod cgroup;
pub mod cpu_list;
pub mod direct_io;
pub mod epoll;
pub mod huge_pages;
pub mod installed;
pub mod journald;
pub mod new_file;
pub mod page_cache;
pub mod perf;
pub mod process;
pub mod random;
pub mod readable;
pub mod scheduling;
pub mod seccomp;
pub mod service;
pub mod shared_words;
pub mod signals;
pub mod system;
pub mod user;
pub mod wake;
pub mod whole_file;

/// The examples of README.md are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
