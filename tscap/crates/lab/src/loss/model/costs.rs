//! What the stages cost.

use serde::{Deserialize, Serialize};
use tscap_common::block;

/// A cost that grows with the captured bytes of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// Of a frame, however short, ns.
    pub frame_ns: f64,
    /// Of each byte of it that is captured, ns.
    pub byte_ns: f64,
}

impl Cost {
    /// Of a frame of which `caplen` bytes are captured, ns.
    pub fn of(self, caplen: u32) -> f64 {
        self.frame_ns + self.byte_ns * f64::from(caplen)
    }

    /// The straight line through two measured costs, `(captured bytes, ns)`; no
    /// byte and no frame costs less than nothing.
    pub fn through(short: (u32, f64), long: (u32, f64)) -> Self {
        let bytes = f64::from(long.0) - f64::from(short.0);
        let byte_ns = if bytes > 0.0 {
            ((long.1 - short.1) / bytes).max(0.0)
        } else {
            0.0
        };
        Self {
            frame_ns: (short.1 - byte_ns * f64::from(short.0)).max(0.0),
            byte_ns,
        }
    }
}

/// On which CPU frames are received.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Receiving {
    /// On the sender's, which it slows down, so that nothing is lost between them: so
    /// it is on a veth pair.
    OnSender,
    /// On one of its own, so that what it can't receive is lost: so it is with a
    /// network card.
    Apart,
}

/// A writer that takes bytes more slowly than the converter makes them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Writer {
    /// In the long run, bytes/s.
    pub bytes_per_s: f64,
    /// What it takes at once beside that: a pipe's buffer, dirty pages.
    pub buffer_bytes: f64,
}

/// What each stage costs on one machine with one stamp.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Costs {
    /// Where frames are received.
    pub receiving: Receiving,
    /// The converter has no CPU of its own: it is on the sender's.
    pub converter_shares: bool,
    /// Sending a frame flat out, without what its receiving takes, ns.
    pub send_ns: f64,
    /// Receiving a frame and capturing it, up to its end in the stack.
    pub receive: Cost,
    /// Receiving a frame for which the ring has no room, ns.
    pub turned_away_ns: f64,
    /// Converting and writing a frame.
    pub convert: Cost,
    /// From the end of one drain to the start of the next, sleep and waking up, ns.
    pub turn_ns: f64,
    /// What limits the writing, if anything does.
    pub writer: Option<Writer>,
}

impl Costs {
    /// The same with a file that takes so many bytes a second from the first on: what a
    /// disk's cache may take at once besides is not relied upon.
    pub fn with_file_rate(self, bytes_per_s: u64) -> Self {
        let writer = Writer {
            bytes_per_s: bytes_per_s as f64,
            buffer_bytes: 0.0,
        };
        Self {
            writer: Some(writer),
            ..self
        }
    }
}

/// Length of the pcapng block of a frame, bytes.
pub fn record_bytes(caplen: u32) -> f64 {
    block::block_len(caplen as usize, 0) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_through_two_points() {
        let cost = Cost::through((64, 100.0), (1064, 300.0));
        assert_eq!((cost.byte_ns, cost.frame_ns), (0.2, 87.2));
        assert_eq!(cost.of(564), 200.0);
        let noise = Cost::through((64, 100.0), (1064, 90.0));
        assert_eq!((noise.byte_ns, noise.frame_ns), (0.0, 100.0));
        let same = Cost::through((96, 100.0), (96, 130.0));
        assert_eq!((same.byte_ns, same.frame_ns), (0.0, 100.0));
        let steep = Cost::through((1000, 10.0), (1100, 1010.0));
        assert_eq!((steep.byte_ns, steep.frame_ns), (10.0, 0.0));
    }

    #[test]
    fn a_record_is_a_pcapng_block() {
        assert_eq!(record_bytes(64), 96.0);
        assert_eq!(record_bytes(61), 96.0);
        assert_eq!(record_bytes(1500), 1532.0);
    }
}
