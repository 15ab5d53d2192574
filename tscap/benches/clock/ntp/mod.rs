//! A scripted NTP server on a scripted time axis, with polling periods as NTP has them: the
//! feed-forward clock beside the PI servo and ntpd's loops (section II of the paper).

mod days;
mod events;
pub mod page;
mod series;

use anyhow::Result;
use serde::Serialize;
use tscap_document::Table;
use tscap_statistics::Spread;

use crate::common::report::Section;
use crate::common::run::Options;
use crate::common::table::{row, show};
use crate::common::target::Target;
use crate::script::{CONGESTION, LEVEL_SHIFTS};
use crate::subjects::NAMES;
use days::Days;
use events::{AWAY, Event, SHIFT};
use series::{Series, Trace};

/// What the simulation gave.
#[derive(Debug, Serialize)]
pub struct Ntp {
    /// Random series of each scenario and event.
    rounds: u32,
    /// How long a scenario's series are, once the clocks have settled, days.
    days: u64,
    /// By scenario and polling period.
    series: Vec<Series>,
    /// Errors of the first series over time.
    traces: Vec<Trace>,
    /// By event and polling period.
    events: Vec<Event>,
    /// The bound in days at random.
    random_days: Days,
}

/// Simulates everything.
pub fn measure(options: &Options) -> Result<Ntp> {
    let rounds = options.rounds(2, 5);
    let days = options.either(1, 7);
    let (series, traces) = series::measure(rounds, days)?;
    Ok(Ntp {
        rounds,
        days,
        series,
        traces,
        events: events::measure(rounds)?,
        random_days: days::measure()?,
    })
}

impl Ntp {
    fn series(&self, scenario: &str, period_s: u64) -> Option<&Series> {
        let mut series = self.series.iter();
        series.find(|it| it.scenario == scenario && it.period_s == period_s)
    }

    /// How many times as wide as the feed-forward clock's interquartile range another's is:
    /// least of the series.
    fn least_ratio(&self, scenario: &str, period_s: u64, other: usize) -> f64 {
        self.series(scenario, period_s).map_or(0.0, |series| {
            let [ours, other] = [0, other].map(|clock| &series.of_each[clock].iqr_us);
            ours.with(other, |ours, other| other / ours).min
        })
    }

    fn event(&self, name: &str, figure: impl Fn(&Event) -> f64) -> f64 {
        let events = self.events.iter().filter(|event| event.name == name);
        events.map(figure).fold(f64::NEG_INFINITY, f64::max)
    }
}

impl Section for Ntp {
    fn targets(&self) -> Vec<Target> {
        let quiet = series::PERIODS_S.map(|period_s| {
            Target::at_least(
                format!("IQR, PLL / feed-forward, polling {period_s} s, least"),
                self.least_ratio("quiet", period_s, 2),
                // The paper: clearly better at every period.
                1.0,
            )
        });
        let of_bound = |event: &Event| event.of_bound.max;
        let others = [
            Target::at_least(
                "the same under congestion, polling 256 s, least",
                self.least_ratio(CONGESTION, 256, 2),
                4.0,
            ),
            Target::at_least(
                "IQR, servo / feed-forward, level shifts, any period, least",
                series::PERIODS_S
                    .map(|period_s| self.least_ratio(LEVEL_SHIFTS, period_s, 1))
                    .into_iter()
                    .fold(f64::INFINITY, f64::min),
                1.0,
            ),
            Target::at_most(
                "2 h without the server: error / bound, most",
                self.event(AWAY, of_bound),
                1.0,
            ),
            Target::at_most(
                "exchanges until back, most",
                self.event(AWAY, |event| event.back[0].max),
                1.0,
            ),
            Target::at_most(
                "a level shift: error / bound, most",
                self.event(SHIFT, of_bound),
                1.0,
            ),
            Target::at_least(
                format!(
                    "{} days at random: least margin, % of the bound",
                    days::DAYS
                ),
                self.random_days.least_margin_percent,
                0.0,
            ),
        ];
        quiet.into_iter().chain(others).collect()
    }

    fn tables(&self) -> Vec<Table> {
        let mut tables = series::tables(&self.series, self.rounds, self.days);
        tables.push(events::table(&self.events));
        tables.push(self.random_days.table());
        tables
    }
}

/// A row for each clock.
fn rows<'a>(
    what: String,
    figures: impl Fn(usize) -> Vec<&'a Spread> + 'a,
    decimals: usize,
) -> impl Iterator<Item = Vec<String>> + 'a {
    NAMES.iter().enumerate().map(move |(clock, name)| {
        let figures = figures(clock).into_iter();
        row(
            format!("{what}, {name}"),
            figures.map(|figure| show(figure, decimals)),
        )
    })
}
