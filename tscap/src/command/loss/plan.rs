//! `--plan`: whether a load will fit, or from which rate on each stage loses frames.

mod costs;
mod disk;
mod text;

use std::path::Path;

use nix::sys::statvfs::statvfs;

use self::disk::Storage;
use crate::command::console::Console;
use crate::command::print::{json_line, print};
use crate::command::signals::Signals;
use crate::command::{Context, Exit, Failure, measuring};
use tscap_cli::{Load, PredictionPlan, PredictionScope};
use tscap_lab::loss::model::Costs;
use tscap_lab::loss::{Answer, DiskRate, GridPoint, Limits, Pace, Question, answer as predict};
use tscap_traffic::load::Tool;

/// What measures run with.
struct Session {
    signals: Signals,
    console: Console,
}

/// What the machine takes.
struct Machine {
    /// The writer is the disk.
    costs: Costs,
    disk: Option<DiskRate>,
}

/// Answers; the exit code tells whether a load fits.
pub(in crate::command) fn answer(plan: &PredictionPlan) -> Result<Exit, Failure> {
    let Some(machine) = crate::command::runtime()?.block_on(measured(plan))? else {
        return Ok(Exit::Aborted);
    };
    match &plan.asked {
        PredictionScope::Load(load) => {
            let room = plan.folder.as_deref().map(free).transpose()?;
            let answer = answer_load(plan, load, machine, room);
            print(&if plan.json {
                json_line(&answer)
            } else {
                text::of_load(&answer, measuring::layout(true).columns)
            })?;
            Ok(if answer.fits {
                Exit::Success
            } else {
                Exit::Fault
            })
        }
        PredictionScope::Limits {
            sizes,
            snaplens,
            port,
        } => {
            let costs = (plan.clock, machine.costs);
            let limits = Limits::new(costs, machine.disk, *port, (sizes, snaplens));
            print(&if plan.json {
                json_line(&limits)
            } else {
                text::of_limits(&limits, measuring::layout(true).columns)
            })?;
            Ok(Exit::Success)
        }
    }
}

/// Finds out what it takes; `None` if a second signal came.
async fn measured(plan: &PredictionPlan) -> Result<Option<Machine>, Failure> {
    let mut session = Session {
        signals: Signals::new()?,
        console: measuring::console(plan.json)?,
    };
    let saved = plan.from.as_deref();
    let saved = saved
        .map(|path| costs::saved(path, plan.clock))
        .transpose()?;
    let storage = disk::storage(plan)?;
    let memory = match storage {
        Storage::Memory(folder) => Some(folder),
        _ => None,
    };
    let costs = match saved {
        Some(costs) => Some(costs),
        None => costs::measured(plan, memory, &mut session).await?,
    };
    let Some(costs) = costs else {
        return Ok(None);
    };
    let disk = match storage {
        Storage::Disk(folder, disk) => {
            let rate = disk::measured(folder, disk, plan.disk_time, &mut session).await?;
            let Some(rate) = rate else {
                return Ok(None);
            };
            Some(rate)
        }
        Storage::Memory(folder) => {
            let name = folder.display();
            let note = format!("{name} is in memory: there is no disk to measure");
            session.console.note(&note);
            None
        }
        Storage::Unknown | Storage::Given => None,
    };
    let measured = disk.as_ref().map(|disk| disk.bytes_per_s as u64);
    let costs = match plan.file_rate.or(measured) {
        Some(rate) => costs.with_file_rate(rate),
        None => costs,
    };
    Ok(Some(Machine { costs, disk }))
}

fn answer_load(plan: &PredictionPlan, load: &Load, machine: Machine, room: Option<u64>) -> Answer {
    let grid_point = GridPoint {
        tool: Tool::Tscap,
        clock: plan.clock,
        size: load.size,
        pace: Pace::Rate(load.rate),
        snaplen: load.snaplen,
        ring: load.ring,
    };
    let question = Question {
        size: load.size,
        caplen: grid_point.caplen(),
        rate: grid_point.pace.rate(load.size),
        seconds: load.lasting.as_secs_f64(),
        ring_bytes: load.ring as u64,
    };
    Answer {
        disk: machine.disk,
        ..predict(&machine.costs, question, room)
    }
}

/// Room for a file in a folder, bytes.
fn free(folder: &Path) -> Result<u64, Failure> {
    let disk = statvfs(folder).context(format!("cannot tell the room in {}", folder.display()))?;
    Ok(disk.blocks_available() * disk.fragment_size())
}
