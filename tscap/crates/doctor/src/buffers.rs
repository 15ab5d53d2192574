//! Where frames wait on their way through the kernel: the buffers that Skopkó lists (*Loss
//! Analysis of the Software-based Packet Capturing*, Tables I and II).

use super::Interface;
use super::check::{Check, Topic, fix};
use tscap_base::kernel_files::{KernelFileError, KernelFiles, read_if_there};

const KERNEL: Topic = Topic {
    id: "kernel_buffers",
    why: "They hold bursts that the CPU cannot receive at once; what finds no room is lost before \
          any capture sees it.",
};
const RING: Topic = Topic {
    id: "rx_ring",
    why: "The card drops frames that find its ring full, before any program could stamp them.",
};

/// Settings with the kernel's own values where a smaller one loses frames: the default of
/// `netdev_budget` is 300, that of `netdev_max_backlog` 1000 (net/core/hotdata.c).
const SETTINGS: [(&str, Option<u64>); 8] = [
    ("netdev_budget", Some(300)),
    ("netdev_budget_usecs", None),
    ("netdev_max_backlog", Some(1000)),
    ("rmem_default", None),
    ("rmem_max", None),
    ("wmem_default", None),
    ("wmem_max", None),
    ("optmem_max", None),
];

/// The kernel's buffers.
pub(super) fn kernel(files: &KernelFiles) -> Check {
    KERNEL.by_files(|| {
        let (mut found, mut smaller) = (Vec::new(), Vec::new());
        for (name, usual) in SETTINGS {
            // A network namespace shows few of them.
            let Some(value) = setting(files, name)? else {
                continue;
            };
            found.push(format!("{name} {value}"));
            if let Some(usual) = usual.filter(|usual| value < *usual) {
                smaller.push(format!("net.core.{name}={usual}"));
            }
        }
        let found = if found.is_empty() {
            "not shown in this network namespace".to_owned()
        } else {
            found.join(", ")
        };
        Ok(if smaller.is_empty() {
            KERNEL.good(found)
        } else {
            KERNEL.warning(found, fix(format!("sysctl -w {}", smaller.join(" "))))
        })
    })
}

fn setting(files: &KernelFiles, name: &str) -> Result<Option<u64>, KernelFileError> {
    let text = read_if_there(&files.proc(format!("sys/net/core/{name}")))?;
    Ok(text.and_then(|text| text.trim().parse().ok()))
}

/// The receive ring of the interface.
pub(super) fn ring(interface: &Interface) -> Check {
    let name = &interface.link.name;
    match &interface.ring {
        Ok(None) => RING.good("the driver has no such setting"),
        Ok(Some(ring)) => {
            let found = format!("{} frames a queue, of {} at most", ring.frames, ring.most);
            if ring.frames < ring.most {
                RING.warning(found, fix(format!("ethtool -G {name} rx {}", ring.most)))
            } else {
                RING.good(found)
            }
        }
        Err(error) => RING.warning(
            format!("not known: {error}"),
            fix(format!("ethtool -g {name}")),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Verdict::{Good, Warning};
    use tscap_base::recorded::Recorded;
    use tscap_network::ethtool::ReceiveRing;

    #[test]
    fn the_kernels_buffers_are_told_and_small_ones_are_enlarged() {
        let recorded = Recorded::veth();
        kernel(&recorded.files).is(Good, "not shown in this network namespace");
        let put = |name: &str, value: &str| {
            recorded.put(&format!("proc/sys/net/core/{name}"), value);
            kernel(&recorded.files)
        };
        put("netdev_budget", "300\n").is(Good, "netdev_budget 300");
        put("rmem_max", "212992\n").is(Good, "netdev_budget 300, rmem_max 212992");
        put("netdev_max_backlog", "100\n")
            .is(Warning, "netdev_max_backlog 100")
            .fixed_by("sysctl -w net.core.netdev_max_backlog=1000");
        put("netdev_budget", "64\n")
            .fixed_by("sysctl -w net.core.netdev_budget=300 net.core.netdev_max_backlog=1000");
    }

    #[test]
    fn a_ring_may_be_longer() {
        let check = |ring| {
            super::ring(&Interface {
                ring,
                ..Interface::recorded()
            })
        };
        let of = |frames, most| check(Ok(Some(ReceiveRing { frames, most })));
        check(Ok(None)).is(Good, "no such setting");
        of(4096, 4096).is(Good, "4096 frames a queue, of 4096 at most");
        of(256, 4096)
            .is(Warning, "256 frames a queue")
            .fixed_by("ethtool -G veth0 rx 4096");
        check(Err("cannot read".into()))
            .is(Warning, "cannot read")
            .fixed_by("ethtool -g veth0");
    }
}
