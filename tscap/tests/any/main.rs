//! Whole commands, as any user may run them, and what the programs made of filters decide.
//!
//! Tests of all modules run side by side in one process: what changes the process
//! (its environment, folder, signals, limits) belongs into a child.

mod bench_capture;
mod cli;
mod clock;
mod completions;
mod convert;
mod counters;
mod filter;
mod foreign_options;
mod loss_plan;
mod merge;
mod qos;
mod read_back;
mod report;
mod shared_clock;
mod signals;
