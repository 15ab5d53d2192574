//! Is this machine fit for precise stamping? Checks of what can be read from
//! procfs and sysfs, below a root that tests replace, and of facts that the
//! caller has gathered from the kernel otherwise. Nothing here changes anything; what is to
//! be changed comes as a [`FixPlan`].
//!
//! To add a check: a [`check::Topic`] with an id that never changes, a function
//! from files or facts to a [`Check`], a line in [`machine`] or [`interface`], its
//! tests for good and bad, and its id in `tests/root/doctor.rs`.

mod buffers;
mod check;
mod clock;
mod cpus;
mod driver;
mod filters;
mod fix;
mod journals;
mod kernel;
mod kfunc;
mod link;
mod offloads;
mod privileges;
mod queues;
mod report;
mod stamps;
mod utc;
mod virtualisation;

use std::collections::BTreeMap;

pub use check::{Check, Remedy, Verdict};
pub use fix::{FixPlan, UnfollowedAdvice};
pub use privileges::Privileges;
pub use report::{InterfaceFacts, MachineFacts, Report};
pub use stamps::Probe;
pub use virtualisation::hypervisor;

use tscap_base::kernel_files::KernelFiles;
use tscap_clock::{StampSource, TscPath};
use tscap_live::settings::JournalFolder;
use tscap_network::ethtool::{Coalescing, Feature, ReceiveRing};
use tscap_network::netdev::Link;
use tscap_network::xdp_features::XdpFeatures;
use tscap_programs::hook::{AttachPoint, AttachedProgram};
use tscap_time::timex::KernelClock;
use tscap_utc::{UtcBounds, UtcSource};

/// What is known of the machine beside its files.
#[derive(Debug)]
pub struct Machine {
    /// The kernel's clock, or why it is not known.
    pub clock: Result<KernelClock, String>,
    /// What bounds it against UTC, and sources that are there and can't be read, with the reasons.
    pub utc: (UtcBounds, Vec<(UtcSource, String)>),
    /// Privileges of this process.
    pub privileges: Privileges,
    /// What came of trying each stamp source.
    pub probes: Vec<(StampSource, Probe)>,
    /// The same for each kfunc that reads the TSC and is there.
    pub kfuncs: Vec<(TscPath, Probe)>,
    /// The version of libpcap, or why it can't be used.
    pub libpcap: Result<String, String>,
    /// The journals of captures.
    pub journals: JournalFolder,
    /// The command that examines the same with all privileges.
    pub again: String,
}

/// What is known of an interface beside its files.
#[derive(Debug)]
pub struct Interface {
    /// As the kernel describes it.
    pub link: Link,
    /// Name of its driver.
    pub driver: Option<String>,
    /// Its offloads.
    pub features: BTreeMap<String, Feature>,
    /// Its interrupt moderation, if it has one; or why that is not known.
    pub coalescing: Result<Option<Coalescing>, String>,
    /// Its receive ring, if the driver tells of one; or why that is not known.
    pub ring: Result<Option<ReceiveRing>, String>,
    /// What its driver says of XDP.
    pub xdp_features: Option<XdpFeatures>,
    /// What is known of the XDP program attached.
    pub occupant: AttachedProgram,
    /// Numbers of its NAPIs.
    pub napi_ids: Option<Vec<u32>>,
    /// The name of its network namespace.
    pub netns: Option<String>,
    /// Whether a default route goes through it.
    pub carries_default_route: bool,
    /// Whether the kernel has tcx, if that is known.
    pub has_tcx: Option<bool>,
}

impl Interface {
    /// Where received frames are stamped in the network stack.
    fn in_stack(&self) -> &'static str {
        match self.has_tcx {
            Some(true) => AttachPoint::TcxIngress.name(),
            Some(false) => AttachPoint::ClsactIngress.name(),
            None => "tcx or clsact ingress",
        }
    }
}

impl Machine {
    /// Whether stamping with `source` was tried and works.
    fn works(&self, source: StampSource) -> bool {
        let mut probes = self.probes.iter();
        probes.any(|(tried, probe)| *tried == source && matches!(probe, Probe::Works { .. }))
    }
}

/// Checks the machine.
pub fn machine(files: &KernelFiles, facts: &Machine) -> Vec<Check> {
    let mut checks = vec![
        kernel::version(
            files,
            facts.works(StampSource::Ktime),
            facts.works(StampSource::Tai),
        ),
        kernel::preemption(files),
    ];
    checks.extend(privileges::all(&facts.privileges));
    let stamps = facts.probes.iter();
    checks.extend(stamps.map(|(source, probe)| stamps::stamp(*source, probe, &facts.again)));
    checks.extend([
        kfunc::kfunc(files, &facts.kfuncs, &facts.again),
        clock::tsc(files),
        clock::source(files),
        clock::sync(files, &facts.clock),
        utc::sources(&facts.utc.0, &facts.utc.1),
        clock::tai(&facts.clock),
        virtualisation::machine(files),
        virtualisation::steal(files),
        cpus::governor(files),
        cpus::isolated(files),
        cpus::irqbalance(files),
        buffers::kernel(files),
        filters::libpcap(&facts.libpcap),
        journals::left_over(&facts.journals, &facts.again),
    ]);
    checks
}

/// Checks an interface.
pub fn interface(files: &KernelFiles, facts: &Interface) -> Vec<Check> {
    let mut checks = vec![
        link::link(facts),
        link::programs(facts),
        driver::mode(facts),
        driver::attaching(facts),
        driver::mtu(facts),
        offloads::hiding(facts),
        offloads::coalescing(facts),
        buffers::ring(facts),
    ];
    checks.extend(queues::all(files, facts));
    checks
}

#[cfg(test)]
impl Interface {
    /// The interface of `Recorded::veth`, fit for capturing.
    fn recorded() -> Self {
        Self {
            link: tscap_network::recorded::link("veth0", 5),
            driver: Some("veth".into()),
            features: BTreeMap::new(),
            coalescing: Ok(None),
            ring: Ok(None),
            xdp_features: Some(XdpFeatures::native(true).telling_vlan_tags()),
            occupant: AttachedProgram::default(),
            napi_ids: None,
            netns: None,
            carries_default_route: false,
            has_tcx: Some(true),
        }
    }
}

/// The examples of README.md are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
