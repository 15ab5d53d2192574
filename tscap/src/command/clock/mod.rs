//! `tscap clock`: the feed-forward clock, live.

mod audit;
mod conclusion;
mod keep;
mod ntp;
mod read;
mod references;
mod serve;
mod table;

use std::time::{Duration, Instant};

use serde::Serialize;

use keep::Keeper;
pub(super) use read::run as read;
use references::{ReferenceStatus, References};
use serve::Server;

use super::print::{json_line, print_if_read};
use super::signals::Signals;
use super::{Context as _, Exit, Failure, Hint as _, terminal};
use tscap_capture::first_brackets;
use tscap_cli::ClockPlan;
use tscap_clock::{HostClocks, StampSource, Status, Tracker};
use tscap_shared_clock::Utc;
use tscap_time::tsc;
use tscap_utc::{Roots, UtcBounds, UtcReader, Watched};

/// Version of the JSON objects.
const VERSION: u32 = 1;
/// Between two readings: as often as an idle capture takes them.
const READ_EVERY: Duration = Duration::from_millis(10);

#[derive(Serialize)]
struct Line<'a> {
    event: &'static str,
    v: u32,
    /// Since the start, s.
    seconds: f64,
    #[serde(flatten)]
    status: &'a Status,
    /// Each source that bounds the host's clock against UTC, and which is used.
    utc: &'a UtcBounds,
    #[serde(flatten)]
    said: &'a ReferenceStatus,
}

/// Watches until it is told to stop, the time is over, or nobody reads any more.
pub(super) fn run(plan: &ClockPlan) -> Result<Exit, Failure> {
    tsc::check()
        .context("there is no clock to watch")
        .hint("`tscap doctor` says more; ktime stamps need no TSC")?;
    super::runtime()?.block_on(async {
        match &plan.audited {
            Some(interface) => audit::session(plan, interface).await,
            None => session(plan).await,
        }
    })
}

async fn session(plan: &ClockPlan) -> Result<Exit, Failure> {
    let mut signals = Signals::new()?;
    let mut keeper = Keeper::new(plan)?;
    let mut clocks = HostClocks::new(StampSource::Tsc);
    let mut tracker = tokio::select! {
        tracker = first_brackets(StampSource::Tsc, &mut clocks) => tracker?,
        () = signals.next() => return Ok(Exit::Success),
    };
    let mut utc = UtcReader::open(Roots::live());
    let mut server = match &plan.serve {
        None => None,
        Some(path) => tokio::select! {
            server = Server::start(path, plan.reference.is_some(), &mut tracker, &mut utc) => {
                Some(server?)
            }
            () = signals.next() => return Ok(Exit::Success),
        },
    };
    let mut references = References::open(plan, &tracker)?;
    signals.give_up_capabilities();
    references.give_up_privileges(plan.log.is_some() || plan.report.is_some())?;
    let started = Instant::now();
    let watched = watch(
        plan,
        started,
        &mut tracker,
        (&mut references, &mut utc),
        &mut signals,
        &mut keeper,
        &mut server,
    )
    .await;
    // Whatever ended it: what is known by now is kept.
    let utc = utc.read();
    let kept = keeper.finish(&mut tracker, utc.bound_ns);
    watched.and(kept)?;
    if !plan.json && server.is_none() {
        let status = Status::of(&tracker, tsc::read(), utc.bound_ns, None);
        let status = status.expect("it has settled");
        let beside = references.say(&status, &tracker).sentences();
        let text = conclusion::conclusion(started.elapsed().as_secs_f64(), &status, &utc, beside);
        print_if_read(&terminal::fitted(&format!("\n{text}"), std::io::stdout()))?;
    }
    Ok(Exit::Success)
}

/// Watches until the time is over, a signal comes, or nobody reads any more.
async fn watch(
    plan: &ClockPlan,
    started: Instant,
    tracker: &mut Tracker,
    (references, utc): (&mut References, &mut UtcReader),
    signals: &mut Signals,
    keeper: &mut Keeper<'_>,
    server: &mut Option<Server>,
) -> Result<(), Failure> {
    let mut clocks = Watched::new(HostClocks::new(StampSource::Tsc), utc.disruptions());
    let mut before = None;
    let mut bounds = utc.read();
    let end = plan.duration.map(|time| started + time);
    let mut next = started;
    for line in 0.. {
        // After a pause, as of a stopped process, lines are not made up for.
        next = (next + plan.interval).max(Instant::now());
        let due = end.map_or(next, |end| next.min(end));
        while Instant::now() < due {
            tokio::select! {
                () = tokio::time::sleep(READ_EVERY) => {}
                () = serve::clock_set(server.as_ref()) => {}
                () = signals.next() => return Ok(()),
            }
            let (cross, seen) = tracker.look(&mut clocks);
            keeper.observe(&cross, seen, tracker, bounds.bound_ns)?;
            if seen.counter_jump_ns().is_some() {
                references.begin_anew();
            }
            for looked in references.read(tracker) {
                keeper.observe_reference(&looked, tracker);
            }
            if let Some(server) = server {
                tracker.look_at_raw(cross.mono[1], &mut clocks);
                bounds = utc.read();
                let by_reference = references.utc(tracker);
                let of_host = by_reference.unwrap_or(Utc::within(bounds.bound_ns));
                server.publish(tracker, (&cross, seen), &of_host)?;
            }
        }
        bounds = utc.read();
        let status = Status::of(tracker, tsc::read(), bounds.bound_ns, before.as_ref());
        let status = status.expect("it has settled");
        let said = references.say(&status, tracker);
        let seconds = started.elapsed().as_secs_f64();
        if !say(plan, line, seconds, (&status, &bounds), &said)? {
            break;
        }
        before = Some(status);
        if end.is_some_and(|end| Instant::now() >= end) {
            break;
        }
    }
    Ok(())
}

/// Prints a line; says whether there may still be somebody to read it.
fn say(
    plan: &ClockPlan,
    line: u64,
    seconds: f64,
    (status, utc): (&Status, &UtcBounds),
    said: &ReferenceStatus,
) -> Result<bool, Failure> {
    if plan.json {
        let line = Line {
            event: "clock",
            v: VERSION,
            seconds,
            status,
            utc,
            said,
        };
        return print_if_read(&json_line(&line));
    }
    if plan.serve.is_some() {
        return Ok(true);
    }
    let width = terminal::width(std::io::stdout());
    print_if_read(&table::line(line, seconds, status, said.columns(), width))
}
