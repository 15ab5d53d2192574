//! The converter thread: drains the rings in order of time, turns raw stamps
//! into wall-clock time in place, and writes straight from the ring while only
//! one has blocks, else by way of one buffer.

mod block_finisher;
mod block_writer;
mod converter;
mod file_room;
mod files;
mod finished;
mod guard;
mod hardware;
mod idle;
mod order;
mod output;
mod prepared;
mod rings;
mod rotation;
mod shared;
mod window;
mod write_watch;

pub use block_finisher::{BlockFinisher, Frames};
pub use converter::{Converter, Event, Source};
pub use files::STATISTICS_EVERY;
pub use finished::Finished;
pub use guard::{Guard, SleepTotals};
pub use hardware::{DelaySummary, Delays, PtpClock, StampClock};
pub use idle::Idle;
pub use output::{CloseError, Io, Output, OutputError, PIECE_BYTES};
pub use prepared::{NewName, PreparedFile};
pub use rotation::{ClosedFile, Limits, NameError, Names, Naming, Period, Rotation, RotationPlan};
pub use shared::{Recalibration, Shared};
pub use window::Window;
pub use write_watch::WriteWatch;

/// The examples of README.md are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(test)]
mod tests;
