//! What each part of a capture has counted.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use super::{Directed, Direction, Outcomes};
use tscap_utc::UtcBounds;

/// What the converter did with the frames of one interface and direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Frames written to the file.
    pub written: u64,
    /// Frames taken out of a ring but not written.
    pub outcomes: Outcomes,
    /// Of those written: what is known of their hardware stamps.
    pub hardware: HardwareFrames,
}

/// Frames of an interface with hardware stamps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HardwareFrames {
    /// Frames that have a hardware stamp.
    pub with: u64,
    /// Of these, those whose stamp could not be converted.
    pub unconverted: u64,
    /// Of these, those that were converted without a bound: between the last reading of the
    /// interface's clock before it was set, and the first one after that; or between two that
    /// may have several changes of its rate between them.
    pub ambiguous: u64,
}

impl HardwareFrames {
    fn since(self, before: Self) -> Self {
        Self {
            with: self.with.saturating_sub(before.with),
            unconverted: self.unconverted.saturating_sub(before.unconverted),
            ambiguous: self.ambiguous.saturating_sub(before.ambiguous),
        }
    }
}

impl AddAssign for HardwareFrames {
    fn add_assign(&mut self, other: Self) {
        self.with += other.with;
        self.unconverted += other.unconverted;
        self.ambiguous += other.ambiguous;
    }
}

/// Frames that an interface itself counted, of one direction, while programs were attached to
/// it. Which frames these are its driver decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterfaceFrames {
    /// `rx_packets` or `tx_packets`.
    #[serde(rename = "interface_frames")]
    pub frames: u64,
    /// `rx_dropped` or `tx_dropped`.
    #[serde(rename = "interface_dropped")]
    pub dropped: u64,
}

impl InterfaceFrames {
    /// Those that were counted later than `before`; none if the counters have begun anew.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            frames: self.frames.saturating_sub(before.frames),
            dropped: self.dropped.saturating_sub(before.dropped),
        }
    }
}

impl AddAssign for InterfaceFrames {
    fn add_assign(&mut self, other: Self) {
        self.frames += other.frames;
        self.dropped += other.dropped;
    }
}

/// Counts of one interface that only the control task can read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterfaceCounts {
    /// Frames that the programs did not record, by reason.
    pub losses: Directed<Outcomes>,
    /// Frames that the interface itself missed or dropped since the start;
    /// `None` if the kernel has no counters for it.
    pub ifdrop: Option<u64>,
    /// Frames that it counted itself; `None` if its counters can't be read.
    pub own: Option<Directed<InterfaceFrames>>,
    /// It is not there any more: its programs see no frame.
    pub is_gone: bool,
}

/// What a reference is to the times.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReferenceStanding {
    /// "ntp:" and a server, or the path of a device.
    pub name: String,
    /// "leads", "agrees", "falseticker", "silent" or "unknown".
    pub state: String,
}

/// What the control task last read: it goes into the statistics blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// By interface, in the file's order.
    pub interfaces: Vec<InterfaceCounts>,
    /// Most that the clock of the times is off UTC, ns; `None` while nothing bounds it.
    pub utc_bound_ns: Option<u64>,
    /// What bounds CLOCK_REALTIME, where that gives the times.
    pub utc: Option<UtcBounds>,
    /// Where the times are by references: each of them.
    pub references: Vec<ReferenceStanding>,
    /// With `--rx-cpu`: frames that came in on other CPUs.
    pub off_cpu: Option<u64>,
}

impl Observed {
    /// What all writers together have, by what each has: losses each has of its own frames, and
    /// the rest of the whole capture.
    pub fn of_all(writers: &[Self]) -> Self {
        let mut writers = writers.iter();
        let mut sum = writers.next().cloned().unwrap_or_default();
        for other in writers {
            for (sum, other) in sum.interfaces.iter_mut().zip(&other.interfaces) {
                sum.losses += other.losses;
            }
        }
        sum
    }
}

/// The counts of a capture up to some time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// By interface, what the converter did with its frames.
    pub written: Vec<Directed<Written>>,
    /// What the control task saw.
    pub observed: Observed,
    /// By interface, the bound of its hardware stamps' times so far, ns, where there is one.
    pub hardware_bounds_ns: Vec<Option<u64>>,
}

/// An account: of one direction or of both, over all interfaces or of one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Frames that entered the programs, counted at their entry.
    pub seen: u64,
    /// Frames written to the file.
    pub written: u64,
    /// Frames not written, by reason.
    pub outcomes: Outcomes,
}

impl AddAssign for Written {
    fn add_assign(&mut self, other: Self) {
        self.written += other.written;
        self.outcomes += other.outcomes;
        self.hardware += other.hardware;
    }
}

impl AddAssign for Totals {
    fn add_assign(&mut self, other: Self) {
        self.seen += other.seen;
        self.written += other.written;
        self.outcomes += other.outcomes;
    }
}

impl Totals {
    /// Of frames of which each was seen that has an outcome.
    pub fn of(written: u64, outcomes: Outcomes) -> Self {
        Self {
            seen: written + outcomes.total(),
            written,
            outcomes,
        }
    }

    /// Whether every frame seen is accounted for, exactly once.
    pub fn add_up(&self) -> bool {
        self.seen == self.written + self.outcomes.total()
    }
}

impl Counts {
    /// The account of each direction: `seen` as the programs counted it.
    pub fn totals(&self, seen: Directed<u64>) -> Directed<Totals> {
        Directed::by(|direction| {
            let mut totals = Totals {
                seen: seen[direction],
                ..Totals::default()
            };
            for counts in &self.observed.interfaces {
                totals.outcomes += counts.losses[direction];
            }
            for counts in &self.written {
                totals.written += counts[direction].written;
                totals.outcomes += counts[direction].outcomes;
            }
            totals
        })
    }

    /// What has been counted since `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let mut since = self.clone();
        for (written, before) in since.written.iter_mut().zip(&before.written) {
            for direction in Direction::ALL {
                let (written, before) = (&mut written[direction], before[direction]);
                written.written -= before.written;
                written.outcomes -= before.outcomes;
                written.hardware = written.hardware.since(before.hardware);
            }
        }
        let interfaces = since.observed.interfaces.iter_mut();
        for (counts, before) in interfaces.zip(&before.observed.interfaces) {
            for direction in Direction::ALL {
                counts.losses[direction] -= before.losses[direction];
            }
            counts.ifdrop = less(counts.ifdrop, before.ifdrop);
            if let (Some(own), Some(before)) = (&mut counts.own, before.own) {
                *own = Directed::by(|direction| own[direction].since(before[direction]));
            }
        }
        since.observed.off_cpu = less(since.observed.off_cpu, before.observed.off_cpu);
        since
    }
}

fn less(count: Option<u64>, before: Option<u64>) -> Option<u64> {
    count.map(|count| count.saturating_sub(before.unwrap_or(0)))
}
