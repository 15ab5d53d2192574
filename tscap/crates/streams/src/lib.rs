//! The frames that `tscap gen` sends: their stream headers, the clocks of both ends, and captures
//! that hold them. Pure but for [`HostClocksBeside`], which reads this host's clocks.

mod capture;
mod ends;
#[cfg(any(test, feature = "fixtures"))]
pub mod fixtures;
mod frame;
pub mod namesakes;
mod receive_clock;
mod sender_clock;
mod stamps;
mod survey;

pub use capture::{CaptureError, HIDDEN_STEPS};
pub use ends::{ENDS_WITHIN, Ends};
pub use frame::content_of;
pub use frame::{Checksum, Content, Malformed, content};
pub use receive_clock::{DelayBasis, ReceiveClock};
pub use sender_clock::{HostClocksBeside, HostMoment, SenderClock};
pub use stamps::{path_delay_ns, signed_difference, unwrapped_counter};
pub use survey::{Described, Survey};

/// The examples of README.md are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
