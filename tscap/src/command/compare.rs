//! `tscap compare`.

use std::env;

use serde::Serialize;

use super::measuring::{self, Experiment};
use super::{Context as _, Exit, Failure, Hint as _};
use tscap_base::kernel_files::KernelFiles;
use tscap_base::text::causes::chain;
use tscap_base::text::numbers::counted;
use tscap_capture::{check, interface};
use tscap_cli::ComparePlan;
use tscap_filter::LinkType;
use tscap_host::affinity;
use tscap_lab::compare::{
    Comparison, Conditions, ExperimentError, FrameSource, Request, assemble, run as measure,
};
use tscap_programs::hook::{AttachedProgram, InterruptKfuncs, KernelCounters};
use tscap_traffic::load::FAST_BYTES;

/// How far it is.
#[derive(Serialize)]
struct Progress {
    rounds: u32,
    of: u32,
}

pub(super) fn run(plan: &ComparePlan) -> Result<Exit, Failure> {
    measuring::run(&plan.output, session(plan))
}

/// `None` if a second signal ended it at once.
async fn session(plan: &ComparePlan) -> Result<Option<(Comparison, Exit)>, Failure> {
    let mut console = measuring::console(plan.output.json)?;
    match plan.interface {
        Some(_) => check::check_privileges()?,
        None => check::check_privileges_to_make_namespaces()?,
    }
    check::check_kernel()?;
    let files = KernelFiles::live();
    let (counters, causes_unknown) = match KernelCounters::find(&files) {
        Ok(counters) => (Some(counters), None),
        Err(error) => (None, Some(chain(&error))),
    };
    let cpu = super::choose_cpu(plan.cpu, "measure on")?;
    let request = Request {
        amount: plan.amount,
        cpu,
        force: plan.force,
        interrupts: plan
            .amount
            .irqs_off
            .then(|| interrupts(&files))
            .transpose()?,
        counters,
    };
    let frame_source = frame_source(plan)?;
    let (interface, frame_bytes) = match &frame_source {
        FrameSource::Own { pair, .. } => (pair.rx.name.clone(), Some(FAST_BYTES)),
        FrameSource::Live { link, .. } => (link.name.clone(), None),
    };
    let cpus = affinity::allowed_cpus().context("cannot read this process's CPU affinity")?;
    let (amount, is_ours) = (plan.amount, frame_bytes.is_some());
    let of = amount.steps(is_ours);
    let experiment = Experiment {
        thread: "tscap-compare",
        ready: &format!(
            "comparing on {interface}, CPU {cpu}, {}, {} {}",
            counted(amount.rounds.into(), "round"),
            // There it takes as long as the frames do.
            if is_ours { "about" } else { "at least" },
            measuring::about(amount.seconds(is_ours, None))
        ),
        amount: measuring::Amount {
            of,
            seconds: move |first_round| amount.seconds(is_ours, first_round),
        },
        left_out: "the round under way",
        cpu,
        interface: &interface,
        is_ours,
    };
    let progress = |rounds| Progress { rounds, of };
    let work = move |stop, done| measure(frame_source, &request, stop, done);
    let measured = measuring::experiment(&mut console, experiment, progress, work);
    let Some((results, about)) = measured.await? else {
        return Ok(None);
    };
    let results = results.map_err(refusal)?;
    let exit = measuring::exit(results.ended_by.as_ref());
    let conditions = Conditions {
        frames: plan.amount.frames,
        frame_bytes,
        cpu,
        cpus: cpus.len(),
        causes_unknown,
    };
    let comparison = assemble(results, about, conditions);
    let comparison = comparison.ok_or_else(|| Failure::new("nothing was measured"))?;
    Ok(Some((comparison, exit)))
}

fn interrupts(files: &KernelFiles) -> Result<InterruptKfuncs, Failure> {
    let found = InterruptKfuncs::find(files);
    let found = found.context("cannot turn interrupts off around a stamp");
    found.hint(
        "programs can do that since Linux 6.14, if it shows its types \
             (CONFIG_DEBUG_INFO_BTF): without --irqs-off all else is compared",
    )
}

fn frame_source(plan: &ComparePlan) -> Result<FrameSource, Failure> {
    let Some(name) = &plan.interface else {
        let pair = measuring::pair("run as root, or give -i")?;
        let executable = env::current_exe().context("cannot find this program's own file")?;
        return Ok(FrameSource::Own {
            pair: Box::new(pair),
            executable,
        });
    };
    let link = interface::find_usable(name, "measure on", &[LinkType::Ethernet])?;
    if let Some(xdp) = &link.xdp {
        return Err(Failure::new(format!(
            "cannot measure on {name}: it has XDP program {} already",
            xdp.ids()
        ))
        .hint(AttachedProgram::of(xdp).removal(name, xdp.mode)));
    }
    Ok(FrameSource::Live {
        link: Box::new(link),
        timeout: plan.timeout,
    })
}

fn refusal(error: ExperimentError) -> Failure {
    if matches!(error, ExperimentError::Stopped(_)) {
        return Failure::new("ended before the first round was over: nothing was measured");
    }
    let hint = match &error {
        ExperimentError::Native { .. } => {
            "in generic mode frames are aggregates, and their cost is another's: take an interface \
             with native XDP, or none for a veth pair"
        }
        ExperimentError::NoTraffic { .. } => {
            "send something there, wait longer by --timeout, or give the CPU on which frames come \
             in by --cpu"
        }
        _ => "tscap doctor says what this machine lacks",
    };
    Failure::from_error(error, "cannot measure").hint(hint)
}
