//! Interfaces of Linux: rtnetlink, ethtool, traffic control, namespaces, BPF links. Each file is
//! one kernel interface; none of them knows the rest of tscap.

#![allow(unsafe_code, reason = "system calls without a safe wrapper")]

pub mod address;
pub mod bpf;
pub mod class_net;
pub mod clsact;
pub mod ethtool;
pub mod irq;
pub mod link_watch;
pub mod map_value;
pub mod namespaces;
pub mod napi;
pub mod netdev;
mod netdev_family;
mod netlink;
pub mod netns;
pub mod own_netns;
pub mod packet;
pub mod promisc;
pub mod receive_room;
#[cfg(any(test, feature = "fixtures"))]
pub mod recorded;
pub mod route;
pub mod rps;
pub mod stamped_receiver;
pub mod veth;
pub mod xdp_features;

/// The examples of README.md are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
