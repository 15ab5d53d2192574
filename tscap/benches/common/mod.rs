//! What the benches share: figures over rounds, the machine they are from, and a
//! converter over synthetic rings.

// Every bench compiles this module and uses its own part of it.
#![allow(dead_code, reason = "each bench uses a part")]

pub mod converter;
pub mod machine;
pub mod spread;
