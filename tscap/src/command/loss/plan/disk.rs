//! The disk under `--folder`.

use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use super::Session;
use crate::command::{Context as _, Failure, Hint as _, measuring};
use tscap_cli::PredictionPlan;
use tscap_lab::loss::{Disk, DiskError, DiskRate, LossError};

/// Steps of the progress in a second.
const STEPS: f64 = 10.0;

/// Where a capture would be written.
pub(super) enum Storage<'a> {
    Unknown,
    /// A folder in memory.
    Memory(&'a Path),
    /// A disk that is to be measured.
    Disk(&'a Path, Box<Disk>),
    /// A folder of which the rate was given.
    Given,
}

#[derive(Serialize)]
struct DiskProgress {
    disk_seconds: f64,
    of: f64,
}

/// Looks at the folder, and makes the file if it is on a disk: what can't be measured is
/// refused before anything is.
pub(super) fn storage(plan: &PredictionPlan) -> Result<Storage<'_>, Failure> {
    let Some(folder) = plan.folder.as_deref() else {
        return Ok(Storage::Unknown);
    };
    if plan.file_rate.is_some() {
        return Ok(Storage::Given);
    }
    let refused = |error: DiskError| {
        let hint = match error {
            DiskError::Io(_) => "give --folder one that you may write to",
            DiskError::NotDirect => "leave --io out, or give --io buffered",
            DiskError::Full { .. } => "make room there, or say by --file-rate what the disk takes",
        };
        let what = format!("cannot write captures in {}", folder.display());
        Failure::from_error(error, what).hint(hint)
    };
    Ok(match Disk::open(folder, plan.io).map_err(refused)? {
        Some(disk) => Storage::Disk(folder, Box::new(disk)),
        None => Storage::Memory(folder),
    })
}

/// What the disk takes; `None` if a second signal came.
pub(super) async fn measured(
    folder: &Path,
    disk: Box<Disk>,
    lasting: Duration,
    session: &mut Session,
) -> Result<Option<DiskRate>, Failure> {
    let of = (lasting.as_secs_f64() * STEPS).ceil() as u32 + 1;
    let seconds = lasting.as_secs_f64();
    let name = folder.display();
    session.console.note(&format!(
        "writing to {name} for {seconds} s, to find out what its disk takes alone"
    ));
    let rate = measuring::measure(
        "tscap-disk",
        measuring::Amount {
            of,
            seconds: move |_| seconds,
        },
        "the disk",
        &mut session.signals,
        &mut session.console,
        |step| DiskProgress {
            disk_seconds: (f64::from(step) / STEPS).min(seconds),
            of: seconds,
        },
        move |stop, done| {
            let rate = disk.measure(lasting, &stop, |written| {
                done(((written.as_secs_f64() * STEPS) as u32).clamp(1, of - 1));
            })?;
            done(of);
            Ok(rate)
        },
    );
    match rate.await?.transpose() {
        Ok(rate) => Ok(rate),
        Err(LossError::Stopped(_)) => Err(Failure::new(format!(
            "ended before it was known what the disk under {name} takes"
        ))),
        Err(error) => Err::<Option<DiskRate>, _>(error)
            .context(format!("cannot find out what the disk under {name} takes"))
            .hint("say by --file-rate what it takes, or give another --folder"),
    }
}
