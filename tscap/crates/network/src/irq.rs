//! The interrupts of an interface's receive queues, and the CPUs they go to
//! (`/proc/irq/<n>/smp_affinity_list`, `write_irq_affinity` in kernel/irq/proc.c).

mod route;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

pub use self::route::Route;
use crate::class_net;
use tscap_base::kernel_files::{KernelFileError, KernelFiles, numbered, read, read_if_there};

/// An interrupt that announces received frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueIrq {
    /// Number of the interrupt, as in /proc/interrupts.
    pub irq: u32,
    /// The queue, as its name has it; several interfaces count from 1.
    pub queue: u32,
    /// The name that the driver gave it.
    pub name: String,
}

/// The file with the CPUs that an interrupt may go to, a list.
pub fn affinity_file(files: &KernelFiles, irq: u32) -> PathBuf {
    files.proc(format!("irq/{irq}/smp_affinity_list"))
}

/// Whether an interrupt is in use under this name.
pub fn is_named(files: &KernelFiles, irq: u32, name: &str) -> Result<bool, KernelFileError> {
    let text = read(&files.proc("interrupts"))?;
    Ok(words(&text)
        .get(&irq)
        .is_some_and(|words| words.contains(&name)))
}

/// The interrupts of an interface's receive queues, in the order of the queues.
/// None for an interface without a device (veth and the like), and for a device
/// whose interrupts have names that say nothing.
pub fn of_interface(
    files: &KernelFiles,
    interface: &str,
) -> Result<Vec<QueueIrq>, KernelFileError> {
    let device = class_net::folder(files, interface).join("device");
    let Ok(device) = fs::canonicalize(device) else {
        return Ok(Vec::new());
    };
    let irqs = of_device(&device)?;
    if irqs.is_empty() {
        return Ok(Vec::new());
    }
    let text = read(&files.proc("interrupts"))?;
    let words = words(&text);
    let shares_device = interfaces_of(&device) > 1;
    let mut queues = Vec::new();
    let mut whole = Vec::new();
    for irq in irqs {
        for name in words.get(&irq).into_iter().flatten() {
            let found = |queue| QueueIrq {
                irq,
                queue,
                name: (*name).to_owned(),
            };
            if *name == interface {
                whole.push(found(0));
            } else if let Some(queue) = queue_of(name, interface)
                && (!shares_device || name.contains(interface))
            {
                queues.push(found(queue));
            }
        }
    }
    // Drivers with an interrupt for each queue name another one, for the link's
    // state, after the interface alone (igb, ixgbe, e1000e).
    if queues.is_empty() {
        queues = whole;
    }
    queues.sort_by_key(|irq| (irq.queue, irq.irq));
    Ok(queues)
}

/// The numbers of all interrupts of a device: message-signalled ones, or its
/// line. Those of a virtio device belong to the PCI device above it.
fn of_device(device: &Path) -> Result<Vec<u32>, KernelFileError> {
    let is_virtio = device
        .file_name()
        .is_some_and(|name| name.to_string_lossy().starts_with("virtio"));
    let device = match device.parent() {
        Some(parent) if is_virtio => parent,
        _ => device,
    };
    let irqs = numbered(&device.join("msi_irqs"), "")?;
    if !irqs.is_empty() {
        return Ok(irqs);
    }
    let line = read_if_there(&device.join("irq"))?;
    let line = line.and_then(|line| line.parse().ok());
    Ok(line.filter(|irq| *irq != 0).into_iter().collect())
}

/// How many interfaces the device has, in this namespace.
fn interfaces_of(device: &Path) -> usize {
    fs::read_dir(device.join("net")).map_or(1, Iterator::count)
}

/// The words behind the number of each interrupt in the text of
/// /proc/interrupts: counts, chip, number there, names (`show_interrupts`,
/// kernel/irq/proc.c).
fn words(text: &str) -> BTreeMap<u32, Vec<&str>> {
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    lines
        .filter_map(|(irq, rest)| {
            let words = rest.split([' ', '\t', ',']).filter(|word| !word.is_empty());
            Some((irq.trim().parse().ok()?, words.collect()))
        })
        .collect()
}

/// The queue whose received frames an interrupt of this name announces.
fn queue_of(name: &str, interface: &str) -> Option<u32> {
    // mlx5_comp3@pci:0000:03:00.0
    let name = name.split('@').next()?;
    // virtio_pci: virtio2-input.0 (`virtnet_find_vqs` names the queues).
    if let Some((device, queue)) = name.split_once("-input.") {
        return queue.parse().ok().filter(|_| device.starts_with("virtio"));
    }
    // mlx5 (`irq_set_name`), gve (`gve_alloc_notify_blocks`), mana
    // (`mana_gd_setup_irqs`): names without the interface's.
    for driver in ["mlx5_comp", "gve-ntfy-blk", "mana_q"] {
        if let Some(queue) = name.strip_prefix(driver) {
            return queue.parse().ok();
        }
    }
    // eth0-TxRx-3 (igb, ixgbe, i40e, ice, iavf, bnxt), eth0-Tx-Rx-3 (ena),
    // eth0-rx-3 (e1000e, stmmac), eth0-rxtx-3 (vmxnet3, nfp), eth0-txrx-3 (tg3),
    // eth0-fp-3 (bnx2x, qede), eth0-3 (bnx2, mlx4).
    let (kind, queue) = name.rsplit_once('-')?;
    let queue = queue.parse().ok()?;
    let kind_in_lower_case = kind.to_ascii_lowercase();
    let receives = ["-rx", "-txrx", "-rxtx", "-fp"]
        .iter()
        .any(|end| kind_in_lower_case.ends_with(end));
    (receives || kind == interface).then_some(queue)
}

#[cfg(test)]
mod tests;
