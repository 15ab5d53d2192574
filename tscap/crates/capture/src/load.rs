//! Loads the program of a capture by the best path to its clock, and says what
//! would help where that fails.

use tscap_common::hook::{ClockDomain, Hook};

use super::check::Machine;
use super::counter_kind;
use super::event::Reporter;
use super::plan::{Capture, ClockChoice};
use tscap_base::failure::Failure;
use tscap_base::kernel_files::KernelFiles;
use tscap_base::text::causes::chain;
use tscap_base::text::numbers::counted;
use tscap_clock::{StampPath, TscPath};
use tscap_filter::Filter;
use tscap_host::installed::Installed;
use tscap_programs::hook::{
    EgressPoint, Kfunc, LoadError, LoadOptions, Loaded, NoKfunc, TransmitKernel,
};

/// The kfuncs, best first: the kernel's own needs neither a module nor
/// CAP_SYS_ADMIN, and is ordered.
const KFUNCS: [TscPath; 2] = [TscPath::Kernel, TscPath::Module];

/// What helps where programs at the tracepoint can't be had.
const NO_DRIVER_POINT: &str = "--egress-point driver needs Linux 6.12 or later with \
     CONFIG_DEBUG_INFO_BTF; --egress-point qdisc works with every kernel";

/// A loaded program, and what stamps in it.
pub struct Stamping<T = Loaded> {
    /// The program, with its maps.
    pub loaded: T,
    /// How it stamps.
    pub path: StampPath,
    /// The better paths, and why they are not taken.
    pub refused: Refused,
}

/// Loads the program and maps its rings.
pub(super) fn load(
    plan: &Capture,
    machine: &Machine,
    reporter: &mut Reporter<'_>,
) -> Result<Stamping, Failure> {
    if let Some(filter) = &plan.filter {
        tell_of(filter, reporter);
    }
    let files = KernelFiles::live();
    let is_before_driver = plan.egress_point == EgressPoint::Driver && plan.direction.takes_sent();
    let transmit = is_before_driver.then(|| TransmitKernel::find(&files));
    let transmit = transmit.transpose().map_err(|no| {
        let why = chain(&no);
        let failure = Failure::new(format!("cannot stamp sent frames before the driver: {why}"));
        failure.hint(NO_DRIVER_POINT)
    })?;
    let options = LoadOptions {
        object: &plan.programs.object,
        program: plan.programs.name.as_deref().unwrap_or_default(),
        clock: ClockDomain::Monotonic,
        kfunc: None,
        transmit: transmit.as_ref(),
        filter: plan.filter.as_ref().map(|filter| &filter.program),
        interfaces: machine.most_interfaces().try_into().unwrap_or(u32::MAX),
        ring_bytes: machine.ring_bytes,
        ring_cpus: &machine.ring_cpus,
        possible_cpus: machine.possible_cpus,
        snaplen: plan.snaplen,
        keep_raw: plan.keep_raw,
        packet_flags: plan.packet_meta || plan.direction.takes_sent(),
        packet_queue: plan.packet_meta,
        keys: None,
        ends_frames: plan.tap.is_some(),
    };
    let paths = paths(plan.clock, plan.tsc_path, machine.takes_tsc);
    let stamping = first_of(&paths, &options, &files)?;
    let proposed = StampPath::Tsc(TscPath::Kernel);
    let is_absent = is_absent(TscPath::Kernel, &files);
    let refused = stamping.refused.0.iter();
    // No released kernel has that function: where it is missing there is nothing to tell.
    for (path, why) in refused.filter(|(path, _)| *path != proposed || !is_absent) {
        let why = why.chain();
        let why = why.lines().next().unwrap_or_default();
        reporter.detail(&format!("no stamps by {}: {why}", path.function()));
    }
    Ok(stamping)
}

/// Whether the kernel has no function by which stamps of `path` are made.
fn is_absent(path: TscPath, files: &KernelFiles) -> bool {
    matches!(Kfunc::find(path, files), Err(NoKfunc::NotInKernel { .. }))
}

/// Tells what came of the filter's expression.
fn tell_of(filter: &Filter, reporter: &mut Reporter<'_>) {
    let expression = &filter.expression;
    let instructions = filter.program.instructions().len() as u64;
    reporter.detail(&format!(
        "filter {expression:?}: {} by {}",
        counted(instructions, "instruction"),
        filter.compiler
    ));
    if !filter.can_match {
        reporter.warning(&format!("the filter {expression:?} matches no frame"));
    }
}

/// What to try, in this order. `takes_tsc`: whether the TSC is a clock.
pub fn paths(clock: ClockChoice, tsc_path: Option<TscPath>, takes_tsc: bool) -> Vec<StampPath> {
    let kfuncs = KFUNCS.map(StampPath::Tsc).into_iter();
    match (clock, tsc_path) {
        (ClockChoice::Auto, _) if takes_tsc => kfuncs.chain([StampPath::Ktime]).collect(),
        (ClockChoice::Auto | ClockChoice::Ktime, _) => vec![StampPath::Ktime],
        (ClockChoice::Tai, _) => vec![StampPath::Tai],
        (ClockChoice::Tsc, Some(path)) => vec![StampPath::Tsc(path)],
        (ClockChoice::Tsc, None) => kfuncs.chain([StampPath::Tsc(TscPath::Perf)]).collect(),
    }
}

/// Loads the program of the first path that works.
pub fn first_of(
    paths: &[StampPath],
    options: &LoadOptions<'_>,
    files: &KernelFiles,
) -> Result<Stamping, Failure> {
    first_by(paths, |path| load_by(path, options, files))
}

/// What the first path that works gives, and the better ones that do not.
pub fn first_by<T>(
    paths: &[StampPath],
    mut load: impl FnMut(StampPath) -> Result<T, Failure>,
) -> Result<Stamping<T>, Failure> {
    let mut refused = Refused(Vec::new());
    let (last, others) = paths.split_last().expect("there is always one");
    let stamping = |loaded, path, refused| Stamping {
        loaded,
        path,
        refused,
    };
    for path in others {
        match load(*path) {
            Ok(loaded) => return Ok(stamping(loaded, *path, refused)),
            Err(failure) => refused.0.push((*path, failure)),
        }
    }
    match load(*last) {
        Ok(loaded) => Ok(stamping(loaded, *last, refused)),
        Err(failure) => Err(refused.and(*last, failure)),
    }
}

/// The kfunc that programs which stamp by `path` call.
pub fn kfunc_of(path: StampPath, files: &KernelFiles) -> Result<Option<Kfunc>, Failure> {
    match path {
        StampPath::Ktime | StampPath::Tai | StampPath::Tsc(TscPath::Perf) => Ok(None),
        StampPath::Tsc(kfunc) => match Kfunc::find(kfunc, files) {
            Ok(kfunc) => {
                counter_kind::check(&kfunc)?;
                Ok(Some(kfunc))
            }
            Err(no) => Err(Failure::new(chain(&no)).hint(no.advice(Installed::find().is_packaged))),
        },
    }
}

/// Says `what` could not be loaded, and what would help.
pub fn load_failure(path: StampPath, error: LoadError, what: impl Into<String>) -> Failure {
    let hint = load_hint(path, &error);
    Failure::from_error(error, what).hint(hint)
}

fn load_by(
    path: StampPath,
    options: &LoadOptions<'_>,
    files: &KernelFiles,
) -> Result<Loaded, Failure> {
    let kfunc = kfunc_of(path, files)?;
    let program = match options.program {
        "" => Hook::Xdp.program(path.domain()),
        test => test,
    };
    let kfunc = kfunc.as_ref();
    let loaded = Loaded::load(&LoadOptions {
        program,
        clock: path.domain(),
        kfunc,
        ..options.clone()
    });
    loaded.map_err(|error| load_failure(path, error, format!("cannot load the program {program}")))
}

/// Paths that were tried, and why they don't work.
#[derive(Debug, Default)]
pub struct Refused(Vec<(StampPath, Failure)>);

impl Refused {
    /// What to say when the last one, `path`, doesn't either.
    pub fn and(self, path: StampPath, failure: Failure) -> Failure {
        if self.0.is_empty() {
            return failure;
        }
        let mut all = self.0;
        all.push((path, failure));
        let why = all.iter().map(|(path, failure)| {
            let why = failure.chain();
            format!("by {}: {why}", path.function())
        });
        let why: Vec<_> = why.collect();
        // Where the kernel has no function of its own, the module is what helps.
        let others = all[1..].iter();
        let mut hints: Vec<_> = others.filter_map(|(_, it)| it.what_next()).collect();
        hints.dedup();
        let hint = hints.join("; or: ");
        let source = path.source().name();
        Failure::new(format!("cannot stamp with {source} {}", why.join("; "))).hint(hint)
    }
}

pub(super) fn load_hint(path: StampPath, error: &LoadError) -> &'static str {
    match (error.os_error(), path) {
        _ if error.says("bpf_dynptr_from_skb is not allowed") => NO_DRIVER_POINT,
        _ if matches!(error, LoadError::Filter(_)) || error.says("BPF program is too large") => {
            "the filter is too long for the kernel: give fewer terms, or terms that say more, such \
             as net for many of host"
        }
        (Some(libc::ENOMEM), _) => "give a smaller --ring-size",
        (Some(libc::EPERM), _) | (Some(libc::EACCES), StampPath::Ktime | StampPath::Tai) => {
            "run as root; in a container the host must grant CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON"
        }
        (_, StampPath::Tsc(TscPath::Perf)) => {
            "this kernel lets no XDP program read the TSC by perf events: stock kernels do since \
             about 6.16 (bpf_perf_event_read); --clock ktime works everywhere"
        }
        (_, StampPath::Tsc(_)) if error.says("JIT") => {
            "kfuncs need the compiler of BPF programs: sysctl net.core.bpf_jit_enable=1"
        }
        (_, StampPath::Tsc(_)) => {
            "this kernel lets no XDP program call this function: it needs Linux 6.0 or later with \
             CONFIG_DEBUG_INFO_BTF and CONFIG_DEBUG_INFO_BTF_MODULES; --clock ktime works everywhere"
        }
        _ => "tscap needs Linux 5.18 or later on x86-64 with BPF and XDP, and 6.1 for --clock tai",
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use aya::programs::ProgramError;
    use aya_obj::VerifierLog;

    use super::*;
    use tscap_filter::translate::TranslateError;
    use tscap_programs::hook::FilterError;

    /// What the verifier logs when it gives up (`do_check` in kernel/bpf/verifier.c).
    const GIVEN_UP: &str = "BPF program is too large. Processed 1000001 insn";

    #[test]
    fn a_filter_that_is_too_long_is_told_from_an_old_kernel() {
        let refused = |log: &str| LoadError::Program {
            program: "tscap_ktime".into(),
            source: ProgramError::LoadError {
                io_error: io::Error::from_raw_os_error(libc::E2BIG),
                verifier_log: VerifierLog::new(log.into()),
            },
        };
        let hint = |error: &LoadError| load_hint(StampPath::Ktime, error);
        assert!(hint(&refused(GIVEN_UP)).contains("fewer terms"));
        let too_far = TranslateError::TooFar { length: 40_000 };
        let too_far = LoadError::Filter(FilterError::Translate(too_far));
        assert!(hint(&too_far).contains("fewer terms"));
        assert!(hint(&refused("invalid access")).contains("Linux 5.18"));
    }
}
