//! `tscap compare --observer`.

use std::env;
use std::path::PathBuf;

use serde::Serialize;

use super::measuring::{self, Experiment};
use super::{Context as _, Exit, Failure, Hint as _};
use tscap_base::text::numbers::counted;
use tscap_capture::check;
use tscap_cli::ObserverPlan;
use tscap_lab::observer::{
    Observation, ObserverError, Placement, Watcher, assemble, run as measure,
};

/// Where captures are written: memory.
const FOLDER: &str = "/dev/shm";

/// How far it is.
#[derive(Serialize)]
struct Progress {
    rounds: u32,
    of: u32,
}

pub(super) fn run(plan: &ObserverPlan) -> Result<Exit, Failure> {
    measuring::run(&plan.output, session(plan))
}

/// `None` if a second signal ended it at once.
async fn session(plan: &ObserverPlan) -> Result<Option<(Observation, Exit)>, Failure> {
    let mut console = measuring::console(plan.output.json)?;
    check::check_privileges_to_make_namespaces()?;
    check::check_kernel()?;
    let placement = Placement {
        executable: env::current_exe().context("cannot find this program's own file")?,
        sender_cpu: super::choose_cpu(plan.cpu, "send from")?,
        folder: PathBuf::from(FOLDER),
    };
    tempfile::tempfile_in(&placement.folder)
        .context(format!("cannot write captures in {FOLDER}"))
        .hint("mount a tmpfs there that you may write to")?;
    let pair = measuring::pair("run as root")?;
    let interface = pair.rx.name.clone();
    let amount = plan.amount;
    let seconds = amount.seconds(Watcher::ALL.len());
    let of = amount.rounds;
    let experiment = Experiment {
        thread: "tscap-observer",
        ready: &format!(
            "observing traffic on {interface}, {}, about {}",
            counted(amount.rounds.into(), "round"),
            measuring::about(seconds)
        ),
        amount: measuring::Amount {
            of,
            seconds: move |first: Option<f64>| {
                first.map_or(seconds, |round| round * f64::from(amount.rounds))
            },
        },
        left_out: "the round under way",
        cpu: placement.sender_cpu,
        interface: &interface,
        is_ours: true,
    };
    let progress = |rounds| Progress { rounds, of };
    let measured = measuring::experiment(&mut console, experiment, progress, {
        let placement = placement.clone();
        move |stop, done| measure(pair, &placement, &amount, stop, done)
    });
    let Some((results, about)) = measured.await? else {
        return Ok(None);
    };
    let results = results.map_err(refusal)?;
    let exit = measuring::exit(results.ended_by.as_ref());
    Ok(Some((assemble(results, about, &placement, &amount), exit)))
}

fn refusal(error: ObserverError) -> Failure {
    if matches!(error, ObserverError::Stopped(_)) {
        return Failure::new("ended before the first round was over: nothing was measured");
    }
    Failure::from_error(error, "cannot measure").hint("tscap doctor says what this machine lacks")
}
