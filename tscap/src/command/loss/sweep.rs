//! The sweep.

use super::{Progress, placement, refusal};
use crate::command::measuring::{self, Experiment};
use crate::command::{Context, Exit, Failure};
use tscap_base::text::numbers::{counted, ring as length};
use tscap_cli::LossPlan;
use tscap_host::system;
use tscap_lab::loss::{Grid, LossError, Sweep, assemble, captures, run as measure};
use tscap_traffic::load::{NotInstalled, Tool};

pub(in crate::command) fn run(plan: &LossPlan) -> Result<Exit, Failure> {
    measuring::run(&plan.output, session(plan))
}

/// `None` if a second signal ended it at once.
async fn session(plan: &LossPlan) -> Result<Option<(Sweep, Exit)>, Failure> {
    let mut console = measuring::console(plan.output.json)?;
    let placement = placement(
        plan.cpu,
        plan.receive_cpu,
        plan.folder.as_deref(),
        plan.file_rate,
    )?;
    let find = |tool: Tool| tool.find(&placement.executable).map(drop);
    let (grid, mut known) = installed(plan, find)?;
    let grid = &grid;
    let pair = measuring::pair("run as root")?;
    let interface = pair.rx.name.clone();
    let rings = system::online_cpus()
        .context("cannot tell the CPUs online")?
        .len();
    known.extend(uneven_memory(grid, rings));
    for text in &known {
        console.warning(text);
    }
    let of = captures(grid, &placement);
    let experiment = Experiment {
        thread: "tscap-loss",
        ready: &format!(
            "{} on {interface}, sent from CPU {}, about {}",
            counted(grid.len() as u64, "point"),
            placement.sender_cpu,
            measuring::about(grid.seconds())
        ),
        amount: measuring::Amount {
            of,
            seconds: |_| grid.seconds(),
        },
        left_out: "the point under way",
        cpu: placement.sender_cpu,
        interface: &interface,
        is_ours: true,
    };
    let progress = |captures| Progress { captures, of };
    let measured = measuring::experiment(&mut console, experiment, progress, {
        let (placement, grid) = (placement.clone(), grid.clone());
        move |stop, done| measure(pair, placement, &grid, stop, done)
    });
    let Some((results, about)) = measured.await? else {
        return Ok(None);
    };
    let mut results = results.map_err(refusal)?;
    results.warnings.extend(known);
    let exit = measuring::exit(results.ended_by.as_ref());
    Ok(Some((assemble(results, about, &placement, grid), exit)))
}

/// The grid with the programs that are installed, and a warning for each one left out.
///
/// # Errors
/// If one is missing that was asked for by name: before anything is measured.
fn installed(
    plan: &LossPlan,
    find: impl Fn(Tool) -> Result<(), NotInstalled>,
) -> Result<(Grid, Vec<String>), Failure> {
    let (mut grid, mut left_out) = (plan.grid.clone(), Vec::new());
    for peer in &plan.grid.peers {
        match find(*peer) {
            Ok(()) => {}
            Err(absent) if plan.optional_peers => {
                left_out.push(format!("{absent}: it is left out"));
                grid.peers.retain(|kept| kept != peer);
            }
            Err(absent) => return Err(refusal(LossError::NotInstalled(absent))),
        }
    }
    Ok((grid, left_out))
}

/// What to know where a program can't have as much memory as tscap's `rings` together.
fn uneven_memory(grid: &Grid, rings: usize) -> Vec<String> {
    const MIB: usize = 1 << 20;
    let xdpdump = grid.peers.contains(&Tool::Xdpdump).then(|| {
        "xdpdump's buffer cannot be set: it has 1 MiB a CPU, and tells of a frame lost there only \
         with the next one that fits"
            .to_owned()
    });
    let xdpdump = xdpdump.into_iter();
    if !grid.peers.contains(&Tool::Dumpcap) {
        return xdpdump.collect();
    }
    let totals = grid.rings.iter().map(|ring| ring * rings);
    let uneven = totals.filter(|total| !total.is_multiple_of(MIB));
    let reported = uneven.map(|total| {
        let whole = (total / MIB).max(1) * MIB;
        format!(
            "dumpcap takes whole MiB of memory: it had {} where tscap's rings had {} together",
            length(whole as u64),
            length(total as u64)
        )
    });
    xdpdump.chain(reported).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paper's subject may be missing; a program that was named may not.
    #[test]
    fn only_peers_that_nobody_named_may_be_missing() {
        let peers = vec![Tool::Dumpcap, Tool::Tcpdump];
        let plan = |optional_peers| LossPlan {
            grid: Grid {
                peers: peers.clone(),
                ..Grid::quick()
            },
            cpu: None,
            receive_cpu: tscap_cli::ReceiveCpu::Senders,
            optional_peers,
            folder: None,
            file_rate: None,
            output: tscap_cli::ResultOutput {
                json: false,
                verbose: false,
                report: None,
            },
        };
        let has_tcpdump = |tool| match tool {
            Tool::Tcpdump => Ok(()),
            absent => Err(NotInstalled(absent)),
        };
        let (grid, left_out) = installed(&plan(true), has_tcpdump).unwrap();
        assert_eq!(grid.peers, [Tool::Tcpdump]);
        assert!(
            left_out[0].contains("dumpcap is not installed"),
            "{left_out:?}"
        );
        assert!(installed(&plan(false), has_tcpdump).is_err());
    }

    #[test]
    fn memory_that_dumpcap_cannot_have_is_told() {
        let mut grid = Grid {
            rings: vec![128 << 10, 512 << 10, 1 << 20],
            peers: vec![Tool::Tcpdump],
            ..Grid::quick()
        };
        assert!(uneven_memory(&grid, 2).is_empty());
        grid.peers.push(Tool::Dumpcap);
        let [least] = &uneven_memory(&grid, 2)[..] else {
            panic!("two rings of 512 KiB are a whole MiB");
        };
        assert!(
            least.contains("1 MiB where") && least.contains("256 KiB"),
            "{least}"
        );
        assert_eq!(uneven_memory(&grid, 3).len(), 2);
    }
}
