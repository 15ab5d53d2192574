//! Whether a process grows.

use serde::Serialize;
use tscap_statistics::least_squares;
use tscap_testkit::process;

/// What a process takes, looked at from time to time.
#[derive(Debug, Default)]
pub struct Memory {
    /// Seconds since the start, and resident bytes.
    samples: Vec<(f64, f64)>,
}

/// How it changed.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Growth {
    /// Looks.
    pub samples: usize,
    /// Resident at the end, bytes.
    pub resident: f64,
    /// By how much the straight line through the samples (least squares), without
    /// the first quarter, in which everything is touched for the first time, rises
    /// over them, bytes.
    pub growth: f64,
}

impl Memory {
    /// Looks at process `pid`.
    pub fn look(&mut self, seconds: f64, pid: u32) {
        let resident = process::resident_bytes(pid);
        self.samples.push((seconds, resident as f64));
    }

    /// What was seen.
    pub fn growth(&self) -> Growth {
        let later = &self.samples[self.samples.len() / 4..];
        let (Some(first), Some(last)) = (later.first(), later.last()) else {
            return Growth::default();
        };
        Growth {
            samples: self.samples.len(),
            resident: last.1,
            growth: least_squares(later).0 * (last.0 - first.0),
        }
    }
}
