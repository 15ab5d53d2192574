//! What one converter takes of many queues, and what two take beside each other.
//!
//! Rings are filled in bursts as long as a NAPI poll, with more than the last level of cache
//! holds, and drained into an output that discards. Two converters have half of the rings
//! each, on a CPU each, and drain at the same time.

use std::sync::Barrier;

use anyhow::{Context, Result, anyhow};
use serde::Serialize;
use tscap_document::Table;
use tscap_statistics::Spread;
use tscap_testkit::process::on_cpu;

use crate::common::report::Section;
use crate::common::table::{row, show};
use crate::common::target::Target;
use crate::measure::{NAPI_POLL, Traffic, round};

/// Numbers of rings.
const RINGS: [u32; 4] = [2, 8, 16, 64];
/// Length of the frames, bytes, and how many are in the rings at each drain: some 50 MB.
const SIZES: [(usize, usize); 3] = [(64, 1 << 19), (256, 1 << 17), (1500, 1 << 15)];
/// What comes in all, Mpps.
const OFFERED: [f64; 3] = [10.0, 20.0, 40.0];

/// Rings with frames of one size.
#[derive(Debug, Serialize)]
pub struct Cell {
    /// Number of rings.
    pub rings: u32,
    /// Length of the frames, bytes.
    pub size: usize,
    /// CPU time of one converter for a frame, ns.
    pub one_ns: Spread,
    /// The same of each of two that drain at the same time.
    pub two_ns: Spread,
}

impl Cell {
    /// Mpps that a converter of so many takes.
    fn each_takes(&self, writers: u32) -> f64 {
        let ns = if writers == 1 {
            &self.one_ns
        } else {
            &self.two_ns
        };
        1e3 / ns.median
    }

    /// Converters that so many Mpps take: each of several as much as each of two.
    fn needed(&self, mpps: f64) -> u32 {
        if mpps <= self.each_takes(1) {
            1
        } else {
            ((mpps / self.each_takes(2)).ceil() as u32).max(2)
        }
    }
}

/// Everything that was found.
#[derive(Debug, Serialize)]
pub struct Queues {
    rounds: u32,
    queues: Vec<Cell>,
}

impl Section for Queues {
    fn targets(&self) -> Vec<Target> {
        Vec::new()
    }

    fn tables(&self) -> Vec<Table> {
        let title = format!(
            "many queues, output discarded, converters by the frames that come in; rounds: {}",
            self.rounds
        );
        let rows = self.queues.iter().map(|cell| {
            let needed = OFFERED.map(|mpps| cell.needed(mpps).to_string());
            let takes = [
                show(&cell.one_ns, 1),
                format!("{:.0}", cell.each_takes(1)),
                show(&cell.two_ns, 1),
                format!("{:.0}", 2.0 * cell.each_takes(2)),
            ];
            let name = format!("{} rings, {} B", cell.rings, cell.size);
            row(name, takes.into_iter().chain(needed))
        });
        let head = [
            "",
            "one, ns a frame",
            "takes, Mpps",
            "each of two, ns",
            "take, Mpps",
            "for 10 Mpps",
            "for 20",
            "for 40",
        ];
        vec![Table::figures(title, &head, rows.collect())]
    }
}

/// Measures on two CPUs.
pub fn all(rounds: u32, cpus: [usize; 2]) -> Result<Queues> {
    let mut queues = Vec::new();
    for (size, frames) in SIZES {
        for rings in RINGS {
            eprintln!("{rings} rings, frames of {size} bytes");
            let (mut one_ns, mut two_ns) = (Vec::new(), Vec::new());
            for _ in 0..rounds {
                let alone = on_cpu(cpus[0], || drained(rings, size, frames, &Barrier::new(1)));
                one_ns.push(alone?);
                two_ns.extend(beside_each_other(rings / 2, size, frames / 2, cpus)?);
            }
            queues.push(Cell {
                rings,
                size,
                one_ns: Spread::of(one_ns),
                two_ns: Spread::of(two_ns),
            });
        }
    }
    Ok(Queues { rounds, queues })
}

/// CPU time of each of two converters for a frame, ns.
fn beside_each_other(rings: u32, size: usize, frames: usize, cpus: [usize; 2]) -> Result<Vec<f64>> {
    let together = Barrier::new(2);
    let both = std::thread::scope(|scope| {
        let threads = cpus.map(|cpu| {
            let together = &together;
            scope.spawn(move || on_cpu(cpu, || drained(rings, size, frames, together)))
        });
        threads.map(|thread| thread.join())
    });
    let both = both.into_iter().map(|ns| {
        let ns = ns.map_err(|_| anyhow!("a converter panicked"))?;
        ns.context("one of two converters")
    });
    both.collect()
}

fn drained(rings: u32, size: usize, frames: usize, together: &Barrier) -> Result<f64> {
    let traffic = Traffic {
        size,
        frames,
        drains: 4,
        burst: NAPI_POLL,
    };
    round(rings, traffic, || {
        together.wait();
    })
}
