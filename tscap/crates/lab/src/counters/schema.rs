//! What `tscap counters --json` writes and `tscap report` reads: one object of the kind
//! "counters", version [`VERSION`]. Fields are only added within a version.

use serde::{Deserialize, Serialize};

use super::access::Quartiles;
use super::counter::Counter;
use super::phase::Stress;
use tscap_references::ClockError;
use tscap_results::envelope::Envelope;

/// Version of the object.
pub const VERSION: u32 = 1;

/// What this machine's counters are like.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Characteristics {
    /// Of the kind [`Kind::Counters`], [`VERSION`]. Partial is one that ended early.
    ///
    /// [`Kind::Counters`]: tscap_results::envelope::Kind::Counters
    #[serde(flatten)]
    pub about: Envelope,
    /// How it was done.
    pub method: Method,
    /// What else the machine did, in order of time.
    pub phases: Vec<Phase>,
    /// Each counter that could be read, by each way.
    pub counters: Vec<Subject>,
    /// Those that could not.
    pub absent: Vec<MissingCounter>,
    /// What rates are by.
    pub reference: Reference,
    /// What a reader must know before the figures.
    pub warnings: Vec<String>,
}

/// How it was done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Method {
    /// The CPU that read.
    pub cpu: u32,
    /// Time that a phase was to take, s.
    pub phase_seconds: f64,
    /// From one look at the counters to the next, s.
    pub every_seconds: f64,
    /// Most readings of a counter in a row at each look.
    pub readings: usize,
    /// Rate of the TSC by the host's clock, Hz, good to 10 ppm.
    pub tsc_hertz: f64,
    /// Two readings of the TSC with nothing in between, by phase, cycles: the median is taken off
    /// every latency by user space.
    pub empty: Vec<Option<Quartiles>>,
    /// Two readings of CLOCK_MONOTONIC by a BPF program with nothing in between, by phase, cycles:
    /// the median is taken off every latency by a program. They tell whole nanoseconds apart.
    pub empty_program: Vec<Option<Quartiles>>,
}

/// A time in which the machine did something.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// What.
    pub stress: Stress,
    /// How long it really was, s.
    pub seconds: f64,
    /// Share of its time that each online CPU did something, by its number.
    pub busy: Vec<f64>,
    /// What was captured, with a load of frames.
    pub captured: Option<Captured>,
}

/// What a capture beside it took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Captured {
    /// Frames that were sent to the interface that is captured.
    pub sent: u64,
    /// Frames that the capture saw.
    pub seen: u64,
    /// Frames that it wrote.
    pub written: u64,
}

/// A counter by one way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Subject {
    /// Which.
    pub counter: Counter,
    /// Its frequency, Hz: what it states, or of the TSC what was measured.
    pub hertz: f64,
    /// Bits that the counter has, after which it begins at 0 again.
    pub bits: u32,
    /// After so many seconds it begins at 0 again.
    pub wraps_seconds: f64,
    /// Ticks that all differences of successive values were multiples of: its step is no greater.
    /// 0 where no two values differed.
    pub step_ticks: u64,
    /// `step_ticks` as a time, ns.
    pub step_ns: f64,
    /// Readings that gave no value, such as of a device that did not answer.
    pub failed: u64,
    /// What a reading took in each phase, cycles of the TSC.
    pub latency: Vec<Option<Quartiles>>,
    /// The median of the readings of each look, or of several looks in a row, over time.
    #[serde(default)]
    pub latency_course: Vec<LatencyPoint>,
    /// How many readings took so long, by phase: as [`Self::latency`], up to 99.9 %.
    #[serde(default)]
    pub latency_histogram: Vec<Vec<LatencyBin>>,
    /// Of one that the kernel makes of the TSC: what a reading took more than the median one of
    /// the TSC alone, in each phase, cycles.
    pub interface: Vec<Option<Quartiles>>,
    /// Its rate in each phase; empty of one that rates are by, or another way to a counter that
    /// has them.
    pub rate: Vec<Option<PhaseRate>>,
    /// Its rate over time.
    pub course: Vec<RatePoint>,
    /// Its Allan deviation; only against an independent reference.
    pub scales: Vec<Scale>,
    /// The error of a feed-forward clock that counts by it.
    #[serde(default)]
    pub clock: Option<ClockError>,
}

/// What readings took at a time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LatencyPoint {
    /// Since the first look, s.
    pub seconds: f64,
    /// Median, cycles of the TSC.
    pub cycles: i64,
}

/// Readings that took about as long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatencyBin {
    /// From so many cycles of the TSC on.
    pub from_cycles: i64,
    /// Below so many.
    pub to_cycles: i64,
    /// Readings.
    pub n: u64,
}

/// A rate over a phase.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseRate {
    /// Ticks in a second by the reference.
    pub hertz: f64,
    /// Against the mean of the idle phases, parts per million.
    pub ppm: f64,
    /// Greatest error of that by the brackets of the readings.
    pub bound_ppm: f64,
}

/// A rate at a time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RatePoint {
    /// Since the first look, s.
    pub seconds: f64,
    /// Against the mean of the idle phases, parts per million.
    pub ppm: f64,
}

/// A deviation on one scale.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scale {
    /// τ, s: the time over which frequencies are averaged.
    pub tau_s: f64,
    /// Terms that it is of.
    pub terms: u64,
    /// σ_y(τ), a relative frequency.
    pub deviation: f64,
    /// Its 95 % interval.
    pub interval: [f64; 2],
}

/// A counter that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingCounter {
    /// Which.
    pub counter: Counter,
    /// Why.
    pub why: String,
}

/// What rates are by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum Reference {
    /// The TSC itself: nothing says how well any of them keeps its rate.
    Tsc,
    /// A PTP hardware clock.
    Ptp {
        /// The device.
        device: String,
        /// What its driver calls it.
        name: String,
        /// Why it has no oscillator of its own; absent if it has, as far as is known.
        dependent: Option<String>,
    },
}

impl Reference {
    /// Whether it has an oscillator of its own.
    pub(crate) fn is_independent(&self) -> bool {
        matches!(
            self,
            Self::Ptp {
                dependent: None,
                ..
            }
        )
    }
}
