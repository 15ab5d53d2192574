//! What the clock is held against besides CLOCK_REALTIME: CLOCK_MONOTONIC_RAW, and a
//! PTP hardware clock or NTP servers if they are asked for.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::Serialize;
use serde_json::json;

use super::ntp::{self, Ntp, NtpServerStatus};
use super::table::Column;
use crate::command::Failure;
use crate::command::print::{print_if_read, say};
use tscap_base::text::numbers::{minus, signed, span};
use tscap_capture::Reporter;
use tscap_capture::going_on::drop_other_privileges;
use tscap_cli::ClockPlan;
use tscap_clock::{Bracket, RawClock, Slew, Status, Tracker, TscCycles};
use tscap_references::ntp::NtpPoint;
use tscap_references::{PhcSighting, PhcStatus};
use tscap_shared_clock::Utc;
use tscap_sources::reference::{self, Device, ReferencePlan};
use tscap_time::ptp::Method;
use tscap_time::timex::KernelClock;

#[derive(Debug, Default)]
pub(super) struct References {
    raw: RawClock,
    /// Warnings are JSON objects.
    json: bool,
    other: Option<Other>,
}

#[derive(Debug)]
enum Other {
    Device(Box<Device>),
    Ntp(Box<Ntp>),
}

/// What a look at another reference came to.
#[derive(Debug)]
pub(super) enum ReferenceOutcome {
    /// An exchange with a server.
    Exchange(SocketAddr, NtpPoint),
    /// The host's clock beside a device.
    Seen(PathBuf, PhcSighting, Box<PhcStatus>),
    /// The device was set.
    Jumped,
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
    reference: Option<ReferenceReport>,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Device,
    Ntp,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum ReferenceReport {
    Device(Box<DeviceStatus>),
    Ntp(Box<NtpServerStatus>),
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
            Some(ReferencePlan::Device(path)) => Some(Other::Device(Box::new(Device::open(path)?))),
            Some(ReferencePlan::Ntp(ntp)) => {
                Some(Other::Ntp(Box::new(Ntp::start(ntp, plan.json, tracker)?)))
            }
        };
        Ok(Self {
            raw: RawClock::default(),
            json: plan.json,
            other,
        })
    }

    /// Gives up, for good and for the whole process, what is not needed any more; root stays
    /// root if the caller `makes_files` later.
    ///
    /// # Errors
    /// If the kernel refuses. What has been given up by then is gone.
    pub fn give_up_privileges(&mut self, makes_files: bool) -> Result<(), Failure> {
        if let Some(Other::Ntp(ntp)) = &mut self.other {
            return ntp.give_up_privileges(makes_files);
        }
        let json = self.json;
        let mut on_event = |event| ntp::print_event(json, event);
        let reporter = &mut Reporter::new(&mut on_event);
        drop_other_privileges((None, false), makes_files, &|| true, reporter)
    }

    /// After a jump of the counter nothing of before holds.
    pub fn begin_anew(&mut self) {
        match &mut self.other {
            Some(Other::Device(device)) => device.begin_anew(),
            Some(Other::Ntp(ntp)) => ntp.begin_anew(),
            None => {}
        }
    }

    /// Reads each that is due; says what became of looks at the one that was asked for.
    pub fn read(&mut self, tracker: &Tracker) -> Vec<ReferenceOutcome> {
        self.raw.observe(&Bracket::of_raw());
        match &mut self.other {
            Some(Other::Device(device)) => {
                let mut on_event = |event| ntp::print_event(self.json, event);
                let looked = device.look_if_due(tracker, &mut on_event);
                let path = device.path().to_owned();
                let looked = looked.map(|looked| match looked {
                    reference::LookOutcome::Seen(seen, status) => {
                        ReferenceOutcome::Seen(path, seen, status)
                    }
                    reference::LookOutcome::Jumped => ReferenceOutcome::Jumped,
                });
                looked.into_iter().collect()
            }
            Some(Other::Ntp(ntp)) => ntp.turn(tracker),
            None => Vec::new(),
        }
    }

    /// How far the host's clock is from UTC now, if an NTP server is followed. A PTP device says
    /// nothing of UTC.
    pub fn utc(&self, tracker: &Tracker) -> Option<Utc> {
        match &self.other {
            Some(Other::Ntp(ntp)) => Some(ntp.utc(tracker)),
            _ => None,
        }
    }

    /// At a counter value, beside the host's clock.
    pub fn say(&mut self, status: &Status, tracker: &Tracker) -> ReferenceStatus {
        let kernel = KernelClock::read().ok();
        let kernel_ppb = kernel.map(|kernel| kernel.frequency_ppb + kernel.tick_ppb);
        let (other, reference) = match &mut self.other {
            Some(Other::Device(device)) => {
                let said = status_of(device, status.tsc, tracker);
                (
                    Some(Kind::Device),
                    said.map(|it| ReferenceReport::Device(Box::new(it))),
                )
            }
            Some(Other::Ntp(ntp)) => {
                let said = ReferenceReport::Ntp(Box::new(ntp.say(status, tracker)));
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
    /// In sentences: how the host's clock is slewed, and how far it is off the reference.
    pub fn sentences(&self) -> Vec<String> {
        let ppm = |ppb: i64| minus(&format!("{:+.3}", ppb as f64 / 1e3));
        let slew = self.slew.as_ref().map(|slew| {
            let bound = slew.bound_ppb as f64 / 1e3;
            let rate = ppm(slew.ppb);
            format!("it is slewed by {rate} ppm ±{bound:.3}, against CLOCK_MONOTONIC_RAW")
        });
        let ahead = |name: String, ahead_ns: i64, bound_ns: u64| {
            let (ahead, bound) = (signed(ahead_ns), span(bound_ns));
            format!("it is {ahead} ns ahead of {name}, ±{bound}")
        };
        let reference = self.reference.as_ref().and_then(|said| match said {
            ReferenceReport::Device(said) => {
                let (name, of) = (said.device.display().to_string(), &said.status);
                Some(ahead(name, of.host_ahead_ns, of.bound_ns))
            }
            ReferenceReport::Ntp(said) => {
                let (server, of) = (said.server?, said.status.as_ref()?);
                let utc = span(of.utc_bound_ns);
                let ahead = ahead(
                    format!("NTP server {server}"),
                    of.host_ahead_ns,
                    of.bound_ns,
                );
                Some(format!("{ahead}; that is within ±{utc} of UTC, as it says"))
            }
        });
        slew.into_iter().chain(reference).collect()
    }

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
                ReferenceReport::Ntp(said) => Some(said),
                ReferenceReport::Device(_) => None,
            });
            columns.extend(ntp::columns(said.and_then(|it| it.status.as_ref())));
        }
        if let Some(Kind::Device) = self.other {
            let status = said.and_then(|it| match it {
                ReferenceReport::Device(said) => Some(&said.status),
                ReferenceReport::Ntp(_) => None,
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

fn status_of(device: &Device, at: TscCycles, tracker: &Tracker) -> Option<DeviceStatus> {
    Some(DeviceStatus {
        device: device.path().to_owned(),
        method: device.method(),
        status: device.status(at, tracker)?,
    })
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
