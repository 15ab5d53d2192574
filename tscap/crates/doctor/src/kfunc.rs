//! Whether a kfunc that reads the TSC is available.

use super::check::{Check, Topic, advice, fix};
use super::stamps::Probe;
use tscap_base::kernel_files::KernelFiles;
use tscap_base::text::causes::chain;
use tscap_clock::{StampPath, TscPath};
use tscap_host::installed::Installed;
use tscap_programs::hook::Kfunc;

const KFUNC: Topic = Topic {
    id: "stamp_kfunc",
    why: "A kfunc reads the TSC without the code around a clock: what --clock auto takes first.",
};

/// Whether frames can be stamped by a kfunc. `probes` are those that were found.
pub(super) fn kfunc(files: &KernelFiles, probes: &[(TscPath, Probe)], again: &str) -> Check {
    let works = probes.iter().filter_map(|(path, probe)| match probe {
        Probe::Works { host_bound_ns, .. } => Some((StampPath::Tsc(*path), host_bound_ns)),
        _ => None,
    });
    let works: Vec<_> = works.collect();
    if let Some((_, bound)) = works.first() {
        let functions = works.iter().map(|(path, _)| path.function());
        let functions = functions.collect::<Vec<_>>().join(" and ");
        return KFUNC.good(format!(
            "works, by {functions}: within ±{bound} ns of this host's clock"
        ));
    }
    match probes.first() {
        Some((_, Probe::Refused { why, what_next })) => {
            // Without the verifier's log.
            let why = why.lines().next().unwrap_or_default();
            KFUNC.warning(format!("refused: {why}"), advice(what_next))
        }
        Some(_) => KFUNC.warning(
            "there, but not tried: this process may not load programs",
            fix(again),
        ),
        None => absent(files),
    }
}

fn absent(files: &KernelFiles) -> Check {
    match Kfunc::find(TscPath::Module, files) {
        Err(error) => {
            let found = chain(&error);
            let is_packaged = Installed::find().is_packaged;
            let remedy = match error.fix() {
                Some(command) if !is_packaged => fix(command),
                _ => advice(error.advice(is_packaged)),
            };
            KFUNC.warning(found, remedy)
        }
        // It has come meanwhile.
        Ok(_) => KFUNC.good("the kernel module tscap has just been loaded"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Verdict::{Good, Warning};
    use tscap_base::recorded::Recorded;

    const LOAD: &str = "make -C tscap-ebpf/kmod && sudo insmod tscap-ebpf/kmod/tscap.ko";

    fn check(machine: &Recorded, probes: &[(TscPath, Probe)]) -> Check {
        kfunc(&machine.files, probes, "sudo tscap doctor")
    }

    #[test]
    fn what_works_is_named() {
        let machine = Recorded::veth();
        let works = |path, host_bound_ns| {
            let probe = Probe::Works {
                path: StampPath::Tsc(path),
                host_bound_ns,
            };
            (path, probe)
        };
        let both = [
            works(TscPath::Module, 50),
            works(TscPath::ModuleOrdered, 60),
        ];
        let good = check(&machine, &both);
        good.is(
            Good,
            "tscap_rdtsc of the module tscap and tscap_rdtsc_ordered",
        );
        good.is(Good, "±50 ns");
        let refused = Probe::Refused {
            why: "the kernel refused\n0: R1=ctx".into(),
            what_next: "boot another kernel".into(),
        };
        let bad = check(&machine, &[(TscPath::Module, refused.clone())]);
        bad.is(Warning, "the kernel refused")
            .advises("another kernel");
        assert!(!bad.found.contains("R1"), "{bad:?}");
        // The module's works where the kernel's own does not.
        let second = [(TscPath::Kernel, refused), works(TscPath::Module, 50)];
        check(&machine, &second).is(Good, "by tscap_rdtsc of the module");
        check(&machine, &[(TscPath::Module, Probe::NotTried)])
            .is(Warning, "not tried")
            .fixed_by("sudo tscap doctor");
    }

    #[test]
    fn what_is_missing_comes_with_what_brings_it() {
        let machine = Recorded::veth();
        check(&machine, &[])
            .is(Warning, "shows no types")
            .advises("CONFIG_DEBUG_INFO_BTF");
        machine.put("sys/kernel/btf/vmlinux", "");
        check(&machine, &[])
            .is(Warning, "is not loaded")
            .fixed_by(LOAD);
        let lockdown = "sys/kernel/security/lockdown";
        machine.put(lockdown, "none [integrity] confidentiality");
        check(&machine, &[])
            .is(Warning, "is not loaded")
            .advises("mokutil --import");
        machine.put("sys/module/tscap/refcnt", "0");
        check(&machine, &[])
            .is(Warning, "has no types")
            .fixed_by(&format!("sudo rmmod tscap; {LOAD}"));
    }
}
