//! ptp4l's state, by management messages (IEEE Std 1588-2019, 15) at its socket in the file
//! system.

mod client;
mod message;

pub(crate) use client::Client;

use crate::bound::{Parts, UtcBound, UtcInterval};
use crate::bytes::growth_ns;
use crate::phc::Beside;
use message::Data;
use tscap_time::{MonoNs, NS_PER_S, PhcReading, RealNs};

/// What ptp4l has said so far, each by the latest answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    time: Option<message::TimeStatus>,
    current: Option<message::Current>,
    parent: Option<message::Parent>,
    properties: Option<message::TimeProperties>,
    /// The port that is a slave, or else any.
    port: Option<message::Port>,
    /// When the latest complete state was asked for.
    as_of: Option<MonoNs>,
}

/// The clock that ptp4l measures, as it was read beside the host's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Measured {
    /// CLOCK_REALTIME itself.
    Host,
    /// A device.
    Device {
        path: String,
        reading: Result<PhcReading, String>,
    },
    /// Not known which, and why.
    Unknown(String),
}

/// A Sync that is older says nothing of the clock now, ns.
const STALE_NS: u64 = 10 * NS_PER_S as u64;

impl State {
    fn take(&mut self, data: Data, asked: MonoNs) {
        match data {
            Data::Time(it) => {
                self.time = Some(it);
                self.as_of = Some(asked);
            }
            Data::Current(it) => self.current = Some(it),
            Data::Parent(it) => self.parent = Some(it),
            Data::TimeProperties(it) => self.properties = Some(it),
            Data::Port(it) => {
                let is_slave = self.port.as_ref().is_some_and(message::Port::is_slave);
                let is_same = self
                    .port
                    .as_ref()
                    .is_some_and(|port| port.number == it.number);
                if it.is_slave() || is_same || !is_slave {
                    self.port = Some(it);
                }
            }
        }
    }

    /// What it says at a time of the host's clock, which drifts by so many parts per billion, and
    /// has parted from a device by `moved_ns` since that was read; TAI − UTC as the kernel has it, 0
    /// if it does not.
    pub fn bound(
        &self,
        measured: &Measured,
        real: RealNs,
        drift_ppb: u64,
        moved_ns: u64,
        tai_offset_s: i32,
    ) -> Option<UtcBound> {
        let (time, current) = (self.time.as_ref()?, self.current.as_ref()?);
        let (parent, as_of) = (self.parent.as_ref()?, self.as_of?);
        let beside = match measured {
            Measured::Host => Ok(Beside {
                ends: [0, 0],
                counts_tai: false,
            }),
            Measured::Device { reading, .. } => {
                let reading = reading.as_ref().map_err(Clone::clone);
                reading.and_then(|reading| Beside::of(reading, tai_offset_s))
            }
            Measured::Unknown(why) => Err(why.clone()),
        };
        // The Sync came by the clock that is measured.
        let local = match measured {
            Measured::Device {
                reading: Ok(reading),
                ..
            } => reading.phc.0,
            _ => real.0,
        };
        let age_ns = local.saturating_sub(time.ingress_ns);
        let moved_ns = match measured {
            Measured::Device { .. } => moved_ns,
            _ => 0,
        };
        let growth_ns = growth_ns(age_ns, drift_ppb).saturating_add(moved_ns);
        let accuracy_ns = message::accuracy_ns(parent.accuracy);
        let of = beside.as_ref().ok();
        let parts = Parts::Ptp4l {
            offset_ns: time.offset_ns,
            path_delay_ns: current.path_delay_ns,
            accuracy_ns,
            steps_removed: current.steps_removed,
            clock: match measured {
                Measured::Host => "CLOCK_REALTIME".into(),
                Measured::Device { path, .. } => path.clone(),
                Measured::Unknown(_) => "unknown".into(),
            },
            clock_ahead_ns: of.map_or(0, Beside::middle_ns),
            reading_ns: of.map_or(0, Beside::half_ns),
            growth_ns,
            grandmaster: parent.grandmaster.clone(),
        };
        let interval = || {
            let why = |why: &str| Err(why.to_owned());
            let beside = beside?;
            if !time.has_grandmaster {
                return why("it follows no grandmaster");
            }
            if !self.port.as_ref().is_some_and(message::Port::is_slave) {
                return why("no port of it follows a master");
            }
            if current.steps_removed != 1 {
                return why("the errors of the boundary clocks before it are not known");
            }
            if !self.properties.as_ref().is_some_and(|it| it.is_traceable) {
                return why("the grandmaster's time is not traceable");
            }
            let Some(accuracy_ns) = accuracy_ns else {
                return why("the grandmaster does not say how accurate it is");
            };
            if age_ns > STALE_NS {
                return why("its latest Sync is too old");
            }
            // The servo takes the offset away until the next Sync. UTC is then as far behind the
            // clock as this was ahead of the grandmaster.
            let offset = time.offset_ns.checked_neg().unwrap_or(i64::MAX);
            let error_ns = [accuracy_ns, growth_ns]
                .iter()
                .fold(current.path_delay_ns, |sum, it| sum.saturating_add(*it));
            let of_clock = UtcInterval([offset; 2]).with_host().widened(error_ns);
            let [earliest, latest] = of_clock.0;
            Ok(UtcInterval([
                earliest.saturating_add(beside.ends[0]),
                latest.saturating_add(beside.ends[1]),
            ]))
        };
        Some(UtcBound::new(parts, as_of, interval()))
    }

    /// The interface of the port that is looked at, and whether hardware stamps its messages.
    pub fn port(&self) -> Option<(&str, bool)> {
        let port = self.port.as_ref()?;
        Some((&port.interface, port.is_by_hardware))
    }
}

#[cfg(test)]
mod tests;
