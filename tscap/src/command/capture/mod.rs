//! `tscap capture`: a plan in, and what the capture has to say out.

mod account;
mod console;
mod fields;
mod reporters;
mod short;
mod view;

use std::io::{self, IsTerminal as _};

use self::reporters::Reporters;
use super::following::Following;
use super::keys::Keys;
use super::signals::{self, Signals};
use super::{Exit, Failure, filter, live};
use tscap_capture::{Capture, Ended, Event, Running, Stop, Summary};
use tscap_cli::{self as cli, CapturePlan, Verbosity};
use tscap_host::service::Service;

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
    let mut reporters = Reporters::of(plan, &service)?;
    // First of all, so that no signal finds the machine half changed.
    let mut signals = Signals::new()?;
    let started = tokio::select! {
        started = start(plan, capture, &mut reporters) => started,
        () = signals.next() => {
            reporters.end(None);
            return Ok((Exit::Success, None));
        }
    };
    let (running, mut following) = match started {
        Ok(running) => running,
        Err(failure) => {
            reporters.end(None);
            return Err(failure);
        }
    };
    reporters.console.give_up_capabilities();
    signals.give_up_capabilities();
    let mut keys = plan.is_view.then(Keys::new).flatten();
    let pulse = running.pulse();
    let (running, stop) = tokio::select! {
        watched = watch((running, &mut following), &mut signals, &mut keys, &mut reporters) => watched,
        never = service.watch(|| pulse.beats()) => match never {},
    };
    service.stopping();
    // The rings are drained to the end, and then the commands of -z are waited for: the
    // service manager has a limit of its own for that.
    let mut turns = 0;
    let asked = async || signals.next().await;
    let mut on_event = |event| reporters.report(&event);
    let ended = tokio::select! {
        ended = running.finish(stop, asked, &mut on_event) => ended,
        never = service.watch(|| { turns += 1; vec![turns] }) => match never {},
    };
    let summary = ended.as_ref().ok().and_then(|it| it.summary.as_ref());
    reporters.end(summary);
    signals.ignore_the_rest();
    let ended = ended?;
    Ok((exit(&ended), ended.summary))
}

/// Starts the capture, once the reference is known if the times are to be of one.
async fn start(
    plan: &CapturePlan,
    capture: &Capture,
    reporters: &mut Reporters<'_>,
) -> Result<(Running, Following), Failure> {
    let mut on_event = |event| reporters.report(&event);
    let work = async |reference, on_event: &mut dyn FnMut(Event)| {
        let capture = Capture {
            reference,
            ..capture.clone()
        };
        capture.start(on_event).await
    };
    live::start(&plan.references, work, &mut on_event).await
}

/// Tells what happens until there is a reason to end.
async fn watch(
    (mut running, following): (Running, &mut Following),
    signals: &mut Signals,
    keys: &mut Option<Keys>,
    reporters: &mut Reporters<'_>,
) -> (Running, Stop) {
    let end_key = async {
        match keys {
            Some(keys) => keys.wait_for(b'q').await,
            None => std::future::pending().await,
        }
    };
    let stop = tokio::select! {
        stop = tell_all(&mut running, following, reporters) => stop,
        () = signals.next() => Ok(Stop::Signal),
        () = end_key => Ok(Stop::Key),
    };
    let stop = stop.unwrap_or_else(|failure| {
        // What has been captured is worth finishing all the same.
        reporters.console.error(&failure.to_string());
        Stop::InternalError
    });
    (running, stop)
}

async fn tell_all(
    running: &mut Running,
    following: &mut Following,
    reporters: &mut Reporters<'_>,
) -> Result<Stop, Failure> {
    let mut on_event = |event| reporters.report(&event);
    let ready = following
        .beside(
            async |on_event| running.ready(on_event).await,
            &mut on_event,
        )
        .await?;
    reporters.ready(&ready);
    loop {
        let event = tokio::select! {
            event = running.next_event() => event?,
            () = following.due() => {
                following.turn(&mut |event| reporters.report(&event));
                continue;
            }
            () = signals::counts_wanted() => {
                reporters.counts(&running.progress()?);
                continue;
            }
            () = signals::next_file_wanted() => {
                running.begin_next_file();
                continue;
            }
        };
        match event {
            Event::Stopped(stop) => return Ok(stop),
            event => reporters.report(&event),
        }
    }
}

fn exit(ended: &Ended) -> Exit {
    let adds_up = ended.summary.as_ref().map(|it| (it.adds_up, it.stopped_by));
    match adds_up {
        Some((false, _)) => Exit::DoesNotAddUp,
        _ if ended.is_aborted => Exit::Aborted,
        Some((true, stop)) if stop.is_wanted() && ended.is_complete && ended.is_restored => {
            Exit::Success
        }
        _ => Exit::Fault,
    }
}
