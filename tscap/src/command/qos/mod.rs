//! `tscap qos`.

pub(super) mod layers;
mod live;

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use super::measuring::{self, Start};
use super::signals::Signals;
use super::{Context as _, Exit, Failure, Hint as _, filter};
use tscap_base::kernel_files::KernelFiles;
use tscap_cli::{QosPlan, QosSource};
use tscap_flows::file::{FilePlan, FileResult, measure_file};
use tscap_flows::live::LivePlan;
use tscap_flows::schema::{Method, Quality, VERSION};
use tscap_results::envelope::Kind;
use tscap_streams::CaptureError;

/// Tells the quality of flows.
pub(super) fn run(plan: &QosPlan) -> Result<Exit, Failure> {
    match &plan.source {
        QosSource::File(path) => measuring::run(&plan.output, of_file(plan, path)),
        QosSource::Interfaces(asked) => {
            // libpcap may take seconds, and wait for names: before signals are asked for.
            let filter = plan.filter.as_ref().map(filter::compile).transpose()?;
            let live = LivePlan {
                interfaces: asked.interfaces.clone(),
                namespace: asked.namespace.clone(),
                direction: asked.direction,
                clock: asked.clock,
                reference: None,
                filter,
                ring_bytes: asked.ring_bytes,
                options: plan.options.clone(),
                sort: plan.sort,
                top: plan.top,
                count: asked.count,
            };
            measuring::run(&plan.output, live::session(plan, &live, asked))
        }
    }
}

async fn of_file(plan: &QosPlan, path: &Path) -> Result<Option<(Quality, Exit)>, Failure> {
    let start = Start::now(&KernelFiles::live());
    let filter = plan.filter.as_ref().map(filter::compile_for_file);
    let mut signals = Signals::new()?;
    let what = || format!("cannot read {}", path.display());
    let file = File::open(path).context(what());
    let file = file.hint("give a pcapng file, or the interfaces by -i")?;
    let file_plan = FilePlan {
        options: plan.options.clone(),
        sort: plan.sort,
        top: plan.top,
        filter: filter.transpose()?.map(|filter| filter.program),
    };
    let read = signals.unless_ended(move || measure_file(&mut BufReader::new(file), &file_plan));
    let Some(found) = read.await? else {
        return Ok(None);
    };
    let found = found.map_err(|error| {
        let hint = match error {
            CaptureError::NotPcapng(_) => {
                "tscap reads pcapng: `editcap -F pcapng IN OUT` makes it of other formats"
            }
            CaptureError::Seek(_) => "give a regular file, not a pipe: it is read twice",
        };
        Failure::from_error(error, what()).hint(hint)
    })?;
    Ok(Some(of_found(plan, path, start, found)))
}

fn of_found(plan: &QosPlan, path: &Path, start: Start, found: FileResult) -> (Quality, Exit) {
    let about = start.circumstances(&KernelFiles::live(), 0, "");
    let about = about.of_capture(found.started, found.seconds, found.captured);
    let exit = match (found.account.adds_up(), found.is_whole) {
        (false, _) => Exit::DoesNotAddUp,
        (true, false) => Exit::Fault,
        (true, true) => Exit::Success,
    };
    let quality = Quality {
        about: about.envelope(Kind::Qos, VERSION, !found.is_whole),
        method: method(plan, Some(path.display().to_string())),
        account: found.account,
        places: found.places,
        flows: found.flows,
        warnings: found.warnings,
    };
    (quality, exit)
}

fn method(plan: &QosPlan, file: Option<String>) -> Method {
    Method {
        flow: plan.options.by,
        inner: plan.options.looks_inside,
        sort: plan.sort,
        top: plan.top as u64,
        max_flows: plan.options.max_flows as u64,
        memory_bytes: plan.options.memory_bytes() as u64,
        file,
    }
}
