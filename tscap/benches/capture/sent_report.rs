//! What capturing sent frames costs, and what is wanted of it.

use serde::Serialize;
use tscap_document::Table;
use tscap_statistics::Spread;

use super::amount::{Kind, LONG, SHORT};
use super::common::report::Section;
use super::common::table::{row, show};
use super::common::target::Target;

/// tscap's cost over tcpdump's, of a short and of a whole long frame.
const RATIOS: [(Kind, f64); 2] = [(SHORT, 0.35), (LONG, 0.5)];
/// Of a frame of an interface that is not captured, ns.
const ELSEWHERE_NS: f64 = 10.0;
/// What holds on busy machines too: tscap costs no more than tcpdump.
const SURELY: f64 = 1.0;

/// One run.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// CPU time of the sender for a frame, ns.
    pub ns: f64,
    /// The same in the cheapest burst.
    pub least_ns: f64,
    /// Frames lost, per cent.
    pub lost_percent: f64,
}

/// The part of the report.
#[derive(Debug, Serialize)]
pub struct SentReport {
    /// Rounds measured.
    pub rounds: u32,
    /// Versions of tscap and tcpdump.
    pub versions: Vec<String>,
    /// By kind of frame.
    pub kinds: Vec<KindCosts>,
}

/// A kind of frame.
#[derive(Debug, Serialize)]
pub struct KindCosts {
    kind: Kind,
    /// CPU time of the sender for a frame without a capture, ns.
    bare_ns: Spread,
    /// What a frame takes more with tscap, ns.
    tscap_ns: Spread,
    /// The same with tcpdump.
    tcpdump_ns: Spread,
    /// The same with tscap on another interface: the cheapest burst of all against the
    /// cheapest without a capture. What disturbs a burst makes it more expensive only, and by
    /// more than this.
    elsewhere_ns: f64,
    /// tscap's over tcpdump's.
    ratio: Spread,
    /// What a frame takes more with tscap where it is received, at generic XDP and at tcx
    /// ingress, ns.
    received_ns: [Spread; 2],
    /// Frames that each lost, per cent.
    lost_percent: [Spread; 2],
}

impl KindCosts {
    /// Sums up the rounds: no capture, tscap, tcpdump, tscap elsewhere, and where frames are
    /// received.
    pub fn new(kind: Kind, runs: [Vec<Run>; 6]) -> Self {
        let [bare, ours, theirs, elsewhere, generic, tcx] = runs;
        let more = |runs: &[Run]| {
            let more = runs.iter().zip(&bare).map(|(run, bare)| run.ns - bare.ns);
            Spread::of(more.collect())
        };
        let lost = |runs: &[Run]| Spread::of(runs.iter().map(|run| run.lost_percent).collect());
        let least = |runs: &[Run]| runs.iter().map(|run| run.least_ns).fold(f64::MAX, f64::min);
        let (tscap_ns, tcpdump_ns) = (more(&ours), more(&theirs));
        Self {
            kind,
            ratio: tscap_ns.with(&tcpdump_ns, |ours, theirs| ours / theirs),
            elsewhere_ns: least(&elsewhere) - least(&bare),
            received_ns: [more(&generic), more(&tcx)],
            lost_percent: [lost(&ours), lost(&theirs)],
            bare_ns: Spread::of(bare.iter().map(|run| run.ns).collect()),
            tscap_ns,
            tcpdump_ns,
        }
    }
}

impl Section for SentReport {
    fn targets(&self) -> Vec<Target> {
        let of = |kind| self.kinds.iter().find(|costs| costs.kind == kind);
        let ratios = RATIOS
            .into_iter()
            .filter_map(|(kind, most)| Some((of(kind)?, most)));
        let ratios = ratios.flat_map(|(costs, most)| {
            let name = format!("{}: sent, tscap / tcpdump", costs.kind.name());
            let best = format!("{}, best round", name);
            [
                Target::at_most(name, costs.ratio.median, most).asserted_if(false),
                Target::at_most(best, costs.ratio.min, SURELY),
            ]
        });
        let elsewhere = self.kinds.iter().map(|costs| {
            let name = format!(
                "{}: sent by another interface, ns more, best bursts",
                costs.kind.name()
            );
            Target::at_most(name, costs.elsewhere_ns, ELSEWHERE_NS).asserted_if(false)
        });
        ratios.chain(elsewhere).collect()
    }

    fn tables(&self) -> Vec<Table> {
        let title = format!(
            "sent frames, captured by -Q out; rounds: {}; {}",
            self.rounds,
            self.versions.join("; ")
        );
        let head = [
            "",
            "no capture, ns",
            "tscap, ns more",
            "tcpdump",
            "ratio",
            "tscap on another interface, best bursts",
            "lost %, tscap",
            "tcpdump",
            "received: generic XDP, ns more",
            "tcx ingress",
        ];
        let rows = self.kinds.iter().map(|costs| {
            let [ours, theirs] = costs.lost_percent.each_ref().map(|lost| show(lost, 2));
            let figures = [
                show(&costs.bare_ns, 0),
                show(&costs.tscap_ns, 0),
                show(&costs.tcpdump_ns, 0),
                show(&costs.ratio, 2),
                format!("{:.0}", costs.elsewhere_ns),
                ours,
                theirs,
                show(&costs.received_ns[0], 0),
                show(&costs.received_ns[1], 0),
            ];
            row(costs.kind.name(), figures)
        });
        let meaning = "ns: CPU time of the sender for a frame, receiving it included";
        vec![Table::figures(title, &head, rows.collect()).note(meaning.to_owned())]
    }
}
