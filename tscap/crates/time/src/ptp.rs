//! PTP hardware clocks, `/dev/ptpN` (linux/ptp_clock.h). They are only read.

use std::fs::{File, OpenOptions};
use std::io;
use std::mem;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::tsc;
use crate::{PhcNs, PhcReading, RealNs};

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
    /// The same of `clock_gettime`.
    #[error("cannot read {} (clock_gettime)", path.display())]
    Now {
        /// The device.
        path: PathBuf,
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
        matches!(self, Self::Read { source, .. } | Self::Now { source, .. }
            if source.raw_os_error() == Some(libc::ENODEV))
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

impl PtpDevice {
    /// Reads the device once, by one system call (`posix_clock_gettime`,
    /// kernel/time/posix-clock.c).
    ///
    /// # Errors
    /// If the driver refuses.
    pub fn now(&self) -> Result<PhcNs, PtpError> {
        // `fd_to_clockid` (include/linux/posix-timers.h).
        let clock = !self.file.as_raw_fd() << 3 | 3;
        let mut time = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: the kernel writes this one structure; the descriptor is open.
        if unsafe { libc::clock_gettime(clock, &raw mut time) } != 0 {
            let source = io::Error::last_os_error();
            let path = self.path.clone();
            return Err(PtpError::Now { path, source });
        }
        let nsec = u32::try_from(time.tv_nsec).unwrap_or(u32::MAX);
        self.time(libc::ptp_clock_time {
            sec: time.tv_sec,
            nsec,
            reserved: 0,
        })
        .map(PhcNs)
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
mod tests;
