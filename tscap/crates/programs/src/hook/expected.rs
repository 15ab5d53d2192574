//! Where a capture's program for received frames will run, told without attaching it:
//! attaching makes some drivers build their queues anew.

use std::collections::BTreeMap;

use tscap_network::ethtool::Feature;
use tscap_network::netdev::Link;
use tscap_network::xdp_features::XdpFeatures;

/// Drivers that take native programs in kernel 6.1 (`XDP_SETUP_PROG` in
/// drivers/net), by their names in `ethtool -i`: before 6.3 the kernel does not
/// tell.
const NATIVE: [&str; 21] = [
    "atlantic",
    "bnxt_en",
    "bonding",
    "ena",
    "hv_netvsc",
    "i40e",
    "ice",
    "igb",
    "igc",
    "ixgbe",
    "ixgbevf",
    "mana",
    "mlx4_en",
    "mlx5_core",
    "nfp",
    "qede",
    "sfc",
    "st_gmac",
    "tun",
    "veth",
    "virtio_net",
];
/// Longest that fits a buffer of a page: 4096 bytes less `XDP_PACKET_HEADROOM`
/// (256), `struct skb_shared_info` (320) and Ethernet header (14), as virtio_net
/// counts; mlx5 leaves room for a VLAN tag and the checksum too.
const PAGE_MTU: u32 = 3506;

/// Where a capture's program will run.
#[derive(Debug, PartialEq, Eq)]
pub enum Expected {
    /// In the driver.
    Native {
        /// What says so.
        because: String,
    },
    /// In the network stack.
    InStack {
        /// Why not in the driver.
        because: String,
        /// What would change that.
        remedy: String,
    },
    /// That can't be told.
    Unknown,
}

/// Where a capture's program will run: on `link`, by its driver's name, the state of its
/// offloads, and what the driver says of XDP (`None` where the kernel doesn't tell).
pub fn expected(
    link: &Link,
    driver: &str,
    offloads: &BTreeMap<String, Feature>,
    features: Option<XdpFeatures>,
) -> Expected {
    let in_stack = |because: &str, remedy: &str| Expected::InStack {
        because: because.into(),
        remedy: remedy.into(),
    };
    if link.xdp.is_some() {
        return in_stack("a program is attached there", "see `xdp_programs`");
    }
    if !link.is_ethernet() {
        let remedy = "capture on the Ethernet interface below it";
        return in_stack("frames have no Ethernet header", remedy);
    }
    // `virtnet_xdp_set`, drivers/net/virtio_net.c: the host must have given the
    // guest control of them (VIRTIO_NET_F_CTRL_GUEST_OFFLOADS).
    let host_merges = offloads.get("rx-gro-hw");
    if driver == "virtio_net" && host_merges.is_some_and(|it| it.on && it.fixed) {
        return in_stack(
            "virtio_net refuses it while the host merges frames (rx-gro-hw, fixed)",
            "on the host, let the guest control its offloads or turn them off (QEMU: \
             guest_tso4=off,guest_tso6=off,guest_ufo=off,guest_csum=off)",
        );
    }
    let Some(features) = features else {
        return if NATIVE.contains(&driver) {
            Expected::Native {
                because: format!("{driver} usually can (this kernel does not tell)"),
            }
        } else {
            Expected::Unknown
        };
    };
    if !features.has_native() {
        // `veth_set_xdp_features`, drivers/net/veth.c.
        let remedy = match driver {
            "veth" => "give it as many receive queues as its peer has transmit queues (ethtool -L)",
            _ => "take an interface whose driver has native XDP",
        };
        return in_stack("the driver says that it has none", remedy);
    }
    if link.mtu > PAGE_MTU && !features.has_multi_buffer() {
        return in_stack(
            "the driver has it for frames of one buffer only",
            "see `mtu`",
        );
    }
    Expected::Native {
        because: format!("{driver} says that it can"),
    }
}
