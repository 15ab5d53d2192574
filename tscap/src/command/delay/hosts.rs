//! Between two hosts, from captures of both.

use std::fs::File;
use std::io::BufReader;

use super::method;
use crate::command::measuring::Start;
use crate::command::signals::Signals;
use crate::command::{Context as _, Exit, Failure, Hint as _};
use tscap_base::kernel_files::KernelFiles;
use tscap_cli::{DelayPlan, HostFiles};
use tscap_delay::live::LivePlan;
use tscap_delay::schema::{Correction, Measurement, Method, VERSION};
use tscap_results::envelope::Kind;
use tscap_two_hosts::files::measure_files;

pub(super) async fn measure(
    plan: &DelayPlan,
    live: &LivePlan,
    hosts: &HostFiles,
    correction: Option<Correction>,
) -> Result<Option<(Measurement, Exit)>, Failure> {
    let start = Start::now(&KernelFiles::live());
    let mut signals = Signals::new()?;
    let [one, other] = &hosts.paths;
    let mut names = vec![one.display().to_string()];
    names.extend((one != other).then(|| other.display().to_string()));
    let what = format!("cannot measure in {}", names.join(" and "));
    let open = |path| {
        File::open(path)
            .context(what.clone())
            .hint("give a pcapng file of each host")
    };
    let files = [open(one)?, open(other)?];
    let asked = hosts.plan.clone();
    let read = signals.unless_ended(move || {
        let [mut first, mut second] = files.map(BufReader::new);
        measure_files([&mut first, &mut second], &asked)
    });
    let Some(found) = read.await? else {
        return Ok(None);
    };
    let found = found.context(what);
    let found = found
        .hint("give captures of both hosts from one time, with both directions of an interface")?;
    let method = Method {
        file: Some(names.join(", ")),
        correction,
        ..method(
            plan,
            live,
            hosts.plan.matched_by,
            &found.clock,
            found.memory_bytes,
        )
    };
    let about = start.circumstances(&KernelFiles::live(), 0, "");
    let about = about.of_capture(found.started, found.seconds, found.captured);
    let exit = if found.is_whole {
        Exit::Success
    } else {
        Exit::Fault
    };
    let measurement = Measurement {
        about: about.envelope(Kind::Delay, VERSION, !found.is_whole),
        method,
        passages: found.passages,
        sessions: Vec::new(),
        alignment: found.alignment,
        warnings: found.warnings,
    };
    Ok(Some((measurement, exit)))
}
