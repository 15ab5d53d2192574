//! Which ring a load needs.

use tscap_common::ring::{MAX_RING_BYTES, MIN_RING_BYTES};

use super::costs::Costs;
use super::prediction::{Load, predict};

/// The ring that a load needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needed {
    /// With so many bytes nothing is lost.
    Bytes(usize),
    /// Even the largest one loses frames.
    NoneSuffices,
}

/// The least ring with which nothing is lost, among those that tscap can have, and
/// that besides holds what comes in `pause_s`, should the converter be kept waiting.
pub fn least_ring(costs: &Costs, load: &Load, pause_s: f64) -> Needed {
    let mut ring = MIN_RING_BYTES;
    while ring <= MAX_RING_BYTES {
        let ring_bytes = ring as f64;
        let with_it = Load {
            ring_bytes,
            ..*load
        };
        let prediction = predict(costs, &with_it);
        let rate = load.frames / prediction.seconds;
        let paused = rate * pause_s * super::costs::record_bytes(load.caplen);
        if prediction.loses_nothing() && paused <= ring_bytes {
            return Needed::Bytes(ring);
        }
        ring *= 2;
    }
    Needed::NoneSuffices
}
