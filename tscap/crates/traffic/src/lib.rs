//! The frame generator, and captures under load, also by other programs.

pub mod generator;
pub mod load;
