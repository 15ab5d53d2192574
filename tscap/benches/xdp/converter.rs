//! What one frame costs in the converter, on a ring filled beforehand, and on one that
//! another CPU fills meanwhile, as a capture's.
//!
//! The ring is as large as the default one, larger than the last-level cache,
//! so that most blocks of one filled beforehand come from memory. CPU time of the thread around one
//! drain: with an output that discards there is no system call in it, only
//! faults and interrupts, so it bounds the user time from above.

use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use tscap_clock::{RawStamp, RealNs, StampPath, TscPath};
use tscap_common::block::{STAMP_HIGH_OFFSET, block_len};
use tscap_document::Table;
use tscap_engine::{Io, Output, PreparedFile};
use tscap_programs::ring::synthetic::{self, Producer};
use tscap_statistics::Spread;
use tscap_testkit::process::on_cpu;

use crate::common::converter::{Discard, Filled, SLOT, cpu_time_ns};
use crate::common::report::Section;
use crate::common::table::{absent, row, show};
use crate::common::target::Target;
use crate::common::tmpfs;

/// The default ring.
const RING_BYTES: usize = 64 << 20;
/// Frame lengths, bytes.
const SIZES: [usize; 2] = [64, 1500];
/// At most this much CPU time for a 64-byte frame besides `write`, ns.
const TARGET_NS: f64 = 15.0;
/// Where memory is slow, `--assert` allows it so many times what it takes there to put a
/// stamp into each block of such a ring and do nothing else.
const TIMES_MEMORY: f64 = 3.0;
/// Drains of each kind in a round of the comparison between stamps, of which the
/// fastest counts: the difference is smaller than the machine's noise.
const TURNS: u32 = 3;
/// At most this much more for a TSC stamp than for a `ktime` stamp, ns.
const TSC_TARGET_NS: f64 = 5.0;
/// What comes in meanwhile: 64-byte frames that go on up the stack come at about 2 Mpps
/// (`cargo xtask bench capture`), in bulks of a NAPI poll, and are drained by 512 KiB.
const LIVE_FRAMES: u64 = 1 << 20;
const LIVE_EACH: Duration = Duration::from_nanos(500);
const LIVE_BULK: u64 = 64;
const LIVE_PAUSE: Duration = Duration::from_micros(2_600);
/// At most this much CPU time for such a frame, ns.
const LIVE_TARGET_NS: f64 = 6.0;

/// The part of the report.
#[derive(Debug, Serialize)]
pub struct ConverterReport {
    /// Rounds measured.
    pub rounds: u32,
    /// Length of the ring, bytes.
    pub ring_bytes: usize,
    /// What could not be measured, and why.
    pub absent: Vec<String>,
    /// One for each kind of frame and output.
    pub cells: Vec<Cell>,
    /// CPU time of a 64-byte frame that goes nowhere and has come from another CPU since the
    /// last drain, ns.
    pub live_ns: Option<Spread>,
    /// What it takes to put a stamp into each block of such frames, and do nothing else, ns a
    /// frame.
    pub live_memory_ns: Option<Spread>,
    /// What it takes to put a stamp into each block of a ring of 64-byte frames, and do
    /// nothing else, ns a frame.
    pub memory_ns: Spread,
    /// What a TSC stamp costs more than a `ktime` stamp on 64-byte frames that go
    /// nowhere, ns a frame.
    pub tsc_more_ns: Spread,
    /// Most that its median may be, ns.
    pub tsc_target_ns: f64,
}

/// One kind of frame to one output.
#[derive(Debug, Serialize)]
pub struct Cell {
    /// Length of the frame, bytes.
    pub size: usize,
    /// Where the blocks went.
    pub output: &'static str,
    /// Frames in the ring.
    pub frames: usize,
    /// CPU time, ns a frame.
    pub ns: Spread,
    /// Most that the median should be, ns.
    pub target_ns: Option<f64>,
    /// Most that the best round may be, ns.
    pub asserted_ns: Option<f64>,
}

impl Cell {
    /// What was measured, for people.
    pub fn name(&self) -> String {
        format!("{} B, {}", self.size, self.output)
    }
}

/// Where the blocks go.
#[derive(Clone, Copy, Debug)]
enum Sink<'a> {
    /// Nowhere, without a system call.
    Nowhere,
    /// A file in this folder, in memory that was written before.
    File(&'a Path),
}

impl Sink<'_> {
    fn name(self) -> &'static str {
        match self {
            Self::Nowhere => "no write",
            Self::File(_) => "write to tmpfs",
        }
    }

    fn open(self) -> Result<Output> {
        Ok(match self {
            Self::Nowhere => Output::stream(Discard),
            // Emptied each time.
            Self::File(folder) => {
                PreparedFile::open(&folder.join("out.pcapng"))?.start(Io::Buffered)?
            }
        })
    }
}

/// Measures the converter on the CPU to which the caller is pinned.
pub fn measure(rounds: u32, other: Option<usize>) -> Result<ConverterReport> {
    let (folder, mut absent) = match tmpfs::warm_folder(2 * RING_BYTES as u64) {
        Ok(folder) => (Some(folder), Vec::new()),
        Err(error) => (None, vec![format!("files in memory: {error:#}")]),
    };
    let mut targets = vec![Sink::Nowhere];
    targets.extend(folder.iter().map(|folder| Sink::File(folder.path())));
    let mut results: Vec<_> = SIZES
        .into_iter()
        .flat_map(|size| targets.iter().map(move |target| (size, *target, vec![])))
        .collect();
    if other.is_none() {
        absent.push("frames from another CPU: there is one CPU".to_owned());
    }
    let (mut tsc_more, mut memory) = (Vec::new(), Vec::new());
    let (mut live, mut live_memory) = (Vec::new(), Vec::new());
    for round in 1..=rounds {
        eprintln!("converter: round {round} of {rounds}");
        let (mut tsc, mut ktime) = (f64::MAX, f64::MAX);
        for _ in 0..TURNS {
            tsc = tsc.min(drain(
                StampPath::Tsc(TscPath::Perf),
                SIZES[0],
                Sink::Nowhere.open()?,
            )?);
            ktime = ktime.min(drain(StampPath::Ktime, SIZES[0], Sink::Nowhere.open()?)?);
        }
        tsc_more.push(tsc - ktime);
        memory.push(put_stamps(SIZES[0])?);
        if let Some(other) = other {
            live.push(drain_live(other)?);
            live_memory.push(put_stamps_live(other)?);
        }
        for (size, target, results) in &mut results {
            let ns = target
                .open()
                .and_then(|output| drain(StampPath::Ktime, *size, output));
            results.push(ns.with_context(|| format!("{size} bytes, {}", target.name()))?);
        }
    }
    let memory_ns = Spread::of(memory);
    let asserted_ns = TARGET_NS.max(TIMES_MEMORY * memory_ns.median);
    let cells = results.into_iter().map(|(size, target, results)| {
        let is_held = size == SIZES[0] && matches!(target, Sink::Nowhere);
        Cell {
            size,
            output: target.name(),
            frames: frames(size),
            ns: Spread::of(results),
            target_ns: is_held.then_some(TARGET_NS),
            asserted_ns: is_held.then_some(asserted_ns),
        }
    });
    Ok(ConverterReport {
        rounds,
        ring_bytes: RING_BYTES,
        cells: cells.collect(),
        absent,
        live_ns: other.map(|_| Spread::of(live)),
        live_memory_ns: other.map(|_| Spread::of(live_memory)),
        memory_ns,
        tsc_more_ns: Spread::of(tsc_more),
        tsc_target_ns: TSC_TARGET_NS,
    })
}

/// As many frames as the ring holds.
fn frames(size: usize) -> usize {
    RING_BYTES / block_len(size, 0)
}

/// Fills a ring, drains it once into `output`; CPU time in ns a frame.
fn drain(path: StampPath, size: usize, output: Output) -> Result<f64> {
    let mut filled = Filled::new(path, 1, RING_BYTES, output)?;
    let frames = frames(size);
    let from = filled.now.0;
    fill(&mut filled.producers[0], from, size, frames)?;
    Ok(filled.drain(frames as u64)? / frames as f64)
}

/// Drains a ring into which CPU `other` puts 64-byte frames at the same time; CPU time in ns
/// a frame.
fn drain_live(other: usize) -> Result<f64> {
    let mut filled = Filled::new(StampPath::Ktime, 1, RING_BYTES, Output::stream(Discard))?;
    let (producer, from) = (filled.producers.remove(0), filled.now.0);
    live(other, producer, from, || filled.drain_some())
}

/// Puts a stamp into each block of such a ring, and nothing else; CPU time in ns a frame.
fn put_stamps_live(other: usize) -> Result<f64> {
    let (mut producers, mut consumers) = synthetic::rings(1, RING_BYTES)?;
    let (producer, mut consumer) = (producers.remove(0), consumers.remove(0));
    live(other, producer, 1, || {
        let before = cpu_time_ns()?;
        let (mut frames, head) = (0, consumer.head());
        while let Some(mut run) = consumer.run(head, RawStamp::NEVER) {
            while let Some(block) = run.next_block() {
                block?.finish(0, RealNs(frames));
                frames += 1;
            }
            let taken = run.taken();
            consumer.take(taken);
        }
        consumer.release();
        Ok((frames, cpu_time_ns()? - before))
    })
}

/// Has `drain` take out what CPU `other` puts into a ring; CPU time in ns a frame.
fn live(
    other: usize,
    mut producer: Producer,
    from: u64,
    mut drain: impl FnMut() -> Result<(u64, f64)>,
) -> Result<f64> {
    std::thread::scope(|scope| {
        let sender = scope.spawn(move || on_cpu(other, || send(&mut producer, from)));
        let (mut frames, mut taken) = (0, 0.0);
        while frames < LIVE_FRAMES {
            std::thread::sleep(LIVE_PAUSE);
            let is_last = sender.is_finished();
            let (more, ns) = drain()?;
            (frames, taken) = (frames + more, taken + ns);
            ensure!(!is_last || frames == LIVE_FRAMES, "frames were lost");
        }
        Ok(taken / frames as f64)
    })
}

/// Puts frames into a ring as they would come.
fn send(producer: &mut Producer, from: u64) {
    let frame = [0xa5; SIZES[0]];
    let start = Instant::now();
    for number in 0..LIVE_FRAMES {
        let due = LIVE_EACH * (number / LIVE_BULK * LIVE_BULK) as u32;
        while start.elapsed() < due {
            std::hint::spin_loop();
        }
        producer.push(SLOT, RawStamp(from + number), &frame);
    }
}

/// CPU time of putting a stamp into each block of a ring's length of memory that was
/// filled just before, ns a frame.
fn put_stamps(size: usize) -> Result<f64> {
    let mut memory = vec![0u8; RING_BYTES];
    memory.fill(0xa5);
    let before = cpu_time_ns()?;
    let blocks = memory.chunks_exact_mut(block_len(size, 0));
    for (number, block) in (0u64..).zip(black_box(blocks)) {
        if let Some(stamp) = block[STAMP_HIGH_OFFSET..].first_chunk_mut() {
            *stamp = number.to_ne_bytes();
        }
    }
    black_box(&memory);
    Ok((cpu_time_ns()? - before) / frames(size) as f64)
}

fn fill(producer: &mut Producer, from: u64, size: usize, frames: usize) -> Result<()> {
    let frame = vec![0xa5; size];
    for number in 0..frames as u64 {
        let stamp = RawStamp(from + number);
        ensure!(producer.push(SLOT, stamp, &frame), "the ring is full");
    }
    Ok(())
}

impl Section for ConverterReport {
    fn targets(&self) -> Vec<Target> {
        let cells = self.cells.iter().flat_map(|cell| {
            let target = |round, ns, most: Option<f64>| {
                let name = format!("converter, {}, {round}, ns", cell.name());
                Some(Target::at_most(name, ns, most?))
            };
            let wanted = target("median", cell.ns.median, cell.target_ns);
            let held = target("best round", cell.ns.min, cell.asserted_ns);
            wanted
                .map(|it| it.asserted_if(false))
                .into_iter()
                .chain(held)
        });
        let tsc = Target::at_most(
            "converter, 64 B, tsc less ktime, ns",
            self.tsc_more_ns.median,
            self.tsc_target_ns,
        );
        let live = self.live_ns.as_ref().map(|ns| {
            let name = "converter, 64 B, from another CPU, median, ns";
            Target::at_most(name, ns.median, LIVE_TARGET_NS).asserted_if(false)
        });
        cells.chain([tsc]).chain(live).collect()
    }

    fn tables(&self) -> Vec<Table> {
        let cells = self.cells.iter();
        let cells = cells.map(|cell| row(cell.name(), [show(&cell.ns, 1)]));
        let others = [
            row(
                "64 B, a stamp put into each block",
                [show(&self.memory_ns, 1)],
            ),
            row(
                "64 B, no write, tsc less ktime",
                [show(&self.tsc_more_ns, 1)],
            ),
        ];
        let title = format!(
            "converter, ring of {} MiB filled beforehand; rounds: {}",
            self.ring_bytes >> 20,
            self.rounds
        );
        let live = [
            ("64 B, no write, from another CPU", &self.live_ns),
            (
                "64 B, a stamp put into each block, from another CPU",
                &self.live_memory_ns,
            ),
        ];
        let live = live
            .into_iter()
            .filter_map(|(name, ns)| Some(row(name, [show(ns.as_ref()?, 1)])));
        let rows = cells.chain(live).chain(others).collect();
        let table = Table::figures(title, &["", "CPU ns a frame"], rows);
        vec![table.notes(absent(&self.absent))]
    }
}
