//! Whether a program that is somewhat more expensive is found, and one that is not isn't.

use anyhow::{Result, ensure};
use serde::Serialize;
use tscap_clock::StampPath;
use tscap_common::compare::MOST_WORK;
use tscap_document::Table;
use tscap_lab::compare::Amount;
use tscap_lab::compare::schema::{Metric, Outcome, Verdict};
use tscap_lab::compare::statistics::{Allowance, verdict};
use tscap_statistics::{Spread, least_squares};

use crate::bed::{Between, TestBed};
use crate::common::report::Section;
use crate::common::rounds;
use crate::common::table::{row, show};
use crate::common::target::Target;
use crate::repeats::name;

/// What the more expensive program costs more, ns.
const MORE_NS: f64 = 5.0;
/// The same of a quick bench: of its few frames so much is more than noise.
const MORE_QUICK_NS: f64 = 20.0;
/// Numbers of multiplications that a line is drawn through. Where a program was
/// loaded makes it alone some ns cheaper or more expensive: so there are many.
const WORKS: [u32; 8] = [8, 16, 24, 32, 40, 48, 56, 64];
/// Most that what the runs find may be off that, ns: half of it.
const MORE_OFF_NS: f64 = 2.5;
/// The same of a quick bench, beyond what the rounds of one program differ by in the
/// same run, up to as much again: a busy machine may not fail it.
const MORE_OFF_QUICK_NS: f64 = 6.0;
/// Part of the runs in which it must be found (9 of 10). Not asserted of
/// a quick bench, whose few frames one interrupt can spoil.
const FOUND: f64 = 0.9;
/// Part of the runs in which a program may be told from itself; in a quick bench
/// one of 5: where it was loaded does make a difference.
const TOLD_APART: f64 = 0.0;
const TOLD_APART_QUICK: f64 = 0.2;
/// To which that is added.
const STAMP: Between = Between {
    stamp: Some(StampPath::Ktime),
    more_reads: 0,
    more_work: 0,
};

/// The part of the report.
#[derive(Debug, Serialize)]
pub struct PowerReport {
    #[serde(skip)]
    quick: bool,
    /// Rounds of each run, as many as a comparison has.
    pub rounds: u32,
    /// Frames of each program in each round.
    pub frames: u32,
    /// Beforehand: numbers of multiplications, and the time from checkpoint to
    /// checkpoint with so many, ns.
    pub calibration: Vec<(u32, Spread)>,
    /// What the more expensive program is to cost more, ns.
    pub more_ns: f64,
    /// What each costs: the slope of the line through the medians, ns.
    pub work_ns: f64,
    /// How many the more expensive program does.
    pub work: u32,
    /// The runs.
    pub runs: Vec<Run>,
}

/// One run: what a comparison measures, with programs loaded anew.
#[derive(Debug, Serialize)]
pub struct Run {
    /// `ktime` on a frame, ns.
    pub ktime_ns: Spread,
    /// What the more expensive program costs more, ns.
    pub more_ns: Spread,
    /// What the program of `ktime` costs more when it is loaded once more, ns.
    pub same_ns: Spread,
    /// The verdict on the more expensive program.
    pub dearer: Verdict,
    /// The verdict on the one loaded once more.
    pub same: Verdict,
}

/// Measures.
pub fn measure(bed: &TestBed, amount: &Amount, runs: u32, quick: bool) -> Result<PowerReport> {
    let more_ns = if quick { MORE_QUICK_NS } else { MORE_NS };
    let calibration = calibrate(bed, amount)?;
    let points = calibration.iter();
    let points = points.map(|(work, cost)| (f64::from(*work), cost.median));
    let (work_ns, _) = least_squares(&points.collect::<Vec<_>>());
    let work = (more_ns / work_ns).round();
    ensure!(
        (1.0..=f64::from(MOST_WORK)).contains(&work),
        "{more_ns} ns would take {work} multiplications: nothing was calibrated"
    );
    let work = work as u32;
    let run = |run| run_once(bed, &format!("power, run {run} of {runs}"), amount, work);
    let runs = (1..=runs).map(run).collect::<Result<_>>()?;
    Ok(PowerReport {
        quick,
        rounds: amount.rounds,
        frames: amount.frames,
        calibration,
        more_ns,
        work_ns,
        work,
        runs,
    })
}

fn calibrate(bed: &TestBed, amount: &Amount) -> Result<Vec<(u32, Spread)>> {
    let subject = |more_work| bed.subject("work", Between { more_work, ..STAMP }, amount.frames);
    let subjects = WORKS.into_iter().map(subject);
    let mut subjects = subjects.collect::<Result<Vec<_>>>()?;
    rounds::run("calibration", amount.rounds, &mut subjects)?;
    let costs = subjects.into_iter().map(|it| Spread::of(it.results));
    Ok(WORKS.into_iter().zip(costs).collect())
}

fn run_once(bed: &TestBed, name: &str, amount: &Amount, more_work: u32) -> Result<Run> {
    let dearer = Between { more_work, ..STAMP };
    let mut subjects = [
        bed.subject("floor", Between::default(), amount.frames)?,
        bed.subject("ktime", STAMP, amount.frames)?,
        bed.subject("ktime again", STAMP, amount.frames)?,
        bed.subject("ktime and work", dearer, amount.frames)?,
    ];
    rounds::run(name, amount.rounds, &mut subjects)?;
    let [floor, costs @ ..] = subjects.map(|it| Spread::of(it.results));
    let [ktime, same, dearer] = costs.map(|cost| cost.with(&floor, |cost, floor| cost - floor));
    let judge = |costs: &Spread| {
        let source = STAMP.stamp;
        verdict(
            Metric::Frame,
            source,
            &costs.rounds,
            &ktime.rounds,
            Allowance::NONE,
        )
    };
    let more = |costs: &Spread| costs.with(&ktime, |costs, ktime| costs - ktime);
    Ok(Run {
        more_ns: more(&dearer),
        same_ns: more(&same),
        dearer: judge(&dearer),
        same: judge(&same),
        ktime_ns: ktime,
    })
}

impl Section for PowerReport {
    fn targets(&self) -> Vec<Target> {
        let share = |of: fn(&Run) -> &Verdict, outcomes: &[Outcome]| {
            let verdicts = self.runs.iter().map(of);
            let such = verdicts.filter(|verdict| outcomes.contains(&verdict.over_ktime.outcome));
            such.count() as f64 / self.runs.len() as f64
        };
        let found = share(|run| &run.dearer, &[Outcome::Dearer]);
        let wrong = share(|run| &run.dearer, &[Outcome::Cheaper]);
        let unfounded = share(|run| &run.same, &[Outcome::Cheaper, Outcome::Dearer]);
        let of_runs = |figure: fn(&Run) -> f64| Spread::of(self.runs.iter().map(figure).collect());
        let off = (of_runs(|run| run.more_ns.median).median - self.more_ns).abs();
        let noise = of_runs(|run| run.same_ns.max - run.same_ns.min).median / 2.0;
        let noise = noise.min(MORE_OFF_QUICK_NS);
        let (distinguished, more_off) = if self.quick {
            (TOLD_APART_QUICK, MORE_OFF_QUICK_NS + noise)
        } else {
            (TOLD_APART, MORE_OFF_NS)
        };
        let name = |what| format!("{} ns more: {what}", self.more_ns);
        vec![
            Target::at_least(name("found, of the runs"), found, FOUND).asserted_if(!self.quick),
            Target::at_most(name("called cheaper"), wrong, 0.0),
            Target::at_most(name("off by, ns"), off, more_off),
            Target::at_most("the same twice: told apart", unfounded, distinguished),
        ]
    }

    fn tables(&self) -> Vec<Table> {
        let calibrated = self.calibration.iter();
        let calibrated = calibrated.map(|(work, cost)| row(work.to_string(), [show(cost, 1)]));
        let title = format!(
            "multiplications between the checkpoints; rounds of {} frames: {}",
            self.frames, self.rounds
        );
        let calibration = Table::figures(title, &["", "ns"], calibrated.collect());
        let runs = (1..).zip(&self.runs).map(|(number, run)| {
            let figures = [
                show(&run.ktime_ns, 1),
                show(&run.more_ns, 1),
                name(run.dearer.over_ktime.outcome).to_owned(),
                show(&run.same_ns, 1),
                name(run.same.over_ktime.outcome).to_owned(),
            ];
            row(format!("run {number}"), figures)
        });
        let title = format!(
            "{} of them, {:.2} ns each, against none; in each run as many rounds",
            self.work, self.work_ns
        );
        let head = [
            "",
            "ktime, ns",
            "ns more",
            "verdict",
            "the same: ns",
            "verdict",
        ];
        vec![calibration, Table::figures(title, &head, runs.collect())]
    }
}
