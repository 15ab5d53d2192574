//! What the bench found, as `--json` prints it and as table and page are made from.

use serde::Serialize;
use tscap::measuring::load::Tool;

use crate::cells::KindReport;
use crate::common::header::Header;
use crate::common::target::{self, Target};

/// Version of the schema.
pub const VERSION: u32 = 1;

/// Everything.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Which bench, how and where; of schema [`VERSION`]. Its CPU is the sender's.
    #[serde(flatten)]
    pub header: Header,
    /// Rounds measured.
    pub rounds: u32,
    /// Memory of each program between kernel and file, bytes.
    pub buffer_bytes: u64,
    /// CPUs that the programs may run on.
    pub capture_cpus: Vec<u32>,
    /// What is wanted, and what came out.
    pub targets: Vec<Target>,
    /// The programs.
    pub tools: Vec<ToolReport>,
    /// Programs that are not here.
    pub absent: Vec<String>,
    /// By kind of frame.
    pub kinds: Vec<KindReport>,
}

/// A program.
#[derive(Debug, Serialize)]
pub struct ToolReport {
    /// Which.
    pub tool: Tool,
    /// As it says itself.
    pub version: String,
}

impl Report {
    /// The targets that were missed and must not be, with what was measured.
    pub fn missed(&self) -> Vec<String> {
        target::missed(&self.targets)
    }

    /// Under which conditions all of it was measured, for people.
    pub fn conditions(&self) -> Vec<String> {
        let cpus: Vec<_> = self.capture_cpus.iter().map(u32::to_string).collect();
        let versions: Vec<_> = self.tools.iter().map(|it| it.version.as_str()).collect();
        vec![
            format!(
                "native live frames over a veth pair, sender and receiving side on CPU {}, \
                 captures on CPU {}",
                self.header.machine.cpu,
                cpus.join(", ")
            ),
            format!(
                "frames passed on up the stack (nobody has their address); files on a warm tmpfs; \
                 {} MiB of buffer for each program (xdpdump: its fixed 1 MiB a CPU)",
                self.buffer_bytes >> 20
            ),
            format!(
                "rounds: {}, programs in turns; {}",
                self.rounds,
                versions.join("; ")
            ),
        ]
    }
}
