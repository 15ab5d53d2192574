//! Whether a hypervisor can come between a frame and its stamp, and does.

use super::check::{Check, Topic, advice};
use tscap_base::kernel_files::{KernelFileError, KernelFiles, read, read_if_there};
use tscap_time::cpuinfo::Flags;

const VIRTUALISATION: Topic = Topic {
    id: "virtualisation",
    why: "A host halts its guests at any moment, and adds its own queues before the interface's.",
};
const STEAL: Topic = Topic {
    id: "steal_time",
    why: "Time that the host gave to others delays stamps, and no clock in here shows it.",
};

/// More stolen time than this shows in the tail of every measurement, percent.
const MOST_STOLEN_PERCENT: f64 = 2.0;

/// Makers of virtual machines, as `sys_vendor` names them, where CPUs tell of no hypervisor.
const MAKERS: [&str; 6] = [
    "Amazon EC2",
    "Google",
    "Microsoft Corporation",
    "Parallels",
    "QEMU",
    "VMware",
];

/// The hypervisor that this machine runs under, as far as it can be told from
/// inside; `None` without one.
pub fn hypervisor(files: &KernelFiles) -> Result<Option<String>, KernelFileError> {
    if !Flags::read(files)?.is_virtual() && !is_of_a_maker(files)? {
        return Ok(None);
    }
    let clocks = "devices/system/clocksource/clocksource0/available_clocksource";
    let clocks = read_if_there(&files.sys(clocks))?.unwrap_or_default();
    let by_clock = [("kvm-clock", "KVM"), ("hyperv", "Hyper-V"), ("xen", "Xen")];
    let name = by_clock.iter().find(|(clock, _)| clocks.contains(clock));
    let product = |file| read_if_there(&files.sys("class/dmi/id").join(file));
    let words = [
        name.map(|(_, name)| (*name).to_owned()),
        product("sys_vendor")?,
        product("product_name")?,
    ];
    let words: Vec<_> = words
        .into_iter()
        .flatten()
        .filter(|it| !it.is_empty())
        .collect();
    Ok(Some(if words.is_empty() {
        "of an unknown kind".into()
    } else {
        words.join(", ")
    }))
}

/// Whether the firmware names a maker of virtual machines, and no bare machine of its.
fn is_of_a_maker(files: &KernelFiles) -> Result<bool, KernelFileError> {
    let of = |file| read_if_there(&files.sys("class/dmi/id").join(file));
    let vendor = of("sys_vendor")?.unwrap_or_default();
    let product = of("product_name")?.unwrap_or_default();
    let is_bare = product.contains(".metal") || product.contains("Surface");
    Ok(MAKERS.iter().any(|maker| vendor.starts_with(maker)) && !is_bare)
}

/// Whether this is a virtual machine.
pub(super) fn machine(files: &KernelFiles) -> Check {
    VIRTUALISATION.by_files(|| {
        let flags = Flags::read(files)?;
        let Some(name) = hypervisor(files)? else {
            return Ok(VIRTUALISATION.good("none: no hypervisor shows itself"));
        };
        let inner = if flags.has("vmx") || flags.has("svm") {
            ", which may run others inside itself (vmx or svm)"
        } else {
            ""
        };
        let found =
            format!("a virtual machine ({name}){inner}; whether nested can't be seen from inside");
        let remedy = "pin its CPUs on the host and pass the interface through, or measure on the \
                      bare machine";
        Ok(VIRTUALISATION.warning(found, advice(remedy)))
    })
}

/// How much of the time that the CPUs wanted to run they were kept from it.
pub(super) fn steal(files: &KernelFiles) -> Check {
    STEAL.by_files(|| {
        let stat = read(&files.proc("stat"))?;
        let Some(percent) = stolen_percent(&stat) else {
            return Ok(STEAL.warning(
                "not known: /proc/stat has no line `cpu` with eight counts",
                advice("measure on a kernel that counts it"),
            ));
        };
        let found = format!("{percent:.1} % of the time wanted, since boot");
        Ok(if percent <= MOST_STOLEN_PERCENT {
            STEAL.good(found)
        } else {
            STEAL.warning(
                found,
                advice("on the host: fewer guests, or CPUs of their own for this one"),
            )
        })
    })
}

/// Stolen time against the time run and stolen, of all CPUs (proc_stat(5)).
fn stolen_percent(stat: &str) -> Option<f64> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks = line.split_whitespace().map(str::parse::<u64>);
    let ticks: Vec<_> = ticks.collect::<Result<_, _>>().ok()?;
    let [user, nice, system, _idle, _iowait, irq, softirq, steal, ..] = ticks[..] else {
        return None;
    };
    let wanted = user + nice + system + irq + softirq + steal;
    Some(100.0 * steal as f64 / wanted.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Verdict::{Good, Warning};
    use tscap_arch::FEATURES_FIELD;
    use tscap_base::recorded::Recorded;

    #[test]
    fn a_virtual_machine_says_so() {
        let recorded = Recorded::veth();
        machine(&recorded.files).is(Warning, "cpuinfo");
        let cpu = |features: &str| {
            recorded.put("proc/cpuinfo", &format!("{FEATURES_FIELD}\t: {features}"));
        };
        cpu("fpu vmx");
        machine(&recorded.files).is(Good, "no hypervisor");
        cpu("fpu hypervisor");
        machine(&recorded.files)
            .is(Warning, "(of an unknown kind);")
            .advises("bare machine");
        cpu("fpu hypervisor svm");
        recorded.put(
            "sys/devices/system/clocksource/clocksource0/available_clocksource",
            "kvm-clock tsc",
        );
        recorded.put("sys/class/dmi/id/sys_vendor", "QEMU");
        machine(&recorded.files).is(Warning, "(KVM, QEMU), which may run others inside");
    }

    /// CPUs of arm64 do not.
    #[test]
    fn the_firmware_tells_where_the_cpu_does_not() {
        let recorded = Recorded::veth();
        recorded.put("proc/cpuinfo", &format!("{FEATURES_FIELD}\t: fp asimd"));
        let product = |vendor, name| {
            recorded.put("sys/class/dmi/id/sys_vendor", vendor);
            recorded.put("sys/class/dmi/id/product_name", name);
            machine(&recorded.files)
        };
        product("QEMU", "QEMU Virtual Machine").is(Warning, "(QEMU, QEMU Virtual Machine)");
        product("Amazon EC2", "c7g.large").is(Warning, "Amazon EC2");
        product("Amazon EC2", "c7g.metal").is(Good, "none");
        product("Raspberry Pi Foundation", "").is(Good, "none");
    }

    #[test]
    fn stolen_time_is_of_the_time_wanted() {
        let check = |line: &str| {
            let recorded = Recorded::veth();
            recorded.put("proc/stat", &format!("{line}\ncpu0 1 2 3"));
            steal(&recorded.files)
        };
        check("cpu  500 100 300 99999 999 50 30 20 0 0").is(Good, "2.0 %");
        check("cpu  500 100 300 99999 999 50 30 21 0 0")
            .is(Warning, "2.1 %")
            .advises("host");
        check("cpu  0 0 0 0 0 0 0 0").is(Good, "0.0 %");
        check("cpu  1 2 3").is(Warning, "not known");
        steal(&Recorded::veth().files).is(Warning, "stat");
    }
}
