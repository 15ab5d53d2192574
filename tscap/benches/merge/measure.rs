//! The measurement: rings filled in one pattern, and drained.

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use tscap_clock::{RawStamp, StampPath};
use tscap_common::block::block_len;
use tscap_common::ring::MIN_RING_BYTES;
use tscap_document::Table;
use tscap_engine::Output;
use tscap_statistics::Spread;

use crate::common::converter::{Discard, Filled, SLOT};
use crate::common::report::Section;
use crate::common::table::{row, show};
use crate::common::target::Target;

/// Frame length, bytes.
const SIZE: usize = 64;
/// Numbers of rings, with the most that the best round should be, ns a frame.
const RINGS: [(u32, Option<f64>); 4] = [(1, None), (2, Some(40.0)), (8, None), (64, Some(60.0))];
/// Most that the best round may be, of that of one ring in the same run: machines differ, and
/// a busy one slows every other round.
const OVER_ONE_RING: f64 = 15.0;
/// Frames in the rings at each drain, with the drains that make a round: 0.4 MB of
/// blocks and 50 MB.
const AMOUNTS: [(usize, u32); 2] = [(4096, 32), (1 << 19, 1)];
/// Frames one behind the other on one CPU: one, or as many as a NAPI poll takes
/// (`NAPI_POLL_WEIGHT`, include/linux/netdevice.h).
const BURSTS: [usize; 2] = [1, NAPI_POLL];
/// As many as a NAPI poll takes.
pub const NAPI_POLL: usize = 64;
/// Between two stamps, ns. Short, so that no stamp is in the future.
const GAP_NS: u64 = 100;
/// How long before the measurement the stamps begin, ns.
const AGO_NS: u64 = 1_000_000_000;

/// One kind of traffic.
#[derive(Debug, Serialize)]
pub struct Cell {
    /// Number of rings with frames.
    pub rings: u32,
    /// Frames in them at each drain.
    pub frames: usize,
    /// Frames in a row from one ring.
    pub burst: usize,
    /// CPU time, ns a frame.
    pub ns: Spread,
    /// Most that the best round should be, ns.
    pub target_ns: Option<f64>,
    /// The best round, of that of one ring.
    pub over_one_ring: f64,
}

/// Everything that was found.
#[derive(Debug, Serialize)]
pub struct Merged {
    /// Rounds measured.
    rounds: u32,
    /// One for each number of rings, amount and pattern.
    cells: Vec<Cell>,
}

impl Cell {
    fn name(&self) -> String {
        let Self {
            rings,
            frames,
            burst,
            ..
        } = self;
        format!("{rings} rings, {frames} frames, bursts of {burst}")
    }
}

impl Section for Merged {
    fn targets(&self) -> Vec<Target> {
        let costs = self.cells.iter().filter_map(|cell| {
            let name = format!("{}: ns, best round", cell.name());
            let target = Target::at_most(name, cell.ns.min, cell.target_ns?);
            Some(target.asserted_if(false))
        });
        let over = |a: &&Cell, b: &&Cell| a.over_one_ring.total_cmp(&b.over_one_ring);
        let worst = self.cells.iter().max_by(over).map(|cell| {
            let name = format!("{}: times one ring, the most", cell.name());
            Target::at_most(name, cell.over_one_ring, OVER_ONE_RING)
        });
        costs.chain(worst).collect()
    }

    fn tables(&self) -> Vec<Table> {
        let rows = self.cells.iter().map(|cell| {
            let times = format!("{:.1}", cell.over_one_ring);
            row(cell.name(), [show(&cell.ns, 1), times])
        });
        let title = format!(
            "converter, 64-byte frames, CPU ns a frame, output discarded; rounds: {}",
            self.rounds
        );
        vec![Table::figures(
            title,
            &["", "ns", "times one ring"],
            rows.collect(),
        )]
    }
}

/// Measures on the CPU to which the caller is pinned.
pub fn all(rounds: u32) -> Result<Merged> {
    let mut cells: Vec<Cell> = Vec::new();
    for (frames, drains) in AMOUNTS {
        for (rings, target_ns) in RINGS {
            for burst in BURSTS {
                eprintln!("{rings} rings, {frames} frames, bursts of {burst}");
                let traffic = Traffic {
                    size: SIZE,
                    frames,
                    drains,
                    burst,
                };
                let one = || round(rings, traffic, || {});
                let results: Result<_> = (0..rounds).map(|_| one()).collect();
                let results = results.with_context(|| format!("{rings} rings"))?;
                let ns = Spread::of(results);
                let one_ring = cells
                    .iter()
                    .find(|cell| (cell.rings, cell.frames, cell.burst) == (1, frames, burst));
                let over_one_ring = one_ring.map_or(1.0, |one_ring| ns.min / one_ring.ns.min);
                cells.push(Cell {
                    rings,
                    frames,
                    burst,
                    ns,
                    target_ns,
                    over_one_ring,
                });
            }
        }
    }
    Ok(Merged { rounds, cells })
}

/// What is in the rings.
#[derive(Clone, Copy, Debug)]
pub struct Traffic {
    /// Frame length, bytes.
    pub size: usize,
    /// Frames in the rings at each drain.
    pub frames: usize,
    /// Drains that make a round.
    pub drains: u32,
    /// Frames in a row from one ring.
    pub burst: usize,
}

/// One round: CPU time in ns a frame. Each drain comes after `ready`.
pub fn round(rings: u32, traffic: Traffic, ready: impl Fn()) -> Result<f64> {
    let Traffic {
        size,
        frames,
        drains,
        burst,
    } = traffic;
    // Twice as much as an even share: the shares are random.
    let share = 2 * (frames / rings as usize).max(burst) * block_len(size, 0);
    let ring_bytes = share.next_power_of_two().max(MIN_RING_BYTES);
    let mut filled = Filled::new(StampPath::Ktime, rings, ring_bytes, Output::stream(Discard))?;
    let mut stamp = filled.now.0 - AGO_NS;
    // The same traffic in each round.
    let mut random = 42;
    let mut taken = 0.0;
    for _ in 0..drains {
        fill(&mut filled, traffic, &mut stamp, &mut random)?;
        ready();
        taken += filled.drain(frames as u64)?;
    }
    Ok(taken / (frames as f64 * f64::from(drains)))
}

fn fill(filled: &mut Filled, traffic: Traffic, stamp: &mut u64, random: &mut u64) -> Result<()> {
    let frame = vec![0xa5; traffic.size];
    let count = filled.producers.len();
    for number in 0..traffic.frames {
        if number % traffic.burst == 0 {
            *random = next_random(*random);
        }
        *stamp += GAP_NS;
        let producer = &mut filled.producers[(*random >> 33) as usize % count];
        ensure!(
            producer.push(SLOT, RawStamp(*stamp), &frame),
            "a ring is full"
        );
    }
    Ok(())
}

/// A linear congruential generator (Knuth's MMIX); its upper bits are random.
fn next_random(state: u64) -> u64 {
    state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407)
}
