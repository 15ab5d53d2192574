//! The feed-forward clock beside ntpd's loop over the polling period (figure 9 of the
//! paper), both fed by the same exchanges on a quiet path.

use anyhow::{Context, Result};
use serde::Serialize;
use tscap::capturing::clock::scripted::Random;
use tscap::capturing::clock::{FeedForward, Scale};
use tscap::measuring::report::Table;
use tscap::measuring::statistics::{Spread, quantile};

use crate::common::report::Section;
use crate::common::table::{row, show};
use crate::common::target::Target;
use crate::pll::Pll;
use crate::script::{QUIET, S, oscillator};

/// Periods, s.
const PERIODS_S: [u64; 4] = [16, 64, 256, 1_024];
/// Shares of the errors that are given, as in the figure.
const QUANTILES: [f64; 5] = [0.01, 0.25, 0.5, 0.75, 0.99];
/// The loop has settled after so many of its time constants.
const SETTLED: u64 = 8 * 16;

/// Errors of one clock at one period, µs, over several random series.
#[derive(Debug, Serialize)]
pub struct Errors {
    /// Which clock.
    pub clock: &'static str,
    /// The polling period, s.
    pub period_s: u64,
    /// Quantiles of the error.
    pub quantiles_us: Vec<(f64, Spread)>,
    /// Interquartile range.
    pub iqr_us: Spread,
}

/// What the simulation gave.
#[derive(Debug, Serialize)]
pub struct Polling {
    /// Random series.
    pub rounds: u32,
    /// Of each series so long, once both had settled.
    pub days: u64,
    /// By period and clock.
    pub errors: Vec<Errors>,
}

/// Simulates `rounds` random series of `days` each, after both clocks have settled.
pub fn measure(rounds: u32, days: u64) -> Result<Polling> {
    let mut errors = Vec::new();
    for period_s in PERIODS_S {
        eprintln!("polling every {period_s} s");
        let series: Result<Vec<_>> = (0..u64::from(rounds))
            .map(|round| series(1_000 + round, period_s, days))
            .collect();
        let series = series?;
        for (index, clock) in ["feed-forward", "ntpd's loop"].into_iter().enumerate() {
            let of = |quantile: usize| {
                let values = series.iter().map(|both| both[index][quantile] / 1e3);
                Spread::of(values.collect())
            };
            errors.push(Errors {
                clock,
                period_s,
                quantiles_us: (0..)
                    .zip(QUANTILES)
                    .map(|(at, share)| (share, of(at)))
                    .collect(),
                iqr_us: of(3).with(&of(1), |high, low| high - low),
            });
        }
    }
    Ok(Polling {
        rounds,
        days,
        errors,
    })
}

/// Quantiles of the errors of both clocks, ns.
fn series(seed: u64, period_s: u64, days: u64) -> Result<[[f64; QUANTILES.len()]; 2]> {
    let counter = oscillator();
    let mut random = Random(seed);
    let mut look = |second| QUIET.bracket(second, &counter, &mut random);
    let (first, second) = (look(0), look(period_s));
    let clock = FeedForward::new(Scale::NETWORK, &first, &second);
    let mut clock = clock.context("two readings must be enough")?;
    let mut pll = Pll::new((counter.hertz, counter.skew_ppb), period_s, &first);
    pll.observe(&first);
    pll.observe(&second);
    let from = SETTLED * period_s;
    let mut errors = [Vec::new(), Vec::new()];
    for second in (2 * period_s..from + days * 86_400).step_by(period_s as usize) {
        let exchange = look(second);
        clock.observe(&exchange);
        pll.observe(&exchange);
        // Soon after an exchange, and just before the next one.
        for part in [1, 3, 5, 7] {
            let t = second * S + period_s * S * part / 8;
            let at = counter.counter(t);
            let reference = (QUIET.reference)(t);
            let off = |time: u64| time.wrapping_sub(reference).cast_signed() as f64;
            if second >= from {
                errors[0].push(off(clock.estimate(at).real.0));
                errors[1].push(off(pll.read(at).0));
            }
        }
    }
    let mut quantiles = [[0.0; QUANTILES.len()]; 2];
    for (errors, quantiles) in errors.iter_mut().zip(&mut quantiles) {
        errors.sort_by(f64::total_cmp);
        for (share, at) in QUANTILES.into_iter().zip(quantiles) {
            *at = quantile(errors, share).context("no errors")?;
        }
    }
    Ok(quantiles)
}

impl Section for Polling {
    fn targets(&self) -> Vec<Target> {
        let pairs = self.errors.chunks(2);
        let ratios = pairs.map(|both| {
            let ratio = both[0]
                .iqr_us
                .with(&both[1].iqr_us, |ours, loops| loops / ours);
            let name = format!(
                "IQR, ntpd's loop / feed-forward, polling {} s, least",
                both[0].period_s
            );
            // The paper: clearly better at every period.
            Target::at_least(name, ratio.min, 1.0)
        });
        ratios.collect()
    }

    fn tables(&self) -> Vec<Table> {
        let rows = self.errors.iter().map(|errors| {
            let quantiles = errors.quantiles_us.iter().map(|(_, spread)| spread);
            let figures = quantiles.chain([&errors.iqr_us]);
            row(
                format!("{} s, {}", errors.period_s, errors.clock),
                figures.map(|figure| show(figure, 1)),
            )
        });
        vec![Table::figures(
            format!(
                "polling: error against true time, µs; {} random series of {} days",
                self.rounds, self.days
            ),
            &["", "p1", "p25", "p50", "p75", "p99", "IQR"],
            rows.collect(),
        )]
    }
}
