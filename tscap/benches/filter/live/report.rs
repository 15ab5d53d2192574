//! What the captures cost, and what is wanted of them.

use serde::Serialize;
use tscap_document::Table;
use tscap_statistics::Spread;
use tscap_traffic::load::Point;

use super::TOOLS;
use crate::common::report::Section;
use crate::common::table::{row, show};
use crate::common::target::Target;

/// tcpdump's receiving side over tscap's, at least.
const RATIO: f64 = 3.0;

/// An expression, and what it does to all frames.
#[derive(Debug)]
pub struct Case {
    name: &'static str,
    /// Whether it accepts them, or else rejects.
    pub accepts: bool,
    /// The expression.
    pub expression: String,
    /// By round.
    pub turns: Vec<RoundResult>,
}

/// What a round gave.
#[derive(Debug)]
pub struct RoundResult {
    /// CPU time that a frame took to be sent and received without a capture, ns.
    pub bare_ns: f64,
    /// By program.
    pub runs: [Run; TOOLS.len()],
}

/// A run.
#[derive(Debug)]
pub struct Run {
    /// CPU time that a frame took to be sent and received, ns.
    pub ns: f64,
    /// Where the frames went.
    pub point: Point,
}

impl Case {
    /// Not measured yet.
    pub fn new(name: &'static str, accepts: bool, expression: String) -> Self {
        Self {
            name,
            accepts,
            expression,
            turns: Vec::new(),
        }
    }

    /// For people.
    pub fn title(&self) -> String {
        let what = if self.accepts {
            "accepting"
        } else {
            "rejecting"
        };
        format!("{}, {what}", self.name)
    }
}

/// The part of the report.
#[derive(Debug, Serialize)]
pub struct LiveReport {
    #[serde(skip)]
    cpu: usize,
    /// Rounds measured.
    rounds: usize,
    /// Frames in a run.
    frames: u64,
    /// Versions of the programs.
    versions: Vec<String>,
    /// What a frame takes of the receiving side with an empty XDP program, ns.
    empty_ns: Spread,
    /// The same with an empty XDP program that takes a stamp, ns.
    stamp_ns: Spread,
    /// By expression.
    cases: Vec<Costs>,
}

/// Both programs with one expression.
#[derive(Debug, Serialize)]
struct Costs {
    name: String,
    accepts: bool,
    /// CPU time on the sender's CPU, where frames are received too, for a frame without a
    /// capture, ns.
    bare_ns: Spread,
    /// What a frame took more than without a capture, ns, by program.
    receive_ns: [Spread; TOOLS.len()],
    /// CPU time of the program itself for a frame, ns.
    program_ns: [Spread; TOOLS.len()],
    /// Frames lost, per cent.
    loss_percent: [Spread; TOOLS.len()],
    /// The median of tcpdump's `receive_ns` over that of tscap's, if both are costs.
    ratio: Option<f64>,
    /// Whether tcpdump filtered by itself: the kernel refused the filter.
    tcpdump_in_user_space: bool,
    /// The runs, by round, by program.
    points: Vec<[Point; TOOLS.len()]>,
}

impl LiveReport {
    /// Sums up the rounds.
    pub fn new(
        cpu: usize,
        frames: u64,
        versions: Vec<String>,
        floors: &[[f64; 2]],
        cases: Vec<Case>,
    ) -> Self {
        let floor = |index: usize| Spread::of(floors.iter().map(|it| it[index]).collect());
        let rounds = cases.iter().map(|case| case.turns.len());
        Self {
            cpu,
            rounds: rounds.max().unwrap_or(0),
            frames,
            versions,
            empty_ns: floor(0),
            stamp_ns: floor(1),
            cases: cases.into_iter().map(Costs::new).collect(),
        }
    }
}

impl Costs {
    fn new(case: Case) -> Self {
        let name = case.title();
        let turns = case.turns;
        let of = |figure: fn(&Run, &RoundResult) -> f64| {
            [0, 1].map(|tool| {
                let rounds = turns.iter().map(|turn| figure(&turn.runs[tool], turn));
                Spread::of(rounds.collect())
            })
        };
        let receive_ns = of(|run, turn| run.ns - turn.bare_ns);
        let [ours, theirs] = &receive_ns;
        let are_costs = ours.median > 0.0 && theirs.median > 0.0;
        // What the kernel rejects for tcpdump never reaches its socket.
        let reached = |turn: &RoundResult| turn.runs[1].point.seen > 0;
        Self {
            name,
            accepts: case.accepts,
            bare_ns: Spread::of(turns.iter().map(|turn| turn.bare_ns).collect()),
            ratio: are_costs.then(|| theirs.median / ours.median),
            program_ns: of(|run, _| run.point.cpu_s_per_million() * 1e3),
            loss_percent: of(|run, _| run.point.loss() * 100.0),
            tcpdump_in_user_space: !case.accepts && turns.iter().any(reached),
            points: turns
                .into_iter()
                .map(|turn| turn.runs.map(|run| run.point))
                .collect(),
            receive_ns,
        }
    }
}

impl Section for LiveReport {
    fn targets(&self) -> Vec<Target> {
        let ratios = self
            .cases
            .iter()
            .filter_map(|case| Some((case, case.ratio?)));
        let ratios = ratios.map(|(case, ratio)| {
            let name = format!("{}: receive, tcpdump / tscap", case.name);
            Target::at_least(name, ratio, RATIO).asserted_if(false)
        });
        ratios.collect()
    }

    fn tables(&self) -> Vec<Table> {
        let title = format!(
            "live frames of 64 B, {} flat out over a veth pair, sender and receiving side on CPU {}; \
             rounds: {}",
            self.frames, self.cpu, self.rounds
        );
        let head = [
            "",
            "no capture, ns",
            "receive ns, tscap",
            "tcpdump",
            "ratio",
            "program's CPU ns, tscap",
            "tcpdump",
            "lost %, tscap",
            "tcpdump",
        ];
        let rows = self.cases.iter().map(|case| {
            let ratio = case
                .ratio
                .map_or("–".to_owned(), |ratio| format!("{ratio:.1}"));
            let [receive, program] = [&case.receive_ns, &case.program_ns]
                .map(|spreads| spreads.each_ref().map(|spread| show(spread, 0)));
            let lost = case.loss_percent.each_ref().map(|spread| show(spread, 1));
            let figures = [show(&case.bare_ns, 0)]
                .into_iter()
                .chain(receive)
                .chain([ratio])
                .chain(program)
                .chain(lost);
            row(case.name.clone(), figures)
        });
        let in_user_space = self.cases.iter().filter(|case| case.tcpdump_in_user_space);
        let in_user_space = in_user_space.map(|case| {
            format!(
                "{}: the kernel refused tcpdump's filter, which filtered in user space",
                case.name
            )
        });
        let notes = [
            format!(
                "receive ns of an empty XDP program {}, with a stamp {}",
                show(&self.empty_ns, 0),
                show(&self.stamp_ns, 0)
            ),
            self.versions.join("; "),
            "receive: what a frame takes of the sender's CPU more than without a capture"
                .to_owned(),
        ];
        let table = Table::figures(title, &head, rows.collect());
        vec![table.notes(notes.into_iter().chain(in_user_space))]
    }
}
