//! PTP hardware clocks whose driver says how far they are off: ENA's `phc_error_bound`, which the
//! device tells together with each time (drivers/net/ethernet/amazon/ena, and its README).

use std::path::PathBuf;

use crate::bound::{Parts, UtcBound, UtcInterval};
use tscap_base::kernel_files::{KernelFiles, names, numbered, read};
use tscap_time::ptp::PtpDevice;
use tscap_time::{MonoNs, NS_PER_S, PhcReading};

/// The device's time is TAI or UTC if the host's clock shows that to so many ns.
const NEAR_NS: i128 = NS_PER_S as i128 / 2;

/// A device.
#[derive(Debug)]
pub(crate) struct Phc {
    interface: String,
    path: PathBuf,
    error_bound: PathBuf,
    device: Result<PtpDevice, String>,
}

/// What it said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    interface: String,
    device: String,
    clock: Result<PhcReading, String>,
    error_ns: Result<u64, String>,
    as_of: MonoNs,
}

/// A PTP clock beside the host's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Beside {
    /// Its UTC less the host's clock, ns: the least and the greatest.
    pub ends: [i64; 2],
    /// It counts TAI.
    pub counts_tai: bool,
}

impl Beside {
    /// By a reading, and TAI − UTC as the kernel has it, 0 if it does not.
    pub fn of(reading: &PhcReading, tai_offset_s: i32) -> Result<Self, String> {
        let ahead = |real: u64| i128::from(reading.phc.0) - i128::from(real);
        let [first, last] = reading.real.map(|real| ahead(real.0));
        if first < last {
            return Err("the host's clock went back while it was read".into());
        }
        let tai_ns = i128::from(tai_offset_s) * i128::from(NS_PER_S);
        let middle = (first + last) / 2;
        let counts_tai = if middle.abs() <= NEAR_NS {
            false
        } else if tai_offset_s != 0 && (middle - tai_ns).abs() <= NEAR_NS {
            true
        } else {
            return Err("its time is neither UTC nor TAI by the host's clock".into());
        };
        let less = if counts_tai { tai_ns } else { 0 };
        let ends = [last - less, first - less];
        // Both are within half a second and the width of the reading.
        let ends = ends.map(|end| i64::try_from(end).unwrap_or(i64::MAX));
        Ok(Self { ends, counts_tai })
    }

    /// In the middle, ns.
    pub fn middle_ns(&self) -> i64 {
        self.ends[0] + (self.ends[1] - self.ends[0]) / 2
    }

    /// From the middle to the farther end, ns.
    pub fn half_ns(&self) -> u64 {
        self.ends[1].abs_diff(self.middle_ns())
    }
}

impl Phc {
    /// All whose driver has the file.
    pub fn find(files: &KernelFiles, devices: &std::path::Path) -> Vec<Self> {
        let all = names(&files.sys("class/net")).unwrap_or_default();
        let mut found: Vec<_> = all
            .into_iter()
            .filter_map(|interface| {
                let folder = files.sys("class/net").join(&interface).join("device");
                let error_bound = folder.join("phc_error_bound");
                if !error_bound.exists() {
                    return None;
                }
                // Where the driver has no clock (`phc_enable` is off) the file may be there.
                let number = *numbered(&folder.join("ptp"), "ptp").ok()?.first()?;
                let path = devices.join(format!("ptp{number}"));
                let device = PtpDevice::open(&path).map_err(|error| error.to_string());
                Some(Self {
                    interface,
                    path,
                    error_bound,
                    device,
                })
            })
            .collect();
        found.sort_by(|a, b| a.interface.cmp(&b.interface));
        found
    }

    /// Reads it: first the time, with which the driver gets the bound.
    pub fn read(&mut self) -> Reading {
        let clock = match &mut self.device {
            Ok(device) => device.read().map_err(|error| error.to_string()),
            Err(why) => Err(why.clone()),
        };
        let as_of = MonoNs::now();
        let error_ns = read(&self.error_bound).map_err(|error| error.to_string());
        let error_ns = error_ns.and_then(|text| {
            let parsed = text.parse();
            parsed.map_err(|_| format!("phc_error_bound is no number: {text:?}"))
        });
        Reading {
            interface: self.interface.clone(),
            device: self.path.display().to_string(),
            clock,
            error_ns,
            as_of,
        }
    }
}

impl Reading {
    /// How far the device is off UTC, as its driver says, ns.
    pub fn error_ns(&self) -> Option<u64> {
        self.error_ns.as_ref().ok().copied()
    }

    /// What it says, where the host's clock and the device may have parted by so much since;
    /// TAI − UTC as the kernel has it, 0 if it does not.
    pub fn bound(&self, growth_ns: u64, tai_offset_s: i32) -> UtcBound {
        let clock = self.clock.as_ref().map_err(Clone::clone);
        let beside = clock.and_then(|clock| Beside::of(clock, tai_offset_s));
        let of = beside.as_ref().ok();
        let parts = Parts::Phc {
            device: self.device.clone(),
            interface: self.interface.clone(),
            offset_ns: of.map_or(0, Beside::middle_ns),
            reading_ns: of.map_or(0, Beside::half_ns),
            device_error_ns: self.error_ns().unwrap_or(0),
            growth_ns,
            counts_tai: of.is_some_and(|it| it.counts_tai),
        };
        let interval = beside.and_then(|beside| {
            let error_ns = self.error_ns.clone()?;
            Ok(UtcInterval(beside.ends).widened(error_ns.saturating_add(growth_ns)))
        });
        UtcBound::new(parts, self.as_of, interval)
    }
}

#[cfg(test)]
mod tests;
