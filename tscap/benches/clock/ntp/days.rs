//! The stated bound in days at random.

use anyhow::Result;
use serde::Serialize;
use tscap_document::Table;

use super::series::PERIODS_S;
use crate::common::table::row;
use crate::script::{S, random_day, random_oscillator};
use crate::subjects::Subjects;

/// How many.
pub const DAYS: u64 = 100;

/// What they gave.
#[derive(Debug, Serialize)]
pub struct Days {
    /// How many.
    days: u64,
    /// Times at which error and bound were compared.
    comparisons: u64,
    /// Those at which the error was greater.
    broken: u64,
    /// 1 − error / bound, the least of all, %: negative if the bound was broken.
    pub least_margin_percent: f64,
    /// The day of that, the error and the bound then, ns.
    least_at: (u64, f64, f64),
}

/// Simulates them, at each polling period in turn.
pub fn measure() -> Result<Days> {
    eprintln!("{DAYS} days at random");
    let mut found = Days {
        days: DAYS,
        comparisons: 0,
        broken: 0,
        least_margin_percent: 100.0,
        least_at: (0, 0.0, 0.0),
    };
    for (day, period_s) in (0..DAYS).zip(PERIODS_S.into_iter().cycle()) {
        found.take(day, period_s)?;
    }
    Ok(found)
}

impl Days {
    fn take(&mut self, day: u64, period_s: u64) -> Result<()> {
        let script = random_day(day);
        let mut subjects = Subjects::new(day, &script, random_oscillator(day), period_s)?;
        for second in (2 * period_s..86_400).step_by(period_s as usize) {
            subjects.exchange(second);
            for part in [1, 4, 7] {
                let errors = subjects.errors(second * S + period_s * S * part / 8);
                let (error, bound) = (errors.of_each[0], errors.bound);
                let margin = (1.0 - error.abs() / bound) * 100.0;
                self.comparisons += 1;
                self.broken += u64::from(error.abs() > bound);
                if margin < self.least_margin_percent {
                    self.least_margin_percent = margin;
                    self.least_at = (day, error, bound);
                }
            }
        }
        Ok(())
    }

    /// For people.
    pub fn table(&self) -> Table {
        let (day, error, bound) = self.least_at;
        let rows = vec![
            row("comparisons", [self.comparisons.to_string()]),
            row("bound broken", [self.broken.to_string()]),
            row(
                format!("least margin, % of the bound (day {day})"),
                [format!("{:.2}", self.least_margin_percent)],
            ),
            row("error then, µs", [format!("{:.1}", error / 1e3)]),
            row("bound then, µs", [format!("{:.1}", bound / 1e3)]),
        ];
        let mut table = Table::figures(
            format!("the bound in {DAYS} days at random"),
            &["", "figure"],
            rows,
        );
        table.notes.push(
            "round trips of 0.1 to 40 ms, of which any part is the way there; hours of congestion, \
             of a longer way in one direction and without the server; counters whose rate is never \
             farther than 0.1 ppm from its average"
                .to_owned(),
        );
        table
    }
}
