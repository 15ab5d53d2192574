//! `tscap capture` into several files: `-C`, `-G`, `-W`, `-b`, `-z`. Needs root.

mod commands;
mod direct;
mod faults;
mod flat_out;
mod killed;
mod limits;
mod refusals;
mod together;
