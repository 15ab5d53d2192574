//! On which CPU, and by whose hand, frames come to the XDP program.

use super::Interface;
use super::check::{Check, Topic, advice, fix};
use super::cpus::{isolated_cpus, online_cpus};
use super::driver::expected;
use tscap_base::kernel_files::{KernelFileError, KernelFiles, numbered, read_if_there};
use tscap_base::text::numbers::counted;
use tscap_host::cpu_list;
use tscap_live::settings::{Setting, SettingValue};
use tscap_network::irq::{self, QueueIrq, Route};
use tscap_network::{class_net, napi, rps};
use tscap_programs::hook::Expected;

const QUEUES: Topic = Topic {
    id: "rx_queues",
    why: "The CPU that takes a queue's interrupt stamps; when it changes or is shared, stamps wait.",
};
const RPS: Topic = Topic {
    id: "rps",
    why: "RPS hands frames to another CPU before they are stamped in the network stack.",
};
const THREADED: Topic = Topic {
    id: "threaded_napi",
    why: "A poll thread must first be scheduled before it can stamp what has arrived.",
};
const DEFERRED: Topic = Topic {
    id: "deferred_interrupts",
    why: "Interrupts that the kernel holds back let frames wait unstamped for a timer.",
};

/// So many interrupts are named.
const MOST_NAMED: usize = 4;

/// An interrupt and where it goes.
#[derive(Debug)]
struct Routed {
    irq: QueueIrq,
    route: Route,
}

/// All checks of the queues.
pub(super) fn all(files: &KernelFiles, interface: &Interface) -> Vec<Check> {
    let link = &interface.link;
    if class_net::shows(files, &link.name, link.index, link.mac).unwrap_or(false) {
        return vec![
            rx_queues(files, interface),
            rps(files, interface),
            threaded(files, interface),
            deferred(files, interface),
        ];
    }
    let remedy = match &interface.netns {
        Some(netns) => fix(format!(
            "ip netns exec {netns} tscap doctor -i {}",
            link.name
        )),
        None => advice("start tscap by `ip netns exec`, which mounts the right /sys"),
    };
    let unseen = |topic: &Topic| {
        let found = "not known: /sys belongs to another network namespace";
        topic.warning(found, remedy.clone())
    };
    [&QUEUES, &RPS, &THREADED, &DEFERRED].map(unseen).into()
}

/// Whether each receive queue has one CPU, and one of its own.
fn rx_queues(files: &KernelFiles, interface: &Interface) -> Check {
    QUEUES.by_files(|| {
        let name = &interface.link.name;
        // Those in use; a device may have been made with more.
        let queues = numbered(&class_net::folder(files, name).join("queues"), "rx-")?;
        let count = counted(queues.len() as u64, "queue");
        let irqs = irq::of_interface(files, name)?;
        if irqs.is_empty() {
            let device = class_net::folder(files, name).join("device");
            return Ok(if !device.exists() {
                QUEUES.good(format!(
                    "{count} without interrupts: frames come in on their sender's CPU"
                ))
            } else {
                QUEUES.warning(
                    format!("{count}, whose interrupts are not known by their names"),
                    advice("look for them in /proc/interrupts, and give each one CPU"),
                )
            });
        }
        let routed = routed(files, irqs)?;
        let found = format!("{count}: {}", shown(&routed));
        let cpus = receiving_cpus(&online_cpus(files)?, &isolated_cpus(files)?);
        let moves = routed.iter().any(|it| it.route.allowed.len() > 1);
        Ok(if moves || shares_although_free(&routed, cpus.len()) {
            let pairs = routed.iter().zip(cpus.iter().cycle());
            let commands = pairs.clone().map(|(it, cpu)| {
                let file = irq::affinity_file(files, it.irq.irq);
                format!("echo {cpu} > {}", file.display())
            });
            let settings = pairs.map(|(it, cpu)| {
                let QueueIrq { irq, name, .. } = &it.irq;
                let (irq, name) = (*irq, name.clone());
                set(Setting::IrqAffinity { irq, name }, &cpu.to_string())
            });
            QUEUES
                .warning(found, fix(commands.collect::<Vec<_>>().join("; ")))
                .that_sets(settings.collect())
        } else {
            QUEUES.good(found)
        })
    })
}

fn routed(files: &KernelFiles, irqs: Vec<QueueIrq>) -> Result<Vec<Routed>, KernelFileError> {
    let routed = irqs.into_iter().map(|irq| {
        let route = Route::read(files, irq.irq)?;
        Ok(Routed { irq, route })
    });
    routed.collect()
}

fn shown(routed: &[Routed]) -> String {
    let mut texts: Vec<_> = routed
        .iter()
        .take(MOST_NAMED)
        .map(|it| {
            let on = it.route.on.map_or("none".into(), |cpu| cpu.to_string());
            let allowed = match it.route.allowed.len() {
                0 | 1 => String::new(),
                _ => format!(" (may go to {})", cpu_list::list(&it.route.allowed)),
            };
            format!("interrupt {} on CPU {on}{allowed}", it.irq.irq)
        })
        .collect();
    if routed.len() > MOST_NAMED {
        texts.push(format!("{} more", routed.len() - MOST_NAMED));
    }
    texts.join(", ")
}

/// Whether two queues are on one CPU although there are `cpus` to receive on.
fn shares_although_free(routed: &[Routed], cpus: usize) -> bool {
    let mut used: Vec<_> = routed.iter().filter_map(|it| it.route.on).collect();
    used.sort_unstable();
    used.dedup();
    used.len() < routed.len().min(cpus)
}

/// The CPUs to give receive work to: isolated ones if there are, else all but the
/// last, on which the converter runs.
fn receiving_cpus(online: &[u32], isolated: &[u32]) -> Vec<u32> {
    match (isolated, online) {
        ([], [most @ .., _]) if !most.is_empty() => most.to_vec(),
        ([], online) => online.to_vec(),
        (isolated, _) => isolated.to_vec(),
    }
}

/// Whether RPS comes before the stamp.
fn rps(files: &KernelFiles, interface: &Interface) -> Check {
    RPS.by_files(|| {
        let name = &interface.link.name;
        let (mut commands, mut settings) = (Vec::new(), Vec::new());
        for rps::RxQueue {
            number: queue,
            cpus,
            flows,
        } in rps::queues(files, name)?
        {
            let off = |file: std::path::PathBuf| format!("echo 0 > {}", file.display());
            if !cpus.is_empty() {
                commands.push(off(rps::cpus_file(files, name, queue)));
                settings.push(set(Setting::Rps { queue }, ""));
            }
            if flows != 0 {
                commands.push(off(rps::flows_file(files, name, queue)));
                settings.push(set(Setting::RpsFlows { queue }, "0"));
            }
        }
        Ok(if commands.is_empty() {
            RPS.good("off")
        } else if matches!(expected(interface), Expected::Native { .. }) {
            RPS.good("on, but behind native XDP")
        } else {
            RPS.warning("on", fix(commands.join("; ")))
                .that_sets(settings)
        })
    })
}

/// Whether kernel threads poll.
fn threaded(files: &KernelFiles, interface: &Interface) -> Check {
    THREADED.by_files(|| {
        let name = &interface.link.name;
        if !napi::is_threaded(files, name)? {
            return Ok(THREADED.good("off"));
        }
        let threads = napi::kthreads(files, name, interface.napi_ids.as_deref())?;
        let file = napi::threaded_file(files, name);
        let found = match threads.len() {
            1 => "on, 1 poll thread".to_owned(),
            several => format!("on, {several} poll threads"),
        };
        Ok(THREADED
            .warning(found, fix(format!("echo 0 > {}", file.display())))
            .that_sets(vec![set(Setting::ThreadedNapi, "0")]))
    })
}

/// Whether the kernel holds interrupts back (`napi_defer_hard_irqs`,
/// Documentation/networking/napi.rst).
fn deferred(files: &KernelFiles, interface: &Interface) -> Check {
    DEFERRED.by_files(|| {
        let name = &interface.link.name;
        let folder = class_net::folder(files, name);
        let file = napi::deferred_file(files, name);
        let number = |path| {
            let text = read_if_there(path)?;
            Ok(text.and_then(|text| text.parse::<u64>().ok()).unwrap_or(0))
        };
        let polls = number(&file)?;
        let timeout_ns = number(&folder.join("gro_flush_timeout"))?;
        Ok(if polls == 0 || timeout_ns == 0 {
            DEFERRED.good("none")
        } else {
            let found = format!("for {polls} empty polls, up to {timeout_ns} ns each");
            DEFERRED
                .warning(found, fix(format!("echo 0 > {}", file.display())))
                .that_sets(vec![set(Setting::DeferredInterrupts, "0")])
        })
    })
}

fn set(setting: Setting, value: &str) -> SettingValue {
    SettingValue {
        setting,
        value: value.into(),
    }
}

#[cfg(test)]
mod tests;
