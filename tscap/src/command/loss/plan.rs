//! `--plan`: whether a load will fit.

use std::path::Path;
use std::time::Duration;

use nix::sys::statvfs::statvfs;

use super::{Progress, placement, refusal};
use crate::cli::PredictionPlan;
use crate::command::print::{json_line, print};
use crate::command::report::read;
use crate::command::signals::Signals;
use crate::command::{Context, Exit, Failure, measuring};
use crate::measuring::loss::model::Costs;
use crate::measuring::loss::{
    Answer, Arrival, Experiment, Grid, GridPoint, Pace, Question, answer as predict, captures,
};
use crate::measuring::saved::Saved;
use crate::text::numbers::{counted, ring as length, size};

/// Answers; the exit code tells whether it fits.
pub(in crate::command) fn answer(plan: &PredictionPlan) -> Result<Exit, Failure> {
    let costs = match &plan.from {
        Some(path) => saved(path, plan)?,
        None => {
            let runtime = crate::command::runtime()?;
            match runtime.block_on(measured(plan))? {
                Some(costs) => costs,
                None => return Ok(Exit::Aborted),
            }
        }
    };
    let costs = match plan.file_rate {
        Some(rate) => costs.with_file_rate(rate),
        None => costs,
    };
    let room = plan.folder.as_deref().map(free).transpose()?;
    let grid_point = grid_point(plan);
    let question = Question {
        size: plan.size,
        caplen: grid_point.caplen(),
        rate: grid_point.pace.rate(plan.size),
        seconds: plan.lasting.as_secs_f64(),
        ring_bytes: plan.ring as u64,
    };
    let answer = predict(&costs, question, room);
    let said = match plan.json {
        true => json_line(&answer),
        false => text(&answer),
    };
    print(&said)?;
    Ok(match answer.fits {
        true => Exit::Success,
        false => Exit::Fault,
    })
}

fn grid_point(plan: &PredictionPlan) -> GridPoint {
    GridPoint {
        tool: crate::measuring::load::Tool::Tscap,
        clock: plan.clock,
        size: plan.size,
        pace: Pace::Rate(plan.rate),
        snaplen: plan.snaplen,
        ring: plan.ring,
    }
}

/// What the stages cost according to an earlier sweep.
fn saved(path: &Path, plan: &PredictionPlan) -> Result<Costs, Failure> {
    let name = path.display();
    let Saved::Sweep(sweep) = read(path)? else {
        return Err(Failure::new(format!(
            "cannot take costs from {name}: it is a comparison, not a sweep of loss"
        ))
        .hint("give a file that `tscap loss --json` wrote"));
    };
    let of_clock = sweep
        .calibrations
        .iter()
        .filter(|it| it.clock == plan.clock);
    // A card that is polled hands over several frames at once.
    let nearest = of_clock.min_by_key(|it| it.arrival != Arrival::InBursts);
    nearest.map(|it| it.costs).ok_or_else(|| {
        let clock = plan.clock.name();
        Failure::new(format!(
            "cannot take costs from {name}: it has none with {clock}"
        ))
        .hint("give --clock one that it was measured with")
    })
}

/// What they cost now; `None` if a second signal came.
async fn measured(plan: &PredictionPlan) -> Result<Option<Costs>, Failure> {
    let mut signals = Signals::new()?;
    let mut console = measuring::console(plan.json)?;
    let placement = placement(plan.cpu, None, plan.folder.as_deref(), None)?;
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
    console.note("finding out what a capture costs here, in some seconds");
    let costs = measuring::measure(
        "tscap-loss",
        amount,
        "all of it",
        &mut signals,
        &mut console,
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

/// Room for a file in a folder, bytes.
fn free(folder: &Path) -> Result<u64, Failure> {
    let disk = statvfs(folder).context(format!("cannot tell the room in {}", folder.display()))?;
    Ok(disk.blocks_available() * disk.fragment_size())
}

fn text(answer: &Answer) -> String {
    let question = &answer.question;
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let lost = answer.lost_before + answer.lost_in_ring;
    let verdict = match (answer.fits, lost > 0.0) {
        (true, _) => "it fits: nothing is lost".to_owned(),
        (false, true) => format!(
            "it does not fit: {} lost, {} before the program and {} in the ring",
            percent(lost),
            percent(answer.lost_before),
            percent(answer.lost_in_ring)
        ),
        (false, false) => "it does not fit: the file has not enough room".to_owned(),
    };
    let ring = match (answer.ring_needed, answer.ring_advised) {
        (Some(needed), Some(advised)) => format!(
            "a ring of {} is needed; one of {} also bears 5 ms without the converter",
            length(needed),
            length(advised)
        ),
        (Some(needed), None) => format!(
            "a ring of {} is needed; none bears 5 ms without the converter",
            length(needed)
        ),
        (None, _) => "no ring suffices: a stage takes less than comes".to_owned(),
    };
    let room = answer
        .room_bytes
        .map(|room| format!(", and {} are free", size(room)));
    let storage = match answer.file_bytes_per_s {
        Some(rate) => format!("storage takes {}/s", size(rate as u64)),
        None => "storage slower than where the costs were measured is not predicted: give \
                 --file-rate"
            .to_owned(),
    };
    format!(
        "{} of {} bytes a second for {} s, {} bytes of each kept, ring of {}\n{verdict}\n  \
         receiving takes {} of a CPU, converting and writing {} of another\n  {ring}\n  \
         the file gets {} long{}\n  {storage}\n  \
         a network card's driver takes something besides, which no veth can tell\n",
        counted(question.rate.round() as u64, "frame"),
        question.size,
        question.seconds,
        question.caplen,
        length(question.ring_bytes),
        percent(answer.receive_load),
        percent(answer.convert_load),
        size(answer.file_bytes as u64),
        room.unwrap_or_default()
    )
}
