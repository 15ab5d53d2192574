//! The end of a capture: detach, drain, account.

use std::io;
use std::thread::JoinHandle;
use std::time::Duration;

use super::console;
use super::files::Waited;
use super::live_links::LiveLinks;
use super::session::{heed, observe, recheck_counter};
use super::start::Running;
use super::summary::{ClockSummary, FilesSummary, InterfaceSummary, Stop, Summary};
use super::{Exit, Failure};
use crate::cli::{CapturePlan, Target};
use crate::clock::{CounterClock, MonoNs, StampPath};
use crate::command::Hint;
use crate::command::console::Console;
use crate::command::signals::Signals;
use crate::engine::{Finished, Observed, Totals};
use crate::sys::bpf::wait_for_running_programs;

/// How often a stopped converter is looked for.
const JOIN_EVERY: Duration = Duration::from_millis(2);

/// Detaches, drains, accounts.
pub(super) async fn finish(
    plan: &CapturePlan,
    mut running: Running,
    mut stop: Stop,
    signals: &mut Signals,
    console: &mut Console,
) -> Result<(Exit, Option<Summary>), Failure> {
    let seconds = running.started.elapsed().as_secs_f64();
    running
        .links
        .detach()
        .trying("cannot detach the XDP program")?;
    if wait_for_running_programs().is_err() {
        settle(&running).await?;
    }
    // Stamps since the last look are bound by this one.
    recheck_counter(&mut running, console);
    running.shared.request_stop();
    running.converter.thread().unpark();
    if until_finished(&running.converter, signals).await {
        console.error("aborted: frames still in the rings are lost");
        return Ok((Exit::Aborted, None));
    }
    let observed = observe(plan, &running)?;
    let counters = &running.loaded.counters;
    let seen = counters.seen().trying("cannot account for the frames")?;
    let other = counters
        .other_losses()
        .trying("cannot account for the frames")?;
    let Ok(mut finished) = running.converter.join() else {
        return Err(Failure::new(
            "the converter thread panicked: please report this",
        ));
    };
    // Before the files' commands are waited for, which may take minutes.
    drop(running._in_force);
    // What it said last may be an error that nobody has heard yet.
    while let Ok(event) = running.events.try_recv() {
        if let Some(late) = heed(plan, event, &mut running.files, console)
            && stop.is_wanted()
            && !late.is_wanted()
        {
            stop = late;
        }
    }

    let totals = finished.totals(seen, &observed, other);
    let at = MonoNs::now();
    let last_file = match &finished.rotation {
        Some(rotation) => Target::Path(rotation.current_path().into()),
        None => plan.target.clone(),
    };
    let mut is_complete = finished
        .write_last_statistics(at, &observed, &totals)
        .inspect_err(|error| {
            let cause = std::error::Error::source(error).unwrap_or(error);
            console.error(&format!(
                "cannot write the last statistics to {last_file}: {cause}"
            ));
        })
        .is_ok();
    let mut summary = summarise(
        plan,
        running.path,
        &running.links,
        &finished,
        &totals,
        &observed,
        (stop, seconds),
    );
    let mut is_aborted = false;
    if let Some(rotation) = finished.rotation {
        let end = finished.tracker.real_at(at);
        let longest_cut = rotation.longest_cut().as_nanos();
        let closing = rotation.close_last(finished.output, totals.written, end);
        is_aborted = until_finished(&closing, signals).await;
        while let Ok(event) = running.events.try_recv() {
            is_complete &= heed(plan, event, &mut running.files, console).is_none();
        }
        if !is_aborted {
            match running.files.wait_for_commands(signals, console).await {
                Waited::All => {}
                Waited::TooLong => is_complete = false,
                Waited::Aborted => is_aborted = true,
            }
        }
        summary.files = Some(FilesSummary {
            longest_cut_ns: u64::try_from(longest_cut).unwrap_or(u64::MAX),
            ..running.files.summary()
        });
    } else if let Err(error) = finished.output.close() {
        console.error(&format!("cannot close {last_file}: {error}"));
        is_complete = false;
    }
    console::summary(console, &summary);
    let exit = match (totals.add_up(), stop.is_wanted() && is_complete) {
        (false, _) => Exit::DoesNotAddUp,
        _ if is_aborted => Exit::Aborted,
        (true, true) => Exit::Success,
        (true, false) => Exit::Fault,
    };
    Ok((exit, Some(summary)))
}

/// Waits for the end of a thread. Says whether a signal came first.
async fn until_finished<T>(thread: &JoinHandle<T>, signals: &mut Signals) -> bool {
    while !thread.is_finished() {
        tokio::select! {
            () = tokio::time::sleep(JOIN_EVERY) => {}
            () = signals.next() => return true,
        }
    }
    false
}

/// Waits until no program counts any more, where the kernel can't be asked: at
/// most a second.
async fn settle(running: &Running) -> Result<(), Failure> {
    let mut before = None;
    for _ in 0..50 {
        let seen = running.loaded.counters.seen();
        let seen = Some(seen.trying("cannot account for the frames")?);
        if seen == before {
            return Ok(());
        }
        before = seen;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Err(io::Error::from(io::ErrorKind::TimedOut)).trying("cannot wait for the XDP program to end")
}

fn summarise(
    plan: &CapturePlan,
    path: StampPath,
    links: &LiveLinks,
    finished: &Finished,
    totals: &Totals,
    observed: &Observed,
    (stop, seconds): (Stop, f64),
) -> Summary {
    let interfaces = links
        .0
        .iter()
        .zip(&observed.interfaces)
        .zip(&finished.batch.counts)
        .map(|((live, observed), written)| {
            let mut outcomes = observed.losses;
            outcomes += written.outcomes;
            InterfaceSummary {
                name: live.name.clone(),
                ifindex: live.ifindex(),
                xdp_mode: live.mode.name().into(),
                seen: written.written + outcomes.total(),
                written: written.written,
                outcomes,
                ifdrop: observed.ifdrop,
            }
        })
        .collect();
    let tracker = &finished.tracker;
    Summary {
        file: plan.target.to_string(),
        files: None,
        seconds,
        seen: totals.seen,
        written: totals.written,
        bytes_written: finished.bytes(),
        outcomes: totals.outcomes,
        off_cpu: observed.off_cpu,
        adds_up: totals.add_up(),
        interfaces,
        clock: ClockSummary {
            source: path.source().name().into(),
            path: path.function().into(),
            ordered: path.is_ordered(),
            counter: tracker.counter().map(CounterClock::report),
            host_bound_ns: tracker.host_bound_ns(),
            synchronised: observed.utc_bound_ns.is_some(),
            utc_bound_ns: observed.utc_bound_ns,
            segments: tracker.segments().to_vec(),
            segments_forgotten: tracker.segments_forgotten(),
            steps: tracker.steps(),
            order: finished.order(),
            ambiguous: finished.batch.ambiguous,
        },
        stopped_by: stop,
    }
}
