//! When a clock has settled.

/// Within this for a minute a clock is settled, ns: three times the delay variation
/// of the quiet path.
const SETTLED_NS: f64 = 50_000.0;
const FOR_A_MINUTE: u64 = 60;

/// Finds the first of a minute of samples within the limit.
#[derive(Clone, Copy, Default)]
pub struct Settling {
    since: u64,
    latest: u64,
}

impl Settling {
    /// Takes in the error at one more sample.
    pub fn take(&mut self, sample: u64, error_ns: f64) {
        let is_settled = self.latest.saturating_sub(self.since) >= FOR_A_MINUTE;
        if is_settled {
            return;
        }
        if error_ns.abs() > SETTLED_NS {
            self.since = sample;
        }
        self.latest = sample;
    }

    /// Samples until then.
    pub fn samples(self) -> f64 {
        (self.since + 1) as f64
    }
}
