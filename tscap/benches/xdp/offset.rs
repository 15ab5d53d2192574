//! How closely the offset between each CPU's TSC event and the TSC is bracketed.

use anyhow::{Context, Result, anyhow};
use serde::Serialize;
use tscap_capture::first_brackets;
use tscap_clock::{HostClocks, NsPerCycle, OffsetBracket, StampSource};
use tscap_common::hook::{ClockDomain, Hook};
use tscap_common::ring::MIN_RING_BYTES;
use tscap_document::Table;
use tscap_host::perf::EventPriority;
use tscap_host::system::{online_cpus, possible_cpus};
use tscap_programs::hook::{LoadOptions, Loaded, PROGRAMS, TscEvents};
use tscap_statistics::Spread;

use crate::common::report::Section;
use crate::common::table::{absent, row, show};
use crate::common::target::Target;

/// At most this wide may a CPU's own leg be, ns (on an idle machine, as it is in
/// the best round at least).
const CPU_TARGET_NS: f64 = 100.0;
/// At most this wide may the chain to the TSC be, ns.
const WHOLE_TARGET_NS: f64 = 150.0;

/// The part of the report.
#[derive(Debug, Serialize)]
pub struct OffsetReport {
    /// Rounds measured, a calibration of each CPU in each.
    pub rounds: u32,
    /// What could not be measured, and why.
    pub absent: Vec<String>,
    /// One for each CPU.
    pub cells: Vec<Cell>,
}

/// One CPU.
#[derive(Debug, Serialize)]
pub struct Cell {
    /// Which.
    pub cpu: u32,
    /// Its own leg: CLOCK_MONOTONIC around the event, ns.
    pub cpu_ns: Spread,
    /// Most that it may be in the best round, ns.
    pub cpu_target_ns: f64,
    /// The leg that all CPUs share: the TSC around CLOCK_MONOTONIC, ns.
    pub common_ns: Spread,
    /// The whole chain, ns.
    pub whole_ns: Spread,
    /// Most that it may be in the best round, ns.
    pub whole_target_ns: f64,
}

/// Measures every CPU.
pub fn measure(rounds: u32) -> Result<OffsetReport> {
    let (mut loaded, _events, cpus) = match load() {
        Ok(loaded) => loaded,
        Err(error) => {
            return Ok(OffsetReport {
                rounds,
                absent: vec![format!("no TSC for XDP here: {error:#}")],
                cells: Vec::new(),
            });
        }
    };
    let rate = rate()?;
    let mut results: Vec<_> = cpus.into_iter().map(|cpu| (cpu, Vec::new())).collect();
    for round in 1..=rounds {
        eprintln!("offset: round {round} of {rounds}");
        for (cpu, brackets) in &mut results {
            brackets.push(loaded.tsc_offset(*cpu, rate)?.bracket);
        }
    }
    let cells = results.into_iter().map(|(cpu, brackets)| {
        let spread = |leg: fn(&OffsetBracket) -> u64| {
            Spread::of(brackets.iter().map(|it| leg(it) as f64).collect())
        };
        Cell {
            cpu,
            cpu_ns: spread(|it| it.cpu_ns),
            cpu_target_ns: CPU_TARGET_NS,
            common_ns: spread(|it| it.common_ns),
            whole_ns: spread(|it| it.whole_ns),
            whole_target_ns: WHOLE_TARGET_NS,
        }
    });
    Ok(OffsetReport {
        rounds,
        absent: Vec::new(),
        cells: cells.collect(),
    })
}

fn load() -> Result<(Loaded, TscEvents, Vec<u32>)> {
    let cpus = online_cpus()?;
    let mut options = LoadOptions::new(PROGRAMS, (MIN_RING_BYTES, &cpus), possible_cpus()?);
    (options.clock, options.snaplen) = (ClockDomain::CpuTsc, 64);
    options.program = Hook::Xdp.program(ClockDomain::CpuTsc);
    let mut loaded = Loaded::load(&options)?;
    let events = loaded.open_tsc_events(&cpus, EventPriority::Pinned)?;
    Ok((loaded, events, cpus))
}

/// The counter's rate, as a capture measures it at its start.
fn rate() -> Result<NsPerCycle> {
    let mut clocks = HostClocks::new(StampSource::Tsc);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()?;
    let tracker = runtime.block_on(first_brackets(StampSource::Tsc, &mut clocks));
    let tracker = tracker.map_err(|failure| anyhow!("{failure}"))?;
    Ok(tracker.counter().context("settled")?.rate())
}

impl Section for OffsetReport {
    fn targets(&self) -> Vec<Target> {
        let targets = self.cells.iter().flat_map(|cell| {
            let name = |leg| format!("offset of CPU {}, {leg}, best round, ns", cell.cpu);
            [
                Target::at_most(name("own leg"), cell.cpu_ns.min, cell.cpu_target_ns),
                Target::at_most(name("whole"), cell.whole_ns.min, cell.whole_target_ns),
            ]
        });
        targets.collect()
    }

    fn tables(&self) -> Vec<Table> {
        let rows = self.cells.iter().map(|cell| {
            let legs = [&cell.cpu_ns, &cell.common_ns, &cell.whole_ns];
            row(format!("CPU {}", cell.cpu), legs.map(|leg| show(leg, 0)))
        });
        let title = format!(
            "offset of each CPU's TSC event to the TSC, bracket in ns; rounds: {}",
            self.rounds
        );
        let head = ["", "CPU's own leg", "common leg", "whole"];
        vec![Table::figures(title, &head, rows.collect()).notes(absent(&self.absent))]
    }
}
