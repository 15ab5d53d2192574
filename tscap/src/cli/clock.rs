//! `tscap clock`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::{Plan, units};

/// Watch the clock that converts TSC stamps
///
/// Reads this host's clocks and its TSC a hundred times a second, as a capture does,
/// and shows the feed-forward clock that follows from them. Changes nothing and needs
/// no privilege. A terminal that is too narrow gets fewer columns; --json has all.
#[derive(Debug, Args)]
pub struct ClockArgs {
    /// Time between two lines: seconds, or with units (500ms); at least 100ms
    #[arg(long, value_name = "TIME", default_value = "1", value_parser = interval)]
    interval: Duration,

    /// Stop after this time
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    duration: Option<Duration>,

    /// Also compare the clock with this PTP hardware clock, such as /dev/ptp0
    #[arg(long, value_name = "DEVICE")]
    reference: Option<PathBuf>,

    /// Print JSON objects, one a line, instead of the table
    #[arg(long)]
    json: bool,

    /// Write the clock's history to this file, about 1.2 MB an hour: `tscap convert
    /// --clock-log` stamps captures of this boot again by it. A log of the same boot
    /// is continued
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,

    /// At the end, write a page for a browser: offset, skew and Allan deviation from
    /// 0.1 s on; with --log, of the whole log
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
}

const SHORTEST: Duration = Duration::from_millis(100);

fn interval(text: &str) -> Result<Duration, String> {
    let interval = units::duration(text)?;
    if interval < SHORTEST {
        return Err("the shortest is 100ms".into());
    }
    Ok(interval)
}

/// What to watch, as asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClockPlan {
    /// Between two lines.
    pub interval: Duration,
    /// Longest time to watch.
    pub duration: Option<Duration>,
    /// Device of another reference.
    pub reference: Option<PathBuf>,
    /// Whether to say it in JSON.
    pub json: bool,
    /// Where the history is kept.
    pub log: Option<PathBuf>,
    /// Where the page goes.
    pub report: Option<PathBuf>,
}

impl ClockArgs {
    pub(super) fn into_plan(self) -> Plan {
        Plan::Clock(ClockPlan {
            interval: self.interval,
            duration: self.duration,
            reference: self.reference,
            json: self.json,
            log: self.log,
            report: self.report,
        })
    }
}
