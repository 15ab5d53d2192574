//! `tscap delay`.

mod hosts;
mod key_file;
mod live;
mod packets;
pub(super) mod serve;
mod sessions;
mod table;

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use super::measuring::{self, Start};
use super::report::{check_writable, read};
use super::signals::Signals;
use super::{Context as _, Exit, Failure, Hint as _, filter};
use tscap_base::kernel_files::KernelFiles;
use tscap_cli::DelayPlan;
use tscap_delay::file::{FileError, FilePlan, measure_file};
use tscap_delay::live::{LivePlan, MeasuredPath};
use tscap_delay::schema::{Correction, How, Match, Measurement, Method, VERSION};
use tscap_report::saved::Saved;
use tscap_results::envelope::Kind;

pub(super) fn run(plan: &DelayPlan) -> Result<Exit, Failure> {
    if let Some(path) = &plan.pcapng {
        check_writable(path)?;
    }
    let correction = plan.correction.as_deref().map(correction).transpose()?;
    // libpcap may take seconds, and wait for names: before signals are asked for.
    let filter = plan.filter.as_ref().map(filter::compile).transpose()?;
    let live = LivePlan {
        filter,
        ..plan.live.clone()
    };
    if let Some(asked) = &plan.sessions {
        return measuring::run(&plan.output, sessions::session(plan, &live, asked));
    }
    if let Some(hosts) = plan.hosts.as_ref().filter(|it| it.is_asked) {
        return measuring::run(&plan.output, hosts::measure(plan, &live, hosts, correction));
    }
    match &plan.file {
        None => measuring::run(&plan.output, live::session(plan, &live, correction)),
        Some(path) => measuring::run(&plan.output, of_file(plan, &live, path, correction)),
    }
}

async fn of_file(
    plan: &DelayPlan,
    live: &LivePlan,
    path: &Path,
    correction: Option<Correction>,
) -> Result<Option<(Measurement, Exit)>, Failure> {
    let start = Start::now(&KernelFiles::live());
    let mut signals = Signals::new()?;
    let what = || format!("cannot measure in {}", path.display());
    let file = File::open(path)
        .context(what())
        .hint("give a pcapng file")?;
    let file_plan = file_plan(live);
    let matched_by = file_plan.matched_by;
    let read = signals.unless_ended(move || measure_file(&mut BufReader::new(file), &file_plan));
    let Some(found) = read.await? else {
        return Ok(None);
    };
    // It was merged of two hosts' captures.
    if let (Err(FileError::OfTwoClocks { .. }), Some(hosts)) = (&found, &plan.hosts) {
        drop(signals);
        return hosts::measure(plan, live, hosts, correction).await;
    }
    let found = found.context(what());
    let found = found.hint("give a capture with both interfaces, or both directions of one")?;
    let method = Method {
        file: Some(path.display().to_string()),
        correction,
        ..method(plan, live, matched_by, &found.clock, found.memory_bytes)
    };
    let about = start.circumstances(&KernelFiles::live(), 0, "");
    let about = about.of_capture(found.started, found.seconds, found.captured);
    let exit = if found.is_whole {
        Exit::Success
    } else {
        Exit::Fault
    };
    let measurement = Measurement {
        about: about.envelope(Kind::Delay, VERSION, !found.is_whole),
        method,
        passages: vec![found.passage],
        sessions: Vec::new(),
        alignment: None,
        warnings: found.warnings,
    };
    Ok(Some((measurement, exit)))
}

/// What to measure in a file. Which interfaces were ports of one bridge no file says.
fn file_plan(live: &LivePlan) -> FilePlan {
    let (entry, exit) = match &live.course {
        MeasuredPath::Through { entry, exit, .. } | MeasuredPath::Mirrored { entry, exit, .. } => {
            (entry, exit)
        }
        MeasuredPath::Reflected(interface) | MeasuredPath::RoundTrip(interface) => {
            (interface, interface)
        }
    };
    let how = live.course.how();
    let suits = match how {
        How::Hooks | How::Mirror => Match::Route,
        How::Rtt | How::Reflect | How::Sessions => Match::Reply,
    };
    FilePlan {
        how,
        entry: entry.clone(),
        exit: exit.clone(),
        matched_by: live.matched_by.unwrap_or(suits),
        window: live.window,
        capacity: live.capacity,
    }
}

/// How a measurement is done.
fn method(
    plan: &DelayPlan,
    live: &LivePlan,
    matched_by: Match,
    clock: &str,
    memory_bytes: u64,
) -> Method {
    Method {
        how: live.course.how(),
        matched_by,
        label: plan.label.clone(),
        clock: clock.to_owned(),
        file: None,
        window_ns: u64::try_from(live.window.as_nanos()).unwrap_or(u64::MAX),
        capacity: live.capacity as u64,
        memory_bytes,
        load: None,
        parallel: None,
        correction: None,
    }
}

/// The mean of a measurement without the device.
fn correction(path: &Path) -> Result<Correction, Failure> {
    let Saved::Delay(saved) = read(path)? else {
        return Err(Failure::new(format!(
            "cannot correct by {}: it is no measurement of delays",
            path.display()
        ))
        .hint("give what `tscap delay --json` printed at its end, without the device"));
    };
    let first = saved
        .passages
        .first()
        .and_then(|passage| passage.exits.first());
    let delays = first.and_then(|exit| exit.delays.as_ref());
    let mean = delays.map(|delays| delays.summary.mean).ok_or_else(|| {
        Failure::new(format!(
            "cannot correct by {}: no packet was matched in it",
            path.display()
        ))
    })?;
    Ok(Correction {
        file: path.display().to_string(),
        mean_ns: mean,
    })
}
