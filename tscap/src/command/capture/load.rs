//! Loads the program of a capture, and says what would help where that fails.

use super::Programs;
use super::prepare::Machine;
use crate::cli::CapturePlan;
use crate::clock::StampSource;
use crate::command::{Failure, Hint};
use crate::xdp::{LoadError, LoadOptions, Loaded};

/// Loads the program and maps its rings.
pub(super) fn load(
    plan: &CapturePlan,
    programs: &Programs<'_>,
    machine: &Machine,
) -> Result<Loaded, Failure> {
    let options = LoadOptions {
        object: programs.object,
        program: programs.name,
        ring_bytes: machine.ring_bytes,
        ring_cpus: &machine.ring_cpus,
        possible_cpus: machine.possible_cpus,
        snaplen: plan.snaplen,
        keep_raw: plan.keep_raw,
        packet_meta: plan.packet_meta,
    };
    let mut loaded = load_for(plan.clock, &options)?;
    for link in &machine.interfaces {
        loaded
            .counters
            .announce(link.index)
            .trying("cannot set up the loss counters")?;
    }
    Ok(loaded)
}

/// Loads a program that stamps with `source`.
pub(super) fn load_for(source: StampSource, options: &LoadOptions<'_>) -> Result<Loaded, Failure> {
    Loaded::load(options).map_err(|error| {
        let hint = load_hint(source, &error);
        let what = format!("cannot load the XDP program {}", options.program);
        let failure = Err::<(), _>(error).trying(what).expect_err("it is one");
        failure.hint(hint)
    })
}

fn load_hint(source: StampSource, error: &LoadError) -> &'static str {
    match error.os_error() {
        Some(libc::ENOMEM) => "give a smaller --ring-size",
        Some(libc::EPERM | libc::EACCES) => {
            "run as root; in a container the host must grant CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON"
        }
        _ if source == StampSource::Tsc => {
            "this kernel lets no XDP program read the TSC: stock kernels do since about 6.16 \
             (bpf_perf_event_read); --clock ktime works everywhere"
        }
        _ => "tscap needs Linux 5.18 or later on x86-64 with BPF and XDP, and 6.1 for --clock tai",
    }
}
