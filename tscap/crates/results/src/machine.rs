//! Where it ran.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use tscap_base::kernel_files::{KernelFiles, names, read};
use tscap_base::text::numbers::span;
use tscap_doctor::hypervisor;
use tscap_host::system;
use tscap_network::{ethtool, netdev};
use tscap_utc::{Roots, UtcBounds, UtcReader};

/// More stolen time than this makes a machine noisy, %.
const MOST_STEAL_PERCENT: f64 = 2.0;

/// Where it ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Kernel release and architecture.
    pub kernel: String,
    /// CPU model.
    pub cpu: String,
    /// Number of CPUs that are online, 1 or more.
    pub cpus: u32,
    /// Current clock source.
    pub clocksource: String,
    /// What bounds its clock against UTC at the end; none of a capture file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utc: Option<UtcBounds>,
    /// What the kernel does about each CPU vulnerability, by its sysfs name;
    /// those that the CPU is not affected by are left out.
    pub mitigations: BTreeMap<String, String>,
    /// Frequency governor of the measuring CPU, if it has one.
    pub governor: Option<String>,
    /// Hypervisor, if the machine is virtual.
    pub virtualisation: Option<String>,
    /// Load averages over 1, 5, 15 min at the start.
    pub load: [f64; 3],
    /// Share of time that a hypervisor took from all CPUs while measuring, %.
    pub steal_percent: f64,
    /// Interface; empty if none was needed.
    pub interface: String,
    /// Driver of it, or the kind of a virtual one; empty if it is not known.
    pub driver: String,
}

/// Ticks of all CPUs so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticks {
    all: u64,
    steal: u64,
}

impl Ticks {
    /// From the first line of /proc/stat (proc_stat(5)); `None` if it is not there.
    pub fn read(files: &KernelFiles) -> Option<Self> {
        let text = read(&files.proc("stat")).ok()?;
        let line = text.lines().next()?.strip_prefix("cpu")?;
        let ticks: Vec<u64> = line.split_whitespace().flat_map(str::parse).collect();
        // Guests' time is part of user's.
        Some(Self {
            all: ticks.iter().take(8).sum(),
            steal: *ticks.get(7)?,
        })
    }

    /// Share of the time since `before` that was stolen, %.
    pub fn steal_percent(self, before: Self) -> f64 {
        let all = self.all.saturating_sub(before.all);
        100.0 * self.steal.saturating_sub(before.steal) as f64 / all.max(1) as f64
    }
}

/// Describes the machine; what can't be read is left empty.
pub fn describe(files: &KernelFiles, cpu: u32, interface: &str, steal_percent: f64) -> Machine {
    let text = |path: std::path::PathBuf| read(&path).ok();
    let load = text(files.proc("loadavg")).unwrap_or_default();
    let mut load = load.split_whitespace().map(|it| it.parse().unwrap_or(0.0));
    let vulnerabilities = files.sys("devices/system/cpu/vulnerabilities");
    let mitigation = |name: String| {
        let state = text(vulnerabilities.join(&name))?;
        (state != "Not affected").then_some((name, state))
    };
    let of_all = names(&vulnerabilities).unwrap_or_default().into_iter();
    Machine {
        kernel: system::os(),
        cpu: system::processor(),
        cpus: system::online_cpus().map_or(0, |cpus| cpus.len() as u32),
        clocksource: text(files.sys("devices/system/clocksource/clocksource0/current_clocksource"))
            .unwrap_or_default(),
        utc: files
            .are_live()
            .then(|| UtcReader::open(Roots::live()).read()),
        mitigations: of_all.filter_map(mitigation).collect::<BTreeMap<_, _>>(),
        governor: text(files.sys(format!(
            "devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor"
        ))),
        virtualisation: hypervisor(files).ok().flatten(),
        load: [(); 3].map(|()| load.next().unwrap_or(0.0)),
        steal_percent,
        interface: interface.into(),
        driver: match interface {
            "" => String::new(),
            _ => driver(interface),
        },
    }
}

/// What drives an interface: its driver, or the kind of a virtual one; empty if nothing tells,
/// as of one in another network namespace.
fn driver(interface: &str) -> String {
    if let Some(driver) = ethtool::driver(interface) {
        return driver.name;
    }
    match netdev::by_name(interface) {
        Ok(Some(link)) if link.is_loopback() => "loopback".to_owned(),
        Ok(Some(link)) => link.kind.unwrap_or_default(),
        _ => String::new(),
    }
}

impl Machine {
    /// How far its clock is off UTC at most, and who says so, if anything bounds it.
    pub fn utc_words(&self) -> Option<String> {
        let utc = self.utc.as_ref()?;
        Some(format!("±{}, {}", span(utc.bound_ns?), utc.says()))
    }

    /// The share of time that a hypervisor took, %, if it makes the machine noisy.
    pub fn noisy_steal(&self) -> Option<f64> {
        Some(self.steal_percent).filter(|steal| *steal > MOST_STEAL_PERCENT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tscap_base::recorded::Recorded;

    #[test]
    fn the_bound_to_utc_is_that_of_this_machine() {
        let live = describe(&KernelFiles::live(), 0, "", 0.0);
        let utc = live.utc.as_ref().expect("a reading");
        assert_eq!(live.utc_words().is_some(), utc.bound_ns.is_some());
        let json = serde_json::to_string(&live).unwrap();
        assert_eq!(serde_json::from_str::<Machine>(&json).unwrap(), live);
        let recorded = describe(&Recorded::veth().files, 0, "", 0.0);
        assert_eq!((recorded.utc_words(), recorded.utc), (None, None));
    }

    #[test]
    fn the_loopback_is_no_veth() {
        assert_eq!(driver("lo"), "loopback");
        assert_eq!(driver("no such interface"), "");
    }

    #[test]
    fn stolen_time_is_a_share_of_all() {
        let machine = Recorded::veth();
        let ticks = |line: &str| {
            machine.put("proc/stat", line);
            Ticks::read(&machine.files)
        };
        let before = ticks("cpu  100 0 50 800 10 0 0 40 5 0\ncpu0 1 2 3").unwrap();
        let after = ticks("cpu  150 0 50 840 10 0 0 50 5 0").unwrap();
        assert_eq!(after.steal_percent(before), 10.0);
        assert_eq!(before.steal_percent(before), 0.0);
        assert_eq!(ticks("intr 1"), None);
    }
}
