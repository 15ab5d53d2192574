//! What the stages cost: now, or according to an earlier sweep.

use std::path::Path;
use std::time::Duration;

use super::super::{Progress, placement, refusal};
use super::Session;
use crate::command::report::read;
use crate::command::{Failure, measuring};
use tscap_cli::{PredictionPlan, ReceiveCpu};
use tscap_clock::StampSource;
use tscap_lab::loss::model::Costs;
use tscap_lab::loss::{Arrival, Experiment, Grid, captures};
use tscap_report::saved::Saved;

/// What the stages cost according to an earlier sweep.
pub(super) fn saved(path: &Path, clock: StampSource) -> Result<Costs, Failure> {
    let name = path.display();
    let sweep = match read(path)? {
        Saved::Sweep(sweep) => sweep,
        other => {
            return Err(Failure::new(format!(
                "cannot take costs from {name}: it is a {}, not a sweep of loss",
                other.what()
            ))
            .hint("give a file that `tscap loss --json` wrote"));
        }
    };
    let of_clock = sweep.calibrations.iter().filter(|it| it.clock == clock);
    // A card that is polled hands over several frames at once.
    let nearest = of_clock.min_by_key(|it| it.arrival != Arrival::InBursts);
    nearest.map(|it| it.costs).ok_or_else(|| {
        let clock = clock.name();
        Failure::new(format!(
            "cannot take costs from {name}: it has none with {clock}"
        ))
        .hint("give --clock one that it was measured with")
    })
}

/// What they cost now, with captures in `folder`, which is memory; `None` if a second signal came.
pub(super) async fn measured(
    plan: &PredictionPlan,
    folder: Option<&Path>,
    session: &mut Session,
) -> Result<Option<Costs>, Failure> {
    let placement = placement(plan.cpu, ReceiveCpu::Senders, folder, None)?;
    let pair = measuring::pair("run as root")?;
    let clock = plan.clock;
    let grid = Grid {
        sizes: Vec::new(),
        clocks: vec![clock],
        ..Grid::usual()
    };
    let (of, rounds) = (captures(&grid, &placement), grid.rounds);
    let amount = measuring::Amount {
        of,
        seconds: |_| grid.seconds(),
    };
    session
        .console
        .note("finding out what a capture costs here, in some seconds");
    let costs = measuring::measure(
        "tscap-loss",
        amount,
        "all of it",
        &mut session.signals,
        &mut session.console,
        |captures| Progress { captures, of },
        move |stop, done| {
            let mut experiment = Experiment::new(pair, placement, &[], stop)?;
            experiment.warm(Duration::from_secs(1))?;
            let mut captures = 0;
            let calibration = experiment.calibrate((clock, Arrival::InBursts), rounds, || {
                captures += 1;
                done(captures);
            })?;
            Ok(calibration.costs)
        },
    );
    costs.await?.transpose().map_err(refusal)
}
