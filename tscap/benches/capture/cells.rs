//! What the rounds of one kind of frame gave.

use serde::Serialize;
use tscap_statistics::Spread;
use tscap_traffic::load::{Point, Tool};

use super::amount::Kind;

/// Flat out without a capture, by round.
#[derive(Debug, Default)]
pub struct Bare {
    /// Rate, Mpps.
    pub mpps: Vec<f64>,
    /// CPU time that a frame took to be sent and received, ns.
    pub ns: Vec<f64>,
    /// Rate at which a program took frames that only drops them, Mpps; where that was measured.
    pub dropped_mpps: Vec<f64>,
}

/// The runs of one program.
#[derive(Debug)]
pub struct ToolRuns {
    tool: Tool,
    rates: &'static [f64],
    /// Frames that don't fit the buffer many times over: fewer without loss tell nothing.
    enough: u64,
    /// By round; none is a run that failed.
    pub flat_out: Vec<Option<Point>>,
    /// By round: CPU time that a frame of these took to be sent and received, ns.
    pub ns: Vec<Option<f64>>,
    /// By round: slower ones, where that lost something.
    pub slower: Vec<Vec<Point>>,
    /// By rate, by round.
    pub paced: Vec<Vec<Option<Point>>>,
    /// What failed, and why.
    pub failed: Vec<String>,
}

impl ToolRuns {
    /// Nothing yet.
    pub fn new(tool: Tool, rates: &'static [f64], enough: u64) -> Self {
        Self {
            tool,
            rates,
            enough,
            flat_out: Vec::new(),
            ns: Vec::new(),
            slower: Vec::new(),
            paced: vec![Vec::new(); rates.len()],
            failed: Vec::new(),
        }
    }

    /// Highest rate of the latest round's runs at set rates that lost nothing, Mpps; 0
    /// if there was none.
    pub fn lossless_at_set_rates(&self) -> f64 {
        let latest = self.paced.iter().filter_map(|points| points.last());
        self.fastest_lossless(latest.flatten()).map_or(0.0, mpps)
    }

    /// By round, the run of the highest rate of those that lost nothing.
    fn lossless(&self) -> Vec<Option<&Point>> {
        let rounds = self.flat_out.iter().zip(&self.slower).enumerate();
        let rounds = rounds.map(|(round, (flat_out, slower))| {
            let paced = self.paced.iter().filter_map(|points| points.get(round));
            self.fastest_lossless(paced.chain([flat_out]).flatten().chain(slower))
        });
        rounds.collect()
    }

    fn fastest_lossless<'a>(&self, runs: impl Iterator<Item = &'a Point>) -> Option<&'a Point> {
        let lossless = runs.filter(|it| it.lost.total() == 0 && it.sent >= self.enough);
        lossless.max_by(|a, b| a.rate.total_cmp(&b.rate))
    }
}

fn mpps(point: &Point) -> f64 {
    point.rate / 1e6
}

/// A kind of frame.
#[derive(Debug, Serialize)]
pub struct KindReport {
    /// The part that it is in, if it is not the only one of its kind.
    #[serde(skip)]
    pub part: Option<&'static str>,
    /// Which.
    pub kind: Kind,
    /// Frames in a run flat out.
    pub frames: u64,
    /// Rate flat out without a capture, Mpps.
    pub bare_mpps: Spread,
    /// CPU time on the sender's CPU, where frames are received too, for a frame flat
    /// out without a capture, ns.
    pub bare_ns: Spread,
    /// Rate flat out where a program takes frames that only drops them, Mpps; null where that was
    /// not measured.
    pub dropped_mpps: Option<Spread>,
    /// By program.
    pub tools: Vec<ToolCells>,
}

/// A program on frames of a kind.
#[derive(Debug, Serialize)]
pub struct ToolCells {
    /// Which.
    pub tool: Tool,
    /// As fast as frames could be sent.
    pub flat_out: Cell,
    /// Flat out, what a frame took of the sender's CPU more than without a capture, ns:
    /// the cost of the receiving side.
    pub receive_ns: Spread,
    /// Highest rate without loss that was found, Mpps; 0 in a round without one.
    pub lossless_mpps: Spread,
    /// The runs at these rates.
    pub lossless: Cell,
    /// At set rates.
    pub paced: Vec<Cell>,
    /// Runs that failed, and why.
    pub failed: Vec<String>,
}

/// Runs with the same load.
#[derive(Debug, Serialize)]
pub struct Cell {
    /// Rate asked for, frames a second; null is flat out.
    pub asked: Option<f64>,
    /// Rate that came about, Mpps.
    pub mpps: Spread,
    /// Frames lost, per cent.
    pub loss_percent: Spread,
    /// CPU time of the program for a million frames sent, s.
    pub cpu_s: Spread,
    /// CPU time of the program for a GB of its file, s.
    pub cpu_s_a_gb: Spread,
    /// Bytes of its file in a second of sending, GB/s.
    pub file_gb_s: Spread,
    /// What the page cache held of its file at the end, MiB.
    pub cached_mib: Spread,
    /// The runs.
    pub points: Vec<Point>,
}

impl Cell {
    fn new(asked: Option<f64>, points: Vec<Option<Point>>) -> Self {
        let points: Vec<_> = points.into_iter().flatten().collect();
        let spread = |of: fn(&Point) -> f64| Spread::of(points.iter().map(of).collect());
        let cached = points.iter().filter_map(|point| point.cached_bytes);
        let cached = cached.map(|bytes| bytes as f64 / f64::from(1 << 20));
        Self {
            asked,
            mpps: spread(mpps),
            loss_percent: spread(|point| point.loss() * 100.0),
            cpu_s: spread(Point::cpu_s_per_million),
            cpu_s_a_gb: spread(|point| point.cpu_s / (point.file_bytes as f64 / 1e9)),
            file_gb_s: spread(|point| point.file_bytes as f64 / 1e9 / point.seconds),
            cached_mib: Spread::of(cached.collect()),
            points,
        }
    }
}

impl KindReport {
    /// Sums up the rounds.
    pub fn new(kind: Kind, frames: u64, bare: Bare, taken: Vec<ToolRuns>) -> Self {
        let tools = taken
            .into_iter()
            .map(|taken| ToolCells::new(taken, &bare.ns));
        let dropped = Some(bare.dropped_mpps).filter(|rounds| !rounds.is_empty());
        Self {
            part: None,
            kind,
            frames,
            tools: tools.collect(),
            dropped_mpps: dropped.map(Spread::of),
            bare_mpps: Spread::of(bare.mpps),
            bare_ns: Spread::of(bare.ns),
        }
    }

    /// Part and kind, for people.
    pub fn name(&self) -> String {
        let part = self.part.map(|part| format!("{part}, "));
        part.unwrap_or_default() + &self.kind.name()
    }

    /// One of the programs.
    pub fn of(&self, tool: Tool) -> Option<&ToolCells> {
        self.tools.iter().find(|cells| cells.tool == tool)
    }
}

impl ToolCells {
    fn new(taken: ToolRuns, bare_ns: &[f64]) -> Self {
        let lossless: Vec<_> = taken
            .lossless()
            .into_iter()
            .map(Option::<&Point>::cloned)
            .collect();
        let lossless_mpps = lossless.iter().map(|run| run.as_ref().map_or(0.0, mpps));
        let lossless_mpps = Spread::of(lossless_mpps.collect());
        let more = taken.ns.iter().zip(bare_ns);
        let more = more.filter_map(|(ns, bare)| Some((*ns)? - bare));
        let paced = taken.paced.into_iter().zip(taken.rates);
        Self {
            tool: taken.tool,
            receive_ns: Spread::of(more.collect()),
            lossless_mpps,
            lossless: Cell::new(None, lossless),
            flat_out: Cell::new(None, taken.flat_out),
            paced: paced
                .map(|(points, rate)| Cell::new(Some(*rate), points))
                .collect(),
            failed: taken.failed,
        }
    }

    /// All its cells.
    pub fn cells(&self) -> impl Iterator<Item = &Cell> {
        self.paced.iter().chain([&self.flat_out])
    }
}
