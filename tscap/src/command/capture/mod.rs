//! `tscap capture`: a plan in, and what the capture has to say out.

mod account;
mod console;

use super::console::Console;
use super::signals::Signals;
use super::{Context as _, Exit, Failure, filter};
use crate::capturing::capture::{Capture, Ended, Running, Stop, Summary};
use crate::cli::{CapturePlan, Verbosity};

/// Runs the capture.
pub fn run(plan: &CapturePlan) -> Result<Exit, Failure> {
    run_summed(plan).map(|(exit, _)| exit)
}

/// Runs the capture, and gives its account.
pub fn run_summed(plan: &CapturePlan) -> Result<(Exit, Option<Summary>), Failure> {
    // libpcap may take seconds, and wait for names: before signals are asked for, so that
    // Ctrl-C ends it.
    let filter = plan.filter.as_ref().map(filter::compile).transpose()?;
    if plan.verbosity == Verbosity::Verbose {
        filter.iter().for_each(filter::say_addresses);
    }
    let capture = Capture {
        filter,
        ..plan.capture.clone()
    };
    super::runtime()?.block_on(session(plan, &capture))
}

async fn session(
    plan: &CapturePlan,
    capture: &Capture,
) -> Result<(Exit, Option<Summary>), Failure> {
    let mut console = console::of(plan).context("cannot start a thread")?;
    // First of all, so that no signal finds the machine half changed.
    let mut signals = Signals::new()?;
    let mut hear = |event| console::tell(&mut console, &event);
    let running = tokio::select! {
        running = capture.start(&mut hear) => running?,
        () = signals.next() => return Ok((Exit::Success, None)),
    };
    let (running, stop) = watch(running, &mut signals, &mut console).await;
    let asked = async || signals.next().await;
    let mut hear = |event| console::tell(&mut console, &event);
    let ended = running.finish(stop, asked, &mut hear).await?;
    if let Some(summary) = &ended.summary {
        console::summary(&mut console, summary);
    }
    Ok((exit(&ended), ended.summary))
}

/// Tells what happens until there is a reason to end.
async fn watch(
    mut running: Running,
    signals: &mut Signals,
    console: &mut Console,
) -> (Running, Stop) {
    let stop = tokio::select! {
        stop = tell_all(&mut running, console) => stop,
        () = signals.next() => Ok(Stop::Signal),
    };
    let stop = stop.unwrap_or_else(|failure| {
        // What has been captured is worth finishing all the same.
        console.error(&failure.to_string());
        Stop::InternalError
    });
    (running, stop)
}

async fn tell_all(running: &mut Running, console: &mut Console) -> Result<Stop, Failure> {
    let mut hear = |event| console::tell(console, &event);
    let ready = running.ready(&mut hear).await?;
    console::ready(console, &ready);
    let mut hear = |event| console::tell(console, &event);
    running.until_stopped(&mut hear).await
}

fn exit(ended: &Ended) -> Exit {
    let adds_up = ended.summary.as_ref().map(|it| (it.adds_up, it.stopped_by));
    match adds_up {
        Some((false, _)) => Exit::DoesNotAddUp,
        _ if ended.is_aborted => Exit::Aborted,
        Some((true, stop)) if stop.is_wanted() && ended.is_complete => Exit::Success,
        _ => Exit::Fault,
    }
}
