//! The runs by which costs are found out.

use tscap_common::ring::MIN_RING_BYTES;

use super::bed::{CaptureKind, LossBed};
use super::error::LossError;
use super::fit::{Probe, Probes};
use super::grid::{Arrival, GridPoint, LONGEST_FRAME, Pace};
use super::model::Receiving;
use tscap_clock::StampSource;
use tscap_statistics::median;
use tscap_traffic::generator::{Pacing, Period};
use tscap_traffic::load::{Burst, Program};

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
pub const SLOW_RING: usize = 1 << 20;

/// How many captures there are in a round, for each stamp and arrival.
pub(super) fn runs(is_slow: bool) -> u32 {
    5 + u32::from(is_slow)
}

/// Makes the runs for one stamp and arrival, `rounds` times each, and says after each
/// that it is over. Of each those in the middle are taken: a slow spell of the machine
/// is not one of its stages' costs.
pub(super) fn calibrate(
    bed: &mut LossBed,
    tscap: &Program,
    (clock, arrival): (StampSource, Arrival),
    rounds: u32,
    mut tell: impl FnMut(),
) -> Result<Probes, LossError> {
    let is_slow = bed.is_slow();
    let mut runs: [Vec<Probe>; 6] = Default::default();
    let mut send_ns = Vec::new();
    for _ in 0..rounds.max(1) {
        let mut probe = |size, ring, frames: u64, kind| {
            bed.stop.go_on()?;
            let grid_point = GridPoint {
                tool: tscap.tool,
                clock,
                size,
                pace: Pace::FlatOut,
                snaplen: 0,
                ring,
            };
            let most = match kind {
                CaptureKind::Held | CaptureKind::Usual => bed.frames_in_file(size),
                CaptureKind::Slowly => u64::MAX,
            };
            let burst = as_fast_as_can_be(arrival, size, frames.min(most));
            let run = bed.capture(tscap, &grid_point, burst, kind)?;
            tell();
            Ok::<_, LossError>(Probe {
                size,
                ring_bytes: ring as u64,
                run,
            })
        };
        runs[0].push(probe(SHORT, AMPLE, FEW, CaptureKind::Usual)?);
        runs[1].push(probe(SHORT, AMPLE, FRAMES, CaptureKind::Usual)?);
        runs[2].push(probe(LONGEST_FRAME, AMPLE, FRAMES, CaptureKind::Usual)?);
        runs[3].push(probe(SHORT, MIN_RING_BYTES, FRAMES, CaptureKind::Held)?);
        runs[4].push(probe(SHORT, MIN_RING_BYTES, FRAMES, CaptureKind::Usual)?);
        if is_slow {
            runs[5].push(probe(LONGEST_FRAME, SLOW_RING, MANY, CaptureKind::Slowly)?);
        }
        send_ns.extend(bed.send_ns(as_fast_as_can_be(arrival, SHORT, FRAMES))?);
    }
    let [idle, short, long, held, small, slow] = runs.map(middle);
    let known = |run: Option<Probe>| run.ok_or(LossError::NoCosts);
    Ok(Probes {
        receiving: if bed.receives_apart() {
            Receiving::Apart
        } else {
            Receiving::OnSender
        },
        converter_shares: bed.converter_shares(),
        idle: known(idle)?,
        short: known(short)?,
        long: known(long)?,
        held: known(held)?,
        small: known(small)?,
        slow,
        slow_buffer_bytes: bed.slow_buffer_bytes() as f64,
        send_ns: median(&send_ns),
    })
}

/// The run in the middle by the frames written a second.
fn middle(mut runs: Vec<Probe>) -> Option<Probe> {
    let written = |probe: &Probe| probe.run.written as f64 / probe.run.seconds;
    runs.sort_by(|a, b| written(a).total_cmp(&written(b)));
    let middle = runs.len() / 2;
    runs.into_iter().nth(middle)
}

/// A burst that keeps the sender busy all the time.
fn as_fast_as_can_be(arrival: Arrival, size: u32, frames: u64) -> Burst {
    match arrival {
        Arrival::InBursts => Burst::flat_out(size, frames),
        // Each one is late.
        Arrival::Singly => Burst {
            pacing: Pacing::Paced(Period::LEAST),
            ..Burst::flat_out(size, frames)
        },
    }
}
