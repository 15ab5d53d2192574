//! What one frame costs in the XDP programs, by `BPF_PROG_TEST_RUN`.
//!
//! In each round every program takes its turn on every kind of frame, so that
//! a slow spell of the machine hits all of them. A turn is several repetitions
//! that each fill most of a buffer; the buffer is drained and counted after each.
//! The buffers of all programs together are larger than the last-level cache: a
//! program finds its ring cold, as it does in a capture whose ring is large.

mod perf_event;
mod perf_output;

use anyhow::{Context, Result};
use serde::Serialize;
use tscap_document::Table;
use tscap_programs::hook::PROGRAMS;
use tscap_statistics::Spread;
use tscap_testkit::probes;

use crate::common::programs::ring_output::RingOutput;
use crate::common::programs::{Probe, Subject, repetition};
use crate::common::report::Section;
use crate::common::table::{row, show};
use crate::common::target::Target;
use perf_output::PerfOutput;

/// Room for the records of one repetition, in ring and perf buffer alike, bytes.
const BUFFER_BYTES: usize = 16 << 20;
/// Most frames in one repetition.
const MOST_FRAMES: usize = 100_000;
/// Repetitions in one turn of a program.
const REPETITIONS: usize = 3;

/// Frame lengths, bytes.
const SIZES: [usize; 4] = [64, 256, 1500, 9000];
/// The default snaplen: it takes frames whole.
const WHOLE: u32 = 262_144;
/// Snaplens, bytes.
const SNAPLENS: [u32; 2] = [WHOLE, 128];
/// At most this share of what `bpf_perf_event_output` costs.
const TARGET: f64 = 0.55;

/// One cost over another, round by round.
#[derive(Debug, Serialize)]
pub struct Ratio {
    /// What over what, for which frames.
    name: String,
    /// The ratio of whole costs, harness included.
    ratio: Spread,
    /// The ratio of the costs less the harness.
    net: Spread,
    /// Most that the median of `ratio` may be.
    target: Option<f64>,
}

/// The part of the report.
#[derive(Debug, Serialize)]
pub struct ProgramReport {
    /// The CPU on which the programs ran.
    #[serde(skip)]
    cpu: u32,
    /// Rounds measured.
    pub rounds: u32,
    /// Room for the records of one repetition, bytes.
    pub buffer_bytes: usize,
    /// One for each kind of frame.
    pub cells: Vec<Cell>,
}

/// All programs on one kind of frame.
#[derive(Debug, Serialize)]
pub struct Cell {
    /// Length of the frame, bytes.
    pub size: usize,
    /// Most bytes captured.
    pub snaplen: u32,
    /// Frames in one repetition.
    pub frames: usize,
    /// Cost of the harness alone, ns a frame.
    pub harness_ns: Spread,
    /// The floor: the body without a stamp.
    pub no_stamp: Cost,
    /// Stamp by `bpf_ktime_get_ns`.
    pub ktime: Cost,
    /// Stamp by `bpf_ktime_get_tai_ns`.
    pub tai: Cost,
    /// Stamp by `bpf_perf_event_read` of `msr/tsc/`; none where the kernel refuses.
    pub tsc: Option<Cost>,
    /// The same by `bpf_perf_event_output`, stamp by `bpf_ktime_get_ns`.
    pub perf_output: Cost,
}

/// What a program takes for a frame.
#[derive(Debug, Serialize)]
pub struct Cost {
    /// As the kernel reports it, ns (whole ones a repetition).
    pub ns: Spread,
    /// Less the harness of the same round, ns.
    pub net_ns: Spread,
}

/// Measures all programs on CPU `cpu`, to which the caller is pinned.
pub fn measure(cpu: usize, rounds: u32) -> Result<ProgramReport> {
    let cpu = u32::try_from(cpu)?;
    let mut kinds = Vec::new();
    for snaplen in SNAPLENS {
        let mut subjects = load(cpu, snaplen)
            .with_context(|| format!("cannot prepare the programs for snaplen {snaplen}"))?;
        for size in SIZES {
            // Faults in the consumer's mappings, and warms up the code.
            turn(&mut subjects, size, snaplen)?;
        }
        kinds.push((snaplen, subjects, SIZES.map(|_| Vec::new())));
    }
    for round in 1..=rounds {
        eprintln!("program: round {round} of {rounds}");
        for (snaplen, subjects, results) in &mut kinds {
            for (size, results) in SIZES.into_iter().zip(results) {
                results.push(turn(subjects, size, *snaplen)?);
            }
        }
    }
    let mut cells = Vec::new();
    for (index, size) in SIZES.into_iter().enumerate() {
        for (snaplen, subjects, results) in &kinds {
            let has_tsc = subjects[SUBJECTS - 1].name() == "tscap_tsc_perf";
            cells.push(Cell::new(size, *snaplen, has_tsc, &results[index]));
        }
    }
    Ok(ProgramReport {
        cpu,
        rounds,
        buffer_bytes: BUFFER_BYTES,
        cells,
    })
}

/// Does nothing: the harness alone.
const HARNESS: &str = "probe_drop";
/// Harness, no stamp, ktime, TAI, perf output, TSC; [`Cell::new`] knows the order.
const SUBJECTS: usize = 6;

fn load(cpu: u32, snaplen: u32) -> Result<[Box<dyn Subject>; SUBJECTS]> {
    let ring = |object, name| RingOutput::load(object, name, None, cpu, snaplen, BUFFER_BYTES);
    Ok([
        Box::new(Probe::load(HARNESS)?),
        Box::new(ring(probes::OBJECT, "probe_no_stamp")?),
        Box::new(ring(PROGRAMS, "tscap_ktime")?),
        Box::new(ring(PROGRAMS, "tscap_tai")?),
        Box::new(PerfOutput::load(cpu, snaplen, BUFFER_BYTES)?),
        match ring(PROGRAMS, "tscap_tsc_perf") {
            Ok(tsc) => Box::new(tsc),
            Err(error) => {
                eprintln!("no TSC for XDP here: {error:#}");
                // In its place; left out of the report by its name.
                Box::new(Probe::load(HARNESS)?)
            }
        },
    ])
}

/// One turn of every program: ns a frame.
fn turn(
    subjects: &mut [Box<dyn Subject>; SUBJECTS],
    size: usize,
    snaplen: u32,
) -> Result<[f64; SUBJECTS]> {
    let frame = vec![0xa5; size];
    let caplen = captured(size, snaplen);
    let mut sums = [0.0; SUBJECTS];
    for _ in 0..REPETITIONS {
        for (sum, subject) in sums.iter_mut().zip(subjects.iter_mut()) {
            *sum += repetition(subject.as_mut(), &frame, frames(caplen), caplen)?;
        }
    }
    Ok(sums.map(|sum| sum / REPETITIONS as f64))
}

fn captured(size: usize, snaplen: u32) -> usize {
    size.min(snaplen as usize)
}

/// Frames in a repetition: they fill at most three quarters of a buffer.
fn frames(caplen: usize) -> usize {
    // More than either kind of record adds to the bytes of the frame.
    let record = caplen + 64;
    (BUFFER_BYTES / 4 * 3 / record).min(MOST_FRAMES)
}

impl Cell {
    fn new(size: usize, snaplen: u32, has_tsc: bool, rounds: &[[f64; SUBJECTS]]) -> Self {
        let column = |index: usize| Spread::of(rounds.iter().map(|round| round[index]).collect());
        let harness = column(0);
        let cost = |index| {
            let ns = column(index);
            let net_ns = ns.with(&harness, |ns, harness| ns - harness);
            Cost { ns, net_ns }
        };
        Self {
            size,
            snaplen,
            frames: frames(captured(size, snaplen)),
            no_stamp: cost(1),
            ktime: cost(2),
            tai: cost(3),
            perf_output: cost(4),
            tsc: has_tsc.then(|| cost(5)),
            harness_ns: harness,
        }
    }

    /// The kind of frame, for people.
    pub fn name(&self) -> String {
        if self.snaplen == WHOLE {
            format!("{} B whole", self.size)
        } else {
            format!("{} B, snaplen {}", self.size, self.snaplen)
        }
    }
}

impl ProgramReport {
    /// ktime over perf output for each kind of frame, the one with the target
    /// first; then what TAI and the stamp itself add.
    pub fn ratios(&self) -> Vec<Ratio> {
        let whole = |cell: &&Cell| cell.snaplen == WHOLE;
        let (default, cut): (Vec<_>, Vec<_>) = self.cells.iter().partition(whole);
        let over_perf = default.iter().chain(&cut).map(|cell| {
            let target = (cell.size == SIZES[0]).then_some(TARGET);
            let what = format!("ktime / perf_output, {}", cell.name());
            ratio(what, &cell.ktime, &cell.perf_output, target)
        });
        let shortest = default.first().map(|cell| {
            let costs = [("no stamp", &cell.no_stamp), ("tai", &cell.tai)];
            let tsc = cell.tsc.iter().map(|cost| ("tsc", cost));
            costs.into_iter().chain(tsc).map(|(name, cost)| {
                let what = format!("{name} / ktime, {}", cell.name());
                ratio(what, cost, &cell.ktime, None)
            })
        });
        over_perf.chain(shortest.into_iter().flatten()).collect()
    }
}

fn ratio(name: String, over: &Cost, under: &Cost, target: Option<f64>) -> Ratio {
    Ratio {
        name,
        ratio: over.ns.with(&under.ns, |over, under| over / under),
        net: over.net_ns.with(&under.net_ns, |over, under| over / under),
        target,
    }
}

impl Section for ProgramReport {
    fn targets(&self) -> Vec<Target> {
        let ratios = self
            .ratios()
            .into_iter()
            .filter_map(|of| Some(Target::at_most(of.name, of.ratio.median, of.target?)));
        ratios.collect()
    }

    fn tables(&self) -> Vec<Table> {
        let ratios = self.ratios().into_iter().map(|of| {
            let figures = [show(&of.ratio, 2), show(&of.net, 2)];
            row(of.name, figures)
        });
        let costs = self.cells.iter().flat_map(|cell| {
            let costs = [&cell.no_stamp, &cell.ktime, &cell.tai, &cell.perf_output];
            let costs: Vec<_> = costs.into_iter().chain(&cell.tsc).collect();
            let of = |cost: fn(&Cost) -> &Spread| {
                let costs = costs.iter().map(move |of| show(cost(of), 0));
                costs.collect::<Vec<_>>()
            };
            let with = [vec![show(&cell.harness_ns, 0)], of(|cost| &cost.ns)].concat();
            let without = [vec![String::new()], of(|cost| &cost.net_ns)].concat();
            let name = format!("{}, less the harness", cell.name());
            [row(cell.name(), with), row(name, without)]
        });
        let title = format!(
            "XDP programs, ns a frame, BPF_PROG_TEST_RUN on CPU {}; rounds: {}",
            self.cpu, self.rounds
        );
        vec![
            Table::figures(
                "ratios of what one frame costs in the XDP program",
                &["", "with harness", "without"],
                ratios.collect(),
            ),
            Table::figures(
                title,
                &[
                    "",
                    "harness",
                    "no stamp",
                    "ktime",
                    "tai",
                    "perf_output",
                    "tsc",
                ],
                costs.collect(),
            ),
        ]
    }
}
