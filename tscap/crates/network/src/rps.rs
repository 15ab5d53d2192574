//! Receive packet steering: the CPUs to which the stack hands a queue's frames
//! (`/sys/class/net/<interface>/queues/rx-<n>/`, Documentation/networking/scaling.rst).
//!
//! It acts on socket buffers (`get_rps_cpu`, net/core/dev.c, called by
//! `netif_receive_skb_internal` and `netif_rx_internal`): after native XDP, which
//! runs in the driver's poll function, and before generic XDP, which runs in
//! `__netif_receive_skb_core` on the CPU that was chosen.

use std::path::PathBuf;

use crate::class_net;
use tscap_base::kernel_files::{KernelFileError, KernelFiles, numbered, read_if_there};
use tscap_host::cpu_list;

/// A receive queue and its steering.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RxQueue {
    /// Index of the queue at its interface, from 0.
    pub number: u32,
    /// CPUs that its frames are spread over; none: they stay where they come in.
    pub cpus: Vec<u32>,
    /// Entries of its flow table (RFS); with any, frames go to the CPU where
    /// their reader runs, also to one that is not among `cpus`.
    pub flows: u64,
}

/// The file with a queue's CPUs, a mask.
pub fn cpus_file(files: &KernelFiles, interface: &str, queue: u32) -> PathBuf {
    queue_folder(files, interface, queue).join("rps_cpus")
}

/// The file with the length of a queue's flow table.
pub fn flows_file(files: &KernelFiles, interface: &str, queue: u32) -> PathBuf {
    queue_folder(files, interface, queue).join("rps_flow_cnt")
}

/// The queues of an interface by their number; none on a kernel without RPS.
pub fn queues(files: &KernelFiles, interface: &str) -> Result<Vec<RxQueue>, KernelFileError> {
    let folder = class_net::folder(files, interface).join("queues");
    let mut queues = Vec::new();
    for number in numbered(&folder, "rx-")? {
        let mask = read_if_there(&cpus_file(files, interface, number))?;
        let flows = read_if_there(&flows_file(files, interface, number))?;
        queues.extend(
            mask.and_then(|mask| cpu_list::parse_mask(&mask))
                .map(|cpus| RxQueue {
                    number,
                    cpus,
                    flows: flows.and_then(|flows| flows.parse().ok()).unwrap_or(0),
                }),
        );
    }
    Ok(queues)
}

fn queue_folder(files: &KernelFiles, interface: &str, queue: u32) -> PathBuf {
    class_net::folder(files, interface).join(format!("queues/rx-{queue}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_are_found_with_their_steering() {
        let root = tempfile::tempdir().unwrap();
        let files = KernelFiles::below(root.path());
        assert!(queues(&files, "eth0").unwrap().is_empty());
        for (queue, mask, flows) in [(0, "0", "0"), (1, "00000001,00000002", "4096")] {
            let folder = queue_folder(&files, "eth0", queue);
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("rps_cpus"), mask).unwrap();
            std::fs::write(folder.join("rps_flow_cnt"), flows).unwrap();
        }
        // A kernel without RPS has the folder but not the file.
        std::fs::create_dir_all(queue_folder(&files, "eth0", 2)).unwrap();
        let queue = |number, cpus: &[u32], flows| RxQueue {
            number,
            cpus: cpus.to_vec(),
            flows,
        };
        let found = queues(&files, "eth0").unwrap();
        assert_eq!(found, [queue(0, &[], 0), queue(1, &[1, 32], 4096)]);
    }
}
