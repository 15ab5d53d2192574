//! `tscap clock`: the feed-forward clock, live.

use std::time::{Duration, Instant};

use serde::Serialize;

use super::print::print_if_read;
use super::signals::Signals;
use super::{Exit, Failure, Hint, capture};
use crate::cli::ClockPlan;
use crate::clock::{HostClocks, StampSource, Status, Tracker};
use crate::numbers::{grouped, signed, span};
use crate::sys::timex::KernelClock;
use crate::sys::tsc;

/// Version of the JSON objects.
const VERSION: u32 = 1;
/// Between two readings: as often as an idle capture takes them.
const READ_EVERY: Duration = Duration::from_millis(10);
/// Lines under one heading.
const PAGE: u64 = 20;

#[derive(Serialize)]
struct Line<'a> {
    event: &'static str,
    v: u32,
    /// Since the start, s.
    seconds: f64,
    #[serde(flatten)]
    status: &'a Status,
}

/// Watches until it is told to stop, the time is over, or nobody reads any more.
pub(super) fn run(plan: &ClockPlan) -> Result<Exit, Failure> {
    tsc::check()
        .trying("there is no clock to watch")
        .map_err(|failure| failure.hint("`tscap doctor` says more; ktime stamps need no TSC"))?;
    capture::runtime()?.block_on(session(plan))
}

async fn session(plan: &ClockPlan) -> Result<Exit, Failure> {
    let mut signals = Signals::new().trying("cannot catch signals")?;
    let started = Instant::now();
    let mut clocks = HostClocks::new(StampSource::Tsc);
    let stop = signals.next();
    let tracker = capture::first_brackets(StampSource::Tsc, &mut clocks, stop).await?;
    let Some(mut tracker) = tracker else {
        return Ok(Exit::Success);
    };
    let mut before = None;
    let end = plan.duration.map(|time| started + time);
    let mut next = started;
    for line in 0.. {
        // After a pause, as of a stopped process, lines are not made up for.
        next = (next + plan.interval).max(Instant::now());
        let due = end.map_or(next, |end| next.min(end));
        while Instant::now() < due {
            tokio::select! {
                () = tokio::time::sleep(READ_EVERY) => read(&mut tracker, &mut clocks),
                () = signals.next() => return Ok(Exit::Success),
            }
        }
        let utc_bound_ns = KernelClock::read().ok();
        let utc_bound_ns = utc_bound_ns.filter(|clock| clock.synchronised);
        let utc_bound_ns = utc_bound_ns.map(|clock| clock.max_error_ns);
        let status = Status::of(&tracker, tsc::read(), utc_bound_ns, before.as_ref());
        let status = status.expect("it has settled");
        if !say(plan, line, started.elapsed().as_secs_f64(), &status)? {
            break;
        }
        before = Some(status);
        if end.is_some_and(|end| Instant::now() >= end) {
            break;
        }
    }
    Ok(Exit::Success)
}

fn read(tracker: &mut Tracker, clocks: &mut HostClocks) {
    let cross = tracker.read(clocks);
    tracker.observe(&cross);
    // For a file, which there is none of.
    tracker.take_samples();
}

/// Prints a line; says whether there may still be somebody to read it.
fn say(plan: &ClockPlan, line: u64, seconds: f64, status: &Status) -> Result<bool, Failure> {
    if plan.json {
        let line = Line {
            event: "clock",
            v: VERSION,
            seconds,
            status,
        };
        let json = serde_json::to_string(&line).expect("plain structs always serialise");
        return print_if_read(&(json + "\n"));
    }
    let heading = if line.is_multiple_of(PAGE) {
        format!("{}\n", row(&HEADING.map(String::from)))
    } else {
        String::new()
    };
    let text = format!("{heading}{}\n", row(&cells(seconds, status)));
    print_if_read(&text)
}

const HEADING: [&str; 9] = [
    "s",
    "TSC, Hz",
    "± ppm",
    "skew, ppm",
    "offset, ns",
    "± host",
    "± UTC",
    "used",
    "rejected",
];

fn cells(seconds: f64, status: &Status) -> [String; 9] {
    let second = status.counter.ns_per_cycle_2_58.cycles_in(1_000_000_000);
    let ppm = |ppb: f64| format!("{:.3}", ppb / 1e3);
    let readings = &status.readings;
    let rejected = status.wide + readings.torn + readings.implausible;
    [
        format!("{seconds:.1}"),
        grouped(second.unsigned_abs()),
        ppm(status.counter.rate_bound_ppb as f64),
        ppm(status.skew_ppb as f64),
        signed(status.offset_ns),
        span(status.host_bound_ns),
        status.utc_bound_ns.map_or("unknown".into(), span),
        grouped(readings.used),
        grouped(rejected),
    ]
}

fn row(cells: &[String; 9]) -> String {
    const WIDTHS: [usize; 9] = [7, 14, 8, 10, 12, 9, 10, 9, 9];
    let cells = cells.iter().zip(WIDTHS);
    cells
        .map(|(cell, width)| format!("{cell:>width$} "))
        .collect::<String>()
        .trim_end()
        .to_owned()
}
