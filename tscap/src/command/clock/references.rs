//! What the clock is held against besides CLOCK_REALTIME: CLOCK_MONOTONIC_RAW, and a
//! PTP hardware clock if one is asked for.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::causes::with_causes;
use crate::clock::{
    Bracket, Looked, PhcClock, PhcStatus, RawClock, Slew, Status, Tracker, TscCycles,
};
use crate::command::{Failure, Hint};
use crate::numbers::{signed, span};
use crate::sys::ptp::{Method, PtpDevice, PtpError};
use crate::sys::timex::KernelClock;

/// Between two looks at a device, which take some µs each.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// All of them.
#[derive(Debug, Default)]
pub(super) struct References {
    raw: RawClock,
    device: Option<Device>,
}

#[derive(Debug)]
struct Device {
    path: PathBuf,
    ptp: PtpDevice,
    clock: PhcClock,
    next: Instant,
    /// The latest look failed or the device stood, which has been said.
    is_away: bool,
}

/// What they say at a moment.
#[derive(Debug, Serialize)]
pub(super) struct Said {
    /// How the host's clock is slewed.
    slew: Option<Slew>,
    /// The device, once it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    reference: Option<DeviceStatus>,
}

#[derive(Debug, Serialize)]
struct DeviceStatus {
    device: PathBuf,
    method: Method,
    #[serde(flatten)]
    status: PhcStatus,
}

impl References {
    /// Opens the device asked for.
    pub fn open(device: Option<&Path>) -> Result<Self, Failure> {
        Ok(Self {
            raw: RawClock::default(),
            device: device.map(Device::open).transpose()?,
        })
    }

    /// Reads each that is due.
    pub fn read(&mut self, tracker: &Tracker) {
        self.raw.observe(&Bracket::of_raw());
        if let Some(device) = &mut self.device {
            device.look_if_due(tracker);
        }
    }

    /// At a counter value, beside the host's clock.
    pub fn say(&self, status: &Status, kernel: Option<&KernelClock>, tracker: &Tracker) -> Said {
        let kernel_ppb = kernel.map(|kernel| kernel.frequency_ppb + kernel.tick_ppb);
        Said {
            slew: self.raw.slew(&status.counter, kernel_ppb),
            reference: self
                .device
                .as_ref()
                .and_then(|device| device.status(status.tsc, tracker)),
        }
    }

    /// Headings of its columns and their widths.
    pub fn headings(&self) -> Vec<(&'static str, usize)> {
        let slew = [("slew, ppm", 15), ("kernel", 8)];
        let device = [("ahead of PHC", 14), ("± PHC", 9), ("age", 9)];
        let device = device.into_iter().filter(|_| self.device.is_some());
        slew.into_iter().chain(device).collect()
    }
}

impl Said {
    /// As cells of the table.
    pub fn cells(&self) -> Vec<String> {
        let none = || "unknown".to_owned();
        let ppm = |ppb: i64| format!("{:+.3}", ppb as f64 / 1e3);
        let slew = self.slew.as_ref();
        let kernel = slew.and_then(|slew| slew.kernel_ppb);
        let slew = slew.map(|slew| format!("{}±{:.3}", ppm(slew.ppb), slew.bound_ppb as f64 / 1e3));
        let mut cells = vec![slew.unwrap_or_else(none), kernel.map_or_else(none, ppm)];
        if let Some(DeviceStatus { status, .. }) = &self.reference {
            cells.push(signed(status.host_ahead_ns));
            cells.push(span(status.bound_ns));
            cells.push(span(status.age_ns));
        }
        cells
    }
}

impl Device {
    fn open(path: &Path) -> Result<Self, Failure> {
        let ptp = PtpDevice::open(path).map_err(refusal)?;
        Ok(Self {
            path: path.to_owned(),
            ptp,
            clock: PhcClock::default(),
            next: Instant::now(),
            is_away: false,
        })
    }

    fn look_if_due(&mut self, tracker: &Tracker) {
        let now = Instant::now();
        if now < self.next {
            return;
        }
        self.next = now + LOOK_EVERY;
        let looked = self.clock.look(&mut self.ptp, tracker);
        let device = self.path.display();
        let warning = match &looked {
            Looked::Failed(error) if !self.is_away => {
                let cause = with_causes(error.to_string(), std::error::Error::source(error));
                let lasting = if error.is_gone() { " for good" } else { "" };
                Some(format!(
                    "{cause}: it is gone{lasting}, and its clock is carried on with a growing bound"
                ))
            }
            Looked::Stands if !self.is_away => Some(format!(
                "{device} stands still: its clock is carried on with a growing bound"
            )),
            Looked::Jumped { by_ns } => Some(format!(
                "{device} was set by {} ns, or the TSC jumped: its clock begins anew",
                signed(*by_ns)
            )),
            _ => None,
        };
        self.is_away = matches!(looked, Looked::Failed(_) | Looked::Stands);
        if let Some(warning) = warning {
            // Nobody may be there to read it.
            let _ = writeln!(std::io::stderr(), "warning: {warning}");
        }
    }

    fn status(&self, at: TscCycles, tracker: &Tracker) -> Option<DeviceStatus> {
        Some(DeviceStatus {
            device: self.path.clone(),
            method: self.ptp.method(),
            status: self.clock.status(at, tracker)?,
        })
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
    Err::<(), _>(error)
        .trying("cannot take this reference")
        .expect_err("it is one")
        .hint(hint)
}
