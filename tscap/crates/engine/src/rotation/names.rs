//! Names of files: pure, of a number and a time.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jiff::fmt::strtime::{BrokenDownTime, Config, PosixCustom};
use jiff::tz::TimeZone;

use super::Naming;
use tscap_clock::RealNs;

/// Why there is no name.
#[derive(Debug, thiserror::Error)]
pub enum NameError {
    /// strftime works on text.
    #[error("{} is not UTF-8, so it can't be a time format", .0.display())]
    NotText(PathBuf),
    /// A conversion that there is not.
    #[error("{format} is no time format")]
    Format {
        /// The format.
        format: String,
        /// What is wrong with it.
        source: jiff::Error,
    },
    /// The clock is beyond the calendar.
    #[error("the clock shows no date")]
    NoDate(#[source] jiff::Error),
}

/// Names one after the other.
#[derive(Clone, Debug)]
pub struct Names {
    template: PathBuf,
    naming: Naming,
    zone: TimeZone,
    /// Of the latest file: in its period with tcpdump's names, else of all.
    number: u64,
    /// Start of the period that the latest file is in.
    period: RealNs,
}

impl Names {
    /// Names after `template`, the argument of `-w`, in local times of `zone`.
    pub fn new(template: &Path, naming: Naming, zone: TimeZone) -> Self {
        Self {
            template: template.to_owned(),
            naming,
            zone,
            number: 0,
            period: RealNs(0),
        }
    }

    /// What the names are made after.
    pub fn template(&self) -> &Path {
        &self.template
    }

    /// Whether every file has the same name.
    pub fn are_all_one(&self) -> bool {
        match self.naming {
            Naming::Tcpdump {
                has_time,
                has_number,
                ring,
            } => {
                let is_format = self.template.as_os_str().as_encoded_bytes().contains(&b'%');
                !(has_time && is_format || has_number && ring != Some(1))
            }
            Naming::Dumpcap { .. } => false,
        }
    }

    /// Whether every name can be made.
    pub fn check(&self) -> Result<(), NameError> {
        self.name(RealNs(0)).map(drop)
    }

    /// The first name, of a file that starts at `start`.
    pub fn first(&mut self, start: RealNs) -> Result<PathBuf, NameError> {
        self.number = 0;
        self.period = start;
        self.name(start)
    }

    /// The next name, of a file that starts at `start`, and whose period starts
    /// with it or has begun before.
    pub fn next(&mut self, start: RealNs, begins_period: bool) -> Result<PathBuf, NameError> {
        self.number = match self.naming {
            Naming::Tcpdump { has_time: true, .. } if begins_period => 0,
            Naming::Tcpdump {
                ring: Some(ring), ..
            } => (self.number + 1) % ring,
            _ => self.number + 1,
        };
        if begins_period {
            self.period = start;
        }
        self.name(start)
    }

    /// The next name, of a file that starts at `start` because somebody asks for one: with a
    /// time alone in it, the name of a period that begins then.
    pub fn asked(&mut self, start: RealNs) -> Result<PathBuf, NameError> {
        let is_by_time = matches!(
            self.naming,
            Naming::Tcpdump {
                has_time: true,
                has_number: false,
                ..
            }
        );
        self.next(start, is_by_time)
    }

    fn name(&self, start: RealNs) -> Result<PathBuf, NameError> {
        match self.naming {
            Naming::Tcpdump {
                has_time,
                has_number,
                ring,
            } => {
                let mut name = if has_time {
                    // Once a period, as `Gflag_time` of tcpdump.c.
                    self.formatted(self.period)?
                } else {
                    self.template.clone().into_os_string()
                };
                // As `getWflagChars` and `MakeFilename` of tcpdump.c.
                let width = ring.map_or(0, |ring| digits(ring - 1));
                if has_number && (self.number > 0 || width > 0) {
                    name.push(format!("{:0width$}", self.number));
                }
                Ok(name.into())
            }
            Naming::Dumpcap { .. } => {
                let time = format("%Y%m%d%H%M%S", &self.zone, start)?;
                let number = self.number + 1;
                let base = self.template.file_name().unwrap_or_default();
                let (prefix, suffix) = split_at_last_point(base);
                let mut name = prefix.to_owned();
                name.push(format!("_{number:05}_{time}"));
                name.push(suffix);
                Ok(self.template.with_file_name(name))
            }
        }
    }

    fn formatted(&self, start: RealNs) -> Result<OsString, NameError> {
        let template = self.template.to_str();
        let template = template.ok_or_else(|| NameError::NotText(self.template.clone()))?;
        format(template, &self.zone, start).map(OsString::from)
    }
}

/// Decimal digits of a number; none for 0.
fn digits(number: u64) -> usize {
    number.checked_ilog10().map_or(0, |log| log as usize + 1)
}

/// As dumpcap does (`ringbuf_init`, ringbuf.c): the suffix begins with the last
/// point of the name, and may be missing.
fn split_at_last_point(name: &OsStr) -> (&OsStr, OsString) {
    use std::os::unix::ffi::OsStrExt as _;
    let bytes = name.as_bytes();
    let point = bytes.iter().rposition(|byte| *byte == b'.');
    let (prefix, suffix) = bytes.split_at(point.unwrap_or(bytes.len()));
    (
        OsStr::from_bytes(prefix),
        OsStr::from_bytes(suffix).to_owned(),
    )
}

/// A local time by strftime(3), in the C locale.
fn format(format: &str, zone: &TimeZone, time: RealNs) -> Result<String, NameError> {
    let time = Timestamp::from_nanosecond(time.0.into()).map_err(NameError::NoDate)?;
    let time = BrokenDownTime::from(&time.to_zoned(zone.clone()));
    let locale = Config::new().custom(PosixCustom::default());
    let text = time.to_string_with_config(&locale, format);
    text.map_err(|source| NameError::Format {
        format: format.into(),
        source,
    })
}

#[cfg(test)]
mod tests;
