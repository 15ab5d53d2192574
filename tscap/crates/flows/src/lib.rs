//! The quality of service of each flow: rate, inter-arrival times, delay and its variation,
//! jitter, loss, duplication and order, round trips of TCP and QUIC, and voice quality, from
//! captured packets.
//!
//! [`Flows`] is pure; packets are those of a capture (`file`) or of programs that
//! work now (`live`).

mod account;
pub mod file;
#[cfg(any(test, feature = "fixtures"))]
pub mod fixtures;
mod flow;
mod flows;
mod gen_stream;
mod key;
pub mod layers;
pub mod live;
mod look;
mod quic;
mod round_trip;
mod rtp;
pub mod schema;
mod sequence;
mod series;
mod tcp;
mod transit;
mod voice;

pub use flow::Packet;
pub use flows::{FlowOptions, Flows, PlaceClock};
pub use key::{Ends, FlowId, FlowKey};
pub use look::{Carries, Found, Look, look};
pub use quic::QuicHeader;
pub use rtp::{ClockRates, RtpHeader};
pub use tcp::{Segment, Timestamps};
pub use voice::VoiceOptions;

/// The examples of README.md are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
