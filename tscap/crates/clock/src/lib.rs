//! From raw stamps to wall-clock time, by exact integer arithmetic.
//!
//! `ktime` and `tai` stamps come from clocks that the kernel keeps in step with
//! CLOCK_REALTIME: rate exactly 1, the offset constant until somebody sets the
//! clock. [`Tracker`] finds that offset by intersecting [`CrossTimestamp`]s and
//! starts a new [`Segment`] when one contradicts what came before.
//!
//! A raw counter needs a clock of its own: [`FeedForward`], of which [`CounterClock`]
//! makes lines that stamps are converted by.

mod ambiguous;
mod base;
mod conversion;
pub mod counter;
mod counter_report;
pub mod cross;
mod fit;
mod history;
mod leap_seconds;
mod live_bounds;
pub mod model;
mod ns_per_cycle;
mod path;
mod rate;
mod raw;
pub mod reading;
mod reference_bounds;
mod sample_thinning;
pub mod scripted;
mod segment;
mod segments;
mod status;
mod tracker;
mod typical_width;

pub use ambiguous::{Ambiguous, StampRange};
pub use base::{BaseClock, BootId, FileClock, FileNs, NtpBase, PeerBase, TimeBase, TimeBaseError};
pub use conversion::{Conversion, OffsetConversion};
pub use counter::{ClockLine, CounterClock, CounterConversion};
pub use counter_report::{CounterReport, OffsetBracket, interval_ns};
pub use cross::{CrossTimestamp, HostClocks, Reference};
pub use fit::{Fit, NotRefined};
pub use history::{History, Impossible};
pub use leap_seconds::LEAST_TAI_OFFSET_S;
pub use leap_seconds::{LEAP_SECONDS, LeapSeconds, LeapSecondsError, TableOffset};
pub use live_bounds::LiveBounds;
pub use model::{Counts, Estimate, FeedForward, Scale, Verdict};
pub use ns_per_cycle::NsPerCycle;
pub use path::{StampPath, TscPath, read_order};
pub use rate::measure_tsc_rate;
pub use raw::{RawClock, RawRate, Slew};
pub use reading::Bracket;
pub use reference_bounds::{FollowedBounds, ReferenceBounds};
pub use segment::{Bounds, Sample, Segment, StepCause, is_zero};
pub use status::Status;
pub use tracker::{Observation, Tracker};
pub use tscap_time::{
    BootNs, MonoNs, OffsetNs, PhcNs, PhcReading, RawStamp, RealNs, StampSource, TaiNs, TscCycles,
};

/// The examples of README.md are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
