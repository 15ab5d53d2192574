//! What is wanted of tscap. A run that failed gives no figure, and a target
//! without one is left out: the target that no run of tscap fails is always there. Another
//! program that failed is left out of what tscap is held against, which then says so.

use tscap_statistics::Spread;
use tscap_traffic::load::Tool;

use super::amount::{BEGINNINGS, LONG, MIDDLING, SHORT};
use super::cells::{Cell, KindReport, ToolCells};
use super::common::target::Target;

/// A rate that everything takes, frames a second.
const MODERATE: f64 = 0.6e6;
/// Lossless rate over the best other program's, where the frame is short or cut.
const OVER_BEST: f64 = 1.5;
/// Receiving cost of a short frame, ns, and that of the cheapest other over it.
const RECEIVE_NS: f64 = 65.0;
const OTHERS_RECEIVE: f64 = 2.5;
/// Whole long frames: at least the best other's rate, and what is aimed at.
const LONG_OVER_BEST: f64 = 1.0;
const LONG_AIM: f64 = 1.3;
/// What holds on busy machines too: loss of short frames at a moderate rate, per cent. The
/// receiving costs do not: in a single round each may come out several times too high.
const SURELY_LOST: f64 = 1.0;

/// All targets.
pub fn of(kinds: &[KindReport]) -> Vec<Target> {
    let of = |kind| kinds.iter().find(|report| report.kind == kind);
    let mut targets = vec![failed(kinds)];
    let fast = [SHORT, MIDDLING, BEGINNINGS].into_iter().filter_map(of);
    targets.extend(
        fast.flat_map(|kind| [flat_out_loss(kind), over_best(kind, OVER_BEST)])
            .flatten(),
    );
    targets.extend(of(SHORT).into_iter().flat_map(short));
    targets.extend(of(LONG).into_iter().flat_map(long));
    targets.extend(kinds.iter().filter_map(cpu));
    targets
}

/// Runs of tscap must not fail.
pub fn failed(kinds: &[KindReport]) -> Target {
    let ours = kinds.iter().filter_map(|kind| kind.of(Tool::Tscap));
    let failed: usize = ours.map(|cells| cells.failed.len()).sum();
    let name = "failed runs of tscap".to_owned();
    Target::at_most(name, failed as f64, 0.0)
}

fn flat_out_loss(kind: &KindReport) -> Option<Target> {
    let ours = kind.of(Tool::Tscap)?;
    let name = format!("{} flat out: % lost, worst", kind.name());
    let worst = measured(&ours.flat_out)?.loss_percent.max;
    Some(Target::at_most(name, worst, 0.0).asserted_if(false))
}

/// Our lossless rate over the highest of the others', by round.
pub fn over_best(kind: &KindReport, least: f64) -> Option<Target> {
    let ours = &whole(kind, Tool::Tscap)?.lossless_mpps;
    let best = best_other(kind, |cells| &cells.lossless_mpps, f64::max)?;
    let name = format!("{}: lossless / best other{}", kind.name(), best.without);
    let ratio = finite(ours.with(&best.figure, |ours, best| ours / best))?;
    Some(Target::at_least(name, ratio, least).asserted_if(false))
}

fn short(kind: &KindReport) -> Vec<Target> {
    let targets = [receive_ns(kind), moderate_loss(kind)];
    targets.into_iter().flatten().chain(cheaper(kind)).collect()
}

fn receive_ns(kind: &KindReport) -> Option<Target> {
    let name = format!("{}: receive ns more", kind.name());
    let ns = whole(kind, Tool::Tscap)?.receive_ns.median;
    Some(Target::at_most(name, ns, RECEIVE_NS).asserted_if(false))
}

fn moderate_loss(kind: &KindReport) -> Option<Target> {
    let name = format!("{}: % lost at 0.6 Mpps", kind.name());
    let lost = moderate(kind.of(Tool::Tscap)?)?.loss_percent.median;
    Some(Target::at_most(name, lost, SURELY_LOST))
}

/// Our receiving side against the cheapest of the others', by round.
fn cheaper(kind: &KindReport) -> Option<Target> {
    let (Some(ours), Some(cheapest)) = (
        whole(kind, Tool::Tscap).map(|cells| &cells.receive_ns),
        best_other(kind, |cells| &cells.receive_ns, f64::min),
    ) else {
        return None;
    };
    let ratio = finite(cheapest.figure.with(ours, |other, ours| other / ours))?;
    let name = format!("{}: receive, cheapest other / ours", kind.name());
    let name = name + &cheapest.without;
    Some(Target::at_least(name, ratio, OTHERS_RECEIVE).asserted_if(false))
}

fn long(kind: &KindReport) -> Vec<Target> {
    let moderate = kind.of(Tool::Tscap).and_then(|ours| {
        let cell = moderate(ours)?;
        let name = format!("{} at 0.6 Mpps: % lost, worst", kind.name());
        Some(Target::at_most(name, cell.loss_percent.max, 0.0).asserted_if(false))
    });
    let over = over_best(kind, LONG_OVER_BEST);
    let aim = over_best(kind, LONG_AIM).map(|aim| Target {
        name: format!("{}, the aim", aim.name),
        ..aim
    });
    [moderate, over, aim].into_iter().flatten().collect()
}

/// Our CPU time over tcpdump's, flat out.
fn cpu(kind: &KindReport) -> Option<Target> {
    let of = |tool| Some(&whole(kind, tool)?.flat_out.cpu_s);
    let (ours, theirs) = (of(Tool::Tscap)?, of(Tool::Tcpdump)?);
    let ratio = finite(ours.with(theirs, |ours, theirs| ours / theirs))?;
    let name = format!("{}: CPU time / tcpdump's", kind.name());
    Some(Target::at_most(name, ratio, 1.0).asserted_if(false))
}

/// The best of the other programs' figures.
pub struct BestOther {
    /// Of each round.
    pub figure: Spread,
    /// Which programs were left out because a run of theirs failed, for a name.
    pub without: String,
}

/// None without a program none of whose runs failed.
pub fn best_other(
    kind: &KindReport,
    figure: fn(&ToolCells) -> &Spread,
    better: fn(f64, f64) -> f64,
) -> Option<BestOther> {
    let others = kind.tools.iter().map(|cells| cells.tool);
    let others = others.filter(|tool| *tool != Tool::Tscap);
    let (mut figures, mut failed) = (Vec::new(), Vec::new());
    for tool in others {
        match whole(kind, tool) {
            Some(cells) => figures.push(figure(cells).clone()),
            None => failed.push(tool.name()),
        }
    }
    let best = |best: Spread, other: Spread| best.with(&other, better);
    Some(BestOther {
        figure: figures.into_iter().reduce(best)?,
        without: match failed[..] {
            [] => String::new(),
            _ => format!(", without {} that failed", failed.join(" and ")),
        },
    })
}

/// A program none of whose runs failed.
pub fn whole(kind: &KindReport, tool: Tool) -> Option<&ToolCells> {
    let cells = kind.of(tool)?;
    let rounds = kind.bare_ns.rounds.len();
    let is_whole = cells.failed.is_empty() && cells.flat_out.points.len() == rounds;
    (is_whole && rounds > 0).then_some(cells)
}

/// At a moderate rate, if that was measured.
fn moderate(cells: &ToolCells) -> Option<&Cell> {
    let mut paced = cells.paced.iter();
    measured(paced.find(|cell| cell.asked == Some(MODERATE))?)
}

fn measured(cell: &Cell) -> Option<&Cell> {
    (!cell.points.is_empty()).then_some(cell)
}

/// The median of ratios that are all numbers.
pub fn finite(ratios: Spread) -> Option<f64> {
    let are_finite = ratios.rounds.iter().all(|ratio| ratio.is_finite());
    (are_finite && !ratios.rounds.is_empty()).then_some(ratios.median)
}
