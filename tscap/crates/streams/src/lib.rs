//! What came through of the streams of `tscap gen`: loss, duplication,
//! reordering and delay, from captured frames. Pure: nothing here touches the
//! system.
//!
//! [`read`] does it for a capture file; [`Streams`] for frames from anywhere.

mod capture;
mod delay;
mod ends;
#[cfg(any(test, feature = "fixtures"))]
pub mod fixtures;
mod frame;
pub mod namesakes;
mod receive_clock;
mod report;
mod sender_clock;
mod sequence;
mod streams;
mod text;

pub use capture::{CaptureError, read};
pub use capture::{End, HIDDEN_STEPS, each_record};
pub use delay::{DelayReport, IntervalSources};
pub use delay::{path_delay_ns, signed_difference, unwrapped_counter};
pub use ends::{ENDS_WITHIN, Ends};
pub use frame::content_of;
pub use frame::{Checksum, Content, Malformed, content};
pub use receive_clock::{DelayBasis, ReceiveClock};
pub use report::{Counts, InterfaceReport, StreamId, StreamReport, StreamSummary};
pub use sender_clock::{HostClocksBeside, HostMoment, SenderClock};
pub use sequence::{Loss, Reordering};
pub use streams::{Sent, Source, Streams};
pub use text::Arrivals;

/// The examples of README.md are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
