//! What the rounds take turns with: every stamp that works here, loaded.

use std::io;
use std::sync::Arc;

use super::bed::CompareBed;
use super::kernel_stamp::KernelStamps;
use super::programs::{Programs, ProgramsError, Settings};
use super::request::{ExperimentError, FrameSource, Request};
use super::whole_program::WholeProgram;
use super::{RoundItem, Stamp};
use tscap_base::kernel_files::KernelFiles;
use tscap_base::text::causes::chain;
use tscap_clock::{NsPerCycle, StampPath, StampSource, TscPath, measure_tsc_rate};
use tscap_host::system;
use tscap_network::bpf::{InterfaceLink, LinkPoint};
use tscap_programs::hook::{Kfunc, NoKfunc};
use tscap_time::tsc;
use tscap_traffic::load::{Stop, Traffic};

/// `enum xdp_action`.
const XDP_DROP: u32 = 1;
const XDP_PASS: u32 = 2;

/// Loads what this machine can, and attaches the first program; what it can't, and why,
/// is a warning.
pub(super) fn prepare(
    frame_source: FrameSource,
    request: &Request,
    (allowed, tool_cpus): (Vec<u32>, Vec<u32>),
    stop: Arc<Stop>,
    warnings: &mut Vec<String>,
) -> Result<(CompareBed, Vec<RoundItem>), ExperimentError> {
    let cpu = request.cpu;
    let settings = Settings {
        cpu,
        action: match frame_source {
            FrameSource::Own { .. } => XDP_DROP,
            FrameSource::Live { .. } => XDP_PASS,
        },
        more_reads: 0,
        more_work: 0,
    };
    let kfuncs = kfuncs(warnings);
    let interrupts = request.interrupts.as_ref();
    let mut programs = Programs::load(settings, &kfuncs, interrupts, request.counters.clone())?;
    let mut stamps = vec![None, Some(StampPath::Ktime)];
    match programs.load_tai() {
        Ok(()) => stamps.push(Some(StampPath::Tai)),
        Err(error) => warnings.push(format!("no tai here: {}", chain(&error))),
    }
    let rate = usable_tsc(request, warnings);
    if let Some(rate) = rate {
        stamps.extend(tsc_stamps(&mut programs, &kfuncs, rate, warnings));
    }
    let possible = system::possible_cpus().map_err(io::Error::other)?;
    // Without a program that reads the TSC nobody needs it.
    let is_tsc = |stamp: &Stamp| stamp.is_some_and(|path| path.source() == StampSource::Tsc);
    let rate = rate.filter(|_| stamps.iter().any(is_tsc));
    let whole = stamps
        .iter()
        .map(|stamp| WholeProgram::load(*stamp, &kfuncs, cpu, possible));
    let whole = whole.collect::<Result<_, _>>()?;
    let mut turns: Vec<_> = stamps.iter().copied().map(RoundItem::from).collect();
    if interrupts.is_some() {
        turns.extend(with_interrupts_off(&mut programs, &stamps)?);
    }
    let first = Attached::to(&frame_source, &programs, (cpu, rate), warnings)?;
    let bench = CompareBed {
        programs,
        link: first.link,
        frame_source,
        traffic: first.traffic,
        whole,
        rate,
        cpu,
        allowed,
        tool_cpus,
        kernel: first.kernel,
        stop,
    };
    Ok((bench, turns))
}

/// The first program at its interface, and what stands beside it where the frames are the
/// experiment's own.
struct Attached {
    link: InterfaceLink,
    traffic: Option<Traffic>,
    kernel: Option<KernelStamps>,
}

impl Attached {
    fn to(
        frame_source: &FrameSource,
        programs: &Programs,
        (cpu, rate): (u32, Option<NsPerCycle>),
        warnings: &mut Vec<String>,
    ) -> Result<Self, ExperimentError> {
        let attach = |ifindex| {
            InterfaceLink::attach(programs.cost_program(None)?, ifindex, LinkPoint::NativeXdp)
        };
        match frame_source {
            FrameSource::Own { pair, .. } => {
                // Without a program too, redirected frames are to come up to the stack.
                pair.take_redirected()?;
                let kernel = KernelStamps::open(pair)?;
                let link = pair.rx_netns.within(|| attach(pair.rx.index))?;
                pair.tx_netns.enter()?;
                let traffic = Traffic::new(pair, cpu, rate)?;
                if let Some(why) = traffic.no_tsc() {
                    let why = chain(why);
                    warnings.push(format!("no delays by tsc, which the frames lack: {why}"));
                }
                Ok(Self {
                    link,
                    traffic: Some(traffic),
                    kernel: Some(kernel),
                })
            }
            FrameSource::Live { link, .. } => {
                let attached = attach(link.index);
                let link = attached.map_err(|source| ExperimentError::Native {
                    interface: link.name.clone(),
                    source,
                })?;
                Ok(Self {
                    link,
                    traffic: None,
                    kernel: None,
                })
            }
        }
    }
}

/// The rate of the TSC where it can be used. A warning says why not, or that it was forced.
fn usable_tsc(request: &Request, warnings: &mut Vec<String>) -> Option<NsPerCycle> {
    let rate = match tsc::check() {
        Err(untrusted) if !request.force => Err(untrusted.to_string()),
        untrusted => {
            let forced = untrusted.err();
            warnings.extend(forced.map(|why| format!("measured all the same: {why}")));
            measure_tsc_rate().ok_or_else(|| "its rate could not be measured".into())
        }
    };
    warnings.extend(
        rate.as_ref()
            .err()
            .map(|why: &String| format!("no tsc here: {why}")),
    );
    rate.ok()
}

/// The kfuncs that are there; of the others the reason, unless it is that nobody
/// has loaded any.
fn kfuncs(warnings: &mut Vec<String>) -> Vec<Kfunc> {
    let files = KernelFiles::live();
    let mut found = Vec::new();
    for path in [TscPath::Kernel, TscPath::Module, TscPath::ModuleOrdered] {
        match Kfunc::find(path, &files) {
            Ok(kfunc) => found.push(kfunc),
            Err(NoKfunc::NotInKernel { .. } | NoKfunc::NotLoaded { .. }) => {}
            Err(error) => {
                let name = StampPath::Tsc(path).name();
                warnings.push(format!("no {name} here: {}", chain(&error)));
            }
        }
    }
    found
}

/// Those of the TSC that work.
fn tsc_stamps(
    programs: &mut Programs,
    kfuncs: &[Kfunc],
    rate: NsPerCycle,
    warnings: &mut Vec<String>,
) -> Vec<Stamp> {
    let mut stamps = Vec::new();
    for path in kfuncs.iter().map(|kfunc| kfunc.path).chain([TscPath::Perf]) {
        let loaded = match path {
            TscPath::Perf => programs.load_tsc(rate).map(drop),
            kfunc => programs.load_kfunc(kfunc),
        };
        let path = StampPath::Tsc(path);
        match loaded {
            Ok(()) => stamps.push(Some(path)),
            Err(error) => warnings.push(format!("no {} here: {}", path.name(), chain(&error))),
        }
    }
    stamps
}

/// Loads `ktime` and the cheapest read of the TSC with interrupts off.
fn with_interrupts_off(
    programs: &mut Programs,
    stamps: &[Stamp],
) -> Result<Vec<RoundItem>, ProgramsError> {
    let mut of_tsc = Vec::new();
    for path in stamps.iter().flatten() {
        if path.source() == StampSource::Tsc {
            of_tsc.push((programs.read_ns(*path)?, *path));
        }
    }
    let cheapest = of_tsc.into_iter().min_by(|(a, _), (b, _)| a.total_cmp(b));
    let tsc = cheapest.map(|(_, path)| path);
    let paths = std::iter::once(StampPath::Ktime).chain(tsc);
    let turns: Vec<_> = paths
        .map(|path| RoundItem {
            stamp: Some(path),
            interrupts_off: true,
        })
        .collect();
    for turn in &turns {
        programs.reload(*turn)?;
    }
    Ok(turns)
}
