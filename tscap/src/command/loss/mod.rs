//! `tscap loss`.

mod plan;
mod sweep;

use std::env;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{Context, Failure, Hint as _};
use tscap_capture::check;
use tscap_cli::ReceiveCpu;
use tscap_host::{affinity, cpu_list};
use tscap_lab::loss::{LossError, Placement};
use tscap_traffic::load::cpu_apart;

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
    receive_cpu: ReceiveCpu,
    folder: Option<&Path>,
    file_bytes_per_s: Option<u64>,
) -> Result<Placement, Failure> {
    check::check_privileges_to_make_namespaces()?;
    check::check_kernel()?;
    let sender_cpu = super::choose_cpu(cpu, "send from")?;
    let receive_cpu = match receive_cpu {
        ReceiveCpu::Senders => None,
        asked => {
            let allowed = affinity::allowed_cpus();
            let allowed = allowed.context("cannot read this process's CPU affinity")?;
            Some(receiver(asked, sender_cpu, &allowed)?)
        }
    };
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

/// The CPU to receive on apart from the sender's.
fn receiver(asked: ReceiveCpu, sender: u32, allowed: &[u32]) -> Result<u32, Failure> {
    let ReceiveCpu::Cpu(receiver) = asked else {
        return cpu_apart(sender, allowed).ok_or_else(|| {
            Failure::new(format!(
                "cannot receive on a CPU of its own, as in the paper: this process may run on CPU \
                 {sender} alone"
            ))
            .hint(
                "allow it two CPUs; without --paper frames are received on the sender's: --size \
                 72..1200/8 --gap 12 --snaplen whole,256,128,96 --ring-size 1M,16M --duration 5",
            )
        });
    };
    if receiver == sender {
        return Err(Failure::new(format!(
            "cannot receive on CPU {receiver} apart from the sender: it is the sender's"
        ))
        .hint("without --receive-cpu it is; to receive apart from it takes two CPUs"));
    }
    if !allowed.contains(&receiver) {
        return Err(Failure::new(format!(
            "cannot receive on CPU {receiver}: this process may run on {}",
            cpu_list::list(allowed)
        ))
        .hint("give --receive-cpu one of these"));
    }
    Ok(receiver)
}

/// A sweep that gave nothing.
fn refusal(error: LossError) -> Failure {
    let hint = match &error {
        LossError::Stopped(_) => {
            return Failure::new("ended before the costs were known: nothing was measured");
        }
        LossError::NotInstalled(absent) => {
            let package = absent.0.package().unwrap_or("its package");
            return Failure::new(error.to_string())
                .hint(format!("apt-get install {package}, or leave --peer out"));
        }
        _ => "tscap doctor says what this machine lacks",
    };
    Failure::from_error(error, "cannot measure").hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn apart_is_the_last_cpu_that_does_not_send() {
        let of = |asked, sender, allowed: &[u32]| receiver(asked, sender, allowed);
        assert_eq!(of(ReceiveCpu::Apart, 0, &[0, 1, 3]).ok(), Some(3));
        assert_eq!(of(ReceiveCpu::Apart, 3, &[0, 1, 3]).ok(), Some(1));
        assert_eq!(of(ReceiveCpu::Cpu(1), 0, &[0, 1]).ok(), Some(1));
        for (asked, allowed) in [
            (ReceiveCpu::Apart, &[0][..]),
            (ReceiveCpu::Cpu(0), &[0, 1]),
            (ReceiveCpu::Cpu(2), &[0, 1]),
        ] {
            assert!(of(asked, 0, allowed).is_err(), "{asked:?}");
        }
    }
}
