//! The capture file (pcapng), and the account of each frame that was seen.

pub mod accounting;
pub mod pcapng;
