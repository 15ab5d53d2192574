//! What is realised of a rate.

use anyhow::{Context, Result};
use serde::Serialize;
use tscap_document::Table;
use tscap_statistics::Spread;
use tscap_traffic::generator::{Pacing, Rate, Sender, Step};

use crate::common::report::Section;
use crate::common::rounds::{self, Subject};
use crate::common::table::{row, show};
use crate::common::target::Target;
use crate::link::Link;

/// Frame length, bytes.
pub const SIZE: u32 = 64;
/// 100,000 frames a second.
pub const RATE: Rate = Rate {
    digits: 1,
    exponent: 5,
    is_bits: false,
};
/// Most that the rate may be off, either way, as a part of it.
const MOST_OFF: f64 = 0.001;

/// The part of the report.
#[derive(Debug, Serialize)]
pub struct RateReport {
    /// Rounds measured.
    pub rounds: u32,
    /// Frames a second as asked for.
    pub asked: f64,
    /// Frames of a round.
    pub frames: u64,
    /// One for each sender.
    pub cells: Vec<Cell>,
}

/// One sender.
#[derive(Debug, Serialize)]
pub struct Cell {
    /// Which.
    pub sender: &'static str,
    /// How far the rate was from the one asked for, either way, as a part of it.
    pub off: Spread,
    /// Part of the frames that went out more than a period after their time.
    pub late: Spread,
}

/// Measures.
pub fn measure(link: &Link, rounds: u32, quick: bool) -> Result<RateReport> {
    let period = RATE.period(SIZE).context("no such rate")?;
    let frames = period.frames_in(if quick { 250_000_000 } else { 2_000_000_000 });
    let step = Step {
        size: SIZE,
        pacing: Pacing::Paced(period),
    };
    let subject = |name, mut sender: Sender| {
        Subject::new(name, move || {
            let (sent, _) = link.send(&mut sender, step, frames)?;
            let rate = sent.rate(step.pacing).context("no two frames were sent")?;
            let off = (rate / period.rate() - 1.0).abs();
            Ok((off, sent.late as f64 / frames as f64))
        })
    };
    let mut subjects = [
        subject("native", link.native(SIZE)?),
        subject("packet", link.packet()?),
    ];
    rounds::run("rate", rounds, &mut subjects)?;
    let cells = subjects.map(|subject| {
        let (off, late) = subject.results.into_iter().unzip();
        Cell {
            sender: subject.name,
            off: Spread::of(off),
            late: Spread::of(late),
        }
    });
    Ok(RateReport {
        rounds,
        asked: period.rate(),
        frames,
        cells: cells.into(),
    })
}

impl Section for RateReport {
    fn targets(&self) -> Vec<Target> {
        // Where others want the CPU, the last frame may be a few ms late; a sender
        // that is off its rate is so in every round.
        let target = |cell: &Cell| {
            let name = format!("{}: rate off by, %, best round", cell.sender);
            Target::at_most(name, cell.off.min * 100.0, MOST_OFF * 100.0)
        };
        self.cells.iter().map(target).collect()
    }

    fn tables(&self) -> Vec<Table> {
        let rows = self.cells.iter().map(|cell| {
            let off = show(&cell.off.map(|off| off * 1e6), 2);
            let late = show(&cell.late.map(|late| late * 100.0), 2);
            row(cell.sender, [off, late])
        });
        let title = format!(
            "{} frames a second asked for, {} frames; rounds: {}",
            self.asked, self.frames, self.rounds
        );
        let head = ["", "rate off by, ppm", "late, %"];
        vec![Table::figures(title, &head, rows.collect())]
    }
}
