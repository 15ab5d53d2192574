//! How large a ring must be: live frames flat out over a veth pair, captured by
//! tscap itself.
//!
//! The generator and the program it feeds share one CPU, the converter has
//! another. Between generator and program nothing is lost (veth's NAPI runs on
//! the generator's CPU), so every loss is a full ring.

mod output;

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use tscap_document::Table;
use tscap_file::accounting::Outcome;
use tscap_statistics::Spread;
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::capture_on;
use tscap_testkit::frame::Frame;
use tscap_testkit::process::cpus;

use crate::common::live::Generator;
use crate::common::report::Section;
use crate::common::table::{absent, row, show};
use output::Output;

/// Ring sizes, bytes.
const RINGS: [usize; 3] = [16 << 20, 32 << 20, 64 << 20];
/// Frames sent by kind, and in a quick run: those fit the smallest ring.
const KINDS: [Kind; 3] = [
    Kind::new(64, 262_144, 3_000_000, 150_000),
    Kind::new(1500, 128, 3_000_000, 90_000),
    Kind::new(1500, 262_144, 1_000_000, 10_000),
];

/// A kind of frame.
#[derive(Clone, Copy, Debug)]
struct Kind {
    size: usize,
    snaplen: u32,
    frames: u32,
    quick_frames: u32,
}

impl Kind {
    const fn new(size: usize, snaplen: u32, frames: u32, quick_frames: u32) -> Self {
        Self {
            size,
            snaplen,
            frames,
            quick_frames,
        }
    }

    /// More than the file gets from `frames` of these, bytes.
    fn file_bytes(self, frames: u32) -> u64 {
        let block = self.size.min(self.snaplen as usize) + 40;
        block as u64 * u64::from(frames) + (1 << 20)
    }
}

/// The part of the report.
#[derive(Debug, Serialize)]
pub struct RingsReport {
    /// Rounds measured.
    pub rounds: u32,
    /// CPU of the generator and the program.
    pub generator_cpu: usize,
    /// CPU of the converter.
    pub converter_cpu: usize,
    /// What could not be measured, and why.
    pub absent: Vec<String>,
    /// One for each kind of frame, output and ring size.
    pub cells: Vec<Cell>,
}

/// Frames of one kind through rings of one size to one output.
#[derive(Debug, Serialize)]
pub struct Cell {
    /// Length of the frame, bytes.
    pub size: usize,
    /// Most bytes captured.
    pub snaplen: u32,
    /// Where the file went.
    pub output: &'static str,
    /// Length of each ring, bytes.
    pub ring_bytes: usize,
    /// Frames sent in a round.
    pub frames: u32,
    /// Rate of the generator, million frames a second: the program slows it.
    pub mpps: Spread,
    /// Part of the frames for which the ring had no room.
    pub loss: Spread,
}

impl Cell {
    /// What was captured and where to, for people.
    pub fn name(&self) -> String {
        let (size, snaplen, output) = (self.size, self.snaplen, self.output);
        if size <= snaplen as usize {
            format!("{size} B whole to {output}")
        } else {
            format!("{size} B, snaplen {snaplen} to {output}")
        }
    }
}

/// Measures; `quick` sends few frames and takes any loss for an error.
pub fn measure(rounds: u32, quick: bool) -> Result<RingsReport> {
    let cpus = cpus();
    let generator_cpu = *cpus.first().context("no CPU")?;
    let converter_cpu = *cpus.last().context("no CPU")?;
    let frames = |kind: Kind| {
        if quick {
            kind.quick_frames
        } else {
            kind.frames
        }
    };
    let largest = KINDS.map(|kind| kind.file_bytes(frames(kind)));
    let largest = largest.into_iter().max().unwrap_or(0);
    let (outputs, absent) = output::usable(largest);

    let bench = Bench::new("bench");
    let mut generator = Generator::open(&bench.tx, generator_cpu)?;
    let mut cells = Vec::new();
    for kind in KINDS {
        for output in &outputs {
            for ring_bytes in RINGS {
                cells.push((kind, output, ring_bytes, Vec::new(), Vec::new()));
            }
        }
    }
    for round in 1..=rounds {
        eprintln!("rings: round {round} of {rounds}");
        for (kind, output, ring_bytes, mpps, loss) in &mut cells {
            let plan = Plan {
                kind: *kind,
                frames: frames(*kind),
                output,
                ring_bytes: *ring_bytes,
                converter_cpu,
            };
            let (rate, lost) = plan.run(&bench, &mut generator).with_context(|| {
                format!("{} B, {} B rings, {}", kind.size, ring_bytes, output.name)
            })?;
            ensure!(!quick || lost == 0.0, "frames lost that fit the ring");
            mpps.push(rate);
            loss.push(lost);
        }
    }
    let cells = cells
        .into_iter()
        .map(|(kind, output, ring_bytes, mpps, loss)| Cell {
            size: kind.size,
            snaplen: kind.snaplen,
            output: output.name,
            ring_bytes,
            frames: frames(kind),
            mpps: Spread::of(mpps),
            loss: Spread::of(loss),
        })
        .collect();
    Ok(RingsReport {
        rounds,
        generator_cpu,
        converter_cpu,
        absent,
        cells,
    })
}

/// One capture.
struct Plan<'a> {
    kind: Kind,
    frames: u32,
    output: &'a Output,
    ring_bytes: usize,
    converter_cpu: usize,
}

impl Plan<'_> {
    /// Captures; returns the rate in million frames a second and the loss as a
    /// fraction.
    fn run(&self, bench: &Bench, generator: &mut Generator) -> Result<(f64, f64)> {
        let file = self.output.file();
        let capture = capture_on(&bench.rx, &file.path)
            .with(["--snapshot-length", &self.kind.snaplen.to_string()])
            .with(["--ring-size", &self.ring_bytes.to_string()])
            .with(["--converter-cpu", &self.converter_cpu.to_string()])
            .ready();
        let frame = Frame::new(&bench.tx, &bench.rx, self.kind.size);
        let sent = generator.send(&frame.bytes(0), self.frames)?;
        let finished = capture.stop();

        let summary = finished.success();
        ensure!(
            summary.seen == sent.taken,
            "{} frames seen of {} sent",
            summary.seen,
            sent.taken
        );
        let lost: u64 = summary.outcomes.total();
        let full = summary.outcomes[Outcome::RingFull];
        ensure!(lost == full, "lost otherwise: {:?}", summary.outcomes);
        Ok((1e3 / sent.ns_per_frame, lost as f64 / sent.taken as f64))
    }
}

impl Section for RingsReport {
    fn tables(&self) -> Vec<Table> {
        let rows = self.cells.iter().map(|cell| {
            let ring = (cell.ring_bytes >> 20).to_string();
            let lost = cell.loss.map(|loss| loss * 100.0);
            row(cell.name(), [ring, show(&cell.mpps, 2), show(&lost, 2)])
        });
        let title = format!(
            "live frames flat out over veth, generator and program on CPU {}, converter on CPU {}; \
             rounds: {}",
            self.generator_cpu, self.converter_cpu, self.rounds
        );
        let head = ["", "ring, MiB", "Mpps", "lost, %"];
        vec![Table::figures(title, &head, rows.collect()).notes(absent(&self.absent))]
    }
}
