//! How precise each program's stamps are: receive stamp less send stamp of frames 20 µs apart,
//! and what their intervals are off by, from the files that the programs wrote.

use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use pcap_file::pcap::PcapReader;
use serde::Serialize;
use tscap_clock::StampSource;
use tscap_common::stream::StreamHeader;
use tscap_document::Table;
use tscap_file::accounting::Direction;
use tscap_file::pcapng::{Record, records};
use tscap_programs::hook::HookChoice;
use tscap_statistics::{Spread, quantile};
use tscap_streams::{Content, content};
use tscap_time::timex::KernelClock;
use tscap_traffic::load::{Burst, Pair, Program, Setup, Stop, TestBed, Tool};

use super::common::report::Section;
use super::common::rounds::{self, Subject};
use super::common::stamps::difference;
use super::common::table::{row, show};
use super::common::target::Target;
use super::common::tmpfs::own_warm_folder;

/// Frames of a run: 0.2 s.
const FRAMES: u64 = 10_000;
/// Most bytes of a frame that are kept.
const SNAPLEN: u32 = 128;
/// Memory of each program between kernel and file, bytes.
const BUFFER_BYTES: u64 = 32 << 20;
/// Longer than any run.
const LONGEST: Duration = Duration::from_secs(60);
/// Shares of the values that are given.
const QUANTILES: [f64; 5] = [0.25, 0.5, 0.75, 0.99, 0.999];
/// A pcapng file begins so.
const SECTION_HEADER: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

/// What a run gave, ns.
struct Run {
    delay: [f64; QUANTILES.len()],
    interval_error: [f64; QUANTILES.len()],
}

/// Of one program.
#[derive(Debug, Serialize)]
pub struct ToolPrecision {
    tool: Tool,
    version: String,
    /// Quantiles of the receive stamp less the send stamp, ns.
    delay_ns: Vec<(f64, Spread)>,
    /// Their interquartile range.
    iqr_ns: Spread,
    /// Quantiles of |inter-arrival − inter-send|, ns.
    interval_error_ns: Vec<(f64, Spread)>,
}

/// The part of the report.
#[derive(Debug, Serialize)]
pub struct PrecisionReport {
    rounds: u32,
    frames: u64,
    tools: Vec<ToolPrecision>,
}

/// Measures on this thread, pinned to the sender's CPU.
pub fn measure(
    programs: &[Program],
    cpus: &[u32],
    rounds: u32,
    stop: &Arc<Stop>,
) -> Result<PrecisionReport> {
    let folder = own_warm_folder(FRAMES * 256)?;
    let output = folder.path().join("precision");
    let bed = TestBed::new(Pair::new()?, Arc::clone(stop))?;
    let bed = std::cell::RefCell::new(bed);
    let mut subjects: Vec<_> = programs
        .iter()
        .map(|program| {
            let (bed, output) = (&bed, &output);
            Subject::new(program.tool.name(), move || {
                if stop.is_asked() {
                    bail!("told to end");
                }
                run(&mut bed.borrow_mut(), program, cpus, output)
            })
        })
        .collect();
    rounds::run("precision", rounds, &mut subjects)?;
    let tools = programs.iter().zip(&subjects).map(|(program, subject)| {
        let runs = &subject.results;
        let of = |figure: &dyn Fn(&Run) -> f64| Spread::of(runs.iter().map(figure).collect());
        let shares = || QUANTILES.into_iter().enumerate();
        let delay_ns = shares().map(|(at, share)| (share, of(&|run| run.delay[at])));
        let errors = shares().map(|(at, share)| (share, of(&|run| run.interval_error[at])));
        Ok(ToolPrecision {
            tool: program.tool,
            version: program.version()?,
            delay_ns: delay_ns.collect(),
            iqr_ns: of(&|run| run.delay[2] - run.delay[0]),
            interval_error_ns: errors.collect(),
        })
    });
    Ok(PrecisionReport {
        rounds,
        frames: FRAMES,
        tools: tools.collect::<Result<_>>()?,
    })
}

fn run(bed: &mut TestBed, program: &Program, cpus: &[u32], output: &Path) -> Result<Run> {
    let setup = Setup {
        snaplen: SNAPLEN,
        buffer_bytes: BUFFER_BYTES,
        direction: Direction::In,
        hook: HookChoice::Auto,
        tap: false,
        expression: None,
        clock: StampSource::Ktime,
        tsc_path: None,
        output: output.to_owned(),
        cpus: cpus.to_vec(),
        longest: LONGEST,
    };
    let point = bed.capture(program, &setup, Burst::fast(FRAMES))?;
    ensure!(
        point.lost.total() == 0,
        "{} frames lost",
        point.lost.total()
    );
    let tai_offset_ns = i64::from(KernelClock::read()?.tai_offset_s) * 1_000_000_000;
    let frames = frames(output)?;
    std::fs::remove_file(output)?;
    ensure!(
        frames.len() as u64 == FRAMES,
        "{} test frames",
        frames.len()
    );
    let delays = frames.iter().map(|(real, header)| {
        let received = real.wrapping_add_signed(tai_offset_ns);
        difference(received, header.tai)
    });
    let errors = frames.windows(2).filter_map(|pair| {
        let [(from, before), (to, after)] = pair else {
            return None;
        };
        let arrival = to.wrapping_sub(*from).cast_signed();
        let next = after.seq == before.seq + 1;
        next.then(|| (arrival - difference(after.tai, before.tai)).abs())
    });
    Ok(Run {
        delay: quantiles(delays.collect())?,
        interval_error: quantiles(errors.collect())?,
    })
}

fn quantiles(mut values: Vec<i64>) -> Result<[f64; QUANTILES.len()]> {
    values.sort_unstable();
    let mut found = [0.0; QUANTILES.len()];
    for (found, share) in found.iter_mut().zip(QUANTILES) {
        *found = quantile(&values, share).context("no frames")? as f64;
    }
    Ok(found)
}

/// Each frame of the generator in a pcap or pcapng file: its time, CLOCK_REALTIME, ns, and its
/// header.
fn frames(path: &Path) -> Result<Vec<(u64, StreamHeader)>> {
    let mut file = File::open(path)?;
    let mut magic = [0; 4];
    file.read_exact(&mut magic)?;
    file.rewind()?;
    let mut found = Vec::new();
    let mut take = |real: u64, data: &[u8], origlen: u32| {
        if let Content::Stream(header, _) = content(data, origlen) {
            found.push((real, header));
        }
    };
    if magic == SECTION_HEADER {
        for record in records(&mut file)? {
            if let Record::Packet(packet) = record? {
                take(packet.time.0, &packet.data, packet.origlen);
            }
        }
    } else {
        let mut reader = PcapReader::new(file)?;
        while let Some(packet) = reader.next_packet() {
            let packet = packet?;
            let real = u64::try_from(packet.timestamp().as_nanos())?;
            take(real, packet.data(), packet.orig_len());
        }
    }
    Ok(found)
}

impl Section for PrecisionReport {
    fn targets(&self) -> Vec<Target> {
        Vec::new()
    }

    fn tables(&self) -> Vec<Table> {
        let rows = self.tools.iter().map(|of| {
            let delay = of.delay_ns.iter().map(|(_, spread)| spread);
            let errors = of.interval_error_ns.iter().map(|(_, spread)| spread);
            // The median and the tail of each.
            let figures = delay.skip(1).step_by(2).chain([&of.iqr_ns]);
            let figures = figures.chain(errors.skip(1).step_by(2));
            row(of.tool.name(), figures.map(|figure| show(figure, 0)))
        });
        let title = format!(
            "precision: {} frames 20 µs apart, {} rounds, ns; receive less send stamp, and \
             |inter-arrival − inter-send|",
            self.frames, self.rounds
        );
        let head = ["", "p50", "p99", "IQR", "interval p50", "interval p99"];
        vec![Table::figures(title, &head, rows.collect())]
    }
}
