//! Errors over days, by scenario and polling period (figures 2, 5, 9 and 10 of the paper).

use anyhow::{Context, Result};
use serde::Serialize;
use tscap_document::Table;
use tscap_statistics::{Spread, quantile};

use super::rows;
use crate::script::{S, Script, oscillator, scenarios};
use crate::subjects::{NAMES, Subjects};

/// Polling periods, s.
pub const PERIODS_S: [u64; 4] = [16, 64, 256, 1_024];
/// Shares of the errors that are given, as in figure 9.
const QUANTILES: [f64; 5] = [0.01, 0.25, 0.5, 0.75, 0.99];
/// Loops have settled after so many of their time constants, of 16 periods.
const SETTLED: u64 = 8 * 16;
/// Points of a trace, and bars of a histogram: more would not be seen.
const POINTS: usize = 400;
const BARS: usize = 60;
/// The period of which traces are kept: that of figure 10.
const TRACED_S: u64 = 256;

/// One clock's errors, µs.
#[derive(Debug, Serialize)]
pub struct Errors {
    /// Which clock.
    pub clock: &'static str,
    /// Quantiles of the error.
    pub quantiles_us: Vec<(f64, Spread)>,
    /// Interquartile range.
    pub iqr_us: Spread,
}

/// All clocks in one scenario at one period.
#[derive(Debug, Serialize)]
pub struct Series {
    /// What happens.
    pub scenario: &'static str,
    /// The polling period, s.
    pub period_s: u64,
    /// In the order of their names.
    pub of_each: Vec<Errors>,
}

/// A clock's error over time, and how often which.
#[derive(Debug, Serialize)]
pub struct Trace {
    /// What happens.
    pub scenario: &'static str,
    /// The polling period, s.
    pub period_s: u64,
    /// Which clock.
    pub clock: &'static str,
    /// Hours since the clocks had settled, and the error, µs: as many points as can be seen.
    pub over_time: Vec<(f64, f64)>,
    /// From an error on, µs, and the share of the errors up to the next one, %.
    pub histogram: Vec<(f64, f64)>,
}

/// Of one series: times, s, and the errors of each clock then, ns.
struct Found {
    seconds: Vec<f64>,
    errors: [Vec<f64>; NAMES.len()],
}

/// Simulates `rounds` random series of `days` each in every scenario at every period.
pub fn measure(rounds: u32, days: u64) -> Result<(Vec<Series>, Vec<Trace>)> {
    let (mut all, mut traces) = (Vec::new(), Vec::new());
    for (scenario, script) in scenarios() {
        for period_s in PERIODS_S {
            eprintln!("{scenario}, polling every {period_s} s");
            let mut quantiles = [const { Vec::new() }; NAMES.len()];
            for round in 0..u64::from(rounds) {
                let found = series(1_000 + round, &script, period_s, days)?;
                if round == 0 && period_s == TRACED_S {
                    traces.extend(found.traces(scenario));
                }
                for (mut errors, quantiles) in found.errors.into_iter().zip(&mut quantiles) {
                    errors.sort_by(f64::total_cmp);
                    quantiles.push(of_shares(&errors)?);
                }
            }
            let of_each = NAMES.into_iter().zip(&quantiles);
            all.push(Series {
                scenario,
                period_s,
                of_each: of_each.map(|(clock, found)| errors(clock, found)).collect(),
            });
        }
    }
    Ok((all, traces))
}

/// The errors of one clock in all series.
fn errors(clock: &'static str, found: &[[f64; QUANTILES.len()]]) -> Errors {
    let of = |quantile: usize| Spread::of(found.iter().map(|it| it[quantile] / 1e3).collect());
    Errors {
        clock,
        quantiles_us: (0..)
            .zip(QUANTILES)
            .map(|(at, share)| (share, of(at)))
            .collect(),
        iqr_us: of(3).with(&of(1), |high, low| high - low),
    }
}

fn of_shares(sorted: &[f64]) -> Result<[f64; QUANTILES.len()]> {
    let mut of_shares = [0.0; QUANTILES.len()];
    for (share, of_share) in QUANTILES.into_iter().zip(&mut of_shares) {
        *of_share = quantile(sorted, share).context("no errors")?;
    }
    Ok(of_shares)
}

fn series(seed: u64, script: &Script, period_s: u64, days: u64) -> Result<Found> {
    let mut subjects = Subjects::new(seed, script, oscillator(), period_s)?;
    let from = SETTLED * period_s;
    let mut found = Found {
        seconds: Vec::new(),
        errors: [const { Vec::new() }; NAMES.len()],
    };
    for second in (2 * period_s..from + days * 86_400).step_by(period_s as usize) {
        subjects.exchange(second);
        if second < from {
            continue;
        }
        // Soon after an exchange, and just before the next one.
        for part in [1, 3, 5, 7] {
            let t = second * S + period_s * S * part / 8;
            let errors = subjects.errors(t).of_each;
            found.seconds.push((t - from * S) as f64 / 1e9);
            for (all, error) in found.errors.iter_mut().zip(errors) {
                all.push(error);
            }
        }
    }
    Ok(found)
}

impl Found {
    fn traces(&self, scenario: &'static str) -> Vec<Trace> {
        let stride = self.seconds.len().div_ceil(POINTS).max(1);
        let errors = || self.errors.iter().flatten().map(|ns| ns / 1e3);
        let low = errors().fold(f64::INFINITY, f64::min);
        let high = errors().fold(f64::NEG_INFINITY, f64::max);
        let width = (high - low) / BARS as f64;
        let share = 100.0 / self.seconds.len() as f64;
        let of_clock = |(clock, errors): (&'static str, &Vec<f64>)| {
            let over_time = self.seconds.iter().zip(errors).step_by(stride);
            let mut bars = [0.0; BARS];
            for ns in errors {
                let bar = ((ns / 1e3 - low) / width) as usize;
                bars[bar.min(BARS - 1)] += share;
            }
            Trace {
                scenario,
                period_s: TRACED_S,
                clock,
                over_time: over_time.map(|(s, ns)| (s / 3_600.0, ns / 1e3)).collect(),
                histogram: (0..)
                    .zip(bars)
                    .map(|(bar, share)| (low + width * f64::from(bar), share))
                    .collect(),
            }
        };
        NAMES.into_iter().zip(&self.errors).map(of_clock).collect()
    }
}

/// A table of each scenario, with the paper's figures beneath.
pub fn tables(all: &[Series], rounds: u32, days: u64) -> Vec<Table> {
    let scenarios = all.chunk_by(|a, b| a.scenario == b.scenario);
    let tables = scenarios.map(|series| {
        let rows = series.iter().flat_map(|series| {
            let figures = |clock: usize| {
                let errors = &series.of_each[clock];
                let quantiles = errors.quantiles_us.iter().map(|(_, spread)| spread);
                quantiles.chain([&errors.iqr_us]).collect()
            };
            rows(format!("{} s", series.period_s), figures, 1)
        });
        Table::figures(
            format!(
                "{}: error against true time, µs; {rounds} random series of {days} days",
                series[0].scenario
            ),
            &["polling", "p1", "p25", "p50", "p75", "p99", "IQR"],
            rows.collect(),
        )
    });
    let mut tables: Vec<_> = tables.collect();
    if let Some(first) = tables.first_mut() {
        first.notes.extend(PAPER.map(str::to_owned));
    }
    tables
}

/// What the paper measured with real hosts against a GPS-synchronised card.
const PAPER: [&str; 3] = [
    "the paper, quiet LAN: IQR 8.1 µs RADclock, 31.6 µs ptpd; median less A/2 24.3 and 45.3 µs at \
     an asymmetry A of 28 µs",
    "the paper, LAN, polling 256 s: IQR 7.4 µs RADclock, 50.4 µs ntpd",
    "the paper, hosts under load: IQR 17.7 µs RADclock",
];
