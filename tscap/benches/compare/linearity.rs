//! Whether each read more on a frame adds what one read costs by unrolled calls.

use anyhow::{Context, Result};
use serde::Serialize;
use tscap_clock::{StampPath, StampSource, TscPath};
use tscap_document::Table;
use tscap_lab::compare::Amount;
use tscap_statistics::{Spread, least_squares};

use crate::bed::{Between, TestBed};
use crate::common::report::Section;
use crate::common::rounds::{self, Subject};
use crate::common::table::{absent, row, show};
use crate::common::target::Target;

/// Reads besides the one.
const MORE_READS: [u32; 4] = [1, 2, 4, 8];
/// Most that the slope may be off one unrolled read, as a part of it.
const SLOPE_OFF: f64 = 0.10;
/// Most that the cost of the one read may be.
const ONE_OFF: f64 = 0.25;

/// The part of the report.
#[derive(Debug, Serialize)]
pub struct LinearityReport {
    /// Rounds measured.
    pub rounds: u32,
    /// Frames of each program in each round.
    pub frames: u32,
    /// What could not be measured, and why.
    pub absent: Vec<String>,
    /// One for each clock.
    pub lines: Vec<Line>,
}

/// One clock.
#[derive(Debug, Serialize)]
pub struct Line {
    /// Which.
    pub source: StampSource,
    /// One read by unrolled calls, ns.
    pub read_ns: Spread,
    /// One read on a frame, ns.
    pub frame_ns: Spread,
    /// Reads besides, and what they all cost together on a frame, ns.
    pub more_ns: Vec<(u32, Spread)>,
    /// Slope of the straight line through these, by round, ns a read.
    pub slope_ns: Spread,
    /// Most that one of their medians is off the line, in reads.
    pub bend: f64,
}

/// Measures.
pub fn measure(bed: &TestBed, amount: &Amount) -> Result<LinearityReport> {
    let mut report = LinearityReport {
        rounds: amount.rounds,
        frames: amount.frames,
        absent: Vec::new(),
        lines: Vec::new(),
    };
    for source in [
        StampPath::Ktime,
        StampPath::Tai,
        StampPath::Tsc(TscPath::Perf),
    ] {
        match subjects(bed, source, amount.frames) {
            Ok(subjects) => report.lines.push(line(source, subjects, amount.rounds)?),
            Err(error) => report.absent.push(format!("{}: {error:#}", source.name())),
        }
    }
    Ok(report)
}

/// The unrolled reads, the floor, one read, and more reads.
fn subjects(bed: &TestBed, source: StampPath, frames: u32) -> Result<Vec<Subject<'_, f64>>> {
    let read = Between {
        stamp: Some(source),
        ..Between::default()
    };
    let unrolled = bed.load(read)?;
    let unrolled = move || Ok(unrolled.read_ns(source)?);
    let mut subjects = vec![
        Subject::new("unrolled", unrolled),
        bed.subject("floor", Between::default(), frames)?,
        bed.subject("read", read, frames)?,
    ];
    for more_reads in MORE_READS {
        let reads = Between { more_reads, ..read };
        subjects.push(bed.subject("reads", reads, frames)?);
    }
    Ok(subjects)
}

fn line(path: StampPath, mut subjects: Vec<Subject<'_, f64>>, rounds: u32) -> Result<Line> {
    let name = format!("reads of {}", path.name());
    rounds::run(&name, rounds, &mut subjects)?;
    let mut results = subjects.into_iter().map(|it| Spread::of(it.results));
    let mut next = || results.next().context("three subjects and more");
    let (read_ns, floor, frame) = (next()?, next()?, next()?);
    let less_floor = |cost: &Spread| cost.with(&floor, |cost, floor| cost - floor);
    let more_ns: Vec<_> = MORE_READS
        .into_iter()
        .zip(results.map(|cost| less_floor(&cost)))
        .collect();
    let of_round = |round| {
        let points = more_ns.iter();
        let points = points.map(|(reads, cost)| (f64::from(*reads), cost.rounds[round]));
        least_squares(&points.collect::<Vec<_>>()).0
    };
    let medians = more_ns.iter();
    let medians = medians.map(|(reads, cost)| (f64::from(*reads), cost.median));
    let medians: Vec<_> = medians.collect();
    let (slope, at_none) = least_squares(&medians);
    let off = medians.iter();
    let off = off.map(|(reads, cost)| (cost - at_none - slope * reads).abs() / slope);
    Ok(Line {
        source: path.source(),
        frame_ns: less_floor(&frame),
        slope_ns: Spread::of((0..read_ns.rounds.len()).map(of_round).collect()),
        bend: off.fold(0.0, f64::max),
        more_ns,
        read_ns,
    })
}

impl Section for LinearityReport {
    /// Held to them is `ktime`.
    fn targets(&self) -> Vec<Target> {
        self.lines.iter().flat_map(Line::targets).collect()
    }

    fn tables(&self) -> Vec<Table> {
        let rows = self.lines.iter().map(|line| {
            let figures = [&line.read_ns, &line.frame_ns, &line.slope_ns];
            let figures = figures.map(|figure| show(figure, 1)).into_iter();
            let bend = format!("{:.2} reads", line.bend);
            row(line.source.name(), figures.chain([bend]))
        });
        let title = format!(
            "reads on a frame, ns; rounds of {} frames: {}",
            self.frames, self.rounds
        );
        let head = [
            "",
            "unrolled",
            "one on a frame",
            "each more",
            "off the line",
        ];
        vec![Table::figures(title, &head, rows.collect()).notes(absent(&self.absent))]
    }
}

impl Line {
    fn targets(&self) -> [Target; 2] {
        let target = |what, figure: &Spread, most: f64| {
            let name = format!("{}: {what} / unrolled, off by %", self.source.name());
            let off = (figure.median / self.read_ns.median - 1.0).abs() * 100.0;
            Target::at_most(name, off, most * 100.0).asserted_if(self.source == StampSource::Ktime)
        };
        [
            target("a read more", &self.slope_ns, SLOPE_OFF),
            target("one read", &self.frame_ns, ONE_OFF),
        ]
    }
}
