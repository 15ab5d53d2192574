//! What the benches share: their command line, figures over rounds, the machine
//! they are from, subjects measured in turns, targets, an end by signals, a converter
//! over synthetic rings, live frames, files in memory, and parts of tables.

// Every bench compiles this module and uses its own part of it.
#![allow(dead_code, reason = "each bench uses a part")]

pub mod cli;
pub mod converter;
pub mod header;
pub mod live;
pub mod machine;
pub mod rounds;
pub mod spread;
pub mod stop;
pub mod table;
pub mod target;
pub mod tmpfs;
