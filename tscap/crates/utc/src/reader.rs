//! Reads every source that is there.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::bound::{Parts, UtcBound, UtcBounds, UtcInterval, UtcSource};
use crate::clockbound::{self, Segment};
use crate::disruption::DisruptionWatch;
use crate::host_clock::HostClock;
use crate::phc::{self, Phc};
use crate::{chrony, ptp4l, vmclock};
use tscap_base::kernel_files::KernelFiles;
use tscap_time::timex::KernelClock;
use tscap_time::{MonoNs, NS_PER_S, RealNs};

/// Daemons and devices are asked again after so long, ns.
const ASKED_EVERY_NS: u64 = NS_PER_S as u64;
/// When they are first asked, each may take so long.
const FIRST: Duration = Duration::from_millis(50);
/// Later each may take so long: an answer that comes later is taken at the next turn.
const LATER: Duration = Duration::from_millis(2);
/// What is not slewed drifts from UTC by this at most, parts per billion: ClockBound's default of
/// `max_drift_ppb`, for quartzes of computers.
const DRIFT_PPB: u64 = 50_000;

/// Where the sources are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roots {
    /// procfs and sysfs.
    pub files: KernelFiles,
    /// The folder of PTP devices.
    pub devices: PathBuf,
    /// chronyd's UDP port for commands.
    pub chrony_port: SocketAddr,
    /// chronyd's socket for commands.
    pub chrony_socket: PathBuf,
    /// ClockBound's segments, the newest version first.
    pub clockbound: Vec<PathBuf>,
    /// ptp4l's sockets, that of root first.
    pub ptp4l: Vec<PathBuf>,
    /// The device of VMClock.
    pub vmclock: PathBuf,
}

impl Roots {
    /// Of this machine.
    pub fn live() -> Self {
        Self {
            chrony_port: SocketAddr::from((Ipv4Addr::LOCALHOST, 323)),
            ..Self::below(Path::new("/"))
        }
    }

    /// All in a folder, for tests; nobody is at chronyd's port.
    pub fn below(folder: &Path) -> Self {
        let paths = |paths: [&str; 2]| paths.map(|path| folder.join(path)).to_vec();
        Self {
            files: KernelFiles::below(folder),
            devices: folder.join("dev"),
            chrony_port: SocketAddr::from((Ipv4Addr::LOCALHOST, 1)),
            chrony_socket: folder.join("run/chrony/chronyd.sock"),
            clockbound: paths(["run/clockbound/shm0", "run/clockbound/shm"]),
            ptp4l: paths(["run/ptp4l", "run/ptp4lro"]),
            vmclock: folder.join("dev/vmclock0"),
        }
    }
}

/// Reads what bounds the host's clock against UTC. What takes privileges is opened by
/// [`Self::open`]; later none are needed. A reading takes some milliseconds at most.
#[derive(Debug)]
pub struct UtcReader {
    roots: Roots,
    chrony: chrony::Client,
    phcs: Vec<Phc>,
    ptp4l: ptp4l::Client,
    vmclock: Option<Result<File, String>>,
    disruption: Option<DisruptionWatch>,
    /// What came of the latest turn.
    latest: Latest,
    /// The next turn is due then.
    due: MonoNs,
    disrupted: Option<Disrupted>,
}

/// What daemons and devices said at the latest turn.
#[derive(Debug)]
struct Latest {
    /// Read before all of them.
    host: HostClock,
    clockbound: Option<Result<Segment, String>>,
    phcs: Vec<phc::Reading>,
    vmclock: Option<Result<vmclock::Reading, String>>,
    ptp4l: Option<(ptp4l::State, ptp4l::Measured)>,
}

/// The counter was disrupted: what was said of the clock before does not hold.
#[derive(Clone, Copy, Debug)]
struct Disrupted {
    at: (MonoNs, RealNs),
    /// The kernel's figure at the latest look: it grows until a daemon sets it anew.
    max_error_ns: u64,
    /// A daemon has done so.
    is_kernel_anew: bool,
}

const DISRUPTED: &str = "it was not updated since the counter was disrupted";

impl UtcReader {
    /// Opens what is there, and asks each for the first time, which takes up to 0.2 s where daemons
    /// don't answer.
    pub fn open(roots: Roots) -> Self {
        let files = &roots.files;
        let mut reader = Self {
            chrony: chrony::Client::open(roots.chrony_port, &roots.chrony_socket, files, FIRST),
            phcs: Phc::find(files, &roots.devices),
            ptp4l: ptp4l::Client::open(&roots.ptp4l, files, &roots.devices, FIRST),
            vmclock: vmclock::open(&roots.vmclock),
            disruption: DisruptionWatch::open(&roots.vmclock),
            latest: Latest {
                host: HostClock::read(),
                clockbound: None,
                phcs: Vec::new(),
                vmclock: None,
                ptp4l: None,
            },
            due: MonoNs(0),
            disrupted: None,
            roots,
        };
        reader.look();
        reader
    }

    /// What tells of disruptions of the counter, where the hypervisor does.
    pub fn disruptions(&self) -> Option<DisruptionWatch> {
        self.disruption.clone()
    }

    /// What is known now: the kernel is asked each time, and the others if a second has passed.
    pub fn read(&mut self) -> UtcBounds {
        let kernel = KernelClock::read().ok();
        let was_disrupted = self
            .disruption
            .as_mut()
            .is_some_and(DisruptionWatch::was_disrupted);
        if was_disrupted {
            self.disrupted = Some(Disrupted {
                at: (MonoNs::now(), RealNs::now()),
                max_error_ns: kernel.map_or(0, |it| it.max_error_ns),
                is_kernel_anew: false,
            });
        }
        if was_disrupted || MonoNs::now() >= self.due {
            self.chrony.ask(LATER);
            self.ptp4l.ask(LATER);
            self.look();
        }
        self.judge(kernel.as_ref())
    }

    /// Reads files and devices.
    fn look(&mut self) {
        self.due = MonoNs(MonoNs::now().0 + ASKED_EVERY_NS);
        let host = HostClock::read();
        let measured = self.ptp4l.latest();
        self.latest = Latest {
            host,
            clockbound: self
                .roots
                .clockbound
                .iter()
                .find_map(|it| clockbound::read(it)),
            phcs: self.phcs.iter_mut().map(Phc::read).collect(),
            vmclock: self.vmclock.as_ref().map(|device| {
                let device = device.as_ref().map_err(Clone::clone)?;
                vmclock::Reading::take(device)
            }),
            ptp4l: measured.map(|(state, measured)| (state.clone(), measured)),
        };
    }

    fn judge(&mut self, kernel: Option<&KernelClock>) -> UtcBounds {
        let (now, real) = (MonoNs::now(), RealNs::now());
        let tai_offset_s = kernel.map_or(0, |it| it.tai_offset_s);
        let chrony = self.chrony.latest();
        // chronyd does not know how far a card's clock is off, and so does not tell the kernel.
        let errors = self.latest.phcs.iter().filter_map(phc::Reading::error_ns);
        let follows_device = chrony.is_some_and(|it| it.tracking.is_of_device());
        let device_error_ns = errors.max().filter(|_| follows_device).unwrap_or(0);
        let mut kernel = kernel.map(|it| by_kernel(it, now, device_error_ns));
        let mut by_chrony = chrony.map(|it| it.bound(now, real, device_error_ns));
        let mut by_clockbound = match &self.latest.clockbound {
            Some(Ok(segment)) => Some(segment.bound(now)),
            _ => None,
        };
        if let Some(disrupted) = &mut self.disrupted {
            let kernel_ns = kernel.as_ref().map_or(0, |it| match it.parts {
                Parts::Kernel { max_error_ns, .. } => max_error_ns,
                _ => 0,
            });
            disrupted.is_kernel_anew |= kernel_ns < disrupted.max_error_ns;
            disrupted.max_error_ns = kernel_ns;
            let updated = chrony.map(|it| it.tracking.updated());
            if updated.is_some_and(|updated| updated <= disrupted.at.1) {
                by_chrony.iter_mut().for_each(|it| it.refuse(DISRUPTED));
            }
            if !disrupted.is_kernel_anew {
                kernel.iter_mut().for_each(|it| it.refuse(DISRUPTED));
                let knows = match &self.latest.clockbound {
                    Some(Ok(segment)) => segment.knows_disruptions(),
                    _ => false,
                };
                if !knows {
                    by_clockbound.iter_mut().for_each(|it| it.refuse(DISRUPTED));
                }
            }
        }
        let latest = &self.latest;
        let parted_ns = HostClock::read().parted_ns(&latest.host, DRIFT_PPB);
        let phcs = latest
            .phcs
            .iter()
            .map(|it| it.bound(parted_ns, tai_offset_s));
        let by_ptp4l = latest.ptp4l.as_ref().and_then(|(state, measured)| {
            state.bound(measured, real, DRIFT_PPB, parted_ns, tai_offset_s)
        });
        let by_vmclock = match &latest.vmclock {
            Some(Ok(reading)) => Some(reading.bound(parted_ns)),
            _ => None,
        };
        let daemons = kernel.into_iter().chain(by_chrony).chain(by_clockbound);
        let devices = phcs.chain(by_ptp4l).chain(by_vmclock);
        UtcBounds::of(daemons.chain(devices).collect())
    }

    /// Sources that are there and can't be read, with the reasons.
    pub fn unreadable(&self) -> Vec<(UtcSource, &str)> {
        let mut all = Vec::new();
        if let Some(Err(why)) = &self.latest.clockbound {
            all.push((UtcSource::ClockBound, why.as_str()));
        }
        if let Some(Err(why)) = &self.latest.vmclock {
            all.push((UtcSource::VmClock, why.as_str()));
        }
        all
    }
}

/// What the kernel says, where the device that chronyd follows is off by so much.
fn by_kernel(clock: &KernelClock, as_of: MonoNs, device_error_ns: u64) -> UtcBound {
    let parts = Parts::Kernel {
        max_error_ns: clock.max_error_ns,
        est_error_ns: clock.est_error_ns,
        device_error_ns,
    };
    let bound = clock
        .utc_bound_ns()
        .ok_or("it is not synchronised".to_owned());
    let interval = bound.map(|it| UtcInterval::within(it.saturating_add(device_error_ns)));
    UtcBound::new(parts, as_of, interval)
}

#[cfg(test)]
mod tests;
