//! Where the figures come from.

use serde::Serialize;
use tscap::capturing::host::system;

/// The machine, its kernel, and how busy it was.
#[derive(Debug, Serialize)]
pub struct Machine {
    /// Model and number of CPUs.
    pub hardware: String,
    /// Kernel and architecture.
    pub os: String,
    /// The CPU on which programs and converter were measured.
    pub cpu: usize,
    /// Load averages (1, 5, 15 min) at the start: others share these CPUs.
    pub load: String,
}

/// Describes this machine.
pub fn describe(cpu: usize) -> Machine {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    Machine {
        hardware: system::hardware(),
        os: system::os(),
        cpu,
        load: load
            .split_whitespace()
            .take(3)
            .collect::<Vec<_>>()
            .join(" "),
    }
}
