//! The kernel's version and how it preempts.

use super::check::{Check, Topic, advice};
use tscap_base::kernel_files::{KernelFiles, read};
use tscap_host::system;

const VERSION: Topic = Topic {
    id: "kernel",
    why: "XDP programs copy frames by bpf_xdp_load_bytes (5.18) and read CLOCK_TAI since 6.1.",
};
const PREEMPTION: Topic = Topic {
    id: "preemption",
    why: "On PREEMPT_RT one XDP program may interrupt another, and a ring would get two producers.",
};

/// Whether the kernel is young enough, or has been given what younger ones have,
/// as those of some distributions: then stamping with `ktime` or `tai` works.
pub(super) fn version(files: &KernelFiles, ktime: bool, tai: bool) -> Check {
    VERSION.by_files(|| {
        let release = read(&files.proc("sys/kernel/osrelease"))?;
        let younger = advice("boot Linux 6.1 or later");
        Ok(match major_minor(&release) {
            None => VERSION.warning(format!("{release}, which is no version known"), younger),
            Some(version) if version < (5, 18) && !ktime => {
                VERSION.bad(format!("{release}: captures are refused"), younger)
            }
            Some(version) if version < (6, 1) && !tai => {
                VERSION.warning(format!("{release}: no --clock tai"), younger)
            }
            Some(_) => VERSION.good(release),
        })
    })
}

/// Whether rings keep their one producer.
pub(super) fn preemption(files: &KernelFiles) -> Check {
    PREEMPTION.by_files(|| {
        Ok(if !system::is_preempt_rt(files)? {
            PREEMPTION.good("not PREEMPT_RT")
        } else {
            PREEMPTION.bad(
                "PREEMPT_RT: captures are refused",
                advice("boot a kernel without PREEMPT_RT"),
            )
        })
    })
}

/// "6.12.38-cloud-amd64" is (6, 12).
fn major_minor(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    let mut next = || numbers.next()?.parse().ok();
    Some((next()?, next()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Verdict::{Bad, Good, Warning};
    use tscap_base::recorded::Recorded;

    #[test]
    fn versions() {
        let check = |release| {
            let machine = Recorded::veth();
            machine.put("proc/sys/kernel/osrelease", release);
            version(&machine.files, false, false)
        };
        for release in ["6.1.0-38-amd64", "6.12.38+deb13-cloud-amd64", "7.0-rc1"] {
            check(release).is(Good, release);
        }
        check("6.0.12").is(Warning, "no --clock tai").advises("6.1");
        check("5.18.0").is(Warning, "no --clock tai");
        check("5.10.0-30-amd64").is(Bad, "refused").advises("6.1");
        check("unknown").is(Warning, "no version known");
        version(&Recorded::veth().files, true, true).is(Warning, "osrelease");

        let backported = Recorded::veth();
        backported.put("proc/sys/kernel/osrelease", "5.14.0-503.el9.x86_64");
        version(&backported.files, true, false).is(Warning, "no --clock tai");
        version(&backported.files, true, true).is(Good, "5.14.0");
    }

    #[test]
    fn preempt_rt_is_refused() {
        let machine = Recorded::veth();
        preemption(&machine.files).is(Warning, "kernel/version");
        machine.put(
            "proc/sys/kernel/version",
            "#1 SMP PREEMPT_DYNAMIC Debian 6.12.38-1",
        );
        preemption(&machine.files).is(Good, "not PREEMPT_RT");
        machine.put(
            "proc/sys/kernel/version",
            "#1 SMP PREEMPT_RT Debian 6.12.38-1",
        );
        preemption(&machine.files)
            .is(Bad, "PREEMPT_RT")
            .advises("boot");
    }
}
