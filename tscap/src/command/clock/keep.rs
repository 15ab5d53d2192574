//! What is kept of the clock: a log.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::cli::ClockPlan;
use crate::clock::log::{LogWriter, Recorder, WriteLogError};
use crate::clock::{CrossTimestamp, Observation, Tracker};
use crate::command::{Failure, Hint};
use crate::sys::kernel_files::KernelFiles;
use crate::sys::{process, tsc};

/// Between two entries: as often as a capture writes its statistics.
const EVERY: Duration = Duration::from_secs(10);

/// A log, if one was asked for.
pub(super) struct Keeper<'a> {
    log: Option<(LogWriter, &'a Path)>,
    recorder: Recorder,
    next: Instant,
}

impl<'a> Keeper<'a> {
    /// Opens the log.
    pub fn new(plan: &'a ClockPlan) -> Result<Self, Failure> {
        let log = plan.log.as_deref().map(|path| Ok((open(path)?, path)));
        Ok(Self {
            log: log.transpose()?,
            recorder: Recorder::default(),
            next: Instant::now(),
        })
    }

    /// Takes in what the tracker made of a reading; writes an entry when it is due.
    pub fn observe(
        &mut self,
        cross: &CrossTimestamp,
        seen: Observation,
        tracker: &mut Tracker,
    ) -> Result<(), Failure> {
        if self.log.is_none() {
            tracker.take_samples();
            return Ok(());
        }
        self.recorder.observe(cross, seen, tracker);
        match Instant::now() >= self.next {
            true => self.write(tracker),
            false => Ok(()),
        }
    }

    /// Writes an entry.
    pub fn write(&mut self, tracker: &mut Tracker) -> Result<(), Failure> {
        let Some((log, path)) = &mut self.log else {
            return Ok(());
        };
        self.next = Instant::now() + EVERY;
        let utc_bound_ns = super::utc_bound_ns();
        let Some(entry) = self.recorder.entry(tracker, tsc::read(), utc_bound_ns) else {
            return Ok(());
        };
        let written = log.write(&entry);
        written
            .trying(format!("cannot write to {}", path.display()))
            .map_err(|failure| {
                failure.hint("make room, and start again: the log will be continued")
            })
    }
}

fn open(path: &Path) -> Result<LogWriter, Failure> {
    let name = path.display();
    let boot_id = process::boot_id(&KernelFiles::live());
    let boot_id = boot_id.trying("cannot tell which boot of the machine this is")?;
    let log = LogWriter::open(path, &boot_id).map_err(|error| {
        let hint = match error {
            WriteLogError::OtherBoot(_) => "give another file: counters begin anew with each boot",
            WriteLogError::InUse => "one process is enough for many captures",
            WriteLogError::Io(_) => "give --log a file in a folder that you may write to",
            _ => "give --log a new file, or a log of this boot to continue",
        };
        let failed: Result<(), _> = Err(error);
        let failure = failed.trying(format!("cannot log the clock to {name}"));
        failure.expect_err("it is one").hint(hint)
    })?;
    if log.cut() > 0 {
        eprintln!("{name}: cut off {} bytes of a torn last line", log.cut());
    }
    Ok(log)
}
