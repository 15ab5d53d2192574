//! What every report begins with.

use serde::Serialize;

use super::cli::Options;
use super::machine::{self, Machine};

/// Which bench, how and where.
#[derive(Debug, Serialize)]
pub struct Header {
    /// Version of the report's schema.
    pub v: u32,
    /// Which bench this is.
    pub bench: &'static str,
    /// Whether it was a short run.
    pub quick: bool,
    /// Where it ran.
    pub machine: Machine,
}

impl Header {
    /// Of a run that begins, on `cpu`.
    pub fn new(bench: &'static str, v: u32, options: &Options, cpu: usize) -> Self {
        Self {
            v,
            bench,
            quick: options.quick,
            machine: machine::describe(cpu),
        }
    }
}
