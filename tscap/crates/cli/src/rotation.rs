//! Options of `tscap capture` for several files: tcpdump's and dumpcap's.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory};
use jiff::tz::TimeZone;

use super::{Cli, units};
use tscap_engine::{Limits, Names, Naming, Period, RotationPlan};

/// dumpcap's numbers have five digits.
const MOST_FILES: u64 = 99_999;

/// Several files one after the other
#[derive(Debug, Default, Args)]
pub(super) struct RotationArgs {
    /// Begin the next file when one is larger than this: millions of bytes, or
    /// with K, M or G as KiB, MiB or GiB; names are FILE, FILE1, FILE2...
    #[arg(short = 'C', long, value_name = "SIZE", value_parser = units::file_size,
          conflicts_with = "ring_buffer")]
    file_size: Option<u64>,

    /// Begin the next file every SECONDS; FILE is a strftime format for
    /// the local time of each file's start (out-%H%M%S.pcapng). Without one each
    /// file takes the place of the one before
    #[arg(short = 'G', long, value_name = "SECONDS",
          value_parser = units::positive::<u32>, conflicts_with = "ring_buffer")]
    rotate_seconds: Option<u32>,

    /// With -C: this many files, then begin again with the first; names have a
    /// number with leading zeros. With -G: end with success after this many. With
    /// both: this many files in each period, then begin again with its first
    #[arg(short = 'W', long, value_name = "COUNT",
          value_parser = units::positive::<u64>, conflicts_with = "ring_buffer")]
    file_count: Option<u64>,

    /// dumpcap's criteria, one an option: filesize:KB (1000 bytes), duration:SECONDS,
    /// interval:SECONDS (of the clock, so 3600 is every hour on the hour),
    /// packets:COUNT, files:COUNT (keep the latest COUNT); names are
    /// FILE_00001_20260102030405.pcapng
    #[arg(short = 'b', long, value_name = "KEY:VALUE", value_parser = criterion)]
    ring_buffer: Vec<Criterion>,

    /// Run COMMAND FILE for each file when it is complete, without a shell and
    /// at the lowest priority; the capture does not wait for it
    #[arg(short = 'z', long, value_name = "COMMAND")]
    postrotate_command: Option<PathBuf>,
}

/// One `-b`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Criterion {
    Bytes(u64),
    Period(Period),
    Frames(u64),
    Files(u64),
}

impl RotationArgs {
    /// The plan for files named after `template`; `None` for one file.
    pub(super) fn into_plan(self, template: &Path) -> Result<Option<RotationPlan>, clap::Error> {
        let plan = match (&self.ring_buffer[..], self.file_size, self.rotate_seconds) {
            ([], None, None) => None,
            ([], ..) => Some(self.tcpdump()),
            (criteria, ..) => Some(dumpcap(criteria).map_err(conflict)?),
        };
        let Some(mut plan) = plan else {
            return match (self.file_count, self.postrotate_command) {
                (Some(_), _) => Err(conflict("-W needs -C or -G: it counts their files")),
                (_, Some(_)) => Err(conflict("-z needs -C, -G or -b: it runs on their files")),
                _ => Ok(None),
            };
        };
        if template == "-" {
            return Err(conflict("several files need names: -w - is one stream"));
        }
        plan.command = self.postrotate_command;
        let names = Names::new(template, plan.naming, TimeZone::UTC);
        match names.check() {
            Ok(()) => Ok(Some(plan)),
            Err(error) => Err(conflict(format!("-w: {error} (strftime)"))),
        }
    }

    fn tcpdump(&self) -> RotationPlan {
        let has_time = self.rotate_seconds.is_some();
        let has_number = self.file_size.is_some();
        RotationPlan {
            limits: Limits {
                // "Larger than", as tcpdump has it.
                bytes: self.file_size.map(|bytes| bytes.saturating_add(1)),
                frames: None,
                period: self
                    .rotate_seconds
                    .map(|seconds| Period::Every(Duration::from_secs(seconds.into()))),
            },
            naming: Naming::Tcpdump {
                has_time,
                has_number,
                ring: self.file_count.filter(|_| has_number),
            },
            periods: self.file_count.filter(|_| !has_number),
            command: None,
        }
    }
}

fn dumpcap(criteria: &[Criterion]) -> Result<RotationPlan, &'static str> {
    let mut limits = Limits::default();
    let mut ring = None;
    for criterion in criteria {
        let is_twice = match *criterion {
            Criterion::Bytes(bytes) => limits.bytes.replace(bytes).is_some(),
            Criterion::Frames(frames) => limits.frames.replace(frames).is_some(),
            Criterion::Period(period) => limits.period.replace(period).is_some(),
            Criterion::Files(files) => ring.replace(files).is_some(),
        };
        if is_twice {
            return Err("-b: each criterion only once, and duration or interval, not both");
        }
    }
    if limits == Limits::default() {
        return Err("-b files: needs another -b that says when the next file begins");
    }
    Ok(RotationPlan {
        limits,
        naming: Naming::Dumpcap { ring },
        periods: None,
        command: None,
    })
}

fn criterion(text: &str) -> Result<Criterion, String> {
    let (key, value) = text
        .split_once(':')
        .ok_or("it has the form KEY:VALUE, such as filesize:1000")?;
    let positive = || match value.parse::<u64>() {
        Ok(0) | Err(_) => Err(format!("{key} is a number, 1 or more")),
        Ok(number) => Ok(number),
    };
    Ok(match key {
        "filesize" => match positive()?.checked_mul(1000) {
            Some(bytes) => Criterion::Bytes(bytes),
            None => return Err("no file is as large".into()),
        },
        "duration" => match value.parse::<f64>() {
            Ok(_) => Criterion::Period(Period::Every(units::duration(value)?)),
            Err(_) => return Err("duration is a number of seconds, such as 60 or 0.5".into()),
        },
        "interval" => {
            let length = Duration::from_secs(positive()?);
            Criterion::Period(Period::MultipleOf(length))
        }
        "packets" => Criterion::Frames(positive()?),
        "files" => match positive()? {
            files @ 1..=MOST_FILES => Criterion::Files(files),
            _ => return Err(format!("files is at most {MOST_FILES}")),
        },
        "printname" | "nametimenum" => {
            return Err(format!(
                "{key} is dumpcap's alone: --json has an event for each file that is complete"
            ));
        }
        _ => {
            return Err("the keys are filesize, duration, interval, packets and files".into());
        }
    })
}

fn conflict(message: impl std::fmt::Display) -> clap::Error {
    Cli::command().error(ErrorKind::ArgumentConflict, message)
}

#[cfg(test)]
mod tests;
