//! What the bench found.

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use serde_json::Value;
use tscap_document::Table;
use tscap_testkit::finished::Finished;

use crate::common::report::Section;
use crate::common::table::row;
use crate::common::target::Target;
use crate::files::Read;
use crate::memory::Growth;

/// Least part of the rate asked for: slower, it is no soak.
const LEAST_REACHED: f64 = 0.9;
/// Most that the capture may grow, bytes: a leak of a kilobyte a file is more.
const MOST_GROWTH: f64 = 1e6;
/// Most that a stamp may be off the host's clock, ns.
const MOST_BOUND_NS: f64 = 1_000.0;

/// Everything.
#[derive(Debug, Serialize)]
pub struct Soaks {
    #[serde(skip)]
    quick: bool,
    /// Highest rate found without loss, frames a second.
    pub highest: Option<f64>,
    /// The parts.
    pub soaks: Vec<Soak>,
}

/// A long capture.
#[derive(Debug, Serialize)]
pub struct Soak {
    /// Which part.
    pub name: &'static str,
    /// From the first frame to the last, s.
    pub seconds: f64,
    /// Frames a second that were to be sent; none flat out.
    pub asked: Option<f64>,
    /// Frames a second that really were sent.
    pub rate: f64,
    /// Frames sent.
    pub sent: u64,
    /// Of them those that are in none of the files.
    pub lost: u64,
    /// Of these, refused before the program: the receiving end had no room.
    pub refused: u64,
    /// Frames found in the files: each number once, and in order.
    pub read: u64,
    /// Files.
    pub files: u64,
    /// Bytes in them.
    pub bytes: u64,
    /// Bytes written past the page cache.
    pub bytes_direct: u64,
    /// Fullest that a ring was, 0 to 1.
    pub ring_fill: f64,
    /// Stamps less than the one before.
    pub steps_back: u64,
    /// The farthest of these, ns.
    pub farthest_back_ns: u64,
    /// Least time from a frame's send stamp to its stamp in the file, ns: the error
    /// of the latter if it is less than nothing.
    pub least_delay_ns: i64,
    /// Greatest bound of stamps against the host's clock that was told, ns.
    pub host_bound_ns: u64,
    /// Resident memory of the capture.
    pub memory: Growth,
}

impl Soak {
    /// Of what was found in the files, what the generator says it sent, and what
    /// the capture says.
    pub fn new(
        name: &'static str,
        asked: Option<f64>,
        read: &Read,
        sent: &Value,
        captured: &Finished,
        memory: Growth,
    ) -> Result<Self> {
        let summary = captured.accounted();
        let count = |name: &str| sent[name].as_u64().with_context(|| format!("no {name}"));
        let (taken, refused) = (count("sent")?, count("refused")?);
        let flow = &read.flow;
        ensure!(
            (summary.seen, summary.written) == (taken, flow.came),
            "{taken} frames sent, {} seen, {} written, {} read",
            summary.seen,
            summary.written,
            flow.came
        );
        ensure!(
            summary.bytes_written == read.bytes,
            "{} bytes written, {} read",
            summary.bytes_written,
            read.bytes
        );
        let progress = captured.events("progress");
        let most = |name: &str| {
            let reported = progress.iter().filter_map(|event| event[name].as_f64());
            reported.fold(0.0, f64::max)
        };
        let bound = (most("host_bound_ns") as u64).max(summary.clock.host_bound_ns);
        Ok(Self {
            name,
            asked,
            seconds: sent["seconds"].as_f64().context("no seconds")?,
            rate: sent["rate"].as_f64().context("no rate")?,
            sent: taken + refused,
            lost: taken + refused - flow.came,
            refused,
            read: flow.came,
            files: read.files,
            bytes: read.bytes,
            bytes_direct: summary.bytes_direct,
            ring_fill: most("ring_fill"),
            steps_back: read.steps_back,
            farthest_back_ns: read.farthest_back_ns,
            least_delay_ns: read.least_delay_ns.context("no frame came")?,
            host_bound_ns: bound,
            memory,
        })
    }

    fn targets(&self, quick: bool) -> Vec<Target> {
        let name = |what: &str| format!("{}: {what}", self.name);
        let at_most = |what, value: f64, most: f64| Target::at_most(name(what), value, most);
        let bound = self.host_bound_ns as f64;
        let rate = self.rate / self.asked.unwrap_or(self.rate);
        let (growth, most_growth) = (self.memory.growth / 1e6, MOST_GROWTH / 1e6);
        vec![
            // A machine that is busy for seconds slows the generator.
            Target::at_least(name("rate over that asked for"), rate, LEAST_REACHED)
                .asserted_if(!quick),
            at_most("frames lost", self.lost as f64, 0.0),
            // The kernel's fast clock may step back a little (timekeeping.c,
            // `ktime_get_mono_fast_ns`).
            at_most("stamps back by, ns", self.farthest_back_ns as f64, bound),
            at_most(
                "stamped before sent by, ns",
                -self.least_delay_ns as f64,
                bound,
            ),
            at_most("bound of the stamps, ns", bound, MOST_BOUND_NS),
            at_most("memory grown by, MB", growth, most_growth),
        ]
    }

    fn table(&self) -> Table {
        let rows = [
            ("seconds", format!("{:.1}", self.seconds)),
            ("Mpps", format!("{:.3}", self.rate / 1e6)),
            ("frames sent", self.sent.to_string()),
            ("frames in the files", self.read.to_string()),
            ("files", self.files.to_string()),
            ("GB", format!("{:.2}", self.bytes as f64 / 1e9)),
            (
                "GB written past the page cache",
                format!("{:.2}", self.bytes_direct as f64 / 1e9),
            ),
            (
                "ring full up to, %",
                format!("{:.1}", self.ring_fill * 100.0),
            ),
            (
                "stamps less than the one before",
                self.steps_back.to_string(),
            ),
            (
                "least delay from sent to stamped, ns",
                self.least_delay_ns.to_string(),
            ),
            ("resident, MB", format!("{:.1}", self.memory.resident / 1e6)),
            ("looks at it", self.memory.samples.to_string()),
        ];
        let rows = rows.map(|(name, figure)| row(name, [figure]));
        let title = format!("{}: frames of 64 bytes", self.name);
        Table::figures(title, &["", "figure"], rows.into())
    }
}

impl Soaks {
    /// Nothing yet.
    pub fn new(quick: bool) -> Self {
        Self {
            quick,
            highest: None,
            soaks: Vec::new(),
        }
    }
}

impl Section for Soaks {
    fn targets(&self) -> Vec<Target> {
        let targets = self.soaks.iter();
        targets.flat_map(|soak| soak.targets(self.quick)).collect()
    }

    fn tables(&self) -> Vec<Table> {
        let highest = self.highest.map(|rate| {
            let rate = format!("{:.2}", rate / 1e6);
            let rows = vec![row("highest lossless rate, Mpps", [rate])];
            Table::figures("found beforehand", &["", "figure"], rows)
        });
        let soaks = self.soaks.iter().map(Soak::table);
        highest.into_iter().chain(soaks).collect()
    }
}
