//! The frames of one run of `tscap gen` with one flow, as they come out of a
//! capture: each one number after the other, and each gap with its drop count.

use tscap_common::stream::StreamHeader;
use tscap_traffic::generator::{DISCARD, Layout, Network};

use crate::packets::Packet;

/// What came of a run so far.
#[derive(Clone, Debug, Default)]
pub struct Flow {
    /// The run's name in its frames; that of the first one if `None`.
    pub run: Option<u16>,
    /// Frames that came.
    pub came: u64,
    /// Number of the frame that comes next if none is lost.
    pub next: u64,
    /// Numbers left out before a frame that came.
    pub missing: u64,
    /// The most of them in a row.
    pub most_missing: u64,
    /// Of them those that the frame behind them reports as dropped.
    pub reported: u64,
}

impl Flow {
    /// Takes in the next frame, and gives what the sender wrote into it. A frame
    /// that is not of the run, comes twice, before its turn, or reports more
    /// drops than are missing before it is an error.
    pub fn take(&mut self, packet: &Packet<'_>) -> Result<StreamHeader, String> {
        let layout = Layout {
            vlan: None,
            network: Network::BENCHMARK_V4,
            port: DISCARD,
        };
        let payload = packet.data.get(layout.payload_at()..);
        let header = payload.and_then(StreamHeader::of);
        let header = header.ok_or_else(|| format!("not of a stream, after {}", self.next))?;
        if header.run != *self.run.get_or_insert(header.run) {
            return Err(format!("of run {}, after {self:?}", header.run));
        }
        // The number in the frame wraps.
        #[allow(clippy::cast_possible_truncation, reason = "the low bits")]
        let missing = u64::from(header.seq.wrapping_sub(self.next as u32));
        if missing > u64::from(u32::MAX) / 2 {
            return Err(format!("frame {} comes after {self:?}", header.seq));
        }
        let reported = packet.drops.unwrap_or(0);
        if reported > missing {
            return Err(format!(
                "frame {} reports {reported} drops, {missing} are missing",
                header.seq
            ));
        }
        self.came += 1;
        self.next += missing + 1;
        self.missing += missing;
        self.most_missing = self.most_missing.max(missing);
        self.reported += reported;
        Ok(header)
    }
}
