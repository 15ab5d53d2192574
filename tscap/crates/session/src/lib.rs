//! A live measurement. A [`Session`] has its programs loaded and its clock read; once they are
//! attached, [`Session::drain`] starts the one thread that takes their records out of the rings
//! and gives them to a [`Sink`], which is what is particular to the measurement. [`Draining`] is
//! that measurement while it goes on.
//!
//! The order is the same for each: check the machine ([`Machine::check`]), look up interfaces,
//! load and read the clock ([`Session::open`]), attach, read the clock once more and drain
//! ([`Session::drain`]), give up privileges, look after it until it is over, and end it
//! ([`Draining::finish`]).

mod attaching;
mod drain;
mod draining;
mod machine;
mod points;
mod records;
mod session;
mod sink;

pub use attaching::{by_filter, not_attached};
pub use draining::{Draining, EndReason, Ended, Live};
pub use machine::{Machine, clock_at_tap, open_counter, read_clock};
pub use points::{Attached, Place, Point, Points, SeenWhen};
pub use records::{Frames, Keys, Records};
pub use session::{Beginning, Recorded, Session, SessionPlan};
pub use sink::{ClockChange, Progress, Sink, Times};

/// The examples of README.md are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
