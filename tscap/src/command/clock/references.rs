//! What the clock is held against besides CLOCK_REALTIME: CLOCK_MONOTONIC_RAW, and a
//! PTP hardware clock or NTP servers if they are asked for.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::json;

use super::ntp::{self, Ntp, NtpSaid};
use super::table::Column;
use crate::capturing::clock::ntp::NtpPoint;
use crate::capturing::clock::{
    Bracket, PhcClock, PhcOutcome, PhcSighting, PhcStatus, RawClock, Slew, Status, Tracker,
    TscCycles,
};
use crate::capturing::host::ptp::{Method, PtpDevice, PtpError};
use crate::capturing::host::timex::KernelClock;
use crate::cli::{ClockPlan, ReferencePlan};
use crate::command::Failure;
use crate::command::print::{print_if_read, say};
use crate::text::causes::chain;
use crate::text::numbers::{minus, signed, span};

/// Between two looks at a device, which take some µs each.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// All of them.
#[derive(Debug, Default)]
pub(super) struct References {
    raw: RawClock,
    other: Option<Other>,
}

#[derive(Debug)]
enum Other {
    Device(Box<Device>),
    Ntp(Box<Ntp>),
}

/// What a look at another reference came to.
#[derive(Debug)]
pub(super) enum Looked {
    /// An exchange with a server.
    Exchange(SocketAddr, NtpPoint),
    /// The host's clock beside a device.
    Seen(PathBuf, PhcSighting, Box<PhcStatus>),
    /// The device was set.
    Jumped,
}

#[derive(Debug)]
struct Device {
    /// Warnings are JSON objects.
    json: bool,
    path: PathBuf,
    ptp: PtpDevice,
    clock: PhcClock,
    next: Instant,
    /// The latest look failed or the device stood, which has been said.
    is_away: bool,
}

/// What they say at a moment.
#[derive(Debug, Serialize)]
pub(super) struct ReferenceStatus {
    /// How the host's clock is slewed.
    slew: Option<Slew>,
    /// What there are columns for.
    #[serde(skip)]
    other: Option<Kind>,
    /// It, once it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    reference: Option<Said>,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Device,
    Ntp,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Said {
    Device(Box<DeviceStatus>),
    Ntp(Box<NtpSaid>),
}

#[derive(Debug, Serialize)]
struct DeviceStatus {
    device: PathBuf,
    method: Method,
    #[serde(flatten)]
    status: PhcStatus,
}

impl References {
    /// Opens what was asked for. The host's clock must have settled.
    pub fn open(plan: &ClockPlan, tracker: &Tracker) -> Result<Self, Failure> {
        let other = match &plan.reference {
            None => None,
            Some(ReferencePlan::Device(path)) => {
                Some(Other::Device(Box::new(Device::open(path, plan.json)?)))
            }
            Some(ReferencePlan::Ntp(ntp)) => {
                Some(Other::Ntp(Box::new(Ntp::start(ntp, plan.json, tracker)?)))
            }
        };
        Ok(Self {
            raw: RawClock::default(),
            other,
        })
    }

    /// After a jump of the counter nothing of before holds.
    pub fn begin_anew(&mut self) {
        match &mut self.other {
            Some(Other::Device(device)) => device.clock = PhcClock::default(),
            Some(Other::Ntp(ntp)) => ntp.begin_anew(),
            None => {}
        }
    }

    /// Reads each that is due; says what became of looks at the one that was asked for.
    pub fn read(&mut self, tracker: &Tracker) -> Vec<Looked> {
        self.raw.observe(&Bracket::of_raw());
        match &mut self.other {
            Some(Other::Device(device)) => device.look_if_due(tracker).into_iter().collect(),
            Some(Other::Ntp(ntp)) => ntp.turn(tracker),
            None => Vec::new(),
        }
    }

    /// At a counter value, beside the host's clock.
    pub fn say(&mut self, status: &Status, tracker: &Tracker) -> ReferenceStatus {
        let kernel = KernelClock::read().ok();
        let kernel_ppb = kernel.map(|kernel| kernel.frequency_ppb + kernel.tick_ppb);
        let (other, reference) = match &mut self.other {
            Some(Other::Device(device)) => {
                let said = device.status(status.tsc, tracker);
                (
                    Some(Kind::Device),
                    said.map(|it| Said::Device(Box::new(it))),
                )
            }
            Some(Other::Ntp(ntp)) => {
                let said = Said::Ntp(Box::new(ntp.say(status, tracker)));
                (Some(Kind::Ntp), Some(said))
            }
            None => (None, None),
        };
        ReferenceStatus {
            slew: self.raw.slew(&status.counter, kernel_ppb),
            other,
            reference,
        }
    }
}

impl ReferenceStatus {
    /// As columns of the table.
    pub fn columns(&self) -> Vec<Column> {
        let unknown = || "unknown".to_owned();
        let ppm = |ppb: i64| minus(&format!("{:+.3}", ppb as f64 / 1e3));
        let slew = self.slew.as_ref();
        let kernel = slew
            .and_then(|slew| slew.kernel_ppb)
            .map_or_else(unknown, ppm);
        let bounded = |slew: &Slew| {
            let bound = slew.bound_ppb as f64 / 1e3;
            format!("{}±{bound:.3}", ppm(slew.ppb))
        };
        let mut columns = vec![
            Column::new(7, "slew, ppm", 15, slew.map_or_else(unknown, bounded)),
            Column::new(7, "kernel", 8, kernel),
        ];
        let said = self.reference.as_ref();
        if let Some(Kind::Ntp) = self.other {
            let said = said.and_then(|it| match it {
                Said::Ntp(said) => Some(said),
                Said::Device(_) => None,
            });
            columns.extend(ntp::columns(said.and_then(|it| it.status.as_ref())));
        }
        if let Some(Kind::Device) = self.other {
            let status = said.and_then(|it| match it {
                Said::Device(said) => Some(&said.status),
                Said::Ntp(_) => None,
            });
            let of = |cell: fn(&PhcStatus) -> String| status.map_or_else(unknown, cell);
            columns.extend([
                Column::new(2, "ahead of PHC", 14, of(|it| signed(it.host_ahead_ns))),
                Column::new(2, "± PHC", 9, of(|it| span(it.bound_ns))),
                Column::new(8, "age", 9, of(|it| span(it.age_ns))),
            ]);
        }
        columns
    }
}

impl Device {
    fn open(path: &Path, json: bool) -> Result<Self, Failure> {
        let ptp = PtpDevice::open(path).map_err(refusal)?;
        Ok(Self {
            json,
            path: path.to_owned(),
            ptp,
            clock: PhcClock::default(),
            next: Instant::now(),
            is_away: false,
        })
    }

    fn look_if_due(&mut self, tracker: &Tracker) -> Option<Looked> {
        let now = Instant::now();
        if now < self.next {
            return None;
        }
        self.next = now + LOOK_EVERY;
        let looked = self.clock.look(&mut self.ptp, tracker);
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
            warn(self.json, &warning);
        }
        match looked {
            PhcOutcome::Used => {
                let seen = self.clock.sighting(tracker)?;
                let status = self.clock.status(seen.at, tracker)?;
                Some(Looked::Seen(self.path.clone(), seen, Box::new(status)))
            }
            PhcOutcome::Jumped { .. } => Some(Looked::Jumped),
            _ => None,
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

/// Warns of a reference, in JSON too if that is wanted.
pub(super) fn warn(json: bool, warning: &str) {
    if json {
        let event = json!({ "event": "warning", "v": 1, "text": warning });
        let _ = print_if_read(&format!("{event}\n"));
    }
    // Nobody may be there to read it.
    say(&format!("warning: {warning}"));
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
