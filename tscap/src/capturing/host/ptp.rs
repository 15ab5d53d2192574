//! PTP hardware clocks, `/dev/ptpN` (linux/ptp_clock.h). They are only read.

use std::fs::{File, OpenOptions};
use std::io;
use std::mem;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::tsc;
use crate::capturing::time::{PhcNs, PhcReading, RealNs};

/// Readings in one call, of which the narrowest is taken. One register of a device on
/// PCI Express takes about a microsecond.
const SAMPLES: usize = 5;

/// How a device is read, the best way first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// `PTP_SYS_OFFSET_PRECISE`: the hardware latches both clocks in one moment.
    Precise,
    /// `PTP_SYS_OFFSET_EXTENDED`: the driver reads CLOCK_REALTIME right before and
    /// right after the register that latches the device's time.
    Extended,
    /// `PTP_SYS_OFFSET`: the kernel reads CLOCK_REALTIME before and after it calls the
    /// driver, so that all of its work, locks too, is within the bound.
    Plain,
}

impl Method {
    fn ioctl(self) -> &'static str {
        match self {
            Self::Precise => "PTP_SYS_OFFSET_PRECISE",
            Self::Extended => "PTP_SYS_OFFSET_EXTENDED",
            Self::Plain => "PTP_SYS_OFFSET",
        }
    }

    /// The best way of these that works just now, this one the best: a driver may refuse
    /// once, as when the hardware is busy, or for long, as while the kernel counts by
    /// another counter than the one that the device latches
    /// (`get_device_system_crosststamp`, kernel/time/timekeeping.c).
    fn or_worse<T>(
        self,
        mut read: impl FnMut(Self) -> Result<T, PtpError>,
    ) -> Result<(Self, T), PtpError> {
        let mut worse: &[Self] = match self {
            Self::Precise => &[Self::Extended, Self::Plain],
            Self::Extended => &[Self::Plain],
            Self::Plain => &[],
        };
        let mut method = self;
        loop {
            match (read(method), worse) {
                (Ok(reading), _) => return Ok((method, reading)),
                (Err(error), []) => return Err(error),
                (Err(_), [next, rest @ ..]) => (method, worse) = (*next, rest),
            }
        }
    }
}

/// Why a device can't be read.
#[derive(Debug, thiserror::Error)]
pub enum PtpError {
    /// It can't be opened.
    #[error("cannot open {}", path.display())]
    Open {
        /// The device.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is something else.
    #[error("{} is no PTP hardware clock", path.display())]
    NotAClock {
        /// The file.
        path: PathBuf,
        /// What the kernel said to `PTP_CLOCK_GETCAPS`.
        source: io::Error,
    },
    /// The kernel or the driver refused; ENODEV once the device is gone.
    #[error("cannot read {} ({})", path.display(), method.ioctl())]
    Read {
        /// The device.
        path: PathBuf,
        /// How it was tried.
        method: Method,
        /// Why.
        source: io::Error,
    },
    /// Its answer is no time between 1970 and 2554.
    #[error("{} answers {sec} s and {nsec} ns, which is no time", path.display())]
    Nonsense {
        /// The device.
        path: PathBuf,
        /// Seconds.
        sec: i64,
        /// Nanoseconds.
        nsec: u32,
    },
}

impl PtpError {
    /// Whether the device has gone away for good (`posix_clock_ioctl`,
    /// kernel/time/posix-clock.c).
    pub fn is_gone(&self) -> bool {
        matches!(self, Self::Read { source, .. } if source.raw_os_error() == Some(libc::ENODEV))
    }
}

/// An open device.
#[derive(Debug)]
pub struct PtpDevice {
    file: File,
    path: PathBuf,
    /// The best way that its driver says it has.
    best: Method,
    /// How it was read the last time.
    method: Method,
}

impl PtpDevice {
    /// Opens a device and finds the best way to read it.
    ///
    /// # Errors
    /// If it can't be opened, is no PTP clock, or can't be read in any way.
    pub fn open(path: &Path) -> Result<Self, PtpError> {
        // A named pipe would make us wait.
        let opened = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(path);
        let path = path.to_owned();
        let file = match opened {
            Ok(file) => file,
            Err(source) => return Err(PtpError::Open { path, source }),
        };
        // SAFETY: plain integers.
        let mut caps: libc::ptp_clock_caps = unsafe { mem::zeroed() };
        // SAFETY: the kernel writes this one structure.
        if let Err(source) = unsafe { request(&file, libc::PTP_CLOCK_GETCAPS, &mut caps) } {
            return Err(PtpError::NotAClock { path, source });
        }
        let best = match caps.cross_timestamping {
            0 => Method::Extended,
            _ => Method::Precise,
        };
        let mut device = Self {
            file,
            path,
            best,
            method: best,
        };
        (device.method, _) = best.or_worse(|method| device.times(method))?;
        Ok(device)
    }

    /// How it was read the last time.
    pub fn method(&self) -> Method {
        self.method
    }

    /// System time, device time, system time.
    fn times(&self, method: Method) -> Result<[libc::ptp_clock_time; 3], PtpError> {
        let times = match method {
            Method::Precise => self.precise(),
            Method::Extended => self.extended(),
            Method::Plain => self.plain(),
        };
        times.map_err(|source| PtpError::Read {
            path: self.path.clone(),
            method,
            source,
        })
    }

    fn precise(&self) -> io::Result<[libc::ptp_clock_time; 3]> {
        // SAFETY: plain integers; those reserved are to be zero.
        let mut offset: libc::ptp_sys_offset_precise = unsafe { mem::zeroed() };
        // SAFETY: the kernel writes this one structure.
        unsafe { request(&self.file, libc::PTP_SYS_OFFSET_PRECISE, &mut offset) }?;
        let system = offset.sys_realtime;
        Ok([system, offset.device, system])
    }

    fn extended(&self) -> io::Result<[libc::ptp_clock_time; 3]> {
        // SAFETY: plain integers; those reserved are to be zero, and so is the clock,
        // which is CLOCK_REALTIME then.
        let mut offset: libc::ptp_sys_offset_extended = unsafe { mem::zeroed() };
        offset.n_samples = SAMPLES as u32;
        // SAFETY: the kernel reads and writes this one structure, whose array has room
        // for PTP_MAX_SAMPLES.
        unsafe { request(&self.file, libc::PTP_SYS_OFFSET_EXTENDED, &mut offset) }?;
        Ok(narrowest(offset.ts.into_iter().take(SAMPLES)))
    }

    fn plain(&self) -> io::Result<[libc::ptp_clock_time; 3]> {
        // SAFETY: plain integers; those reserved are to be zero.
        let mut offset: libc::ptp_sys_offset = unsafe { mem::zeroed() };
        offset.n_samples = SAMPLES as u32;
        // SAFETY: the kernel reads and writes this one structure, whose array has room
        // for 2 · PTP_MAX_SAMPLES + 1 times.
        unsafe { request(&self.file, libc::PTP_SYS_OFFSET, &mut offset) }?;
        let triples = offset.ts[..=2 * SAMPLES].windows(3).step_by(2);
        Ok(narrowest(
            triples.map(|times| [times[0], times[1], times[2]]),
        ))
    }

    fn time(&self, time: libc::ptp_clock_time) -> Result<u64, PtpError> {
        let libc::ptp_clock_time { sec, nsec, .. } = time;
        nanoseconds(sec, nsec).ok_or_else(|| PtpError::Nonsense {
            path: self.path.clone(),
            sec,
            nsec,
        })
    }
}

impl PtpDevice {
    /// Reads the device between two readings of CLOCK_REALTIME and of the TSC.
    ///
    /// # Errors
    /// If the driver refuses every way to read it.
    pub fn read(&mut self) -> Result<PhcReading, PtpError> {
        let (method, (before, times, after)) = self.best.or_worse(|method| {
            let before = tsc::read();
            let times = self.times(method)?;
            Ok((before, times, tsc::read()))
        })?;
        self.method = method;
        let [first, device, last] = times;
        Ok(PhcReading {
            tsc: [before, after],
            real: [RealNs(self.time(first)?), RealNs(self.time(last)?)],
            phc: PhcNs(self.time(device)?),
        })
    }
}

/// # Safety
/// `data` must be what `number` takes.
unsafe fn request<T>(file: &File, number: libc::Ioctl, data: &mut T) -> io::Result<()> {
    // SAFETY: the caller's promise; the descriptor is open.
    match unsafe { libc::ioctl(file.as_raw_fd(), number, std::ptr::from_mut(data)) } {
        0.. => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The one with the least time between the first and the last.
fn narrowest(
    triples: impl Iterator<Item = [libc::ptp_clock_time; 3]>,
) -> [libc::ptp_clock_time; 3] {
    let width = |[first, _, last]: &[libc::ptp_clock_time; 3]| {
        let ns = |time: &libc::ptp_clock_time| {
            i128::from(time.sec) * 1_000_000_000 + i128::from(time.nsec)
        };
        // The clock was set in between if the last is the earlier one.
        let width = ns(last) - ns(first);
        if width < 0 { i128::MAX } else { width }
    };
    triples.min_by_key(width).expect("there are some")
}

fn nanoseconds(sec: i64, nsec: u32) -> Option<u64> {
    let sec = u64::try_from(sec).ok()?;
    let ns = sec.checked_mul(1_000_000_000)?.checked_add(nsec.into())?;
    (nsec < 1_000_000_000).then_some(ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_the_call() {
        let error = PtpError::Read {
            path: "/dev/ptp0".into(),
            method: Method::Extended,
            source: io::ErrorKind::Unsupported.into(),
        };
        assert_eq!(
            error.to_string(),
            "cannot read /dev/ptp0 (PTP_SYS_OFFSET_EXTENDED)"
        );
    }

    #[test]
    fn what_is_no_time_is_refused() {
        assert_eq!(nanoseconds(3, 7), Some(3_000_000_007));
        for (sec, nsec) in [(-1, 0), (i64::MAX, 0), (0, 1_000_000_000), (0, u32::MAX)] {
            assert_eq!(nanoseconds(sec, nsec), None, "{sec} {nsec}");
        }
    }

    #[test]
    fn a_way_that_fails_once_is_left_once() {
        let error = |method| PtpError::Read {
            path: "/dev/ptp0".into(),
            method,
            source: io::ErrorKind::TimedOut.into(),
        };
        let works_from = |first: Method| {
            move |method: Method| match (method as u8) < first as u8 {
                true => Err(error(method)),
                false => Ok(method),
            }
        };
        let [best, better, plain] = [Method::Precise, Method::Extended, Method::Plain];
        for works in [best, better, plain] {
            let (found, read) = best.or_worse(works_from(works)).unwrap();
            assert_eq!((found, read), (works, works));
        }
        let (found, _) = better.or_worse(works_from(best)).unwrap();
        assert_eq!(found, better);
        for from in [best, better, plain] {
            let mut tried = 0;
            let failed = from.or_worse(|method| -> Result<(), _> {
                tried += 1;
                Err(error(method))
            });
            let last = matches!(failed, Err(PtpError::Read { method, .. }) if method == plain);
            assert!(last && tried == 3 - from as u8, "{from:?}");
        }
    }

    #[test]
    fn the_narrowest_reading_is_taken_and_none_across_a_step() {
        let time = |ns: i64| libc::ptp_clock_time {
            sec: ns.div_euclid(1_000_000_000),
            nsec: ns.rem_euclid(1_000_000_000) as u32,
            reserved: 0,
        };
        let triples = [[900, 7, 2_100], [2_000_000_000, 8, 3], [5_000, 9, 5_800]];
        let found = narrowest(triples.into_iter().map(|triple| triple.map(time)));
        assert_eq!((found[0].nsec, found[1].nsec), (5_000, 9));
    }

    /// The structures are libc's; their sizes stand in the requests' numbers.
    #[test]
    fn the_structures_are_the_kernels() {
        assert_eq!(size_of::<libc::ptp_clock_caps>(), 80);
        assert_eq!(size_of::<libc::ptp_sys_offset>(), 16 + 51 * 16);
        assert_eq!(size_of::<libc::ptp_sys_offset_extended>(), 16 + 75 * 16);
        assert_eq!(size_of::<libc::ptp_sys_offset_precise>(), 64);
    }

    #[test]
    fn other_files_are_refused() {
        let path = Path::new("/nonexistent/ptp0");
        let error = PtpDevice::open(path).unwrap_err();
        assert!(matches!(error, PtpError::Open { .. }), "{error}");
        for path in ["/dev/null", "/proc/self/status", "/"] {
            let error = PtpDevice::open(Path::new(path)).unwrap_err();
            assert!(matches!(error, PtpError::NotAClock { .. }), "{error}");
            assert!(!error.is_gone());
        }
    }
}
