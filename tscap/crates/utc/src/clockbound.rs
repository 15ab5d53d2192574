//! The shared memory segment of ClockBound (docs/PROTOCOL.md of aws/clock-bound, versions 1 and
//! 2). It is read as a file, which is as good as mapped memory for a sequence lock: the page cache
//! is the memory that the daemon writes.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::atomic::{Ordering, fence};

use crate::bound::{ClockBoundStatus, Parts, UtcBound, UtcInterval};
use crate::bytes::{Fields, growth_ns};
use tscap_time::MonoNs;

/// "AMZN" and "CB", in the byte order of the host.
const MAGIC: [u32; 2] = [0x414d_5a4e, 0x4342_0200];
/// Length of the longest version, octets.
const LENGTH: usize = 80;
/// An update takes microseconds, so that a second attempt is enough.
const ATTEMPTS: usize = 8;
const GENERATION: usize = 14;
/// Clocks of the segment are coarse: it may be of a tick that this host's fine clock has yet to
/// see. Those of ClockBound's own client may be so far ahead of it, ns.
const COARSE_NS: u64 = 10_000_000;

/// What is in the segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    version: u16,
    as_of: MonoNs,
    void_after: MonoNs,
    bound_ns: u64,
    max_drift_ppb: u32,
    status: ClockBoundStatus,
    /// Where it knows of disruptions.
    disruption_marker: Option<u64>,
}

/// Reads the segment; `None` if there is none. An update that does not end is an error.
pub(crate) fn read(path: &Path) -> Option<Result<Segment, String>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(error) => return Some(Err(format!("cannot open {}: {error}", path.display()))),
    };
    let generation = || {
        let mut octets = [0; 2];
        let read = file.read_exact_at(&mut octets, GENERATION as u64);
        read.map(|()| u16::from_ne_bytes(octets))
    };
    let attempt = || -> io::Result<Option<Vec<u8>>> {
        let before = generation()?;
        // The daemon's stores before that of an even generation are seen behind it, and those
        // behind an odd one make the second look differ.
        fence(Ordering::SeqCst);
        let mut octets = vec![0; LENGTH];
        let length = file.read_at(&mut octets, 0)?;
        octets.truncate(length);
        fence(Ordering::SeqCst);
        let is_whole = before != 0 && before % 2 == 0 && generation()? == before;
        Ok(is_whole.then_some(octets))
    };
    for _ in 0..ATTEMPTS {
        match attempt() {
            Ok(Some(octets)) => return Some(parse(&octets)),
            Ok(None) => std::thread::yield_now(),
            Err(error) => return Some(Err(format!("cannot read {}: {error}", path.display()))),
        }
    }
    Some(Err("it is being written, or was never written".into()))
}

fn parse(octets: &[u8]) -> Result<Segment, String> {
    let fields = Fields(octets);
    let cut = || "the segment is cut".to_owned();
    let magic = [0, 4].map(|at| fields.ne32(at));
    if magic != MAGIC.map(Some) {
        return Err("the file is no segment of ClockBound".into());
    }
    let size = fields.ne32(8).ok_or_else(cut)?;
    let version = fields.ne16(12).ok_or_else(cut)?;
    let (length, drift, status) = match version {
        1 => (72, 56, 64),
        2 => (80, 64, 68),
        version => return Err(format!("version {version} of the segment is not known")),
    };
    if size < length {
        return Err(cut());
    }
    let mono = |at| {
        let seconds = fields.ne64(at)?;
        let ns = fields.ne64(at + 8)?;
        Some(MonoNs(seconds.checked_mul(1_000_000_000)?.checked_add(ns)?))
    };
    let segment = || {
        let is_disruption_known = version == 2 && fields.u8(72)? == 1;
        Some(Segment {
            version,
            as_of: mono(16)?,
            void_after: mono(32)?,
            bound_ns: fields.ne64(48).filter(|it| i64::try_from(*it).is_ok())?,
            max_drift_ppb: fields.ne32(drift).filter(|it| *it < 1_000_000_000)?,
            status: match fields.ne32(status)? {
                1 => ClockBoundStatus::Synchronized,
                2 => ClockBoundStatus::FreeRunning,
                3 => ClockBoundStatus::Disrupted,
                _ => ClockBoundStatus::Unknown,
            },
            disruption_marker: if is_disruption_known {
                Some(fields.ne64(56)?)
            } else {
                None
            },
        })
    };
    segment().ok_or_else(|| "the segment has impossible values".into())
}

impl Segment {
    /// Whether it tells of disruptions itself.
    pub fn knows_disruptions(&self) -> bool {
        self.disruption_marker.is_some()
    }

    /// What it says at a time.
    pub fn bound(&self, now: MonoNs) -> UtcBound {
        let age_ns = now.0.saturating_sub(self.as_of.0);
        let growth_ns = growth_ns(age_ns, self.max_drift_ppb.into());
        let parts = Parts::ClockBound {
            version: self.version,
            published_ns: self.bound_ns,
            growth_ns,
            max_drift_ppb: self.max_drift_ppb,
            status: self.status,
            disruption_marker: self.disruption_marker,
        };
        let interval = match self.status {
            ClockBoundStatus::Unknown => Err("it does not know the clock's status".into()),
            ClockBoundStatus::Disrupted => Err("it says that the clock was disrupted".into()),
            _ if now >= self.void_after => Err("it was not updated in time".into()),
            _ if now.0.saturating_add(COARSE_NS) < self.as_of.0 => {
                Err("it is of a time to come".into())
            }
            _ => Ok(UtcInterval::within(self.bound_ns.saturating_add(growth_ns))),
        };
        UtcBound::new(parts, self.as_of, interval)
    }
}

#[cfg(test)]
mod tests;
