//! What is wanted of tscap (issue 6). A run that failed gives no figure, and a target
//! without one is left out: the target that none of ours fails is always there.

use tscap::load::Tool;

use crate::amount::{BEGINNINGS, LONG, MIDDLING, SHORT};
use crate::cells::{Cell, KindReport, ToolCells};
use crate::common::spread::Spread;
use crate::common::target::{Bound, Target};
use crate::report::Report;

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
/// What holds on busy machines too: how much dearer at least than ours the cheapest
/// other's receiving is, and loss of short frames at a moderate rate, per cent.
const SURELY_CHEAPER: f64 = 1.2;
const SURELY_LOST: f64 = 1.0;

/// All targets.
pub fn of(report: &Report) -> Vec<Target> {
    let mut targets = vec![failed(report)];
    let kinds = [SHORT, MIDDLING, BEGINNINGS];
    let fast = kinds.into_iter().filter_map(|kind| report.of(kind));
    targets.extend(
        fast.flat_map(|kind| [flat_out_loss(kind), over_best(kind, OVER_BEST)])
            .flatten(),
    );
    targets.extend(report.of(SHORT).into_iter().flat_map(receive));
    targets.extend(report.of(LONG).into_iter().flat_map(long));
    targets.extend(report.kinds.iter().filter_map(cpu));
    targets
}

fn target(name: String, value: f64, bound: Bound, asserted: bool) -> Target {
    Target {
        name,
        value,
        bound,
        asserted,
    }
}

/// Runs of ours must not fail.
fn failed(report: &Report) -> Target {
    let ours = report.kinds.iter().filter_map(|kind| kind.of(Tool::Tscap));
    let failed: usize = ours.map(|cells| cells.failed.len()).sum();
    let name = "failed runs of tscap".to_owned();
    target(name, failed as f64, Bound::AtMost(0.0), true)
}

fn flat_out_loss(kind: &KindReport) -> Option<Target> {
    let ours = kind.of(Tool::Tscap)?;
    let name = format!("{} flat out: % lost, worst", kind.kind.name());
    let worst = measured(&ours.flat_out)?.loss_percent.max;
    Some(target(name, worst, Bound::AtMost(0.0), false))
}

/// Our lossless rate over the highest of the others', by round.
fn over_best(kind: &KindReport, least: f64) -> Option<Target> {
    let ours = &whole(kind, Tool::Tscap)?.lossless_mpps;
    let best = by_round(kind, |cells| &cells.lossless_mpps, f64::max)?;
    let name = format!("{}: lossless / best other", kind.kind.name());
    let ratio = finite(ours.with(&best, |ours, best| ours / best))?;
    Some(target(name, ratio, Bound::AtLeast(least), false))
}

fn receive(kind: &KindReport) -> Vec<Target> {
    let (Some(ours), Some(cheapest)) = (
        whole(kind, Tool::Tscap),
        by_round(kind, |cells| &cells.receive_ns, f64::min),
    ) else {
        return Vec::new();
    };
    let ratio = finite(cheapest.with(&ours.receive_ns, |other, ours| other / ours));
    // Not as a ratio: in a single round ours may come out as nothing, or less.
    let surely = cheapest.with(&ours.receive_ns, |other, ours| {
        other - SURELY_CHEAPER * ours
    });
    let name = |what: &str| format!("{}: {what}", kind.kind.name());
    let more = name("receive ns more");
    let others = name("receive, cheapest other / ours");
    let mut targets = vec![target(
        more,
        ours.receive_ns.median,
        Bound::AtMost(RECEIVE_NS),
        false,
    )];
    targets.extend(ratio.map(|ratio| {
        let bound = Bound::AtLeast(OTHERS_RECEIVE);
        target(others, ratio, bound, false)
    }));
    targets.extend(finite(surely).map(|ns| {
        let name = name("receive, cheapest other less 1.2 times ours, ns");
        target(name, ns, Bound::AtLeast(0.0), true)
    }));
    targets.extend(moderate(ours).map(|cell| {
        let bound = Bound::AtMost(SURELY_LOST);
        target(
            name("% lost at 0.6 Mpps"),
            cell.loss_percent.median,
            bound,
            true,
        )
    }));
    targets
}

fn long(kind: &KindReport) -> Vec<Target> {
    let moderate = kind.of(Tool::Tscap).and_then(|ours| {
        let cell = moderate(ours)?;
        let name = format!("{} at 0.6 Mpps: % lost, worst", kind.kind.name());
        let bound = Bound::AtMost(0.0);
        Some(target(name, cell.loss_percent.max, bound, false))
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
    let name = format!("{}: CPU time / tcpdump's", kind.kind.name());
    Some(target(name, ratio, Bound::AtMost(1.0), false))
}

/// The best of the other programs' figures of each round; none without others, or
/// if a run failed.
fn by_round(
    kind: &KindReport,
    figure: fn(&ToolCells) -> &Spread,
    better: fn(f64, f64) -> f64,
) -> Option<Spread> {
    let others = kind.tools.iter().filter(|cells| cells.tool != Tool::Tscap);
    let spreads = others.map(|cells| Some(figure(whole(kind, cells.tool)?).clone()));
    let spreads: Option<Vec<_>> = spreads.collect();
    spreads?
        .into_iter()
        .reduce(|best, other| best.with(&other, better))
}

/// A program none of whose runs failed.
fn whole(kind: &KindReport, tool: Tool) -> Option<&ToolCells> {
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
fn finite(ratios: Spread) -> Option<f64> {
    let are_finite = ratios.rounds.iter().all(|ratio| ratio.is_finite());
    (are_finite && !ratios.rounds.is_empty()).then_some(ratios.median)
}
