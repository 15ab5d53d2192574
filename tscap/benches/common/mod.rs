//! What the benches share: the runner with its command line and its report, targets,
//! tables, subjects measured in turns, an end by signals, a converter over synthetic
//! rings, programs on test frames, live frames, and files in memory.

// Every bench compiles this module and uses its own part of it.
#![allow(dead_code, reason = "each bench uses a part")]

pub mod converter;
pub mod live;
pub mod programs;
pub mod report;
pub mod rounds;
pub mod run;
pub mod stamps;
pub mod stop;
pub mod table;
pub mod target;
pub mod thread;
pub mod tmpfs;
