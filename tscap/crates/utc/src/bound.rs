//! What each source says of UTC, and which of them is used.

use serde::{Deserialize, Serialize};

use tscap_time::MonoNs;

/// Who says how far the host's clock is off UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UtcSource {
    /// The kernel, as a daemon told it: `maxerror` of `adjtimex`.
    Kernel,
    /// chronyd, by its command socket.
    Chrony,
    /// The ClockBound daemon, by its shared memory segment.
    ClockBound,
    /// A PTP hardware clock whose driver has `phc_error_bound`.
    Phc,
    /// ptp4l, by its management messages.
    Ptp4l,
    /// The hypervisor, by the page of `/dev/vmclock0`.
    VmClock,
}

impl UtcSource {
    /// As in a sentence.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kernel => "the kernel",
            Self::Chrony => "chronyd",
            Self::ClockBound => "ClockBound",
            Self::Phc => "the network card's clock",
            Self::Ptp4l => "ptp4l",
            Self::VmClock => "VMClock",
        }
    }
}

/// UTC less CLOCK_REALTIME is between two values, ns, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UtcInterval(pub [i64; 2]);

impl UtcInterval {
    /// The host's clock is off by so many ns at most, to either side.
    pub fn within(bound_ns: u64) -> Self {
        let bound = i64::try_from(bound_ns).unwrap_or(i64::MAX);
        Self([-bound, bound])
    }

    /// With so many ns more at either end.
    #[must_use]
    pub fn widened(self, by_ns: u64) -> Self {
        let [earliest, latest] = self.0;
        Self([
            earliest.saturating_sub_unsigned(by_ns),
            latest.saturating_add_unsigned(by_ns),
        ])
    }

    /// All between, also the host's clock as it is: while a daemon slews it from one end to it.
    #[must_use]
    pub fn with_host(self) -> Self {
        self.hull(Self([0, 0]))
    }

    /// All that is in either of them or between them.
    #[must_use]
    pub fn hull(self, other: Self) -> Self {
        Self([self.0[0].min(other.0[0]), self.0[1].max(other.0[1])])
    }

    /// Whether one time can be in both.
    pub fn meets(self, other: Self) -> bool {
        self.0[0] <= other.0[1] && other.0[0] <= self.0[1]
    }

    /// Most that the host's clock is off, ns.
    pub fn bound_ns(self) -> u64 {
        self.0[0].unsigned_abs().max(self.0[1].unsigned_abs())
    }
}

/// What a source has said, in its own terms. Those in ns are added up as `docs/bounds.md` has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "source", rename_all = "lowercase")]
pub enum Parts {
    /// [`UtcSource::Kernel`].
    Kernel {
        /// `maxerror`, ns.
        max_error_ns: u64,
        /// `esterror`, ns.
        est_error_ns: u64,
        /// Error of the device that chronyd follows, which it does not know, ns.
        device_error_ns: u64,
    },
    /// [`UtcSource::Chrony`].
    Chrony {
        /// What chronyd is still slewing out: UTC less the host's clock, ns.
        correction_ns: i64,
        /// To the primary reference and back, ns.
        root_delay_ns: u64,
        /// Errors up to the primary reference, ns.
        root_dispersion_ns: u64,
        /// Growth since the reply: `age_ns` by skew, residual frequency and 1 ppm, ns.
        growth_ns: u64,
        /// Error bound of the clock's rate, parts per billion.
        skew_ppb: u64,
        /// Error of the device that it follows, which it does not know, ns.
        device_error_ns: u64,
        /// Its stratum.
        stratum: u16,
        /// Its reference: four letters of a device, or the address of a server or its hash.
        reference: String,
        /// Since its latest update, ns.
        updated_ago_ns: u64,
        /// Of this answer, ns.
        age_ns: u64,
        /// The leap second that it announces.
        leap: Leap,
    },
    /// [`UtcSource::ClockBound`].
    ClockBound {
        /// Version of the segment.
        version: u16,
        /// The bound as it was published, ns.
        published_ns: u64,
        /// Growth since then by the greatest drift, ns.
        growth_ns: u64,
        /// That drift, parts per billion.
        max_drift_ppb: u32,
        /// Its status.
        status: ClockBoundStatus,
        /// Where it knows of disruptions (version 2): the latest marker.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        disruption_marker: Option<u64>,
    },
    /// [`UtcSource::Phc`].
    Phc {
        /// Its device.
        device: String,
        /// Its interface.
        interface: String,
        /// Device's UTC less the host's clock, in the middle of the reading, ns.
        offset_ns: i64,
        /// Half of the reading's width, ns.
        reading_ns: u64,
        /// `phc_error_bound`, ns.
        device_error_ns: u64,
        /// Growth since the reading, ns.
        growth_ns: u64,
        /// The device counts TAI.
        counts_tai: bool,
    },
    /// [`UtcSource::Ptp4l`].
    Ptp4l {
        /// Its clock less the grandmaster's at the latest Sync, ns.
        offset_ns: i64,
        /// Mean of both ways to its master, ns.
        path_delay_ns: u64,
        /// clockAccuracy of the grandmaster, ns.
        accuracy_ns: Option<u64>,
        /// Boundary clocks up to the grandmaster, and this one.
        steps_removed: u16,
        /// The clock that it measures: "CLOCK_REALTIME", or a device.
        clock: String,
        /// From reading that clock beside the host's: how far it is ahead, ns.
        clock_ahead_ns: i64,
        /// Half of the width of that reading, ns.
        reading_ns: u64,
        /// Growth since the Sync, ns.
        growth_ns: u64,
        /// Identity of the grandmaster.
        grandmaster: String,
    },
    /// [`UtcSource::VmClock`].
    VmClock {
        /// Its UTC less the host's clock in the middle of the reading, ns.
        offset_ns: i64,
        /// Half of the reading's width, ns.
        reading_ns: u64,
        /// Its `time_maxerror`, ns.
        max_error_ns: u64,
        /// Growth since its reference point by the greatest error of the rate, and since this
        /// reading, ns.
        growth_ns: u64,
        /// Changes each time that the counter is disrupted.
        disruption_marker: u64,
        /// The leap second that it announces.
        leap: Leap,
    },
}

/// A leap second that a source announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Leap {
    /// None.
    None,
    /// One to come is inserted.
    Insert,
    /// One to come is left out.
    Delete,
    /// It is being inserted now.
    Now,
    /// One was inserted or left out recently.
    Over,
    /// The source is not synchronised.
    Unknown,
}

/// `clock_status` of ClockBound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClockBoundStatus {
    /// It says nothing of the clock.
    Unknown,
    /// A daemon keeps the clock.
    Synchronized,
    /// Nobody keeps the clock, but its drift is bounded.
    FreeRunning,
    /// The clock was disrupted, and nothing bounds it.
    Disrupted,
}

impl Parts {
    /// Whose they are.
    pub fn source(&self) -> UtcSource {
        match self {
            Self::Kernel { .. } => UtcSource::Kernel,
            Self::Chrony { .. } => UtcSource::Chrony,
            Self::ClockBound { .. } => UtcSource::ClockBound,
            Self::Phc { .. } => UtcSource::Phc,
            Self::Ptp4l { .. } => UtcSource::Ptp4l,
            Self::VmClock { .. } => UtcSource::VmClock,
        }
    }
}

/// What one source says of the host's clock against UTC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UtcBound {
    /// Who says it, and what it is made of.
    #[serde(flatten)]
    pub parts: Parts,
    /// CLOCK_MONOTONIC of the reading or the answer that it is by.
    pub as_of: MonoNs,
    /// Most that CLOCK_REALTIME is off UTC now, ns; null if the source does not bound it.
    pub bound_ns: Option<u64>,
    /// UTC less CLOCK_REALTIME, ns: the least and the greatest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utc_less_host_ns: Option<UtcInterval>,
    /// Why there is no bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
}

impl UtcBound {
    /// Of parts that bound UTC, or with the reason why they don't.
    pub fn new(parts: Parts, as_of: MonoNs, interval: Result<UtcInterval, String>) -> Self {
        Self {
            parts,
            as_of,
            bound_ns: interval.as_ref().ok().map(|it| it.bound_ns()),
            utc_less_host_ns: interval.as_ref().ok().copied(),
            unknown: interval.err(),
        }
    }

    /// Takes its bound from it, for this reason.
    pub fn refuse(&mut self, why: &str) {
        if self.bound_ns.take().is_some() {
            self.utc_less_host_ns = None;
            self.unknown = Some(why.to_owned());
        }
    }
}

/// All that is known of the host's clock against UTC at a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UtcBounds {
    /// Most that CLOCK_REALTIME is off UTC, ns: that of the source that is used; null if
    /// nothing bounds it.
    pub bound_ns: Option<u64>,
    /// The source that is used, the one with the least bound; null if there is none, or if
    /// sources contradict each other: then the bound holds if any of them is right.
    pub source: Option<UtcSource>,
    /// Pairs of sources whose intervals of UTC don't meet: one of each is wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contradictions: Vec<[UtcSource; 2]>,
    /// All sources that were found.
    pub readings: Vec<UtcBound>,
}

impl UtcBounds {
    /// Decides which of them is used.
    pub fn of(readings: Vec<UtcBound>) -> Self {
        let known = readings.iter();
        let known = known.filter_map(|it| Some((it.parts.source(), it.utc_less_host_ns?)));
        let known: Vec<_> = known.collect();
        let mut contradictions = Vec::new();
        for (index, (source, interval)) in known.iter().enumerate() {
            let later = known[index + 1..].iter();
            let excluded = later.filter(|(_, other)| !interval.meets(*other));
            contradictions.extend(excluded.map(|(other, _)| [*source, *other]));
        }
        let (source, bound_ns) = if contradictions.is_empty() {
            let least = known.iter().min_by_key(|(_, it)| it.bound_ns());
            least.map_or((None, None), |(source, it)| {
                (Some(*source), Some(it.bound_ns()))
            })
        } else {
            let all = known.iter().map(|(_, it)| *it).reduce(UtcInterval::hull);
            (None, all.map(UtcInterval::bound_ns))
        };
        Self {
            bound_ns,
            source,
            contradictions,
            readings,
        }
    }

    /// What the source that is used has said.
    pub fn used(&self) -> Option<&UtcBound> {
        let source = self.source?;
        let of_it = self
            .readings
            .iter()
            .filter(|it| it.parts.source() == source);
        of_it.min_by_key(|it| it.bound_ns.unwrap_or(u64::MAX))
    }

    /// What that source has said.
    pub fn by(&self, source: UtcSource) -> Option<&UtcBound> {
        self.readings.iter().find(|it| it.parts.source() == source)
    }
}

#[cfg(test)]
mod tests;
