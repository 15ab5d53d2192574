//! `tscap loss`.

mod plan;
mod sweep;

use std::env;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{Context, Failure, Hint as _};
use crate::capturing::capture::check;
use crate::capturing::host::{affinity, cpu_list};
use crate::measuring::loss::{LossError, Placement};

pub(super) use plan::answer;
pub(super) use sweep::run;

/// Where captures are written unless a folder is given: memory, as in the paper.
const FOLDER: &str = "/dev/shm";

/// How far it is.
#[derive(Serialize)]
struct Progress {
    captures: u32,
    of: u32,
}

/// Where to measure, and with what; nothing is made yet.
fn placement(
    cpu: Option<u32>,
    receive_cpu: Option<u32>,
    folder: Option<&Path>,
    file_bytes_per_s: Option<u64>,
) -> Result<Placement, Failure> {
    check::check_privileges_to_make_namespaces()?;
    check::check_kernel()?;
    let sender_cpu = super::choose_cpu(cpu, "send from")?;
    if let Some(receiver) = receive_cpu {
        let allowed =
            affinity::allowed_cpus().context("cannot read this process's CPU affinity")?;
        if receiver == sender_cpu {
            return Err(Failure::new(format!(
                "cannot receive on CPU {receiver} apart from the sender: it is the sender's"
            ))
            .hint("without --receive-cpu it is; to receive apart from it takes two CPUs"));
        }
        if !allowed.contains(&receiver) {
            return Err(Failure::new(format!(
                "cannot receive on CPU {receiver}: this process may run on {}",
                cpu_list::list(&allowed)
            ))
            .hint("give --receive-cpu one of these"));
        }
    }
    let folder = folder.map_or_else(|| PathBuf::from(FOLDER), Path::to_owned);
    tempfile::tempfile_in(&folder)
        .context(format!("cannot write captures in {}", folder.display()))
        .hint("give --folder one that you may write to")?;
    Ok(Placement {
        executable: env::current_exe().context("cannot find this program's own file")?,
        sender_cpu,
        receive_cpu,
        folder,
        file_bytes_per_s,
    })
}

/// A sweep that gave nothing.
fn refusal(error: LossError) -> Failure {
    let hint = match &error {
        LossError::Stopped => {
            return Failure::new("ended before the costs were known: nothing was measured");
        }
        LossError::Absent(absent) => {
            let package = absent.0.package().unwrap_or("its package");
            return Failure::new(error.to_string())
                .hint(format!("apt-get install {package}, or leave --peer out"));
        }
        _ => "tscap doctor says what this machine lacks",
    };
    Failure::from_error(error, "cannot measure").hint(hint)
}
