//! TSC events of others, for which those of tscap pause.

use tscap_host::perf::{EventPriority, TscEvent};

use crate::process::cpus;

/// Why a test runs alone that opens them.
pub const PAUSES: &str = "makes TSC events of the machine pause";

/// Opens events beside those of a capture on every CPU, and closes them.
pub fn make_events_pause() {
    for cpu in cpus() {
        for _ in 0..3 {
            let cpu = u32::try_from(cpu).expect("a CPU");
            TscEvent::open(cpu, EventPriority::Pinned).expect("open an event");
        }
    }
}
