//! The report for people.

use tscap::capturing::clock::StampPath;
use tscap::measuring::compare::schema::{Outcome, Verdict};

use crate::common::spread::Spread;
use crate::common::table::{absent, heading, machine, row, show, text};
use crate::common::target::Target;
use crate::linearity::{Line, LinearityReport};
use crate::power::{PowerReport, Run};
use crate::repeats::{RepeatsReport, Verdicts};
use crate::report::Report;

const OUTCOMES: [(Outcome, &str); 4] = [
    (Outcome::Cheaper, "cheaper"),
    (Outcome::Dearer, "dearer"),
    (Outcome::WithinMargin, "within margin"),
    (Outcome::Undecided, "undecided"),
];

/// The whole report, the targets first.
pub fn render(report: &Report) -> String {
    let mut lines = machine(&report.header.machine);
    lines.push(format!("measured on CPU {}", report.header.machine.cpu));
    lines.extend(heading("targets".into(), "", &["figure"]));
    lines.extend(report.targets.iter().map(Target::row));
    lines.extend(report.power.iter().flat_map(power));
    lines.extend(report.linearity.iter().flat_map(linearity));
    lines.extend(report.repeats.iter().flat_map(repeats));
    text(&lines)
}

fn power(report: &PowerReport) -> Vec<String> {
    let title = format!(
        "multiplications between the checkpoints; rounds of {} frames: {}",
        report.frames, report.rounds
    );
    let mut lines = heading(title, "", &["ns"]).to_vec();
    let calibrated = report.calibration.iter();
    lines.extend(calibrated.map(|(work, cost)| row(&work.to_string(), &[show(cost, 1)])));
    let title = format!(
        "{} of them, {:.2} ns each, against none; in each run as many rounds",
        report.work, report.work_ns
    );
    let columns = ["ktime, ns", "ns more", "verdict", "the same: ns", "verdict"];
    lines.extend(heading(title, "", &columns));
    lines.extend(
        (1..)
            .zip(&report.runs)
            .map(|(number, run)| of_run(number, run)),
    );
    lines
}

fn of_run(number: usize, run: &Run) -> String {
    let figures = [
        show(&run.ktime_ns, 1),
        show(&run.more_ns, 1),
        said(&run.dearer),
        show(&run.same_ns, 1),
        said(&run.same),
    ];
    row(&format!("run {number}"), &figures)
}

fn said(verdict: &Verdict) -> String {
    let outcome = OUTCOMES.iter().find(|(it, _)| *it == verdict.outcome);
    outcome.map_or("", |(_, name)| name).into()
}

fn linearity(report: &LinearityReport) -> Vec<String> {
    let title = format!(
        "reads on a frame, ns; rounds of {} frames: {}",
        report.frames, report.rounds
    );
    let columns = ["unrolled", "one on a frame", "each more", "off the line"];
    let mut lines = heading(title, "", &columns).to_vec();
    lines.extend(report.lines.iter().map(line));
    lines.extend(absent(&report.absent));
    lines
}

fn line(line: &Line) -> String {
    let show = |spread: &Spread| show(spread, 1);
    let bend = format!("{:.2} reads", line.bend);
    let figures = [&line.read_ns, &line.frame_ns, &line.slope_ns].map(show);
    row(line.source.name(), &[&figures[..], &[bend]].concat())
}

fn repeats(report: &RepeatsReport) -> Vec<String> {
    let title = format!(
        "tscap compare --quick, {} times, {} failed",
        report.repeats,
        report.failed.len()
    );
    let columns = OUTCOMES.map(|(_, name)| name);
    let columns = [&["ratio"], &columns[..]].concat();
    let mut lines = heading(title, "against ktime", &columns).to_vec();
    lines.extend(report.verdicts.iter().map(verdicts));
    lines
}

fn verdicts(verdicts: &Verdicts) -> String {
    let path = StampPath::by_function(&verdicts.path);
    let name = path.map_or("none", StampPath::name);
    let ratio = show(&Spread::of(verdicts.ratios.clone()), 2);
    let counts = OUTCOMES.map(|(outcome, _)| verdicts.count(outcome).to_string());
    let metric = format!("{:?}", verdicts.metric).to_lowercase();
    row(
        &format!("{name}: {metric}"),
        &[&[ratio], &counts[..]].concat(),
    )
}
