//! What the programs cost, and what is wanted of them.

use serde::Serialize;
use tscap_document::Table;
use tscap_statistics::Spread;

use crate::common::report::Section;
use crate::common::table::{row, show};
use crate::common::target::Target;

/// Most that a rejected short frame may cost more than an empty program with the
/// stamp, ns.
const REJECTED_NS: f64 = 15.0;
const SHORT_FRAME: usize = 64;
/// Longer expressions are not shown.
const SHORT_EXPRESSION: usize = 40;
/// The best round of that on a busy machine.
const SURELY_REJECTED_NS: f64 = 45.0;

/// The part of the report.
#[derive(Debug, Serialize)]
pub struct ProgramReport {
    /// The CPU on which the programs ran.
    #[serde(skip)]
    pub cpu: usize,
    /// Rounds measured.
    pub rounds: u32,
    /// The filters, compiled.
    pub filters: Vec<Compiled>,
    /// One for each length of frames.
    pub cells: Vec<Cell>,
}

/// A filter, compiled.
#[derive(Debug, Serialize)]
pub struct Compiled {
    /// What it is called here.
    pub name: &'static str,
    /// As it was written.
    #[serde(skip)]
    pub expression: String,
    /// Instructions of classic BPF.
    pub classic: usize,
    /// Instructions of eBPF that are put into the program.
    pub ebpf: usize,
    /// Time that the program with it took to be verified and loaded, maps included, ms.
    pub load_ms: f64,
}

/// All programs on frames of one length.
#[derive(Debug, Serialize)]
pub struct Cell {
    /// Length of the frames, bytes.
    pub size: usize,
    /// An empty program, ns a frame.
    pub empty_ns: Spread,
    /// An empty program that takes a stamp, ns a frame.
    pub stamp_ns: Spread,
    /// The capture without a filter, ns a frame.
    pub unfiltered_ns: Spread,
    /// By filter.
    pub filtered: Vec<Filtered>,
}

/// The capture with a filter.
#[derive(Debug, Serialize)]
pub struct Filtered {
    /// What the filter is called here.
    pub name: &'static str,
    /// A frame that it rejects, ns.
    pub rejected_ns: Spread,
    /// The same less the empty program with a stamp, ns.
    pub rejected_more_ns: Spread,
    /// A frame that it accepts, ns.
    pub accepted_ns: Spread,
    /// The same less the capture without a filter, ns.
    pub accepted_more_ns: Spread,
}

impl Cell {
    /// Of an empty program, one with a stamp, the capture without a filter, and with each
    /// of the filters on a frame that it rejects and one that it accepts.
    pub fn new(size: usize, filters: &[Compiled], costs: &[Spread]) -> Self {
        let [empty_ns, stamp_ns, unfiltered_ns, filtered @ ..] = costs else {
            panic!("three programs without a filter");
        };
        let more = |cost: &Spread, than: &Spread| cost.with(than, |cost, than| cost - than);
        let filtered = filters.iter().zip(filtered.chunks_exact(2));
        let filtered = filtered.map(|(filter, costs)| Filtered {
            name: filter.name,
            rejected_more_ns: more(&costs[0], stamp_ns),
            rejected_ns: costs[0].clone(),
            accepted_more_ns: more(&costs[1], unfiltered_ns),
            accepted_ns: costs[1].clone(),
        });
        Self {
            size,
            filtered: filtered.collect(),
            empty_ns: empty_ns.clone(),
            stamp_ns: stamp_ns.clone(),
            unfiltered_ns: unfiltered_ns.clone(),
        }
    }
}

impl Section for ProgramReport {
    fn targets(&self) -> Vec<Target> {
        let short = self.cells.iter().filter(|cell| cell.size == SHORT_FRAME);
        let filtered = short.flat_map(|cell| self.filters.iter().zip(&cell.filtered));
        let targets = filtered.flat_map(|(filter, filtered)| {
            let more = &filtered.rejected_more_ns;
            let name = format!("{SHORT_FRAME} B rejected by {}: ns more", filter.name);
            let best = format!("{name}, best round");
            [
                Target::at_most(name, more.median, REJECTED_NS).asserted_if(false),
                Target::at_most(best, more.min, SURELY_REJECTED_NS),
            ]
        });
        targets.collect()
    }

    fn tables(&self) -> Vec<Table> {
        let title = format!(
            "XDP programs, ns a frame, BPF_PROG_TEST_RUN on CPU {}; rounds: {}",
            self.cpu, self.rounds
        );
        let head = [
            "",
            "rejected",
            "more than stamp",
            "accepted",
            "more than no filter",
        ];
        let costs = Table::figures(
            title,
            &head,
            self.cells.iter().flat_map(Cell::rows).collect(),
        );
        let once = self.filters.iter().map(|it| {
            let figures = [it.classic.to_string(), it.ebpf.to_string()];
            row(
                it.name,
                figures.into_iter().chain([format!("{:.1}", it.load_ms)]),
            )
        });
        let head = ["", "classic BPF", "eBPF", "ms to load"];
        let once = Table::figures("instructions of the filters", &head, once.collect());
        let examples = self.filters.iter();
        let examples = examples.filter(|it| it.expression.len() < SHORT_EXPRESSION);
        let examples = examples.map(|it| format!("{}: {}", it.name, it.expression));
        vec![costs, once.notes(examples)]
    }
}

impl Cell {
    fn rows(&self) -> Vec<Vec<String>> {
        let name = |what: &str| format!("{} B, {what}", self.size);
        let none = String::new;
        let mut rows = vec![
            row(name("empty program"), [show(&self.empty_ns, 1)]),
            row(name("with a stamp"), [show(&self.stamp_ns, 1)]),
            row(
                name("capture, no filter"),
                [none(), none(), show(&self.unfiltered_ns, 1)],
            ),
        ];
        rows.extend(self.filtered.iter().map(|it| {
            let figures = [
                &it.rejected_ns,
                &it.rejected_more_ns,
                &it.accepted_ns,
                &it.accepted_more_ns,
            ];
            row(name(it.name), figures.map(|spread| show(spread, 1)))
        }));
        for row in &mut rows {
            row.resize(5, none());
        }
        rows
    }
}
