//! Frames a second, as fast as can be, while the sender has its CPU: time in
//! which others had it does not count (neither does it in the duration that the
//! kernel tells of the floor).

use std::time::Duration;

use anyhow::{Context, Result};
use serde::Serialize;
use tscap_document::Table;
use tscap_statistics::Spread;
use tscap_traffic::generator::{Pacing, Sender, Step};

use crate::common::live::Generator;
use crate::common::report::Section;
use crate::common::rounds::{self, Subject};
use crate::common::table::{absent, row, show};
use crate::common::target::Target;
use crate::link::Link;

/// Frame length, bytes.
const SIZE: u32 = 64;
/// Frames of a round by live frames, and through a packet socket, which is slower
/// (both about 0.3 s); in a quick run a third of that.
const FRAMES: [u64; 2] = [2_400_000, 300_000];

/// Least that the native sender must reach, times `sendmmsg`.
const OVER_PACKET: f64 = 6.0;
/// And times the floor, which writes nothing into the frames and reads no clock:
/// it reaches 0.89 to 0.96, and 0.8 where the floor is twice as fast.
const OVER_FLOOR: f64 = 0.7;
/// And in Mpps, where the floor is no lower.
const LEAST_MPPS: f64 = 10.0;

/// The part of the report.
#[derive(Debug, Serialize)]
pub struct FlatOutReport {
    /// Rounds measured.
    pub rounds: u32,
    /// Length of each frame, bytes.
    pub size: u32,
    /// What could not be measured, and why.
    pub absent: Vec<String>,
    /// A program that only redirects, live frames, Mpps.
    pub floor: Spread,
    /// `tscap gen --sender native`, Mpps.
    pub native: Spread,
    /// The same with the TSC in each payload, Mpps.
    pub native_tsc: Option<Spread>,
    /// `tscap gen --sender packet`: `sendmmsg` of 16 frames, Mpps.
    pub packet: Spread,
}

/// Measures.
pub fn measure(link: &Link, rounds: u32, quick: bool) -> Result<FlatOutReport> {
    let [many, few] = FRAMES.map(|frames| if quick { frames / 3 } else { frames });
    let mut floor = Generator::open(link.tx(), link.cpu)?;
    let frame = link.template(SIZE)?.bytes().to_vec();
    let floor = || {
        let sent = link.account_for(many, || floor.send(&frame, u32::try_from(many)?))?;
        Ok(1e3 / sent.ns_per_frame)
    };
    let mut subjects = vec![
        Subject::new("floor", floor),
        subject(link, "native", link.native(SIZE)?, many),
        subject(link, "packet", link.packet()?, few),
    ];
    let mut absent = Vec::new();
    match link.native_with_tsc(SIZE) {
        Ok(sender) => subjects.push(subject(link, "native with TSC", sender, many)),
        Err(error) => absent.push(format!("native with TSC: {error:#}")),
    }
    rounds::run("flat-out", rounds, &mut subjects)?;
    let mut results = subjects.into_iter().map(|it| Spread::of(it.results));
    let mut next = || results.next().context("three subjects");
    Ok(FlatOutReport {
        rounds,
        size: SIZE,
        absent,
        floor: next()?,
        native: next()?,
        packet: next()?,
        native_tsc: next().ok(),
    })
}

fn subject<'a>(
    link: &'a Link,
    name: &'static str,
    mut sender: Sender,
    frames: u64,
) -> Subject<'a, f64> {
    let step = Step {
        size: SIZE,
        pacing: Pacing::FlatOut,
    };
    Subject::new(name, move || {
        let (sent, waited) = link.send(&mut sender, step, frames)?;
        let [first, last] = sent.between.context("no frames were sent")?;
        let took = Duration::from_nanos(last.0 - first.0).saturating_sub(waited);
        Ok(frames as f64 / took.as_secs_f64() / 1e6)
    })
}

impl Section for FlatOutReport {
    fn targets(&self) -> Vec<Target> {
        let over = |other: &Spread| self.native.with(other, |a, b| a / b).median;
        // Something else on the machine slows single rounds of either.
        let over_floor = self.native.max / self.floor.max;
        vec![
            Target::at_least("native / sendmmsg", over(&self.packet), OVER_PACKET),
            Target::at_least("native / floor, best rounds", over_floor, OVER_FLOOR),
            Target::at_least("native, Mpps", self.native.median, LEAST_MPPS).asserted_if(false),
        ]
    }

    fn tables(&self) -> Vec<Table> {
        let rows = [
            ("live frames, bare redirect (the floor)", Some(&self.floor)),
            ("native", Some(&self.native)),
            ("native, TSC in each payload", self.native_tsc.as_ref()),
            ("packet: sendmmsg, 16 frames a call", Some(&self.packet)),
        ];
        let rows = rows.into_iter();
        let rows = rows.filter_map(|(name, mpps)| Some(row(name, [show(mpps?, 2)])));
        let title = format!(
            "flat out, {} bytes, dropped at the other end; rounds: {}",
            self.size, self.rounds
        );
        let table = Table::figures(title, &["", "Mpps"], rows.collect());
        vec![table.notes(absent(&self.absent))]
    }
}
