//! What each part of a capture has counted.

use serde::{Deserialize, Serialize};

use super::{Outcome, Outcomes};

/// What the converter did with the frames of one interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Frames written to the file.
    pub written: u64,
    /// Frames taken out of a ring but not written.
    pub outcomes: Outcomes,
}

/// Counts of one interface that only the control task can read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterfaceCounts {
    /// Frames that the program did not record, by reason.
    pub losses: Outcomes,
    /// Frames that the interface itself missed or dropped since the start;
    /// `None` if the kernel has no counters for it.
    pub ifdrop: Option<u64>,
}

/// What the control task last read: it goes into the statistics blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// By interface, in the file's order.
    pub interfaces: Vec<InterfaceCounts>,
    /// The kernel's own bound on CLOCK_REALTIME against UTC, ns; `None` while it
    /// is not synchronised.
    pub utc_bound_ns: Option<u64>,
    /// With `--rx-cpu`: frames that came in on other CPUs.
    pub off_cpu: Option<u64>,
}

/// The counts of a capture up to some time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// By interface, what the converter did with its frames.
    pub written: Vec<Written>,
    /// What the control task saw.
    pub observed: Observed,
}

/// The account over all interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Frames that entered the program, counted at its entry.
    pub seen: u64,
    /// Frames written to the file.
    pub written: u64,
    /// Frames not written, by reason.
    pub outcomes: Outcomes,
}

impl Totals {
    /// Whether every frame seen is accounted for, exactly once.
    pub fn add_up(&self) -> bool {
        self.seen == self.written + self.outcomes.total()
    }
}

impl Counts {
    /// The account: `seen` as the programs counted it, `other` what no interface owns,
    /// and frames of interfaces that nobody knows.
    pub fn totals(&self, seen: u64, other: Outcomes, unknown_interface: u64) -> Totals {
        let mut outcomes = other;
        outcomes[Outcome::UnknownInterface] += unknown_interface;
        for counts in &self.observed.interfaces {
            outcomes += counts.losses;
        }
        for counts in &self.written {
            outcomes += counts.outcomes;
        }
        Totals {
            seen,
            written: self.written.iter().map(|counts| counts.written).sum(),
            outcomes,
        }
    }

    /// What has been counted since `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let mut since = self.clone();
        for (written, before) in since.written.iter_mut().zip(&before.written) {
            written.written -= before.written;
            written.outcomes -= before.outcomes;
        }
        let interfaces = since.observed.interfaces.iter_mut();
        for (counts, before) in interfaces.zip(&before.observed.interfaces) {
            counts.losses -= before.losses;
            counts.ifdrop = less(counts.ifdrop, before.ifdrop);
        }
        since.observed.off_cpu = less(since.observed.off_cpu, before.observed.off_cpu);
        since
    }
}

fn less(count: Option<u64>, before: Option<u64>) -> Option<u64> {
    count.map(|count| count.saturating_sub(before.unwrap_or(0)))
}
