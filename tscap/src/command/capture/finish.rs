//! The end of a capture: detach, drain, account.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::console;
use super::files::{Waited, not_intact};
use super::live_links::LiveLinks;
use super::session::{heed, observe, recheck_counter};
use super::start::Running;
use super::summary::{ClockSummary, FilesSummary, InterfaceSummary, Stop, Summary};
use super::writing::{abandoned, joined, on_thread, until_finished};
use super::{Exit, Failure};
use crate::capturing::accounting::{Observed, Totals};
use crate::capturing::clock::{MonoNs, StampPath};
use crate::capturing::engine::Finished;
use crate::capturing::host::bpf::wait_for_running_programs;
use crate::cli::{CapturePlan, Target};
use crate::command::Hint;
use crate::command::console::Console;
use crate::command::signals::Signals;

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
    let writes = Arc::clone(&running.shared.writes);
    if !until_finished(&running.converter, &writes, signals, console).await {
        return Ok(abandoned(console));
    }
    let observed = observe(plan, &running)?;
    let counters = &running.loaded.counters;
    let seen = counters.seen().trying("cannot account for the frames")?;
    let other = counters
        .other_losses()
        .trying("cannot account for the frames")?;
    let mut finished = joined(running.converter)?;
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
    let (last_observed, last_totals) = (observed.clone(), totals);
    let last = on_thread(move || {
        let written = finished.write_last_statistics(at, &last_observed, &last_totals);
        (finished, written)
    })?;
    if !until_finished(&last, &writes, signals, console).await {
        return Ok(abandoned(console));
    }
    let (finished, written) = joined(last)?;
    let mut is_complete = written.is_ok();
    if let Err(error) = written
        && !writes.is_aborted()
    {
        let cause = std::error::Error::source(&error).unwrap_or(&error);
        console.error(&format!(
            "cannot write the last statistics to {last_file}: {cause}\n\
             hint: make room, or give -w another place"
        ));
    }
    let mut summary = summarise(
        plan,
        running.path,
        &running.links,
        &finished,
        &totals,
        &observed,
        (stop, seconds),
    );
    let mut is_waiting_over = false;
    if let Some(rotation) = finished.rotation {
        let end = finished.tracker.real_at(at);
        let longest_cut = rotation.longest_cut().as_nanos();
        let closing = rotation.close_last(finished.output, totals.written, end);
        if !until_finished(&closing, &writes, signals, console).await {
            return Ok(abandoned(console));
        }
        while let Ok(event) = running.events.try_recv() {
            is_complete &= heed(plan, event, &mut running.files, console).is_none();
        }
        match running.files.wait_for_commands(signals, console).await {
            Waited::All => {}
            Waited::TooLong => is_complete = false,
            Waited::Aborted => is_waiting_over = true,
        }
        is_complete &= running.files.are_intact();
        summary.files = Some(FilesSummary {
            longest_cut_ns: u64::try_from(longest_cut).unwrap_or(u64::MAX),
            ..running.files.summary()
        });
    } else {
        let id = finished.output.id();
        let closing = on_thread(move || finished.output.close())?;
        if !until_finished(&closing, &writes, signals, console).await {
            return Ok(abandoned(console));
        }
        if let Err(error) = joined(closing)? {
            console.error(&not_intact(&last_file, &error));
            is_complete = false;
        } else if let Target::Path(path) = &last_file {
            note_of_renaming(path, id, console);
        }
    }
    if writes.is_aborted() {
        console.error("aborted: frames that could not be written are counted as write_failed");
    }
    console::summary(console, &summary);
    let exit = match (totals.add_up(), stop.is_wanted() && is_complete) {
        (false, _) => Exit::DoesNotAddUp,
        _ if writes.is_aborted() || is_waiting_over => Exit::Aborted,
        (true, true) => Exit::Success,
        (true, false) => Exit::Fault,
    };
    Ok((exit, Some(summary)))
}

/// Says where the capture is not, if its file has lost its name to none or another.
fn note_of_renaming(path: &Path, id: Option<(u64, u64)>, console: &mut Console) {
    let there = path.metadata().ok().map(|data| (data.dev(), data.ino()));
    if id.is_some() && there != id {
        console.warning(&format!(
            "{} was renamed meanwhile: the capture is under the new name",
            path.display()
        ));
    }
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
            counter: tracker.counter_report(),
            host_bound_ns: tracker.host_bound_ns(),
            synchronised: observed.utc_bound_ns.is_some(),
            utc_bound_ns: observed.utc_bound_ns,
            segments: tracker.segments().to_vec(),
            segments_forgotten: tracker.segments_forgotten(),
            steps: tracker.steps(),
            order: finished.order(),
            ambiguous: finished.batch.ambiguous,
            bound_raised: tracker.bound_raised(),
        },
        stopped_by: stop,
    }
}
