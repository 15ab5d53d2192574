//! `tscap capture`: a plan in, and what the capture has to say out.

mod account;
mod console;
mod fields;
mod listeners;
mod metrics;
mod view;

use std::io::{self, IsTerminal as _};

use self::listeners::Listeners;
use super::keys::Keys;
use super::service::Service;
use super::signals::Signals;
use super::{Exit, Failure, filter};
use crate::capturing::capture::{Capture, Ended, Running, Stop, Summary};
use crate::cli::{self, CapturePlan, Verbosity};

/// Runs the capture.
pub fn run(plan: &CapturePlan) -> Result<Exit, Failure> {
    run_summed(plan).map(|(exit, _)| exit)
}

/// Runs the capture, and gives its account.
pub fn run_summed(plan: &CapturePlan) -> Result<(Exit, Option<Summary>), Failure> {
    if plan.is_view && !(io::stdout().is_terminal() && io::stderr().is_terminal()) {
        cli::no_file("a pipe and a log").exit();
    }
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
    let service = Service::from_env()?;
    let mut listeners = Listeners::of(plan, &service)?;
    // First of all, so that no signal finds the machine half changed.
    let mut signals = Signals::new()?;
    let mut hear = |event| listeners.hear(&event);
    let running = tokio::select! {
        running = capture.start(&mut hear) => running,
        () = signals.next() => {
            listeners.end(None);
            return Ok((Exit::Success, None));
        }
    };
    let running = match running {
        Ok(running) => running,
        Err(failure) => {
            listeners.end(None);
            return Err(failure);
        }
    };
    listeners.console.give_up_capabilities();
    signals.give_up_capabilities();
    let mut keys = plan.is_view.then(Keys::new).flatten();
    let pulse = running.pulse();
    let (running, stop) = tokio::select! {
        watched = watch(running, &mut signals, &mut keys, &mut listeners) => watched,
        never = service.watch(|| pulse.beats()) => match never {},
    };
    service.stopping();
    // The rings are drained to the end, and then the commands of -z are waited for: the
    // service manager has a limit of its own for that.
    let mut turns = 0;
    let asked = async || signals.next().await;
    let mut hear = |event| listeners.hear(&event);
    let ended = tokio::select! {
        ended = running.finish(stop, asked, &mut hear) => ended,
        never = service.watch(|| { turns += 1; vec![turns] }) => match never {},
    };
    let summary = ended.as_ref().ok().and_then(|it| it.summary.as_ref());
    listeners.end(summary);
    let ended = ended?;
    Ok((exit(&ended), ended.summary))
}

/// Tells what happens until there is a reason to end.
async fn watch(
    mut running: Running,
    signals: &mut Signals,
    keys: &mut Option<Keys>,
    listeners: &mut Listeners<'_>,
) -> (Running, Stop) {
    let end_key = async {
        match keys {
            Some(keys) => keys.wait_for(b'q').await,
            None => std::future::pending().await,
        }
    };
    let stop = tokio::select! {
        stop = tell_all(&mut running, listeners) => stop,
        () = signals.next() => Ok(Stop::Signal),
        () = end_key => Ok(Stop::Key),
    };
    let stop = stop.unwrap_or_else(|failure| {
        // What has been captured is worth finishing all the same.
        listeners.console.error(&failure.to_string());
        Stop::InternalError
    });
    (running, stop)
}

async fn tell_all(running: &mut Running, listeners: &mut Listeners<'_>) -> Result<Stop, Failure> {
    let ready = running.ready(&mut |event| listeners.hear(&event)).await?;
    listeners.ready(&ready);
    running
        .until_stopped(&mut |event| listeners.hear(&event))
        .await
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
