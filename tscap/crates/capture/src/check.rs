//! Everything that is checked before the machine is touched.

use tscap_common::ring::{MIN_RING_BYTES, value_size};
use tscap_common::state::Losses;

use super::plan::{Capture, ClockChoice};
use super::selection::Interfaces;
use super::{listening, receiving};
use tscap_base::failure::{Context as _, Failure, Hint as _};
use tscap_base::kernel_files::KernelFiles;
use tscap_base::text::numbers::{counted, ring as length};
use tscap_file::accounting::Direction;
use tscap_host::caps::{self, Capability};
use tscap_host::installed::Installed;
use tscap_host::{affinity, cpu_list, system};
use tscap_time::tsc;

/// All rings together take at most this many bytes by default.
const DEFAULT_TOTAL_BYTES: usize = 512 << 20;
/// A default ring is at most this long: it rides out about 20 ms of the fastest
/// traffic.
const DEFAULT_LONGEST: usize = 64 << 20;
/// A default ring is at least this long, on machines of up to 64 CPUs.
const DEFAULT_SHORTEST: usize = 16 << 20;
/// Not even then more than this.
const DEFAULT_LIMIT_BYTES: usize = 1 << 30;

/// Counters of interfaces that may join take at most this many bytes, over all CPUs.
const COUNTER_BYTES: usize = 64 << 20;
/// Most interfaces where counters are small.
const MOST_INTERFACES: usize = 16 << 10;

/// What a capture needs, promiscuous mode too, as setcap(8) wants it.
pub const FILE_CAPABILITIES: &str = "cap_bpf,cap_net_admin,cap_perfmon,cap_net_raw+ep";

/// Refuses early what the kernel would refuse with a bare EPERM.
pub fn check_privileges() -> Result<(), Failure> {
    check_all_of(&caps::XDP, || Installed::find().advice())
}

/// The same, for one who also makes network namespaces.
pub fn check_privileges_to_make_namespaces() -> Result<(), Failure> {
    let [bpf, net_admin, perfmon] = caps::XDP;
    let needed = [bpf, net_admin, perfmon, Capability::SysAdmin];
    check_all_of(&needed, || "run as root".into())
}

fn check_all_of(needed: &[Capability], advice: impl Fn() -> String) -> Result<(), Failure> {
    let missing = caps::missing(needed).context("cannot read this process's capabilities")?;
    if !missing.is_empty() {
        let names: Vec<_> = missing.iter().map(Capability::to_string).collect();
        return Err(Failure::new(format!(
            "cannot load XDP programs: this process lacks {}",
            names.join(", ")
        ))
        .hint(advice()));
    }
    let is_initial = caps::in_initial_user_namespace();
    let is_initial = is_initial.context(format!(
        "cannot tell whether capabilities reach BPF: cannot look at {}",
        caps::USER_NAMESPACE
    ));
    if !is_initial.hint("mount procfs at /proc: mount -t proc proc /proc")? {
        return Err(Failure::new(
            "cannot load XDP programs: inside a user namespace capabilities don't reach BPF",
        )
        .hint("run in the initial user namespace (not in a rootless container)"));
    }
    Ok(())
}

/// Refuses kernels on which a ring could get two producers.
pub fn check_kernel() -> Result<(), Failure> {
    let is_preempt_rt = system::is_preempt_rt(&KernelFiles::live());
    if is_preempt_rt.context("cannot tell whether this kernel is PREEMPT_RT")? {
        return Err(Failure::new(
            "cannot capture on a PREEMPT_RT kernel: there one XDP program may interrupt another \
             on the same CPU, and a ring would get two producers",
        )
        .hint("boot a kernel without PREEMPT_RT"));
    }
    Ok(())
}

/// Refuses a TSC that is no clock, unless told to take it as it is.
pub fn check_tsc(untrusted: Option<tsc::Untrusted>, force: bool) -> Result<(), Failure> {
    match untrusted {
        Some(untrusted) if !force => Err(untrusted)
            .context("cannot stamp with the TSC")
            .hint("take --clock ktime; --force takes the TSC all the same and marks the file"),
        _ => Ok(()),
    }
}

/// The length of each ring, checked against the memory there is.
pub fn ring_bytes(asked: Option<usize>, rings: usize) -> Result<usize, Failure> {
    let bytes = asked.unwrap_or_else(|| default_ring_bytes(rings));
    let total = rings.saturating_mul(value_size(bytes)) as u64;
    let available = system::memory_available_bytes();
    if let Ok(available) = available
        && total > available
    {
        return Err(Failure::new(format!(
            "cannot make {} of {}: they take {}, and {} of memory are available",
            counted(rings as u64, "ring"),
            length(bytes as u64),
            length(total),
            length(available)
        ))
        .hint("give a smaller --ring-size"));
    }
    Ok(bytes)
}

/// 64 MiB with up to 8 CPUs, then less, so that all together stay at 512 MiB;
/// but not under 16 MiB up to 64 CPUs, and never more than 1 GiB together.
fn default_ring_bytes(rings: usize) -> usize {
    let share = |total: usize| {
        let share = (total / rings.max(1)).max(MIN_RING_BYTES);
        1 << share.ilog2()
    };
    share(DEFAULT_TOTAL_BYTES)
        .clamp(DEFAULT_SHORTEST, DEFAULT_LONGEST)
        .min(share(DEFAULT_LIMIT_BYTES))
}

/// Refuses CPUs to receive on that are not there.
pub(super) fn check_rx_cpus(asked: &[u32], online: &[u32], possible: u32) -> Result<(), Failure> {
    let Some(cpu) = asked.iter().find(|cpu| !online.contains(cpu)) else {
        return Ok(());
    };
    let there = cpu_list::list(online);
    let failure = if *cpu < possible {
        Failure::new(format!("cannot receive on CPU {cpu}: it is offline")).hint(format!(
            "echo 1 > /sys/devices/system/cpu/cpu{cpu}/online, or give --rx-cpu some of {there}"
        ))
    } else {
        Failure::new(format!("cannot receive on CPU {cpu}: there is none"))
            .hint(format!("give --rx-cpu some of {there}"))
    };
    Err(failure)
}

/// The CPUs for the converters: as asked, or the last ones allowed. `receiving` are
/// not taken as long as there are others.
pub(super) fn converter_cpus(plan: &Capture, receiving: &[u32]) -> Result<Vec<u32>, Failure> {
    let allowed = affinity::allowed_cpus().context("cannot read this process's CPU affinity")?;
    let asked = plan.converter_cpus.as_deref();
    choose_converter_cpus(&allowed, plan.writers as usize, asked, receiving)
}

fn choose_converter_cpus(
    allowed: &[u32],
    writers: usize,
    asked: Option<&[u32]>,
    receiving: &[u32],
) -> Result<Vec<u32>, Failure> {
    if let Some(asked) = asked {
        if let Some(cpu) = asked.iter().find(|cpu| !allowed.contains(cpu)) {
            return Err(Failure::new(format!(
                "cannot pin the converter to CPU {cpu}: this process may run on {}",
                cpu_list::list(allowed)
            ))
            .hint("give --converter-cpu one of these for each writer"));
        }
        return Ok(asked.to_vec());
    }
    let (receiving, free): (Vec<_>, Vec<_>) =
        allowed.iter().partition(|cpu| receiving.contains(cpu));
    let best: Vec<u32> = free
        .into_iter()
        .rev()
        .chain(receiving.into_iter().rev())
        .collect();
    if best.is_empty() {
        return Err(Failure::new("this process may run on no CPU"));
    }
    Ok(best.into_iter().cycle().take(writers).collect())
}

/// Refuses more writers than there are rings.
fn check_writers(writers: u32, rings: usize) -> Result<(), Failure> {
    if writers as usize <= rings {
        return Ok(());
    }
    Err(Failure::new(format!(
        "cannot share {} among {writers} writers: each needs one",
        counted(rings as u64, "ring")
    ))
    .hint(format!(
        "give --writers {rings} at most: each CPU has one ring"
    )))
}

/// The parts of the plan that depend on the machine.
#[derive(Debug)]
pub(super) struct Machine {
    pub interfaces: Interfaces,
    pub ring_cpus: Vec<u32>,
    pub possible_cpus: u32,
    pub ring_bytes: usize,
    /// CPUs that receive: those of --rx-cpu, else those that take the interrupts.
    pub receiving_cpus: Vec<u32>,
    /// One for each writer.
    pub converter_cpus: Vec<u32>,
    /// Whether stamps by the TSC may be taken.
    pub takes_tsc: bool,
    /// Why the TSC would have been refused without --force.
    pub untrusted_tsc: Option<tsc::Untrusted>,
}

impl Machine {
    /// Most interfaces that the capture can be on.
    pub fn most_interfaces(&self) -> usize {
        let now = self.interfaces.now.len();
        if !self.interfaces.selection.is_open() {
            now
        } else {
            now.max(most_interfaces(self.possible_cpus as usize))
        }
    }
}

fn most_interfaces(cpus: usize) -> usize {
    let counters = Direction::ALL.len() * size_of::<Losses>() * cpus.max(1);
    (COUNTER_BYTES / counters).min(MOST_INTERFACES)
}

/// Checks the plan against the machine.
pub(super) fn check(plan: &Capture) -> Result<Machine, Failure> {
    if plan.statistics_every.is_zero() {
        return Err(Failure::new("cannot write statistics every 0 s")
            .hint("take a longer period: 10 s by default"));
    }
    check_privileges()?;
    check_kernel()?;
    let untrusted_tsc = tsc::check().err();
    if plan.clock == ClockChoice::Tsc {
        check_tsc(untrusted_tsc, plan.force)?;
    }
    if let Some(contradiction) = plan.contradiction() {
        return Err(Failure::new(contradiction));
    }
    let interfaces = Interfaces::find(plan)?;
    listening::check(plan, &interfaces)?;
    for selected in interfaces.now.iter().filter(|it| it.is_named) {
        plan.filter_in(interfaces.scope_of(selected), &selected.link)?;
    }
    let online = system::online_cpus().context("cannot list the online CPUs")?;
    let possible_cpus = system::possible_cpus().context("cannot count the possible CPUs")?;
    let receiving_cpus = match &plan.rx_cpus {
        Some(cpus) => {
            check_rx_cpus(cpus, &online, possible_cpus)?;
            cpus.clone()
        }
        // Of this namespace, which procfs and sysfs show.
        None => {
            let links = interfaces.now.iter().map(|it| &it.link);
            receiving::cpus(&KernelFiles::live(), links)
        }
    };
    let ring_cpus = plan.programs.ring_cpus.clone().unwrap_or(online);
    check_writers(plan.writers, ring_cpus.len())?;
    Ok(Machine {
        interfaces,
        possible_cpus,
        ring_bytes: ring_bytes(plan.ring_bytes, ring_cpus.len())?,
        converter_cpus: converter_cpus(plan, &receiving_cpus)?,
        receiving_cpus,
        ring_cpus,
        takes_tsc: untrusted_tsc.is_none() || plan.force,
        untrusted_tsc,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_rings_never_take_gigabytes() {
        for (cpus, mib) in [
            (1, 64),
            (2, 64),
            (8, 64),
            (16, 32),
            (64, 16),
            (128, 8),
            (1024, 1),
        ] {
            assert_eq!(default_ring_bytes(cpus), mib << 20, "{cpus} CPUs");
            assert!(cpus * default_ring_bytes(cpus) <= 1 << 30);
        }
    }

    #[test]
    fn the_converter_keeps_away_from_receiving_cpus() {
        let choose = |allowed: &[u32], asked: Option<u32>, receiving: &[u32]| {
            let asked = asked.map(|cpu| vec![cpu]);
            let chosen = choose_converter_cpus(allowed, 1, asked.as_deref(), receiving);
            chosen
                .map(|it| it[0])
                .map_err(|failure| failure.to_string())
        };
        assert_eq!(choose(&[0, 1, 2, 3], None, &[]), Ok(3));
        assert_eq!(choose(&[0, 1, 2, 3], None, &[2, 3]), Ok(1));
        assert_eq!(choose(&[0, 1, 2, 3], None, &[0]), Ok(3));
        assert_eq!(choose(&[2, 3], None, &[3, 2, 1]), Ok(3), "none is left");
        assert_eq!(choose(&[0, 1], Some(1), &[1]), Ok(1), "as asked");
        let error = choose(&[0, 1], Some(2), &[]).unwrap_err();
        assert!(
            error.contains("may run on 0-1") && error.contains("hint: "),
            "{error}"
        );
        assert!(choose(&[], None, &[]).is_err());
    }

    #[test]
    fn each_writer_has_a_cpu() {
        let choose = |allowed: &[u32], writers, receiving: &[u32]| {
            choose_converter_cpus(allowed, writers, None, receiving).unwrap()
        };
        assert_eq!(choose(&[0, 1, 2, 3], 2, &[]), [3, 2]);
        assert_eq!(choose(&[0, 1, 2, 3], 3, &[2, 3]), [1, 0, 3]);
        assert_eq!(choose(&[0, 1], 3, &[1]), [0, 1, 0], "they share one");
        let asked = choose_converter_cpus(&[0, 1, 2], 2, Some(&[0, 2]), &[0]);
        assert_eq!(asked.unwrap(), [0, 2]);
        check_writers(2, 2).unwrap();
        let failure = check_writers(3, 2).unwrap_err().to_string();
        assert!(failure.contains("2 rings among 3 writers"), "{failure}");
    }

    #[test]
    fn receiving_cpus_must_be_there() {
        let check = |asked: &[u32]| {
            let checked = check_rx_cpus(asked, &[0, 1, 3], 4);
            checked.map_err(|failure| failure.to_string())
        };
        assert_eq!(check(&[]), Ok(()));
        assert_eq!(check(&[3, 0]), Ok(()));
        let error = check(&[0, 2]).unwrap_err();
        assert!(error.contains("CPU 2: it is offline"), "{error}");
        assert!(
            error.contains("hint: echo 1 > /sys/devices/system/cpu/cpu2"),
            "{error}"
        );
        let error = check(&[4]).unwrap_err();
        assert!(error.contains("CPU 4: there is none"), "{error}");
        assert!(error.contains("some of 0-1,3"), "{error}");
    }

    #[test]
    fn a_tsc_that_is_no_clock_is_refused_unless_forced() {
        use tsc::Untrusted::{NotInvariant, Unstable};
        check_tsc(None, false).unwrap();
        for untrusted in [NotInvariant, Unstable] {
            check_tsc(Some(untrusted), true).unwrap();
            let failure = check_tsc(Some(untrusted), false).unwrap_err().to_string();
            assert!(failure.contains("cannot stamp with the TSC"), "{failure}");
            assert!(failure.contains(&untrusted.to_string()), "{failure}");
            assert!(failure.contains("hint: take --clock ktime"), "{failure}");
        }
    }

    #[test]
    fn rings_beyond_memory_are_refused() {
        let failure = ring_bytes(Some(256 << 20), 1 << 20)
            .unwrap_err()
            .to_string();
        assert!(failure.contains("rings of 256 MiB"), "{failure}");
        assert!(
            failure.contains("hint: give a smaller --ring-size"),
            "{failure}"
        );
    }
}
