//! One point of a sweep, predicted.

use super::costs::{Costs, record_bytes};
use super::flow::Flow;

/// Less than this share of the frames is none: a model has no single frames.
const NONE: f64 = 1e-9;

/// What comes, and what it comes to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// Frames that are sent.
    pub frames: f64,
    /// Bytes of each that are captured.
    pub caplen: u32,
    /// Frames a second; infinite for as many as can be sent.
    pub rate: f64,
    /// Length of the ring, bytes.
    pub ring_bytes: f64,
}

/// What becomes of it: shares of the frames sent, which add up to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// Share that is written to the file, 0 to 1.
    pub written: f64,
    /// Lost before the program.
    pub before: f64,
    /// Lost for want of room in the ring.
    pub ring: f64,
    /// How long sending takes, s.
    pub seconds: f64,
}

impl Prediction {
    /// Share of the frames sent that is lost.
    pub fn lost(&self) -> f64 {
        self.before + self.ring
    }

    /// Whether that is none.
    pub fn loses_nothing(&self) -> bool {
        self.lost() < NONE
    }
}

/// Which buffers have no room left.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FullBuffers {
    pub ring: bool,
    pub file: bool,
}

/// The model: up to three spans of constant flow, between which the ring and the
/// file's buffer fill up, in either order. What they hold at the end is written.
pub fn predict(costs: &Costs, load: &Load) -> Prediction {
    let record = record_bytes(load.caplen);
    let mut full = FullBuffers::default();
    // Frames that the ring has room for, and bytes that the file's buffer has.
    let mut ring_room = load.ring_bytes / record;
    let mut file_room = costs.writer.map_or(f64::INFINITY, |it| it.buffer_bytes);
    let (mut left, mut before, mut ring, mut seconds) = (load.frames, 0.0, 0.0, 0.0);
    while left > 0.0 {
        let flow = Flow::of(costs, load, full);
        let too_many = flow.arriving - flow.accepted;
        let too_much = match costs.writer {
            Some(writer) => flow.accepted * record - writer.bytes_per_s,
            None => 0.0,
        };
        let to_end = left / flow.sent;
        let to_full_ring = until(ring_room, too_many, full.ring);
        let to_full_file = until(file_room, too_much, full.file);
        let span = to_end.min(to_full_ring).min(to_full_file);
        seconds += span;
        before += (flow.sent - flow.arriving) * span;
        if full.ring {
            ring += too_many * span;
        }
        if span == to_end {
            break;
        }
        left -= flow.sent * span;
        ring_room -= too_many * span;
        file_room -= too_much * span;
        full.ring |= span == to_full_ring;
        full.file |= span == to_full_file;
    }
    let (before, ring) = (before / load.frames, ring / load.frames);
    Prediction {
        written: 1.0 - before - ring,
        before,
        ring,
        seconds,
    }
}

/// When a buffer has no room left, s.
fn until(room: f64, filling: f64, is_full: bool) -> f64 {
    if !is_full && filling > 0.0 {
        room / filling
    } else {
        f64::INFINITY
    }
}
