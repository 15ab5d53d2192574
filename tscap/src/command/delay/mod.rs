//! `tscap delay`.

mod live;
mod packets;
mod table;

use std::path::Path;

use super::measuring::{self, ResultOutput, Start};
use super::report::{check_writable, read};
use super::signals::Signals;
use super::{Context as _, Exit, Failure, Hint as _, filter};
use crate::capturing::host::kernel_files::KernelFiles;
use crate::cli::DelayPlan;
use crate::measuring::delay::file::{FilePlan, measure as measure_file};
use crate::measuring::delay::live::LivePlan;
use crate::measuring::delay::schema::{Correction, Match, Measurement, Method};
use crate::measuring::report::{delay_page, delay_text};
use crate::measuring::saved::Saved;

/// Measures.
pub(super) fn run(plan: &DelayPlan) -> Result<Exit, Failure> {
    let shown = ResultOutput {
        json: plan.json,
        report: plan.report.as_deref(),
        text: |measurement: &Measurement| delay_text(&[measurement]),
        page: |measurement: &Measurement| delay_page(&[measurement]),
    };
    if let Some(path) = &plan.pcapng {
        check_writable(path)?;
    }
    let correction = plan.correction.as_deref().map(correction).transpose()?;
    // libpcap may take seconds, and wait for names: before signals are asked for.
    let filter = plan.filter.as_ref();
    let filter = match plan.file {
        Some(_) => filter.map(filter::compile_for_file),
        None => filter.map(filter::compile),
    };
    let live = LivePlan {
        filter: filter.transpose()?,
        ..plan.live.clone()
    };
    match &plan.file {
        None => measuring::run(&shown, live::session(plan, &live, correction)),
        Some(path) => measuring::run(&shown, of_file(plan, &live, path, correction)),
    }
}

/// Reads a capture.
async fn of_file(
    plan: &DelayPlan,
    live: &LivePlan,
    path: &Path,
    correction: Option<Correction>,
) -> Result<Option<(Measurement, Exit)>, Failure> {
    let start = Start::now(&KernelFiles::live());
    let mut signals = Signals::new()?;
    let file_plan = FilePlan::of(live);
    let owned = path.to_owned();
    let read = tokio::task::spawn_blocking(move || measure_file(&owned, &file_plan));
    let found = tokio::select! {
        found = read => found.context("the reader panicked: please report this")?,
        () = signals.next() => return Ok(None),
    };
    let found = found.context(format!("cannot measure in {}", path.display()));
    let found = found.hint("give a capture with both interfaces, or both directions of one")?;
    let method = Method {
        file: Some(path.display().to_string()),
        correction,
        ..method(
            plan,
            live,
            found.matched_by,
            &found.clock,
            found.memory_bytes,
        )
    };
    let about = start.circumstances(&KernelFiles::live(), 0, "-");
    let measurement = Measurement {
        about: about.envelope(Kind::Delay, VERSION, false),
        method,
        passages: found.passages,
        warnings: found.warnings,
    };
    Ok(Some((measurement, Exit::Success)))
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
