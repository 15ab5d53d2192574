//! Whether a stamp source works here, found out without attaching anything.

use tscap_common::hook::ClockDomain;
use tscap_common::ring::MIN_RING_BYTES;

use super::counter::Counter;
use super::plan::ClockChoice;
use super::{check, first_brackets, load};
use tscap_base::failure::{Context as _, Failure};
use tscap_base::kernel_files::KernelFiles;
use tscap_clock::{HostClocks, StampPath, TscPath};
use tscap_host::perf::EventPriority;
use tscap_host::system;
use tscap_programs::hook::{LoadOptions, PROGRAMS};
use tscap_time::tsc;

/// Gets ready to stamp as a capture does with `--clock`, with the
/// smallest rings, and lets go of everything again. Returns the path that works, and
/// the bound of its stamps to this host's clock, ns.
///
/// # Errors
/// Why no path works, and what would help.
pub async fn probe(
    clock: ClockChoice,
    tsc_path: Option<TscPath>,
) -> Result<(StampPath, u64), Failure> {
    if clock == ClockChoice::Tsc {
        check::check_tsc(tsc::check().err(), false)?;
    }
    let ring_cpus = system::online_cpus().context("cannot list the online CPUs")?;
    let possible_cpus = system::possible_cpus().context("cannot count the possible CPUs")?;
    let options = LoadOptions::new(PROGRAMS, (MIN_RING_BYTES, &ring_cpus), possible_cpus);
    let paths = load::paths(clock, tsc_path, true);
    let stamping = load::first_of(&paths, &options, &KernelFiles::live())?;
    let (mut loaded, path) = (stamping.loaded, stamping.path);
    let source = path.source();
    let mut clocks = HostClocks::new(source);
    let mut tracker = first_brackets(source, &mut clocks).await?;
    if path.domain() == ClockDomain::CpuTsc {
        let opened = Counter::open(
            &ring_cpus,
            EventPriority::Flexible,
            loaded.object(),
            &mut tracker,
        );
        opened.map_err(|failure| stamping.refused.and(path, failure))?;
    }
    Ok((path, tracker.host_bound_ns()))
}
