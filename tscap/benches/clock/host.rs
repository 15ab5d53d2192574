//! This host's own clocks: how wide the brackets are from which the model's constants
//! come, and what the clock costs.

use std::hint::black_box;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde::Serialize;
use tscap_clock::{
    CrossTimestamp, HostClocks, RawStamp, Reference, StampSource, Tracker, TscCycles,
    measure_tsc_rate,
};
use tscap_document::Table;
use tscap_statistics::{Spread, quantile};
use tscap_time::tsc;

use crate::common::converter::cpu_time_ns;
use crate::common::report::Section;
use crate::common::table::{row, show};
use crate::common::target::Target;

/// Between two readings: as in a capture under traffic, and in an idle one.
const GAPS: [(&str, Duration); 2] = [
    ("under traffic", Duration::from_micros(400)),
    (IDLE, Duration::from_millis(10)),
];
const IDLE: &str = "idle";
/// Most of a core that readings may take, %.
const SAMPLER_PERCENT: f64 = 0.1;
/// Shares of the widths that are given, and their columns.
const QUANTILES: [f64; 6] = [0.0, 0.25, 0.5, 0.9, 0.99, 0.999];
const COLUMNS: [&str; 7] = ["", "p0", "p25", "p50", "p90", "p99", "p99.9"];
/// Readings taken in a row to see what one costs.
const IN_A_ROW: u32 = 20_000;
/// Stamps converted in a round.
const STAMPS: u64 = 2_000_000;
/// Most that converting a stamp may take, ns; the rounds take a moment in all,
/// in which a busy machine may slow most of them.
const CONVERSION_NS: f64 = 5.0;

/// The stamps' greatest error against the host's clock is to be under this for 99 % of an
/// idle time, ns...
const BOUND_NS: f64 = 100.0;
/// ...and on a busy machine, whose readings are interrupted, under this in some round.
const BOUND_BUSY_NS: f64 = 1_000.0;

/// Most readings, 20 ms apart, until a clock has a rate: 2 s.
const SETTLING: u32 = 100;

/// Widths at one distance of the readings.
#[derive(Debug, Serialize)]
pub struct Widths {
    /// When.
    pub name: &'static str,
    /// Brackets taken.
    pub brackets: usize,
    /// Their quantiles, ns.
    pub quantiles_ns: Vec<(f64, f64)>,
    /// Readings of the clocks for one: more than 1 where some were interrupted.
    pub reads_each: f64,
    /// What one costs, as a share of a core at this distance.
    pub share_of_core: f64,
}

/// What was found.
#[derive(Debug, Serialize)]
pub struct Host {
    /// By distance.
    pub widths: Vec<Widths>,
    /// CPU time of reading the clocks and taking the reading in, ns.
    pub sample_ns: Spread,
    /// CPU time of converting one stamp, ns.
    pub conversion_ns: Spread,
    /// CPU time of a call that reads the TSC, ns: what a kfunc costs, but for how a
    /// program comes to it.
    pub called_ns: Spread,
    /// The same for an ordered read.
    pub called_ordered_ns: Spread,
    /// Bound of all stamps so far against the host's clock, ns: not exceeded for 99 % of a
    /// time with readings as when idle, from the start of a clock.
    pub bound_p99_ns: Spread,
}

/// The host's clocks, and how often they were read.
struct Counted {
    clocks: HostClocks,
    reads: u64,
}

impl Reference for Counted {
    fn read(&mut self) -> CrossTimestamp {
        self.reads += 1;
        self.clocks.read()
    }
}

/// Measures on the CPU to which the caller is pinned.
pub fn measure(rounds: u32, quick: bool) -> Result<Host> {
    let mut clocks = Counted {
        clocks: HostClocks::new(StampSource::Tsc),
        reads: 0,
    };
    let mut tracker = settled(&mut clocks)?;
    let samples: Result<_> = (0..rounds)
        .map(|_| in_a_row(&mut tracker, &mut clocks))
        .collect();
    let sample_ns = Spread::of(samples?);
    let mut widths = Vec::new();
    for (name, gap) in GAPS {
        eprintln!("brackets {name}");
        let found = distances(name, gap, quick, &mut tracker, &mut clocks)?;
        let each_ns = sample_ns.median * found.reads_each;
        widths.push(Widths {
            share_of_core: each_ns / gap.as_nanos() as f64,
            ..found
        });
    }
    eprintln!("bounds");
    let bounds: Result<_> = (0..rounds).map(|_| bound_p99(quick, &mut clocks)).collect();
    let conversion = tracker.conversion();
    let cross = clocks.read();
    let latest = tracker.stamp_at(&cross, cross.mono[0]).0;
    let conversions: Result<_> = (0..rounds)
        .map(|_| {
            let before = cpu_time_ns()?;
            for stamp in latest - STAMPS..latest {
                black_box(conversion.to_real(RawStamp(black_box(stamp))));
            }
            Ok((cpu_time_ns()? - before) / STAMPS as f64)
        })
        .collect();
    Ok(Host {
        widths,
        sample_ns,
        conversion_ns: Spread::of(conversions?),
        called_ns: calls(rounds, unordered)?,
        called_ordered_ns: calls(rounds, ordered)?,
        bound_p99_ns: Spread::of(bounds?),
    })
}

fn settled(clocks: &mut impl Reference) -> Result<Tracker> {
    let mut tracker = Tracker::new(StampSource::Tsc, &clocks.read()).context("the clock is set")?;
    for _ in 0..SETTLING {
        if tracker.is_settled() {
            return Ok(tracker);
        }
        thread::sleep(Duration::from_millis(20));
        tracker.observe(&clocks.read());
    }
    bail!("no rate of the TSC in {SETTLING} readings")
}

/// The 99th percentile of the bound after each reading of a new clock, ns.
fn bound_p99(quick: bool, clocks: &mut Counted) -> Result<f64> {
    let mut tracker = settled(clocks)?;
    let mut bounds = Vec::new();
    for _ in 0..seconds(quick) * 100 {
        thread::sleep(Duration::from_millis(10));
        let cross = tracker.read(clocks);
        tracker.observe(&cross);
        bounds.push(tracker.host_bound_ns());
    }
    bounds.sort_unstable();
    Ok(quantile(&bounds, 0.99).context("no reading")? as f64)
}

/// How long to look at something.
fn seconds(quick: bool) -> u64 {
    if quick { 1 } else { 5 }
}

#[inline(never)]
fn unordered() -> TscCycles {
    tsc::read_unordered()
}

#[inline(never)]
fn ordered() -> TscCycles {
    tsc::read()
}

/// CPU time of one call.
fn calls(rounds: u32, read: fn() -> TscCycles) -> Result<Spread> {
    let of_rounds: Result<_> = (0..rounds)
        .map(|_| {
            let before = cpu_time_ns()?;
            for _ in 0..STAMPS {
                black_box(black_box(read)());
            }
            Ok((cpu_time_ns()? - before) / STAMPS as f64)
        })
        .collect();
    Ok(Spread::of(of_rounds?))
}

/// CPU time of one reading.
fn in_a_row(tracker: &mut Tracker, clocks: &mut Counted) -> Result<f64> {
    let (before, reads) = (cpu_time_ns()?, clocks.reads);
    for _ in 0..IN_A_ROW {
        let cross = tracker.read(clocks);
        tracker.observe(&cross);
    }
    Ok((cpu_time_ns()? - before) / (clocks.reads - reads) as f64)
}

fn distances(
    name: &'static str,
    gap: Duration,
    quick: bool,
    tracker: &mut Tracker,
    clocks: &mut Counted,
) -> Result<Widths> {
    let brackets = (Duration::from_secs(seconds(quick)).as_nanos() / gap.as_nanos()) as usize;
    let rate = measure_tsc_rate().context("every reading was interrupted")?;
    let mut widths = Vec::with_capacity(brackets);
    let reads = clocks.reads;
    for _ in 0..brackets {
        thread::sleep(gap);
        let cross = tracker.read(clocks);
        tracker.observe(&cross);
        let tsc = cross.tsc.context("the TSC was read")?;
        widths.push(rate.duration_ns(tsc[1].0 - tsc[0].0));
    }
    widths.sort_unstable();
    let quantile = |share: f64| quantile(&widths, share).map_or(f64::NAN, |ns| ns as f64);
    Ok(Widths {
        name,
        brackets,
        quantiles_ns: QUANTILES.map(|share| (share, quantile(share))).to_vec(),
        reads_each: (clocks.reads - reads) as f64 / brackets as f64,
        share_of_core: 0.0,
    })
}

impl Section for Host {
    fn targets(&self) -> Vec<Target> {
        let samplers = self.widths.iter().map(|widths| {
            let name = format!("readings {}, % of a core", widths.name);
            let percent = widths.share_of_core * 100.0;
            // On a slow machine a reading may take more.
            Target::at_most(name, percent, SAMPLER_PERCENT).asserted_if(widths.name == IDLE)
        });
        let bound = |round: &str, value, most| {
            Target::at_most(
                format!("bound when idle, p99, {round} round, ns"),
                value,
                most,
            )
        };
        let Spread { median, min, .. } = self.bound_p99_ns;
        let others = [
            Target::at_most(
                "conversion of a TSC stamp, best round, ns",
                self.conversion_ns.min,
                CONVERSION_NS,
            ),
            bound("median", median, BOUND_NS).asserted_if(false),
            bound("best", min, BOUND_BUSY_NS),
        ];
        samplers.chain(others).collect()
    }

    fn tables(&self) -> Vec<Table> {
        let widths = self.widths.iter().map(|widths| {
            let quantiles = widths.quantiles_ns.iter();
            let quantiles = quantiles.map(|(_, ns)| format!("{ns:.0}"));
            row(format!("{} ({})", widths.name, widths.brackets), quantiles)
        });
        let shares = self.widths.iter().map(|widths| {
            let name = format!("one sample {}, share of a core", widths.name);
            row(name, [format!("{:.4} %", widths.share_of_core * 100.0)])
        });
        let costs = [
            ("one sample, CPU ns", &self.sample_ns, 0),
            ("conversion of a stamp, CPU ns", &self.conversion_ns, 1),
            ("call and read of the TSC, CPU ns", &self.called_ns, 1),
            ("the same ordered", &self.called_ordered_ns, 1),
            ("bound when idle, p99, ns", &self.bound_p99_ns, 0),
        ];
        let costs = costs.map(|(name, figure, decimals)| row(name, [show(figure, decimals)]));
        vec![
            Table::figures(
                "this host: width of brackets, ns",
                &COLUMNS,
                widths.collect(),
            ),
            Table::figures(
                "this host: costs and bound",
                &["", "figure"],
                costs.into_iter().chain(shares).collect(),
            ),
        ]
    }
}
