//! Which settings put an interface's receive work on which CPUs.

use tscap_base::kernel_files::{KernelFileError, KernelFiles};
use tscap_host::cpu_list;
use tscap_live::settings::{Setting, SettingValue};
use tscap_network::irq::{self, QueueIrq};
use tscap_network::napi::{self, Kthread};
use tscap_network::netdev::Link;
use tscap_network::rps::{self, RxQueue};

/// What there is to be steered.
#[derive(Debug, Default)]
pub(super) struct SteeringTargets {
    /// Interrupts of receive queues.
    pub irqs: Vec<QueueIrq>,
    pub is_threaded: bool,
    pub threads: Vec<Kthread>,
    /// Queues with their RPS.
    pub rx_queues: Vec<RxQueue>,
}

impl SteeringTargets {
    /// Looks at the interface as it is now.
    pub fn read(files: &KernelFiles, link: &Link) -> Result<Self, KernelFileError> {
        let is_threaded = napi::is_threaded(files, &link.name)?;
        let threads = if is_threaded {
            // Should the kernel not answer, the names must do.
            let ids = napi::ids(link.index).ok().flatten();
            napi::kthreads(files, &link.name, ids.as_deref())?
        } else {
            Vec::new()
        };
        Ok(Self {
            irqs: irq::of_interface(files, &link.name)?,
            is_threaded,
            threads,
            rx_queues: rps::queues(files, &link.name)?,
        })
    }

    /// How many CPUs it can keep busy.
    pub fn queues(&self) -> usize {
        let most = self.irqs.len().max(self.threads.len());
        most.max(self.rx_queues.len())
    }

    /// Each interrupt to one CPU, in turn.
    pub fn irqs_on(&self, cpus: &[u32]) -> Vec<SettingValue> {
        let pairs = self.irqs.iter().zip(cpus.iter().cycle());
        let wanted = pairs.map(|(irq, cpu)| SettingValue {
            setting: Setting::IrqAffinity {
                irq: irq.irq,
                name: irq.name.clone(),
            },
            value: cpu.to_string(),
        });
        wanted.collect()
    }

    /// Each poll thread to one CPU, in turn.
    pub fn threads_on(&self, cpus: &[u32]) -> Vec<SettingValue> {
        let pairs = self.threads.iter().zip(cpus.iter().cycle());
        let wanted = pairs.map(|(thread, cpu)| SettingValue {
            setting: Setting::NapiAffinity {
                pid: thread.pid,
                started: thread.started,
                name: thread.name.clone(),
            },
            value: cpu.to_string(),
        });
        wanted.collect()
    }

    /// RPS for each queue, for generic mode. Where polling is steered already,
    /// only what would lead frames away again: RPS costs a hop to another CPU,
    /// or at least a second queue on the same (`enqueue_to_backlog`).
    pub fn rps_on(&self, cpus: &[u32], is_steered: bool) -> Vec<SettingValue> {
        let mut wanted = Vec::new();
        for (index, queue) in self.rx_queues.iter().enumerate() {
            let leads_away = queue.cpus.iter().any(|cpu| !cpus.contains(cpu));
            if !is_steered || leads_away {
                wanted.push(SettingValue {
                    setting: Setting::Rps {
                        queue: queue.number,
                    },
                    value: cpu_list::list(&share(cpus, index, self.rx_queues.len())),
                });
            }
            // A flow that is in the table goes to its reader's CPU, not to one
            // of the list (`get_rps_cpu`).
            if queue.flows != 0 {
                wanted.push(SettingValue {
                    setting: Setting::RpsFlows {
                        queue: queue.number,
                    },
                    value: "0".into(),
                });
            }
        }
        wanted
    }
}

/// The CPUs for queue `index` of `queues`: one, in turn; several where there are
/// more CPUs than queues, so that each has work.
fn share(cpus: &[u32], index: usize, queues: usize) -> Vec<u32> {
    if cpus.len() <= queues {
        return cpus.iter().cycle().skip(index).take(1).copied().collect();
    }
    cpus.iter().skip(index).step_by(queues).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(irqs: u32, threads: u32, queues: u32) -> SteeringTargets {
        SteeringTargets {
            irqs: (0..irqs)
                .map(|queue| QueueIrq {
                    irq: 30 + queue,
                    queue,
                    name: format!("eth0-rx-{queue}"),
                })
                .collect(),
            is_threaded: threads > 0,
            threads: (0..threads)
                .map(|napi| Kthread {
                    napi,
                    pid: 100 + napi,
                    started: 1,
                    name: format!("napi/eth0-{napi}"),
                })
                .collect(),
            rx_queues: (0..queues)
                .map(|number| RxQueue {
                    number,
                    cpus: Vec::new(),
                    flows: 0,
                })
                .collect(),
        }
    }

    fn values(wanted: &[SettingValue]) -> Vec<&str> {
        wanted.iter().map(|it| it.value.as_str()).collect()
    }

    #[test]
    fn interrupts_and_threads_go_round_the_cpus() {
        let found = found(5, 3, 5);
        assert_eq!(values(&found.irqs_on(&[2, 3])), ["2", "3", "2", "3", "2"]);
        assert_eq!(values(&found.threads_on(&[2, 3])), ["2", "3", "2"]);
        assert_eq!(values(&found.irqs_on(&[7])), ["7"; 5]);
        assert_eq!(found.queues(), 5);
        let first = &found.irqs_on(&[0])[0].setting;
        assert!(matches!(first, Setting::IrqAffinity { irq: 30, .. }));
    }

    #[test]
    fn rps_gives_every_cpu_work() {
        let on = |queues, cpus: &[u32]| {
            let wanted = found(0, 0, queues).rps_on(cpus, false);
            values(&wanted).join(" ")
        };
        assert_eq!(on(1, &[1]), "1");
        assert_eq!(on(1, &[0, 2]), "0,2");
        assert_eq!(on(2, &[0, 1, 2]), "0,2 1");
        assert_eq!(on(2, &[0, 1]), "0 1");
        assert_eq!(on(4, &[0, 1, 5]), "0 1 5 0");
        assert_eq!(on(0, &[1]), "");
    }

    #[test]
    fn rps_is_left_off_where_interrupts_steer_already() {
        let mut found = found(2, 0, 2);
        assert!(found.rps_on(&[1], true).is_empty());
        found.rx_queues[0].cpus = vec![1];
        assert!(found.rps_on(&[1], true).is_empty());
        // It leads frames to CPU 0.
        found.rx_queues[1].cpus = vec![0, 1];
        let wanted = found.rps_on(&[1], true);
        assert_eq!(wanted[0].setting, Setting::Rps { queue: 1 });
        assert_eq!(values(&wanted), ["1"]);
    }

    #[test]
    fn flow_tables_are_emptied() {
        let mut found = found(1, 0, 1);
        found.rx_queues[0].flows = 4096;
        let wanted = found.rps_on(&[1], true);
        assert_eq!(wanted[0].setting, Setting::RpsFlows { queue: 0 });
        assert_eq!(values(&wanted), ["0"]);
    }
}
