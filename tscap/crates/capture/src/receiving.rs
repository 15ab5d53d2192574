//! On which CPUs frames come in, unless `--rx-cpu` says it.

use tscap_base::kernel_files::{KernelFileError, KernelFiles};
use tscap_network::class_net;
use tscap_network::irq::{self, Route};
use tscap_network::netdev::Link;

/// The CPUs that take the receive interrupts of these interfaces, as far as procfs
/// and sysfs show them. None for a veth, which has no interrupts.
pub(super) fn cpus<'a>(files: &KernelFiles, links: impl IntoIterator<Item = &'a Link>) -> Vec<u32> {
    let of_each = links
        .into_iter()
        .map(|link| of(files, link).unwrap_or_default());
    let mut cpus = of_each.collect::<Vec<_>>().concat();
    cpus.sort_unstable();
    cpus.dedup();
    cpus
}

fn of(files: &KernelFiles, link: &Link) -> Result<Vec<u32>, KernelFileError> {
    if !class_net::shows(files, &link.name, link.index, link.mac)? {
        return Ok(Vec::new());
    }
    let mut cpus = Vec::new();
    for irq in irq::of_interface(files, &link.name)? {
        cpus.extend(Route::read(files, irq.irq)?.on);
    }
    Ok(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tscap_base::recorded::Recorded;
    use tscap_network::recorded::link;

    #[test]
    fn interrupts_tell_where_frames_come_in() {
        let machine = Recorded::intel();
        let (one, other) = (link("enp1s0f0", 2), link("enp1s0f1", 3));
        let found = |links: &[Link]| cpus(&machine.files, links);
        assert_eq!(found(std::slice::from_ref(&one)), [0], "as recorded");

        // Where it may go is not where it goes.
        machine.put("proc/irq/121/smp_affinity_list", "0-3");
        machine.put("proc/irq/121/effective_affinity_list", "3");
        machine.put("proc/irq/122/smp_affinity_list", "1");
        // That of the link's state.
        machine.put("proc/irq/120/smp_affinity_list", "2");
        assert_eq!(found(std::slice::from_ref(&one)), [0, 1, 3]);
        machine.put("proc/irq/124/smp_affinity_list", "2");
        assert_eq!(found(&[one, other]), [0, 1, 2, 3]);
    }

    #[test]
    fn a_veth_and_what_cannot_be_seen_have_none() {
        let machine = Recorded::veth();
        assert!(cpus(&machine.files, &[link("veth0", 5)]).is_empty());
        let machine = Recorded::virtio();
        assert_eq!(cpus(&machine.files, &[link("eth0", 2)]), [0]);
        let elsewhere = link("eth0", 3);
        assert!(cpus(&machine.files, &[elsewhere]).is_empty());
    }
}
