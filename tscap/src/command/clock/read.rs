//! `tscap clock --read`: what another process shares of its clock.

use std::time::{Duration, Instant};

use serde::Serialize;

use super::VERSION;
use crate::command::print::{json_line, print_if_read};
use crate::command::signals::Signals;
use crate::command::{Context as _, Exit, Failure, Hint as _};
use tscap_base::text::numbers::{counted, grouped, span};
use tscap_base::text::table::{Table, columns};
use tscap_cli::{ReadClockPlan, Stamp};
use tscap_clock::NsPerCycle;
use tscap_clock_reader::layout::Latest;
use tscap_clock_reader::{Clock, Interval, Refused, State, Times};

#[derive(Serialize)]
struct Line {
    event: &'static str,
    v: u32,
    /// The counter, or the stamp that was asked for.
    raw: Option<u64>,
    /// What the bound to UTC rests on.
    state: Option<&'static str>,
    /// UTC; null while nobody states a bound.
    utc: Option<Ends>,
    /// CLOCK_REALTIME; null if the page is stale.
    host: Option<Ends>,
    /// Why there is no time.
    refused: Option<String>,
    #[serde(flatten)]
    page: Option<About>,
}

#[derive(Serialize)]
struct Ends {
    earliest_ns: u64,
    latest_ns: u64,
}

/// What the page says besides the time.
#[derive(Serialize)]
struct About {
    /// CLOCK_BOOTTIME when it was made, ns.
    generation: u64,
    /// Since its latest reading of the clocks, ns.
    age_ns: u64,
    /// How far back stamps can be converted, ns.
    past_ns: u64,
    /// Greatest relative error of the difference clock, parts per billion.
    difference_bound_ppb: u64,
    /// Counts a second.
    hertz: u64,
    /// Times that the clock was set.
    steps: u64,
    /// Jumps of the counter.
    jumps: u64,
}

/// Reads once, or until it is told to stop, the time is over, or nobody reads any more.
pub(in crate::command) fn run(plan: &ReadClockPlan) -> Result<Exit, Failure> {
    let path = plan.path.display();
    let clock = Clock::open(&plan.path);
    let mut clock = clock
        .context(format!("cannot read the clock at {path}"))
        .hint("tscap clock --serve shares it; --read takes the same path")?;
    let Some(duration) = plan.duration else {
        let times = times(&mut clock, plan.at);
        print_if_read(&said(plan, &clock, &times))?;
        return Ok(match times {
            Ok(_) => Exit::Success,
            Err(_) => Exit::Fault,
        });
    };
    crate::command::runtime()?.block_on(watch(plan, &mut clock, duration))
}

async fn watch(
    plan: &ReadClockPlan,
    clock: &mut Clock,
    duration: Duration,
) -> Result<Exit, Failure> {
    let mut signals = Signals::new()?;
    signals.give_up_capabilities();
    let end = Instant::now() + duration;
    loop {
        let times = times(clock, plan.at);
        let now = Instant::now();
        if !print_if_read(&said(plan, clock, &times))? || now >= end {
            return Ok(Exit::Success);
        }
        tokio::select! {
            () = tokio::time::sleep(plan.interval.min(end - now)) => {}
            () = signals.next() => return Ok(Exit::Success),
        }
    }
}

fn times(clock: &mut Clock, at: Option<Stamp>) -> Result<Times, Refused> {
    match at {
        None => clock.now(),
        Some(Stamp::Raw(raw)) => clock.of_raw(raw),
        Some(Stamp::Real(real_ns)) => clock.of_real(real_ns),
    }
}

fn said(plan: &ReadClockPlan, clock: &Clock, times: &Result<Times, Refused>) -> String {
    let about = About::of(clock);
    if plan.json {
        return json_line(&Line::of(times, about));
    }
    let times = match times {
        Ok(times) => times,
        Err(refused) => return format!("no time: {refused}\n"),
    };
    let time = |interval: Option<Interval>, why: &str| interval.map_or(why.to_owned(), text);
    let mut rows = vec![
        row("UTC", time(times.utc, "unknown: nobody states a bound")),
        row(
            "host's clock",
            time(times.host, "unknown: the page is stale"),
        ),
        row("state", name(times.state).to_owned()),
        row("counter", grouped(times.raw)),
    ];
    if let Some(about) = about {
        let ppm = about.difference_bound_ppb as f64 / 1e3;
        rows.extend([
            row("rate", format!("{} Hz", grouped(about.hertz))),
            row("difference clock", format!("± {ppm:.3} ppm")),
            row("latest reading", format!("{} ago", span(about.age_ns))),
            row("stamps", format!("of the last {}", span(about.past_ns))),
            row("clock set", counted(about.steps, "time")),
            row("counter jumped", counted(about.jumps, "time")),
        ]);
    }
    let title = format!("the clock at {}", plan.path.display());
    let table = Table::figures(title, &columns(" | "), rows);
    table.lines_within(100).join("\n") + "\n"
}

fn row(name: &str, value: String) -> Vec<String> {
    vec![name.to_owned(), value]
}

/// The middle with the bound around it.
fn text(interval: Interval) -> String {
    let Interval {
        earliest_ns,
        latest_ns,
    } = interval;
    let middle = earliest_ns.midpoint(latest_ns);
    let bound = span((latest_ns - middle).max(middle - earliest_ns));
    match jiff::Timestamp::from_nanosecond(i128::from(middle)) {
        Ok(time) => format!("{time:.9} ± {bound}"),
        Err(_) => format!("{middle} ns ± {bound}"),
    }
}

fn name(state: State) -> &'static str {
    match state {
        State::Unsynchronised => "unsynchronised",
        State::Synchronised => "synchronised",
        State::Holdover => "holdover",
        State::Stale => "stale",
    }
}

impl Line {
    fn of(times: &Result<Times, Refused>, page: Option<About>) -> Self {
        let ends = |interval: Interval| Ends {
            earliest_ns: interval.earliest_ns,
            latest_ns: interval.latest_ns,
        };
        let known = times.as_ref().ok();
        Self {
            event: "shared_clock",
            v: VERSION,
            raw: known.map(|times| times.raw),
            state: known.map(|times| name(times.state)),
            utc: known.and_then(|times| times.utc).map(ends),
            host: known.and_then(|times| times.host).map(ends),
            refused: times.err().map(|refused| refused.to_string()),
            page,
        }
    }
}

impl About {
    fn of(clock: &Clock) -> Option<Self> {
        let (page, now) = clock.page().ok()?;
        let Latest {
            raw,
            rate,
            difference_bound_ppb,
            steps,
            jumps,
            ..
        } = page.latest;
        let rate = Some(NsPerCycle(rate)).filter(NsPerCycle::is_possible)?;
        let since = |raw: u64| rate.duration_ns(now.saturating_sub(raw));
        Some(Self {
            generation: clock.header().generation,
            age_ns: since(raw),
            past_ns: page.past.first().map_or(0, |oldest| since(oldest.from)),
            difference_bound_ppb,
            hertz: rate.cycles_in(1_000_000_000).unsigned_abs(),
            steps,
            jumps,
        })
    }
}
