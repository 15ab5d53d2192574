//! What the bench found.

use serde::Serialize;
use tscap_document::Table;
use tscap_lab::loss::DiskRate;
use tscap_statistics::Spread;
use tscap_traffic::load::Tool;

use super::cells::{Cell, KindReport};
use super::common::report::Section;
use super::common::table::{absent, show};
use super::common::target::Target;
use super::ground::Ground;
use super::{ground_targets, targets};

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
    /// Where it was measured.
    #[serde(skip)]
    pub ground: Ground,
    /// What the disk takes without a capture; null without one, and of one with pauses.
    pub disk: Option<DiskAlone>,
}

/// A disk without a capture.
#[derive(Debug, Serialize)]
pub struct DiskAlone {
    /// What it takes, GB/s.
    pub gb_s: Spread,
    /// By round.
    pub rates: Vec<DiskRate>,
}

impl DiskAlone {
    /// Sums up the rounds; none without any.
    pub fn of(rates: Vec<DiskRate>) -> Option<Self> {
        let gb_s = rates.iter().map(|rate| rate.bytes_per_s / 1e9);
        let gb_s = Spread::of(gb_s.collect());
        (!rates.is_empty()).then_some(Self { gb_s, rates })
    }
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
    /// What the files of a kind took, if they were on a disk.
    pub fn files(&self, kind: &KindReport) -> Option<Table> {
        let is_disk = self.ground.is_disk();
        is_disk.then(|| kind.files(self.disk.as_ref()))
    }

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
                "{}; {} MiB of buffer for each program (xdpdump: its fixed 1 MiB a CPU)",
                self.ground.conditions(),
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
        match (&self.ground, &self.disk) {
            (Ground::Stack, _) => targets::of(&self.kinds),
            (Ground::Tap, _) => ground_targets::of_tap(&self.kinds),
            (Ground::Disk(_), disk) => ground_targets::of_disk(&self.kinds, disk.as_ref()),
            (Ground::Pauses(_), _) => ground_targets::of_pauses(&self.kinds),
        }
    }

    fn tables(&self) -> Vec<Table> {
        let tables = self.kinds.iter().flat_map(|kind| {
            let (flat_out, rates) = kind.tables();
            let files = self.files(kind);
            [flat_out].into_iter().chain(rates).chain(files)
        });
        let mut tables: Vec<_> = tables.collect();
        if let Some(last) = tables.last_mut() {
            last.notes.extend(absent(&self.absent));
        }
        tables
    }
}

impl KindReport {
    /// Flat out, and at set rates, if there are any; what failed is told with the latter, else
    /// with the former.
    pub fn tables(&self) -> (Table, Option<Table>) {
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
        let dropped = self.dropped_mpps.iter().map(|mpps| {
            let mpps = show(mpps, 2);
            format!("where a program only drops the frames {mpps} Mpps")
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
        let title = format!("{}: {} frames flat out", self.name(), self.frames);
        let flat_out = Table::figures(title, &head, flat_out.collect());
        let head = [
            "",
            "Mpps asked for",
            "Mpps",
            "lost, %",
            "CPU, s a million frames",
        ];
        let title = format!("{}: at set rates", self.name());
        let rates = Table::figures(title, &head, rates.collect());
        let flat_out = flat_out.note(bare).notes(dropped).note(meaning);
        if self.tools.iter().any(|cells| !cells.paced.is_empty()) {
            (flat_out, Some(rates.notes(failed)))
        } else {
            (flat_out.notes(failed), None)
        }
    }

    /// What the files took, flat out and at the highest rate without loss; and what the disk
    /// takes alone, if that was measured.
    pub fn files(&self, disk: Option<&DiskAlone>) -> Table {
        let row = |tool: Tool, how: &str, cell: &Cell| {
            vec![
                format!("{}, {how}", tool.name()),
                show(&cell.mpps, 2),
                show(&cell.loss_percent, 2),
                show(&cell.file_gb_s, 2),
                show(&cell.cpu_s_a_gb, 3),
                show(&cell.cached_mib, 0),
            ]
        };
        let rows = self.tools.iter().flat_map(|cells| {
            [
                row(cells.tool, "flat out", &cells.flat_out),
                row(cells.tool, "lossless", &cells.lossless),
            ]
        });
        let head = [
            "",
            "Mpps",
            "lost, %",
            "file, GB/s",
            "CPU, s a GB",
            "page cache, MiB",
        ];
        let title = format!("{}: files", self.name());
        let alone = disk.map(|disk| format!("the disk alone takes {} GB/s", show(&disk.gb_s, 2)));
        let meaning = "file: its bytes in the time of sending, which may still be in the page \
                       cache; page cache: what it holds of the file when the program has ended; \
                       CPU: that of the program, without what other threads of the kernel write";
        Table::figures(title, &head, rows.collect())
            .notes(alone)
            .note(meaning)
    }
}
