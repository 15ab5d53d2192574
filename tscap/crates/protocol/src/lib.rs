//! What packets that carry times have on the wire.
//!
//! - `time`: timestamps of NTP (RFC 5905) and PTP (RFC 8186), and wall-clock time;
//! - `error_estimate`: how far off the clock of a timestamp is, by its own account (RFC 4656);
//! - `packet`: the test packets of STAMP (RFC 8762);
//! - `tlv`: what may follow them (RFC 8972);
//! - `key`: the keyed hash that authenticates both.
//!
//! Nothing is sent or received here.

mod error_estimate;
mod key;
mod packet;
mod time;
mod tlv;

pub use error_estimate::ErrorEstimate;
pub use key::{Key, KeyError};
pub use packet::{Malformed, Mode, Reply, Request, authenticates, sign};
pub use time::{NtpTime, TimeFormat, Timestamp};
pub use tlv::{
    FollowUp, Method, Reflection, SyncSource, Tlv, TlvOutcome, Tlvs, append_hmac,
    asks_to_follow_up, reflect, request_tlvs,
};

/// The port of session-reflectors (RFC 8762, section 4.1: that of TWAMP's test packets).
pub const PORT: u16 = 862;

/// The examples of README.md are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
