//! The page of `/dev/vmclock0` (include/uapi/linux/vmclock-abi.h): the hypervisor says how the
//! counter relates to UTC, and tells when the counter was disrupted.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use crate::bound::{Leap, Parts, UtcBound, UtcInterval};
use crate::bytes::Fields;
use tscap_time::{MonoNs, NS_PER_S, RealNs, TscCycles, tsc};

/// "VCLK".
const MAGIC: u32 = 0x4b4c_4356;
/// Up to and with `time_maxerror_nanosec`, octets.
const LENGTH: usize = 104;
/// Where `disruption_marker` is.
pub(crate) const MARKER: usize = 16;
const SYNCHRONIZED: u8 = 2;
const SEQUENCE: usize = 12;
const ATTEMPTS: usize = 8;

const TAI_OFFSET_VALID: u64 = 1 << 0;
const PERIOD_MAXERROR_VALID: u64 = 1 << 4;
const TIME_MAXERROR_VALID: u64 = 1 << 6;

/// The fields of the page that are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Page {
    counter: u8,
    time_type: u8,
    pub disruption_marker: u64,
    flags: u64,
    status: u8,
    tai_offset_s: i16,
    leap: u8,
    shift: u8,
    counter_value: u64,
    period_frac: u64,
    period_max_error_frac: u64,
    time_s: u64,
    time_frac: u64,
    max_error_ns: u64,
}

/// A page, with the host's clock read between two readings of the counter right after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    pub page: Page,
    pub tsc: [TscCycles; 2],
    pub real: RealNs,
    pub as_of: MonoNs,
}

impl Reading {
    /// Reads an open device. The driver gives no page that is being changed
    /// (`vmclock_miscdev_read`, drivers/ptp/ptp_vmclock.c); a plain file is looked at twice.
    pub fn take(device: &File) -> Result<Self, String> {
        for _ in 0..ATTEMPTS {
            let octets = octets(device).map_err(|error| format!("cannot read it: {error}"))?;
            let page = Page::parse(&octets)?;
            let again = self::octets(device).map_err(|error| format!("cannot read it: {error}"))?;
            let sequence = |octets| Fields(octets).le32(SEQUENCE).unwrap_or(1);
            if sequence(&octets) % 2 == 0 && sequence(&octets) == sequence(&again) {
                let before = tsc::read();
                let real = RealNs::now();
                let tsc = [before, tsc::read()];
                let as_of = MonoNs::now();
                return Ok(Self {
                    page,
                    tsc,
                    real,
                    as_of,
                });
            }
            std::thread::yield_now();
        }
        Err("it is being changed all the time".into())
    }

    /// What it says, where the host's clock and the counter may have parted by so much since.
    pub fn bound(&self, since_ns: u64) -> UtcBound {
        let page = &self.page;
        let times = self.tsc.map(|tsc| page.time(tsc));
        let [first, last] = times.clone().map(|it| it.unwrap_or_default());
        let host = i128::from(self.real.0);
        let rate_ns = first.growth_ns.max(last.growth_ns);
        // The time is rounded down.
        let ends = [first.ns - host, last.ns - host + 1];
        let middle = (ends[0] + ends[1]) / 2;
        let half = (ends[1] - ends[0] + 1) / 2;
        let growth_ns = rate_ns.saturating_add(since_ns);
        let parts = Parts::VmClock {
            offset_ns: i64::try_from(middle).unwrap_or(i64::MAX),
            reading_ns: u64::try_from(half).unwrap_or(u64::MAX),
            max_error_ns: page.max_error_ns,
            growth_ns,
            disruption_marker: page.disruption_marker,
            leap: page.leap(),
        };
        let interval = || {
            for time in &times {
                time.as_ref().map_err(Clone::clone)?;
            }
            let [Ok(earliest), Ok(latest)] = ends.map(i64::try_from) else {
                return Err("its time is centuries off".to_owned());
            };
            if half < 0 {
                return Err("the counter went back while it was read".to_owned());
            }
            let error = page.max_error_ns.saturating_add(growth_ns);
            Ok(UtcInterval([earliest, latest]).widened(error))
        };
        UtcBound::new(parts, self.as_of, interval())
    }
}

/// A time by the page.
#[derive(Clone, Copy, Debug, Default)]
struct PageTime {
    /// UTC since the epoch, ns.
    ns: i128,
    /// What the error of the rate adds, ns.
    growth_ns: u64,
}

impl Page {
    fn parse(octets: &[u8]) -> Result<Self, String> {
        let fields = Fields(octets);
        if fields.le32(0) != Some(MAGIC) {
            return Err("it is no page of VMClock".into());
        }
        match fields.le16(8) {
            Some(1) => {}
            version => return Err(format!("version {} is not known", version.unwrap_or(0))),
        }
        let page = || {
            Some(Self {
                counter: fields.u8(10)?,
                time_type: fields.u8(11)?,
                disruption_marker: fields.le64(MARKER)?,
                flags: fields.le64(24)?,
                status: fields.u8(34)?,
                tai_offset_s: fields.le16(36)?.cast_signed(),
                leap: fields.u8(38)?,
                shift: fields.u8(39)?,
                counter_value: fields.le64(40)?,
                period_frac: fields.le64(48)?,
                period_max_error_frac: fields.le64(64)?,
                time_s: fields.le64(72)?,
                time_frac: fields.le64(80)?,
                max_error_ns: fields.le64(96)?,
            })
        };
        page().ok_or_else(|| "the page is cut".into())
    }

    fn leap(&self) -> Leap {
        match self.leap {
            0 => Leap::None,
            1 => Leap::Insert,
            2 => Leap::Delete,
            3 => Leap::Now,
            4 | 5 => Leap::Over,
            _ => Leap::Unknown,
        }
    }

    /// UTC at a value of the counter, or why it does not say it.
    fn time(&self, tsc: TscCycles) -> Result<PageTime, String> {
        let has = |flag| self.flags & flag != 0;
        let utc_less_time_s = match self.time_type {
            0 => 0,
            1 if has(TAI_OFFSET_VALID) => -i64::from(self.tai_offset_s),
            1 => return Err("it counts TAI, and does not say how far that is off UTC".into()),
            _ => return Err("it does not give the time of day".into()),
        };
        if self.counter != tscap_arch::VMCLOCK_COUNTER {
            return Err("it is of another counter".into());
        }
        if self.status != SYNCHRONIZED {
            return Err("the hypervisor's clock is not synchronised".into());
        }
        if !has(TIME_MAXERROR_VALID) || !has(PERIOD_MAXERROR_VALID) {
            return Err("the hypervisor does not bound its error".into());
        }
        if self.leap() == Leap::Now {
            return Err("a leap second is being inserted".into());
        }
        let cycles = tsc.0.wrapping_sub(self.counter_value).cast_signed();
        let since = self.fraction_ns(cycles.unsigned_abs(), self.period_frac);
        let growth = self.fraction_ns(cycles.unsigned_abs(), self.period_max_error_frac);
        let impossible = || "it has impossible values".to_owned();
        let since = i128::from(since.ok_or_else(impossible)?) * i128::from(cycles.signum());
        let fraction = (u128::from(self.time_frac) * u128::from(NS_PER_S.unsigned_abs())) >> 64;
        let seconds = i128::from(self.time_s) + i128::from(utc_less_time_s);
        Ok(PageTime {
            ns: seconds * i128::from(NS_PER_S) + fraction as i128 + since,
            // What is cut off each product is less than 1 ns.
            growth_ns: growth.ok_or_else(impossible)?.saturating_add(3),
        })
    }

    /// So many cycles of `frac` · 2^-(64 + shift) s, in whole ns.
    fn fraction_ns(&self, cycles: u64, frac: u64) -> Option<u64> {
        let product = u128::from(cycles) * u128::from(frac);
        let product = product.checked_shr(self.shift.into())?;
        let seconds = u64::try_from(product >> 64).ok()?;
        let rest = u128::from(product as u64) * u128::from(NS_PER_S.unsigned_abs());
        let rest = u64::try_from(rest >> 64).ok()?;
        seconds
            .checked_mul(NS_PER_S.unsigned_abs())?
            .checked_add(rest)
    }
}

fn octets(device: &File) -> io::Result<Vec<u8>> {
    let mut octets = vec![0; LENGTH];
    let length = device.read_at(&mut octets, 0)?;
    octets.truncate(length);
    Ok(octets)
}

/// Opens the device; `None` if there is none.
pub(crate) fn open(path: &Path) -> Option<Result<File, String>> {
    match File::open(path) {
        Ok(file) => Some(Ok(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => Some(Err(format!("cannot open {}: {error}", path.display()))),
    }
}

#[cfg(test)]
mod tests;
