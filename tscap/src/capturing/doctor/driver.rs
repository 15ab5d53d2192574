//! Where the XDP program will run, told without attaching it: attaching resets
//! some devices.

use tscap_common::block::MAX_CAPLEN;

use super::Interface;
use super::check::{Check, Topic, advice, fix};

const MODE: Topic = Topic {
    id: "xdp_mode",
    why: "Native XDP stamps in the driver; tcx ingress later, and may stamp an aggregate of frames.",
};
const MTU: Topic = Topic {
    id: "mtu",
    why: "Frames longer than a buffer need a driver that gives XDP several, or there is no native mode.",
};

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
/// An MTU that every driver has room for in one buffer. For more it depends:
/// ixgbe has buffers of 3 kB, mlx5 of a page.
const USUAL_MTU: u32 = 1500;
/// Longest that fits a buffer of a page: 4096 bytes less `XDP_PACKET_HEADROOM`
/// (256), `struct skb_shared_info` (320) and Ethernet header (14), as virtio_net
/// counts; mlx5 leaves room for a VLAN tag and the checksum too.
const PAGE_MTU: u32 = 3506;
/// Bytes of an Ethernet header.
const HEADER: u32 = 14;

/// Where a capture's program will run.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Expected {
    /// In the driver.
    Native { because: String },
    /// In the network stack.
    InStack { because: String, remedy: String },
    /// That can't be told.
    Unknown,
}

/// Where a capture's program will run, by all that is known.
pub(super) fn expected(interface: &Interface) -> Expected {
    let link = &interface.link;
    let driver = interface.driver.as_deref().unwrap_or_default();
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
    let host_merges = interface.features.get("rx-gro-hw");
    if driver == "virtio_net" && host_merges.is_some_and(|it| it.on && it.fixed) {
        return in_stack(
            "virtio_net refuses it while the host merges frames (rx-gro-hw, fixed)",
            "on the host, let the guest control its offloads or turn them off (QEMU: \
             guest_tso4=off,guest_tso6=off,guest_ufo=off,guest_csum=off)",
        );
    }
    let Some(features) = interface.xdp_features else {
        return match NATIVE.contains(&driver) {
            true => Expected::Native {
                because: format!("{driver} usually can (this kernel does not tell)"),
            },
            false => Expected::Unknown,
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

/// Whether the program will run in the driver.
pub(super) fn mode(interface: &Interface) -> Check {
    match expected(interface) {
        Expected::Native { because } => MODE.good(format!("native: {because}")),
        Expected::InStack { because, remedy } => MODE.warning(
            format!("no native XDP ({because}): tcx ingress stamps in the network stack"),
            advice(remedy),
        ),
        Expected::Unknown => MODE.warning(
            "not known: neither the kernel nor the driver's name tells",
            fix(format!(
                "tscap capture -i {} --hook xdp --duration 1 -w /dev/null",
                interface.link.name
            )),
        ),
    }
}

/// Whether frames of full length can be captured, and natively.
pub(super) fn mtu(interface: &Interface) -> Check {
    let link = &interface.link;
    let smaller = |mtu: u32| fix(format!("ip link set dev {} mtu {mtu}", link.name));
    let longest = MAX_CAPLEN as u32 - HEADER;
    if link.mtu > longest {
        let found = format!("{}: frames are cut to {MAX_CAPLEN} bytes", link.mtu);
        return MTU.warning(found, smaller(longest));
    }
    if link.mtu <= USUAL_MTU {
        return MTU.good(format!("{}: frames fit one buffer", link.mtu));
    }
    match interface.xdp_features {
        Some(features) if features.has_multi_buffer() => MTU.good(format!(
            "{}: the driver gives XDP several buffers",
            link.mtu
        )),
        Some(features) if !features.has_native() => {
            MTU.good(format!("{}: tcx ingress takes any length", link.mtu))
        }
        Some(_) => MTU.warning(
            format!(
                "{}: the driver gives XDP one buffer, of a page at most",
                link.mtu
            ),
            smaller(USUAL_MTU),
        ),
        None => MTU.warning(
            format!(
                "{}: not known whether the driver gives XDP several buffers",
                link.mtu
            ),
            smaller(USUAL_MTU),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capturing::doctor::check::Verdict::{Good, Warning};
    use crate::capturing::host::ethtool::Feature;
    use crate::capturing::host::netdev::{AttachedMode, AttachedXdp};
    use crate::capturing::host::xdp_features::XdpFeatures;

    fn interface(driver: &str, features: Option<XdpFeatures>) -> Interface {
        Interface {
            driver: Some(driver.into()),
            xdp_features: features,
            ..Interface::recorded()
        }
    }

    #[test]
    fn the_driver_tells_whether_it_is_native() {
        let check = |driver, features| mode(&interface(driver, features));
        check("ice", Some(XdpFeatures::native(true))).is(Good, "native: ice says");
        check("e1000e", Some(XdpFeatures::none()))
            .is(
                Warning,
                "no native XDP (the driver says that it has none): tcx ingress",
            )
            .advises("take an interface");
        check("veth", Some(XdpFeatures::none()))
            .is(Warning, "no native XDP")
            .advises("ethtool -L");
        check("ixgbe", None).is(Good, "native: ixgbe usually can");
        check("e1000e", None)
            .is(Warning, "not known")
            .fixed_by("tscap capture -i veth0 --hook xdp --duration 1 -w /dev/null");
    }

    #[test]
    fn a_program_of_others_takes_the_place() {
        let mut busy = interface("ice", Some(XdpFeatures::native(true)));
        busy.link.xdp = Some(AttachedXdp {
            mode: AttachedMode::Native,
            program_ids: vec![7],
        });
        mode(&busy)
            .is(Warning, "no native XDP (a program is attached there)")
            .advises("see `xdp_programs`");
    }

    #[test]
    fn ip_packets_are_stamped_in_the_network_stack() {
        let mut tun = interface("tun", Some(XdpFeatures::native(true)));
        tun.link.link_type = libc::ARPHRD_NONE;
        mode(&tun)
            .is(Warning, "no Ethernet header): tcx ingress stamps")
            .advises("below it");
    }

    #[test]
    fn virtio_without_control_of_its_offloads_has_no_native_mode() {
        let mut virtio = interface("virtio_net", Some(XdpFeatures::native(true)));
        let mut merges = |on, fixed| {
            let state = Feature { on, fixed };
            virtio.features.insert("rx-gro-hw".into(), state);
            mode(&virtio)
        };
        merges(true, true)
            .is(Warning, "the host merges")
            .advises("guest_tso4=off");
        merges(true, false).is(Good, "native");
        merges(false, true).is(Good, "native");
    }

    #[test]
    fn long_frames_need_several_buffers() {
        let check = |bytes, features| {
            let mut interface = interface("igb", features);
            interface.link.mtu = bytes;
            (mtu(&interface), mode(&interface))
        };
        let one = Some(XdpFeatures::native(false));
        check(1500, one).0.is(Good, "1500: frames fit");
        check(3498, one).0.is(Warning, "one buffer");
        check(3498, one).1.is(Good, "native");
        let (mtu, mode) = check(9000, one);
        mtu.is(Warning, "one buffer")
            .fixed_by("ip link set dev veth0 mtu 1500");
        mode.is(Warning, "no native XDP").advises("see `mtu`");
        let (mtu, mode) = check(9000, Some(XdpFeatures::native(true)));
        mtu.is(Good, "several buffers");
        mode.is(Good, "native");
        check(9000, Some(XdpFeatures::none()))
            .0
            .is(Good, "tcx ingress takes any");
        check(9000, None).0.is(Warning, "not known");
        check(65_536, Some(XdpFeatures::none()))
            .0
            .is(Warning, "are cut to 65440 bytes")
            .fixed_by(&format!("ip link set dev veth0 mtu {}", MAX_CAPLEN - 14));
    }
}
