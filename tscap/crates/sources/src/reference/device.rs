//! A PTP hardware clock that is looked at some times a second.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tscap_base::failure::Failure;
use tscap_base::text::causes::chain;
use tscap_base::text::numbers::signed;
use tscap_capture::{Event, Severity};
use tscap_clock::{Tracker, TscCycles};
use tscap_references::{PhcClock, PhcOutcome, PhcSighting, PhcStatus};
use tscap_time::ptp::{Method, PtpDevice, PtpError};

/// Between two looks at a device, which take some µs each.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The device with its clock.
#[derive(Debug)]
pub struct Device {
    path: PathBuf,
    ptp: PtpDevice,
    clock: PhcClock,
    next: Instant,
    /// The latest look failed or the device stood, which has been said.
    is_away: bool,
}

/// What a look at a device came to.
#[derive(Debug)]
pub enum LookOutcome {
    /// The host's clock beside it.
    Seen(PhcSighting, Box<PhcStatus>),
    /// The device was set.
    Jumped,
}

impl Device {
    /// Opens it.
    ///
    /// # Errors
    /// If it can't be read.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        Ok(Self {
            path: path.to_owned(),
            ptp: PtpDevice::open(path).map_err(refusal)?,
            clock: PhcClock::default(),
            next: Instant::now(),
            is_away: false,
        })
    }

    /// Its file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How it is read.
    pub fn method(&self) -> Method {
        self.ptp.method()
    }

    /// Its clock.
    pub fn clock(&self) -> &PhcClock {
        &self.clock
    }

    /// The counter jumped: nothing of before holds.
    pub fn begin_anew(&mut self) {
        self.clock = PhcClock::default();
    }

    /// Looks at it, if it is time to.
    pub fn look_if_due(
        &mut self,
        host: &Tracker,
        on_event: &mut dyn FnMut(Event),
    ) -> Option<LookOutcome> {
        let now = Instant::now();
        if now < self.next {
            return None;
        }
        self.next = now + LOOK_EVERY;
        let looked = self.clock.look(&mut self.ptp, host);
        let device = self.path.display();
        let warning = match &looked {
            PhcOutcome::Failed(error) if !self.is_away => {
                let cause = chain(error);
                let what = if error.is_gone() {
                    "it is gone for good, and "
                } else {
                    ""
                };
                Some(format!(
                    "{cause}: {what}its clock is carried on with a growing bound"
                ))
            }
            PhcOutcome::Stands if !self.is_away => Some(format!(
                "{device} stands still: its clock is carried on with a growing bound"
            )),
            PhcOutcome::Jumped { by_ns } => Some(format!(
                "{device} was set by {} ns, or the TSC jumped: its clock begins anew",
                signed(*by_ns)
            )),
            _ => None,
        };
        self.is_away = matches!(looked, PhcOutcome::Failed(_) | PhcOutcome::Stands);
        if let Some(warning) = warning {
            on_event(Event::Notice(Severity::Warning, warning));
        }
        match looked {
            PhcOutcome::Used => {
                let seen = self.clock.sighting(host)?;
                let status = self.status(seen.at, host)?;
                Some(LookOutcome::Seen(seen, Box::new(status)))
            }
            PhcOutcome::Jumped { .. } => Some(LookOutcome::Jumped),
            _ => None,
        }
    }

    /// What is known of it at a counter value.
    pub fn status(&self, at: TscCycles, host: &Tracker) -> Option<PhcStatus> {
        self.clock.status(at, host)
    }
}

fn refusal(error: PtpError) -> Failure {
    let hint = match &error {
        PtpError::Open { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
            "`ls /dev/ptp*` lists them, `ethtool -T IFACE` says which is an interface's; most \
             virtual machines have none"
        }
        PtpError::Open { source, .. } if source.kind() == std::io::ErrorKind::PermissionDenied => {
            "root may read it, and who is in the group that owns it (`ls -l`)"
        }
        PtpError::NotAClock { .. } => "give a device such as /dev/ptp0",
        _ => "see whether its interface is up, and what `dmesg` says of its driver",
    };
    Failure::from_error(error, "cannot take this reference").hint(hint)
}
