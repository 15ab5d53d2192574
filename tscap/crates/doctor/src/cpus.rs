//! What else keeps the CPUs from stamping at once: clock rate, other programs,
//! a daemon that moves interrupts.

use super::check::{Check, Topic, advice, fix};
use tscap_base::kernel_files::{KernelFileError, KernelFiles, numbered, read, read_if_there};
use tscap_base::text::numbers::counted;
use tscap_host::{cpu_list, process};
use tscap_time::cpuinfo::Flags;

const GOVERNOR: Topic = Topic {
    id: "governor",
    why: "A CPU that first has to clock up takes longer, and unevenly so, from arrival to stamp.",
};
const ISOLATED: Topic = Topic {
    id: "isolated_cpus",
    why: "On a CPU without other programs nothing delays the stamp, and no cache is cold.",
};
const IRQBALANCE: Topic = Topic {
    id: "irqbalance",
    why: "It moves the interrupts of receive queues, and with them the CPU that stamps.",
};

/// The folder of the CPUs.
const CPUS: &str = "devices/system/cpu";
/// With fewer CPUs none can be spared.
const FEWEST_TO_ISOLATE: usize = 4;

/// How the CPUs choose their clock rate.
pub(super) fn governor(files: &KernelFiles) -> Check {
    GOVERNOR.by_files(|| {
        let folder = files.sys(CPUS);
        let (mut all, mut slow) = (0, Vec::new());
        let mut choices = String::new();
        for cpu in numbered(&folder, "cpu")? {
            let scaling = folder.join(format!("cpu{cpu}/cpufreq"));
            let Some(governor) = read_if_there(&scaling.join("scaling_governor"))? else {
                continue;
            };
            all += 1;
            if governor != "performance" {
                choices = read_if_there(&scaling.join("scaling_available_governors"))?
                    .unwrap_or_default();
                slow.push((cpu, governor));
            }
        }
        let Some((_, first)) = slow.first() else {
            return Ok(
                GOVERNOR.good(match (all, Flags::read(files)?.is_virtual()) {
                    (0, true) => "none: the clock rate is the host's affair",
                    (0, false) => "none: the kernel does not change the clock rate",
                    _ => "performance on all CPUs",
                }),
            );
        };
        let cpus: Vec<_> = slow.iter().map(|(cpu, _)| *cpu).collect();
        let found = format!("{first} on CPUs {}", cpu_list::list(&cpus));
        let offers_it = choices.split_whitespace().any(|it| it == "performance");
        let remedy = if offers_it {
            fix(format!(
                "echo performance | tee /sys/{CPUS}/cpu*/cpufreq/scaling_governor"
            ))
        } else {
            advice("the kernel has no governor `performance`: build or load it")
        };
        Ok(GOVERNOR.warning(found, remedy))
    })
}

/// The CPUs on which nothing else is scheduled (`isolcpus=`, cpuset partitions).
pub(super) fn isolated(files: &KernelFiles) -> Check {
    ISOLATED.by_files(|| {
        let isolated = isolated_cpus(files)?;
        let online = online_cpus(files)?;
        Ok(match (&isolated[..], &online[..]) {
            ([], cpus) if cpus.len() < FEWEST_TO_ISOLATE => ISOLATED.good(format!(
                "none, and too few CPUs to spare any ({})",
                cpus.len()
            )),
            ([], [.., before, last]) => ISOLATED.warning(
                format!("none of {}", counted(online.len() as u64, "CPU")),
                advice(format!(
                    "add isolcpus={before}-{last} to the kernel's command line, boot, and capture \
                     with --rx-cpu {before} --converter-cpu {last}"
                )),
            ),
            (isolated, _) => ISOLATED.good(cpu_list::list(isolated)),
        })
    })
}

pub(super) fn irqbalance(files: &KernelFiles) -> Check {
    IRQBALANCE.by_files(|| {
        Ok(match process::running(files, &["irqbalance"])? {
            None => IRQBALANCE.good("does not run"),
            Some((pid, _)) => {
                let command = if process::has_systemd(files)? {
                    "systemctl stop irqbalance".into()
                } else {
                    format!("kill {pid}")
                };
                IRQBALANCE.warning(format!("runs, process {pid}"), fix(command))
            }
        })
    })
}

/// The CPUs that are switched on.
pub(super) fn online_cpus(files: &KernelFiles) -> Result<Vec<u32>, KernelFileError> {
    let list = read(&files.sys(CPUS).join("online"))?;
    Ok(cpu_list::parse(&list).unwrap_or_default())
}

pub(super) fn isolated_cpus(files: &KernelFiles) -> Result<Vec<u32>, KernelFileError> {
    let list = read_if_there(&files.sys(CPUS).join("isolated"))?;
    Ok(list
        .and_then(|list| cpu_list::parse(&list))
        .unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Verdict::{Good, Warning};
    use tscap_arch::FEATURES_FIELD;
    use tscap_base::recorded::Recorded;

    fn machine(flags: &str) -> Recorded {
        let machine = Recorded::veth();
        machine.put("proc/cpuinfo", &format!("{FEATURES_FIELD}\t: fpu {flags}"));
        machine
    }

    #[test]
    fn cpus_are_to_run_at_full_rate() {
        governor(&machine("").files).is(Good, "the kernel does not");
        governor(&machine("hypervisor").files).is(Good, "the host's");
        let machine = machine("");
        let set = |cpu: u32, governor: &str| {
            let folder = format!("sys/{CPUS}/cpu{cpu}/cpufreq");
            machine.put(&format!("{folder}/scaling_governor"), governor);
            let choices = "performance powersave";
            machine.put(&format!("{folder}/scaling_available_governors"), choices);
        };
        for cpu in 0..4 {
            set(cpu, "performance");
        }
        governor(&machine.files).is(Good, "performance on all");
        set(1, "powersave");
        set(2, "powersave");
        governor(&machine.files)
            .is(Warning, "powersave on CPUs 1-2")
            .fixed_by(
                "echo performance | tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor",
            );
        let choices = format!("sys/{CPUS}/cpu2/cpufreq/scaling_available_governors");
        machine.put(&choices, "powersave userspace");
        governor(&machine.files)
            .is(Warning, "powersave")
            .advises("no governor");
    }

    #[test]
    fn isolation_where_there_are_cpus_for_it() {
        let check = |online: &str, isolated: &str| {
            let machine = Recorded::veth();
            machine.put(&format!("sys/{CPUS}/online"), online);
            machine.put(&format!("sys/{CPUS}/isolated"), isolated);
            self::isolated(&machine.files)
        };
        check("0-1", "").is(Good, "too few CPUs to spare any (2)");
        check("0-7", "6-7").is(Good, "6-7");
        let none = check("0-7", "");
        none.is(Warning, "none of 8 CPUs").advises("isolcpus=6-7");
        none.advises("--rx-cpu 6 --converter-cpu 7");
        isolated(&Recorded::veth().files).is(Warning, "cpu/online");
    }

    #[test]
    fn irqbalance_is_found_by_its_name() {
        let machine = Recorded::veth();
        machine.put("proc/7/comm", "sshd");
        irqbalance(&machine.files).is(Good, "does not run");
        machine.put("proc/8/comm", "irqbalance");
        irqbalance(&machine.files)
            .is(Warning, "runs, process 8")
            .fixed_by("kill 8");
        machine.put("proc/1/comm", "systemd");
        irqbalance(&machine.files).fixed_by("systemctl stop irqbalance");
    }
}
