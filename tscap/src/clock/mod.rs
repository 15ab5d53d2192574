//! From raw stamps to wall-clock time, by exact integer arithmetic.
//!
//! `ktime` and `tai` stamps come from clocks that the kernel keeps in step with
//! CLOCK_REALTIME: rate exactly 1, the offset constant until somebody sets the
//! clock. [`Tracker`] finds that offset by intersecting [`CrossTimestamp`]s and
//! starts a new [`Segment`] when one contradicts what came before.

mod counter;
mod cross;
mod rate;
mod segment;
mod tracker;
mod types;

pub use counter::{
    CounterClock, CounterConversion, CounterReport, NsPerCycle, OffsetBracket, Piece,
};
pub use cross::{CrossTimestamp, HostClocks, Reference};
pub use rate::measure_tsc_rate;
pub use segment::{Bounds, Sample, Segment};
pub use tracker::{Conversion, Observation, OffsetConversion, Tracker};
pub use types::{MonoNs, OffsetNs, RawStamp, RealNs, StampSource, TaiNs, TscCycles};
