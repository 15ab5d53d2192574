//! What is kept of the clock: a log, and what a report is drawn of.

use std::path::Path;
use std::time::{Duration, Instant};

use super::references::ReferenceOutcome;
use crate::command::print::say;
use crate::command::report::{check_apart, check_writable, digest, write_page};
use crate::command::{Context, Failure, Hint as _};
use tscap_base::kernel_files::KernelFiles;
use tscap_base::text::numbers::counted;
use tscap_cli::ClockPlan;
use tscap_clock::{CrossTimestamp, Observation, Tracker};
use tscap_host::process;
use tscap_references::log::{Digest, Header, Line, LogWriter, Recorder, WriteLogError};
use tscap_report::clock_document;
use tscap_time::tsc;

/// Between two entries: at most this, as between a capture's statistics...
const LONGEST: Duration = Duration::from_secs(10);
/// ...at first this, and a tenth of the time since the start between.
const SHORTEST: Duration = Duration::from_secs(1);

/// A log and a report, as far as they were asked for.
pub(super) struct Keeper<'a> {
    log: Option<(LogWriter, &'a Path)>,
    /// Without a log, what the report is drawn of.
    digest: Option<Digest>,
    report: Option<&'a Path>,
    recorder: Recorder,
    started: Instant,
    next: Instant,
    /// An entry is lost: those after it would hide that.
    has_failed: bool,
}

impl<'a> Keeper<'a> {
    pub fn new(plan: &'a ClockPlan) -> Result<Self, Failure> {
        let report = plan.report.as_deref();
        report.map_or(Ok(()), check_writable)?;
        if let (Some(log), Some(report)) = (plan.log.as_deref(), report) {
            check_apart(log, report)?;
        }
        let needs_boot = plan.log.is_some() || report.is_some();
        let boot_id = needs_boot.then(|| process::boot_id(&KernelFiles::live()));
        let boot_id = boot_id.transpose();
        let boot_id = boot_id.context("cannot tell which boot of the machine this is")?;
        let boot_id = boot_id.as_deref().unwrap_or_default();
        let log = plan
            .log
            .as_deref()
            .map(|path| Ok((open(path, boot_id)?, path)));
        let log = log.transpose()?;
        let digest = (report.is_some() && log.is_none()).then(|| {
            let mut digest = Digest::default();
            digest.take(Line::Header(Header::new(boot_id)));
            digest
        });
        let started = Instant::now();
        Ok(Self {
            log,
            digest,
            report,
            recorder: Recorder::default(),
            started,
            next: started,
            has_failed: false,
        })
    }

    /// Takes in what the tracker made of a reading; makes an entry when it is due, with the bound of
    /// the host's clock to UTC, ns, if there is one.
    pub fn observe(
        &mut self,
        cross: &CrossTimestamp,
        seen: Observation,
        tracker: &mut Tracker,
        utc_bound_ns: Option<u64>,
    ) -> Result<(), Failure> {
        if self.log.is_none() && self.digest.is_none() {
            tracker.take_samples();
            return Ok(());
        }
        self.recorder.observe(cross, seen, tracker);
        if Instant::now() >= self.next {
            self.enter(tracker, utc_bound_ns)
        } else {
            Ok(())
        }
    }

    /// Takes in what a look at another reference came to.
    pub fn observe_reference(&mut self, looked: &ReferenceOutcome, tracker: &Tracker) {
        if self.log.is_none() && self.digest.is_none() {
            return;
        }
        match looked {
            ReferenceOutcome::Seen(device, seen, status) => {
                let device = device.to_string_lossy();
                self.recorder
                    .observe_reference(&device, *seen, status, tracker);
            }
            ReferenceOutcome::Jumped => self.recorder.restart_reference(),
            ReferenceOutcome::Exchange(server, point) => self.recorder.observe_ntp(*server, *point),
        }
    }

    fn enter(&mut self, tracker: &mut Tracker, utc_bound_ns: Option<u64>) -> Result<(), Failure> {
        let every = (self.started.elapsed() / 10).clamp(SHORTEST, LONGEST);
        self.next = Instant::now() + every;
        let Some(entry) = self.recorder.entry(tracker, tsc::read(), utc_bound_ns) else {
            return Ok(());
        };
        if let Some((log, path)) = &mut self.log {
            let written = log.write(&entry);
            self.has_failed = written.is_err();
            written
                .context(format!("cannot write to {}", path.display()))
                .hint("make room, and start again: the log will be continued")?;
        }
        if let Some(digest) = &mut self.digest {
            digest.take(Line::Entry(Box::new(entry)));
        }
        Ok(())
    }

    /// Makes the last entry, and the report.
    pub fn finish(
        mut self,
        tracker: &mut Tracker,
        utc_bound_ns: Option<u64>,
    ) -> Result<(), Failure> {
        if self.log.is_none() && self.digest.is_none() {
            return Ok(());
        }
        if !self.has_failed {
            self.enter(tracker, utc_bound_ns)?;
        }
        let Some(report) = self.report else {
            return Ok(());
        };
        let whole = match (&self.log, self.digest) {
            (Some((_, path)), _) => {
                // A link may lead to the log only since that is there.
                check_apart(path, report)?;
                digest(path)?
            }
            (None, digest) => digest.unwrap_or_default(),
        };
        write_page(&clock_document(&whole).page(), report)
    }
}

fn open(path: &Path, boot_id: &str) -> Result<LogWriter, Failure> {
    let name = path.display();
    let log = LogWriter::open(path, boot_id).map_err(|error| {
        let hint = match error {
            WriteLogError::OtherBoot(_) => "give another file: counters begin anew with each boot",
            WriteLogError::InUse => "one process is enough for many captures",
            WriteLogError::Io(_) => "give --log a file in a folder that you may write to",
            _ => "give --log a new file, or a log of this boot to continue",
        };
        Failure::from_error(error, format!("cannot log the clock to {name}")).hint(hint)
    })?;
    if log.cut() > 0 {
        say(&format!(
            "{name}: cut off {} of a torn last line",
            counted(log.cut(), "byte")
        ));
    }
    Ok(log)
}
