//! What the bench found.

use serde::Serialize;
use tscap::measuring::load::Tool;
use tscap::measuring::report::Table;

use crate::cells::KindReport;
use crate::common::report::Section;
use crate::common::table::{absent, show};
use crate::common::target::Target;
use crate::targets;

/// Everything.
#[derive(Debug, Serialize)]
pub struct Captures {
    /// Rounds measured.
    pub rounds: u32,
    /// Memory of each program between kernel and file, bytes.
    pub buffer_bytes: u64,
    /// CPUs that the programs may run on.
    pub capture_cpus: Vec<u32>,
    /// The programs.
    pub tools: Vec<ToolVersion>,
    /// Programs that are not here.
    pub absent: Vec<String>,
    /// By kind of frame.
    pub kinds: Vec<KindReport>,
}

/// A program.
#[derive(Debug, Serialize)]
pub struct ToolVersion {
    /// Which.
    pub tool: Tool,
    /// As it says itself.
    pub version: String,
}

impl Captures {
    /// Under which conditions all of it was measured, for people.
    pub fn conditions(&self, cpu: usize) -> Vec<String> {
        let cpus: Vec<_> = self.capture_cpus.iter().map(u32::to_string).collect();
        let versions: Vec<_> = self.tools.iter().map(|it| it.version.as_str()).collect();
        vec![
            format!(
                "native live frames over a veth pair, sender and receiving side on CPU {cpu}, \
                 captures on CPU {}",
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

impl Section for Captures {
    fn targets(&self) -> Vec<Target> {
        targets::of(&self.kinds)
    }

    fn tables(&self) -> Vec<Table> {
        let mut tables: Vec<_> = self.kinds.iter().flat_map(KindReport::tables).collect();
        if let Some(last) = tables.last_mut() {
            last.notes.extend(absent(&self.absent));
        }
        tables
    }
}

impl KindReport {
    /// Flat out, and at set rates.
    pub fn tables(&self) -> [Table; 2] {
        let flat_out = self.tools.iter().map(|cells| {
            let flat = &cells.flat_out;
            vec![
                cells.tool.name().to_owned(),
                show(&flat.mpps, 2),
                show(&flat.loss_percent, 2),
                show(&cells.lossless_mpps, 2),
                show(&cells.receive_ns, 0),
                show(&flat.cpu_s, 3),
            ]
        });
        let rates = self.tools.iter().flat_map(|cells| {
            cells.paced.iter().map(|cell| {
                vec![
                    cells.tool.name().to_owned(),
                    format!("{}", cell.asked.unwrap_or(0.0) / 1e6),
                    show(&cell.mpps, 2),
                    show(&cell.loss_percent, 2),
                    show(&cell.cpu_s, 3),
                ]
            })
        });
        let failed = self.tools.iter().flat_map(|cells| {
            let name = cells.tool.name();
            cells
                .failed
                .iter()
                .map(move |why| format!("failed: {name}, {why}"))
        });
        let bare = format!(
            "without a capture {} Mpps, {} ns of CPU a frame",
            show(&self.bare_mpps, 2),
            show(&self.bare_ns, 0)
        );
        let meaning = "lossless: the highest rate found at which nothing was lost; receive side: \
                       what a frame takes of the sender's CPU more than without a capture";
        let head = [
            "",
            "Mpps",
            "lost, %",
            "lossless, Mpps",
            "receive side, ns a frame",
            "CPU, s a million frames",
        ];
        let title = format!("{}: {} frames flat out", self.kind.name(), self.frames);
        let flat_out = Table::figures(title, &head, flat_out.collect());
        let head = [
            "",
            "Mpps asked for",
            "Mpps",
            "lost, %",
            "CPU, s a million frames",
        ];
        let title = format!("{}: at set rates", self.kind.name());
        let rates = Table::figures(title, &head, rates.collect());
        [flat_out.note(bare).note(meaning), rates.notes(failed)]
    }
}
