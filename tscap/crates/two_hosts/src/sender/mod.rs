//! The session-sender (RFC 8762, section 4.2).
//!
//! - `exchanges`: which packets and replies belong together, and what became of each.

mod exchanges;
