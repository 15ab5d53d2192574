//! Captures and measurements over devices between namespaces. Needs root.
//!
//! Tests of all modules run side by side in one process, four at a time: each takes a lock of
//! `tscap_testkit::root`, and one that disturbs others or is disturbed runs alone. What
//! changes the process (its environment, folder, signals, limits, privileges) belongs into
//! a child, and what changes a thread (its namespace, CPU, signals) into a thread of its own.

mod any;
mod capture;
mod clsact;
mod compare;
mod counters;
mod delay;
mod directions;
mod doctor;
mod faults;
mod filter;
mod fix;
mod generator;
mod links;
mod live;
mod load;
mod loss;
mod merge;
mod namespaces;
mod netdev;
mod ntp;
mod peers;
mod pinning;
mod privileges;
mod qos;
mod reference;
mod references;
mod rotation;
mod service;
mod stamp;
mod time;
mod tools;
mod tsc;
mod two_hosts;
mod utc;
mod wireshark;
mod writers;
