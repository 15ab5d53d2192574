//! The sweep.

use std::env;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::{console, pair, place, refusal};
use crate::cli::LossPlan;
use crate::clock::{HostClocks, Reference as _, StampSource};
use crate::command::print::print;
use crate::command::report::{check_writable, write_page};
use crate::command::signals::Signals;
use crate::command::{Exit, Failure, Hint, measuring};
use crate::compare::{Ticks, describe};
use crate::load::Tool;
use crate::loss::{
    Circumstances, LossError, Place, Results, Sweep, assemble, captures, run as measure,
};
use crate::report::{sweep_page, sweep_text};
use crate::sys::kernel_files::KernelFiles;

/// How far it is.
#[derive(Serialize)]
struct Progress {
    captures: u32,
    of: u32,
}

/// Measures, and says what came of it.
pub(in crate::command) fn run(plan: &LossPlan) -> Result<Exit, Failure> {
    if let Some(path) = &plan.report {
        check_writable(path)?;
    }
    let runtime = crate::command::capture::runtime()?;
    let Some((sweep, exit)) = runtime.block_on(session(plan))? else {
        return Ok(Exit::Aborted);
    };
    if plan.json {
        let json = serde_json::to_string(&sweep).trying("cannot write the sweep as JSON")?;
        print(&format!("{json}\n"))?;
    } else {
        print(&sweep_text(&sweep))?;
    }
    if let Some(path) = &plan.report {
        write_page(&sweep_page(&sweep), path)?;
    }
    Ok(exit)
}

/// `None` if a second signal ended it at once.
async fn session(plan: &LossPlan) -> Result<Option<(Sweep, Exit)>, Failure> {
    let mut signals = Signals::new().trying("cannot catch signals")?;
    let mut console = console(plan.json)?;
    let grid = &plan.grid;
    let place = place(plan.cpu, plan.receive_cpu, plan.folder.as_deref())?;
    check_programs(&grid.peers, &place)?;
    let pair = pair()?;
    let interface = pair.rx.name.clone();
    let files = KernelFiles::live();
    console.say(&format!(
        "ready: {} points on {interface}, sent from CPU {}, about {}",
        grid.len(),
        place.sender_cpu,
        humantime::format_duration(Duration::from_secs(grid.seconds() as u64 + 1))
    ));
    let started_ns = HostClocks::new(StampSource::Ktime).read().real[0].0;
    let (before, start) = (Ticks::read(&files), Instant::now());
    let of = captures(grid, &place);
    let amount = measuring::Amount {
        of,
        seconds: grid.seconds(),
    };
    let measured = measuring::measure(
        "tscap-loss",
        amount,
        "the point under way",
        &mut signals,
        &mut console,
        |captures| Progress { captures, of },
        {
            let (place, grid) = (place.clone(), grid.clone());
            move |stop, done| {
                measure(pair, place, &grid, stop, |captures| {
                    // Nobody may be listening any more.
                    let _ = done.send(captures);
                })
            }
        },
    );
    let Some(results) = measured.await? else {
        console.error("aborted: nothing is reported");
        return Ok(None);
    };
    let results = results.map_err(refusal)?;
    let exit = exit(&results);
    let stolen = before.zip(Ticks::read(&files));
    let stolen = stolen.map_or(0.0, |(before, after)| after.steal_percent(before));
    let about = Circumstances {
        command: env::args_os()
            .map(|word| word.to_string_lossy().into_owned())
            .collect(),
        started_ns,
        seconds: start.elapsed().as_secs_f64(),
        machine: describe(&files, place.sender_cpu, &interface, stolen),
        grid: grid.clone(),
        place,
    };
    Ok(Some((assemble(results, about), exit)))
}

/// Misses a program before anything is measured.
fn check_programs(peers: &[Tool], place: &Place) -> Result<(), Failure> {
    for peer in peers {
        if let Err(absent) = peer.find(&place.executable) {
            return Err(refusal(LossError::Absent(absent)));
        }
    }
    Ok(())
}

fn exit(results: &Results) -> Exit {
    match results.ended_by {
        None | Some(LossError::Stopped) => Exit::Success,
        Some(_) => Exit::Fault,
    }
}
