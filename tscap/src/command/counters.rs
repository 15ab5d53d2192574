//! `tscap counters`.

use std::env;
use std::time::Duration;

use serde::Serialize;

use super::measuring::{self, Experiment};
use super::{Context as _, Exit, Failure};
use tscap_base::kernel_files::KernelFiles;
use tscap_base::text::numbers::counted;
use tscap_capture::check;
use tscap_cli::CountersPlan;
use tscap_lab::counters::{
    Characteristics, CountersError, Request, Stress, assemble, run as measure,
};

/// How far it is.
#[derive(Serialize)]
struct Progress {
    seconds: u32,
    of: u32,
}

pub(super) fn run(plan: &CountersPlan) -> Result<Exit, Failure> {
    measuring::run(&plan.output, session(plan))
}

/// `None` if a second signal ended it at once.
async fn session(plan: &CountersPlan) -> Result<Option<(Characteristics, Exit)>, Failure> {
    let mut console = measuring::console(plan.output.json)?;
    if plan.phases.contains(&Stress::Net) {
        check::check_privileges_to_make_namespaces()?;
        check::check_kernel()?;
    }
    let request = Request {
        cpu: super::choose_cpu(plan.cpu, "read counters on")?,
        phases: plan.phases.clone(),
        phase: plan.phase,
        reference: plan.reference.clone(),
        executable: env::current_exe().context("cannot find this program's own file")?,
    };
    let all: Duration = plan.phase * plan.phases.len() as u32;
    let seconds = all.as_secs_f64();
    let of = seconds.ceil() as u32;
    let experiment = Experiment {
        thread: "tscap-counters",
        ready: &format!(
            "reading counters on CPU {}, {}, about {}",
            request.cpu,
            counted(plan.phases.len() as u64, "phase"),
            measuring::about(seconds)
        ),
        amount: measuring::Amount {
            of,
            seconds: move |_: Option<f64>| seconds,
        },
        left_out: "what is left of the phases",
        cpu: request.cpu,
        interface: "",
        is_ours: false,
    };
    let progress = |seconds| Progress { seconds, of };
    let measured = measuring::experiment(&mut console, experiment, progress, {
        let request = request.clone();
        move |stop, done| measure(&request, &stop, done)
    });
    let Some((results, about)) = measured.await? else {
        return Ok(None);
    };
    let results = results.map_err(refusal)?;
    let exit = measuring::exit(results.ended_by.as_ref());
    let files = KernelFiles::live();
    Ok(Some((assemble(results, &request, about, &files), exit)))
}

fn refusal(error: CountersError) -> Failure {
    let hint = match error {
        CountersError::Stopped(_) => {
            return Failure::new("ended before the counters were read: nothing was measured");
        }
        CountersError::Reference(_) => {
            "give --reference a PTP hardware clock that you may read, such as /dev/ptp0, or leave \
             it out"
        }
        _ => "tscap doctor says what this machine lacks",
    };
    Failure::from_error(error, "cannot measure").hint(hint)
}
