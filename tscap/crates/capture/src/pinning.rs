//! `--rx-cpu`: receive work on the named CPUs, for the time of a capture.
//!
//! What decides on which CPU the XDP program sees a frame:
//! - the CPU that takes the queue's interrupt, for its poll function runs there
//!   (`napi_schedule`, `net_rx_action`);
//! - or, with threaded NAPI, the CPU of the poll thread (`napi_threaded_poll`);
//! - in generic mode also RPS, which comes after these and before the program
//!   ([`tscap_network::rps`]). In native mode it comes after the program, has no
//!   say in its stamps, and is left as it is.

mod plan;

use self::plan::SteeringTargets;
use super::check::Machine;
use super::event::Reporter;
use super::plan::Capture;
use tscap_base::failure::{Context as _, Failure};
use tscap_base::kernel_files::KernelFiles;
use tscap_host::cpu_list;
use tscap_live::settings::{
    self, Change, InterfaceId, JournalError, Planned, SettingValue, SettingsGuard,
};
use tscap_network::class_net;
use tscap_network::netdev::Link;
use tscap_network::netns::NetnsId;
use tscap_programs::hook::AttachPoint;

/// What must be right before the machine is touched, and what is worth a
/// warning then.
pub(super) fn check(
    plan: &Capture,
    machine: &Machine,
    reporter: &mut Reporter<'_>,
) -> Result<(), Failure> {
    if plan.rx_cpus.is_some() {
        if !nix::unistd::geteuid().is_root() {
            return Err(Failure::new(
                "cannot pin receive work: files of procfs and sysfs that do it are root's",
            )
            .hint("start it as root: with -Z USER it goes on as you"));
        }
        for selected in &machine.interfaces.now {
            let scope = machine.interfaces.scope_of(selected);
            scope.visit(|| check_sysfs(&KernelFiles::live(), &selected.link))??;
        }
    }
    match (beside_receiving(plan, machine), plan.priority) {
        (Some(beside), Some(_)) => {
            return Err(
                Failure::new(format!("cannot run the converter in real time: {beside}")).hint(
                    "leave out --priority, or give --converter-cpu a CPU that does not receive",
                ),
            );
        }
        (Some(beside), None) => reporter.warning(&beside),
        (None, _) => {}
    }
    Ok(())
}

/// What to say of a converter on a CPU that receives.
fn beside_receiving(plan: &Capture, machine: &Machine) -> Option<String> {
    let mut converters = machine.converter_cpus.iter();
    let converter = converters.find(|cpu| machine.receiving_cpus.contains(cpu))?;
    let (receives, remedy) = match plan.rx_cpus {
        Some(_) => ("which --rx-cpu gives to receiving", "give it fewer"),
        None => (
            "which takes receive interrupts",
            "--rx-cpu takes them elsewhere",
        ),
    };
    let is_free = |cpu: &u32| !machine.receiving_cpus.contains(cpu);
    let other = if machine.ring_cpus.iter().any(is_free) {
        "--converter-cpu gives it another one, "
    } else {
        ""
    };
    let warning = format!(
        "the converter runs on CPU {converter}, {receives}: each takes time from the other \
         ({other}{remedy})"
    );
    Some(warning)
}

/// sysfs shows the network namespace in which it was mounted.
fn check_sysfs(files: &KernelFiles, link: &Link) -> Result<(), Failure> {
    let what = format!("cannot pin the receive work of {}", link.name);
    let shows = class_net::shows(files, &link.name, link.index, link.mac);
    let is_here = settings::sysfs_is_here(files, link.index);
    if shows.context(what.as_str())? && is_here.context(what.as_str())? {
        return Ok(());
    }
    let hint = match NetnsId::here().ok().and_then(NetnsId::name) {
        Some(name) => format!("ip netns exec {name} tscap … mounts the right one"),
        None => "inside the namespace: unshare --mount sh -c 'mount -t sysfs sysfs /sys && exec \
                 tscap …'"
            .into(),
    };
    Err(Failure::new(format!("{what}: /sys belongs to another network namespace")).hint(hint))
}

/// What to say when changes can't be journalled.
pub(super) fn journal_failure(error: JournalError) -> Failure {
    let hint = format!("nothing stays changed; {}", error.remedy());
    Failure::from_error(error, "cannot keep a journal of changes").hint(hint)
}

/// Spreads receive work over CPUs, interface by interface.
#[derive(Debug)]
pub(super) struct Pinning {
    cpus: Vec<u32>,
    /// Where the last interface left off.
    next: usize,
}

/// What came of the settings wanted.
#[derive(Debug, Default)]
struct Outcome {
    /// How many are as wanted.
    in_force: usize,
    /// Why the others are not.
    refused: Vec<String>,
}

impl Pinning {
    pub fn new(cpus: Vec<u32>) -> Self {
        Self { cpus, next: 0 }
    }

    /// Steers the receive work of an interface to which the program is attached.
    pub fn steer(
        &mut self,
        link: &Link,
        at: AttachPoint,
        changes: &mut SettingsGuard,
        reporter: &mut Reporter<'_>,
    ) -> Result<(), Failure> {
        let what = || format!("cannot pin the receive work of {}", link.name);
        let found = SteeringTargets::read(changes.files(), link).context(what())?;
        let mut cpus = self.cpus.clone();
        cpus.rotate_left(self.next % self.cpus.len());
        self.next += found.queues();

        let interface = InterfaceId::here(link).context(what())?;
        let mut set = |wanted: Vec<SettingValue>| apply(&interface, wanted, changes, reporter);
        let irqs = set(found.irqs_on(&cpus))?;
        let mut threads = set(found.threads_on(&cpus))?;
        if found.is_threaded && found.threads.is_empty() && at.is_in_driver() {
            let unseen = "poll threads: there are some, but not in this PID namespace";
            threads.refused.push(unseen.into());
        }
        let polling = if found.is_threaded { &threads } else { &irqs };
        let is_steered = polling.in_force > 0 && polling.refused.is_empty();
        let rps = match at {
            at if at.is_in_driver() => Outcome::default(),
            _ => set(found.rps_on(&cpus, is_steered))?,
        };
        let kinds = [
            (irqs, "interrupt"),
            (threads, "poll thread"),
            (rps, "RPS setting"),
        ];
        self.say(link, at, &kinds, reporter);
        Ok(())
    }

    fn say(
        &self,
        link: &Link,
        at: AttachPoint,
        kinds: &[(Outcome, &str)],
        reporter: &mut Reporter<'_>,
    ) {
        let name = &link.name;
        let cpus = match self.cpus.as_slice() {
            [cpu] => format!("CPU {cpu}"),
            cpus => format!("CPUs {}", cpu_list::list(cpus)),
        };
        let refused: Vec<_> = kinds.iter().flat_map(|(it, _)| &it.refused).collect();
        let in_force = kinds.iter().filter(|(it, _)| it.in_force > 0);
        let in_force: Vec<_> = in_force
            .map(|(it, kind)| match it.in_force {
                1 => format!("1 {kind}"),
                several => format!("{several} {kind}s"),
            })
            .collect();
        if !in_force.is_empty() {
            let in_force = in_force.join(", ");
            reporter.note(&format!("{name}: received on {cpus} ({in_force} set)"));
        }
        if let Some(first) = refused.first() {
            reporter.warning(&format!(
                "{name}: {} of its settings could not be pinned to {cpus}, among them the \
                 {first}; frames that come in elsewhere are counted (off_cpu)",
                refused.len()
            ));
        } else if in_force.is_empty() {
            let rps = match at {
                at if at.is_in_driver() => "RPS only acts behind native XDP",
                _ => "its kernel has no RPS",
            };
            reporter.warning(&format!(
                "{name}: there is nothing to pin: it has no interrupts for receive queues, no \
                 poll threads, and {rps}. Frames are received where the sender or the driver \
                 does it; those elsewhere than on {cpus} are counted (off_cpu)"
            ));
        }
    }
}

/// Makes the settings as wanted, as far as the kernel lets.
fn apply(
    interface: &InterfaceId,
    wanted: Vec<SettingValue>,
    changes: &mut SettingsGuard,
    reporter: &mut Reporter<'_>,
) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::default();
    let mut planned = Vec::new();
    for SettingValue { setting, value } in wanted {
        match Change::plan(changes.files(), interface, setting.clone(), value) {
            Ok(Planned::Change(change)) => {
                outcome.in_force += 1;
                planned.push(change);
            }
            Ok(Planned::AsWanted) => outcome.in_force += 1,
            Ok(Planned::Absent) => {
                let what = setting.of(&interface.name);
                outcome.refused.push(format!("{what}: it is gone"));
            }
            Err(error) => outcome.refuse(setting.of(&interface.name), error),
        }
    }
    for change in &planned {
        reporter.detail(&format!(
            "{change}: {} instead of {}",
            change.new_shown(),
            change.old_shown()
        ));
    }
    for refused in changes.make(planned).map_err(journal_failure)? {
        outcome.in_force -= 1;
        outcome.refuse(refused.change.to_string(), refused.error);
    }
    Ok(outcome)
}

impl Outcome {
    fn refuse(&mut self, what: String, error: settings::ChangeError) {
        self.refused.push(Failure::from_error(error, what).chain());
    }
}

#[cfg(test)]
mod tests;
