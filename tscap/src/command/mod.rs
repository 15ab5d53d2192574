//! One runner a command.

mod capable_copy;
pub mod capture;
mod clock;
mod compare;
mod console;
mod convert;
mod copy_target;
mod counters;
mod delay;
mod doctor;
mod exit;
mod extcap;
mod filter;
mod following;
mod generate;
mod interfaces;
mod keys;
mod lines;
mod live;
mod loss;
mod measuring;
mod merge;
mod observer;
mod print;
mod qos;
mod report;
mod restore;
mod signals;
mod stamp;
mod terminal;

use std::io::Write as _;

pub use exit::Exit;
use tokio::runtime::Runtime;

use tscap_base::failure::{Context, Failure, Hint};
use tscap_cli::Plan;
use tscap_flows::layers::live::switch;
use tscap_host::journald::{self, Journald};
use tscap_host::{affinity, caps, cpu_list, epoll, process};
use tscap_live::membership;
use tscap_live::settings::keeper;

/// Open files that a capture of one interface has, with some to spare.
const FEWEST_FILES: u64 = 64;

/// Runs a plan.
pub fn run(plan: Plan) -> Result<Exit, Failure> {
    check_open_files()?;
    capable_copy::take_its_place(&plan)?;
    membership::check(&plan.acts())?;
    if plan.is_of_files() {
        // Who has written the files is not known. Threads are started later.
        caps::keep_only(&caps::FOR_FILES).context("cannot give up capabilities")?;
    }
    // Before anything is begun, so that none ends a command half way. Helpers take none.
    if !plan.is_of_helper() {
        signals::take()?;
    }
    match plan {
        Plan::Explain(text) => print::print(&text),
        Plan::ListInterfaces(namespaces) => interfaces::list(&namespaces),
        Plan::Capture(plan) => capture::run(&plan),
        Plan::ShowFilter { filter, form } => filter::show(&filter, form),
        Plan::Clock(plan) => clock::run(&plan),
        Plan::ReadClock(plan) => clock::read(&plan),
        Plan::Compare(plan) => compare::run(&plan),
        Plan::Observer(plan) => observer::run(&plan),
        Plan::Convert(plan) => signals::whole_or_nothing(move || convert::run(&plan)),
        Plan::Counters(plan) => counters::run(&plan),
        Plan::Delay(plan) => delay::run(&plan),
        Plan::Reflect(plan) => delay::serve::run(&plan),
        Plan::Doctor(plan) => doctor::run(&plan),
        Plan::Echo(plan) => generate::echo(&plan),
        Plan::Extcap(plan) => extcap::run(&plan),
        Plan::Generate(plan) => generate::run(&plan),
        Plan::Loss(plan) => loss::run(&plan),
        Plan::Merge(plan) => signals::whole_or_nothing(move || merge::run(&plan)),
        Plan::Prediction(plan) => loss::answer(&plan),
        Plan::Qos(plan) => qos::run(&plan),
        Plan::Layers(plan) => qos::layers::run(&plan),
        Plan::Report(plan) => signals::whole_or_nothing(move || report::run(&plan)),
        Plan::Stamp(plan) => stamp::run(&plan),
        Plan::Restore => restore::run(),
        Plan::KeepSettings => keep_settings(),
        Plan::SwitchStatistics => switch_statistics(),
    }
}

/// Says on standard error why a command failed.
pub fn say_failure(failure: &Failure) {
    let text = format!("tscap: {failure}");
    // Nobody may be left to read it.
    let _ = if journald::is_stderr() {
        Journald::open().and_then(|mut journal| {
            let entry = journald::entry(journald::Priority::Error, &text, &[]);
            journal.write_all(&entry)
        })
    } else {
        // In one write, for a reader that takes what is there (Wireshark).
        let text = terminal::fitted(&text, std::io::stderr());
        std::io::stderr().write_all(format!("{text}\n").as_bytes())
    };
}

fn keep_settings() -> Result<Exit, Failure> {
    let kept = keeper::serve().context("cannot keep the settings of a capture");
    let kept = kept.hint("tscap capture starts this command itself");
    kept.map(|()| Exit::Success)
}

fn switch_statistics() -> Result<Exit, Failure> {
    let served = switch::serve().context("cannot switch the kernel's statistics of programs");
    let served =
        served.hint("a measurement at layers starts this command itself (tscap qos --layers)");
    served.map(|()| Exit::Success)
}

/// A tokio runtime on this thread.
fn runtime() -> Result<Runtime, Failure> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    // tokio panics where it can't wait.
    let runtime = epoll::try_out().and_then(|()| builder.enable_all().build());
    let runtime = runtime.context("cannot wait for events (epoll)");
    runtime.hint(
        "let a sandbox allow epoll_create1, epoll_ctl, epoll_wait and eventfd2, as those of systemd \
         (SystemCallFilter=@system-service) and Docker do; or raise the limit of open files",
    )
}

/// Refuses a limit of open files with which one that is needed is missed at some point.
fn check_open_files() -> Result<(), Failure> {
    let most = process::allow_files(FEWEST_FILES);
    if most >= FEWEST_FILES {
        return Ok(());
    }
    Err(Failure::new(format!(
        "this process may have {most} files open, and needs {FEWEST_FILES}"
    ))
    .hint("ulimit -n 1024, or LimitNOFILE= of a service"))
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
