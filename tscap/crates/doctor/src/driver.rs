//! Where the XDP program will run and what attaching it will do, told without attaching it.

use tscap_common::block::MAX_CAPLEN;

use super::Interface;
use super::check::{Check, Topic, advice, fix};
use tscap_programs::hook::{self, Disturbance, Expected, disturbance_in_words};

const MODE: Topic = Topic {
    id: "xdp_mode",
    why: "Native XDP stamps in the driver; tcx and clsact later, and may stamp an aggregate of frames.",
};
const ATTACHING: Topic = Topic {
    id: "attaching",
    why: "To attach native XDP many drivers build their queues anew, and frames are lost meanwhile.",
};
const MTU: Topic = Topic {
    id: "mtu",
    why: "Frames longer than a buffer need a driver that gives XDP several, or there is no native mode.",
};

/// An MTU that every driver has room for in one buffer. For more it depends:
/// ixgbe has buffers of 3 kB, mlx5 of a page.
const USUAL_MTU: u32 = 1500;
/// Bytes of an Ethernet header.
const HEADER: u32 = 14;

/// Where the program will run.
pub(super) fn expected(interface: &Interface) -> Expected {
    hook::expected(
        &interface.link,
        interface.driver.as_deref().unwrap_or_default(),
        &interface.features,
        interface.xdp_features,
    )
}

/// Whether the program will run in the driver.
pub(super) fn mode(interface: &Interface) -> Check {
    let in_stack = interface.in_stack();
    match expected(interface) {
        Expected::InStack { remedy, .. } if interface.link.xdp.is_some() => MODE.warning(
            format!(
                "a program is attached there: --hook auto stamps at its entry where the kernel \
                 lets, else {in_stack} stamps in the network stack"
            ),
            advice(remedy),
        ),
        Expected::Native { because } => MODE.good(format!("native: {because}")),
        Expected::InStack { because, remedy } => MODE.warning(
            format!("no native XDP ({because}): {in_stack} stamps in the network stack"),
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

/// Whether attaching disturbs the interface at its work.
pub(super) fn attaching(interface: &Interface) -> Check {
    if let Expected::InStack { .. } = expected(interface) {
        let at = interface.in_stack();
        return ATTACHING.good(format!("{at} leaves the driver alone"));
    }
    let driver = interface.driver.as_deref().unwrap_or_default();
    let carries = interface.carries_default_route;
    let found = format!(
        "native XDP {}{}",
        disturbance_in_words(driver),
        if carries {
            "; the default route goes through it"
        } else {
            ""
        }
    );
    let disturbance = Disturbance::of(driver).map(|(disturbance, _)| disturbance);
    match disturbance {
        Some(Disturbance::None) => ATTACHING.good(found),
        Some(disturbance) if !disturbance.loses() && !carries => ATTACHING.good(found),
        _ => ATTACHING.warning(found, advice("--hook tcx leaves the driver alone")),
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
        Some(features) if !features.has_native() => MTU.good(format!(
            "{}: {} takes any length",
            link.mtu,
            interface.in_stack()
        )),
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
    use crate::check::Verdict::{Good, Warning};
    use tscap_network::ethtool::Feature;
    use tscap_network::netdev::{AttachedMode, AttachedXdp};
    use tscap_network::xdp_features::XdpFeatures;

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
            .is(
                Warning,
                "a program is attached there: --hook auto stamps at its entry",
            )
            .advises("see `xdp_programs`");
    }

    #[test]
    fn a_kernel_without_tcx_has_clsact() {
        let mut none = interface("e1000e", Some(XdpFeatures::none()));
        for (has_tcx, name) in [
            (Some(true), ": tcx ingress stamps"),
            (Some(false), ": clsact ingress stamps"),
            (None, ": tcx or clsact ingress stamps"),
        ] {
            none.has_tcx = has_tcx;
            mode(&none).is(Warning, name);
        }
    }

    #[test]
    fn what_attaching_does_is_told_by_the_driver() {
        let check = |driver, features, carries_default_route| {
            attaching(&Interface {
                carries_default_route,
                ..interface(driver, features)
            })
        };
        let native = Some(XdpFeatures::native(true));
        for carries in [false, true] {
            check("ice", native, carries)
                .is(
                    Warning,
                    "makes ice build its queues anew (ice_xdp_setup_prog)",
                )
                .advises("--hook tcx");
            check("lan966x", native, carries)
                .is(Warning, "not known")
                .advises("--hook tcx");
            check("sfc", native, carries).is(Good, "nothing is lost");
            check("ice", Some(XdpFeatures::none()), carries)
                .is(Good, "tcx ingress leaves the driver alone");
        }
        check("virtio_net", native, false).is(Good, "halts virtio_net");
        check("virtio_net", native, true).is(Warning, "the default route goes");
        check("veth", native, false).is(Good, "its peer send no aggregates");
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
            .is(Warning, "are cut to 65428 bytes")
            .fixed_by(&format!("ip link set dev veth0 mtu {}", MAX_CAPLEN - 14));
    }
}
