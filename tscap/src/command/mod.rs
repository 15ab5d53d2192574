//! One runner a command.

pub mod capture;
mod clock;
mod compare;
mod console;
mod convert;
mod doctor;
mod exit;
mod filter;
mod generate;
mod interfaces;
mod lines;
mod loss;
mod measuring;
mod print;
mod report;
mod restore;
mod signals;
mod streams;
mod terminal;
mod whole_file;

pub use exit::Exit;
use tokio::runtime::Runtime;

use crate::capturing::host::{affinity, cpu_list};
use crate::cli::Plan;
use crate::failure::{Context, Failure, Hint};

/// Runs a plan.
pub fn run(plan: Plan) -> Result<Exit, Failure> {
    match plan {
        Plan::ListInterfaces => interfaces::list(),
        Plan::Capture(plan) => capture::run(&plan),
        Plan::ShowFilter { filter, form } => filter::show(&filter, form),
        Plan::Clock(plan) => clock::run(&plan),
        Plan::Compare(plan) => compare::run(&plan),
        Plan::Convert(plan) => signals::whole_or_nothing(move || convert::run(&plan)),
        Plan::Doctor(plan) => doctor::run(&plan),
        Plan::Generate(plan) => generate::run(&plan),
        Plan::ReadStreams { file, json } => streams::run(&file, json),
        Plan::Loss(plan) => loss::run(&plan),
        Plan::Prediction(plan) => loss::answer(&plan),
        Plan::Report(plan) => signals::whole_or_nothing(move || report::run(&plan)),
        Plan::Restore => restore::run(),
    }
}

/// A tokio runtime on this thread.
fn runtime() -> Result<Runtime, Failure> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().build();
    runtime.context("cannot start the tokio runtime")
}

/// The CPU given by --cpu, or the first one allowed; `task` is what for.
fn choose_cpu(asked: Option<u32>, task: &str) -> Result<u32, Failure> {
    let allowed = affinity::allowed_cpus().context("cannot read this process's CPU affinity")?;
    affinity::choose(asked, &allowed).ok_or_else(|| {
        let cpu = asked.map_or("any CPU".into(), |cpu| format!("CPU {cpu}"));
        let allowed = cpu_list::list(&allowed);
        Failure::new(format!(
            "cannot {task} {cpu}: this process may run on {allowed}"
        ))
        .hint("give --cpu one of these")
    })
}
