//! The runs by which costs are found out.

use tscap_common::ring::MIN_RING_BYTES;

use super::error::LossError;
use super::fit::{Probe, Probes};
use super::grid::{LONGEST_FRAME, Pace, Spot};
use super::model::Receiving;
use super::rig::Rig;
use crate::clock::StampSource;
use crate::load::{Burst, Program};

/// Shortest frame with room for the stamps of its sending, bytes.
const SHORT: u32 = 64;
/// A ring in which a converter that is fast enough loses nothing, bytes.
const AMPLE: usize = 16 << 20;
/// Frames of a run: some tenths of a second.
const FRAMES: u64 = 500_000;
/// Of one that only begins and ends.
const FEW: u64 = 16;
/// Of one into a file that is slowed down: much more than the buffers hold.
const MANY: u64 = 1_000_000;

/// A ring that a file that is slowed down soon fills, bytes.
const SMALL: usize = 1 << 20;

/// How many captures there are for each stamp.
pub(super) fn runs(is_slow: bool) -> u32 {
    5 + u32::from(is_slow)
}

/// Makes the runs for one stamp, and says after each that it is over.
pub(super) fn calibrate(
    rig: &mut Rig,
    tscap: &Program,
    clock: StampSource,
    mut tell: impl FnMut(),
) -> Result<Probes, LossError> {
    let is_slow = rig.is_slow();
    let mut probe = |size, ring, frames: u64, how| {
        rig.go_on()?;
        let spot = Spot {
            tool: tscap.tool,
            clock,
            size,
            pace: Pace::FlatOut,
            snaplen: 0,
            ring,
        };
        let most = match how {
            How::Held | How::Usual => rig.frames_in_file(size),
            How::Slowly => u64::MAX,
        };
        let burst = Burst::flat_out(size, frames.min(most));
        let run = match how {
            How::Held => rig.capture_held(tscap, &spot, burst),
            How::Usual => rig.capture(tscap, &spot, burst),
            How::Slowly => rig.capture_slowly(tscap, &spot, burst),
        }?;
        tell();
        Ok::<_, LossError>(Probe {
            size,
            ring_bytes: ring as u64,
            run,
        })
    };
    let idle = probe(SHORT, AMPLE, FEW, How::Usual)?;
    let short = probe(SHORT, AMPLE, FRAMES, How::Usual)?;
    let long = probe(LONGEST_FRAME, AMPLE, FRAMES, How::Usual)?;
    let held = probe(SHORT, MIN_RING_BYTES, FRAMES, How::Held)?;
    let small = probe(SHORT, MIN_RING_BYTES, FRAMES, How::Usual)?;
    let slow = match is_slow {
        true => Some(probe(LONGEST_FRAME, SMALL, MANY, How::Slowly)?),
        false => None,
    };
    let receiving = match rig.receives_apart() {
        true => Receiving::Apart,
        false => Receiving::OnSender,
    };
    Ok(Probes {
        receiving,
        converter_shares: rig.converter_shares(),
        idle,
        short,
        long,
        held,
        small,
        slow,
        slow_buffer_bytes: rig.slow_buffer_bytes() as f64,
        send_ns: rig.send_ns(Burst::flat_out(SHORT, FRAMES))?,
    })
}

/// Into what a run is captured.
#[derive(Clone, Copy)]
enum How {
    /// A capture with a file.
    Usual,
    /// One that takes nothing out of its ring meanwhile.
    Held,
    /// One with a file that is slowed down.
    Slowly,
}
