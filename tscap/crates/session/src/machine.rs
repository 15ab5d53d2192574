//! What is checked before anything is loaded, and the clock that stamps are by.

use aya::Ebpf;

use tscap_base::failure::{Context as _, Failure};

use tscap_capture::{ClockChoice, Clocks, Counter, Stamping, check, first_brackets, paths};
use tscap_clock::{StampPath, StampSource, Tracker, TscPath};
use tscap_common::hook::ClockDomain;
use tscap_host::perf::EventPriority;
use tscap_host::system;
use tscap_references::Followed;
use tscap_time::tsc;

/// The machine, as far as a measurement depends on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The CPUs that are online.
    pub cpus: Vec<u32>,
    /// Number of the highest possible CPU, plus one.
    pub possible_cpus: u32,
    /// Whether the TSC is a clock.
    pub takes_tsc: bool,
}

impl Machine {
    /// Checks whether this process may load programs, whether the kernel can run them, and
    /// whether there is that `clock`.
    ///
    /// # Errors
    /// What is missing, and what would help.
    pub fn check(clock: ClockChoice) -> Result<Self, Failure> {
        check::check_privileges()?;
        check::check_kernel()?;
        Self::with_clock(clock)
    }

    /// The same for one who has checked privileges and kernel.
    ///
    /// # Errors
    /// If there is no such clock, or the CPUs can't be listed.
    pub fn with_clock(clock: ClockChoice) -> Result<Self, Failure> {
        let untrusted_tsc = tsc::check().err();
        if clock == ClockChoice::Tsc {
            check::check_tsc(untrusted_tsc, false)?;
        }
        Ok(Self {
            cpus: system::online_cpus().context("cannot list the online CPUs")?,
            possible_cpus: system::possible_cpus().context("cannot count the possible CPUs")?,
            takes_tsc: untrusted_tsc.is_none(),
        })
    }
}

/// The clock that is taken where one of the programs is at a tap, and the path to it: of such a
/// program the module's function can't be called.
pub fn clock_at_tap(clock: ClockChoice) -> (ClockChoice, Option<TscPath>) {
    match clock {
        ClockChoice::Auto => (ClockChoice::Ktime, None),
        ClockChoice::Tsc => (ClockChoice::Tsc, Some(TscPath::Perf)),
        clock => (clock, None),
    }
}

/// Loads programs by the best path to the clock, and takes the first readings of it; by another
/// clock where the TSC can't be read and nobody has asked for it. The readings are of the
/// `reference` if there is one, whose times take stamps of the TSC. Gives what `load` gives, its
/// path, and the better paths with the reasons why they are not taken; and the clocks, which the
/// readings that follow must be of.
///
/// # Errors
/// If they can't be loaded, or the clock can't be read.
pub async fn read_clock<T>(
    (clock, tsc_path): (ClockChoice, Option<TscPath>),
    mut takes_tsc: bool,
    reference: Option<&Followed>,
    mut load: impl FnMut(&[StampPath]) -> Result<Stamping<T>, Failure>,
) -> Result<(Stamping<T>, Clocks, Tracker), Failure> {
    loop {
        let stamping = load(&paths(clock, tsc_path, takes_tsc))?;
        let source = stamping.path.source();
        let mut clocks = Clocks::of(reference, source);
        match first_brackets(source, &mut clocks).await {
            Err(_) if clock == ClockChoice::Auto && source == StampSource::Tsc => {
                takes_tsc = false;
            }
            tracker => return Ok((stamping, clocks, tracker?)),
        }
    }
}

/// Opens the counter of each of `cpus`, where stamps are of one.
///
/// # Errors
/// If it can't be opened, or is none to stamp by.
pub fn open_counter(
    path: StampPath,
    cpus: &[u32],
    object: &mut Ebpf,
    tracker: &mut Tracker,
) -> Result<Option<Counter>, Failure> {
    let is_by_cpu = path.domain() == ClockDomain::CpuTsc;
    is_by_cpu
        .then(|| Counter::open(cpus, EventPriority::Pinned, object, tracker))
        .transpose()
}
