//! What the device does with frames before XDP sees them.

use super::Interface;
use super::check::{Check, Topic, advice, fix};
use super::driver::expected;
use tscap_file::pcapng::VlanTags;
use tscap_live::settings::{Setting, SettingValue};
use tscap_network::xdp_features::XdpFeatures;
use tscap_programs::hook::{Expected, offloads};

const OFFLOADS: Topic = Topic {
    id: "offloads",
    why: "They strip VLAN tags or make one frame of several before XDP can see what arrived.",
};
const COALESCING: Topic = Topic {
    id: "coalescing",
    why: "A frame is stamped after its interrupt: a device that waits for more frames delays it.",
};

const UNKNOWN_TAGS: &str = "outer VLAN tags may be missing: the network stack can have taken \
                            them off before XDP, which can't read them here";

/// Whether offloads hide frames as they arrived.
pub(super) fn hiding(interface: &Interface) -> Check {
    let reported = || {
        interface
            .xdp_features
            .is_some_and(XdpFeatures::tells_vlan_tags)
    };
    let (in_stack, are_read) = match expected(interface) {
        Expected::Native { .. } => (false, reported()),
        // A socket buffer has its tag beside it.
        Expected::InStack { .. } => (true, true),
        Expected::Unknown => (true, false),
    };
    let tags = offloads::vlan_tags(&interface.link, &interface.features, are_read);
    let hiding = offloads::hiding_with_tags(&interface.features, in_stack, tags);
    if hiding.is_empty() && tags != VlanTags::Unknown {
        return OFFLOADS.good("none that hides frames is on");
    }
    let (mut names, mut switches, mut settings) = (Vec::new(), String::new(), Vec::new());
    for (name, _) in hiding {
        if interface.features.get(name).is_some_and(|it| it.fixed) {
            names.push(format!("{name} (fixed)"));
        } else {
            names.push(name.to_owned());
            switches += &format!(" {name} off");
            settings.push(SettingValue {
                setting: Setting::Offload {
                    name: name.to_owned(),
                },
                value: "off".into(),
            });
        }
    }
    let mut found = if names.is_empty() {
        String::new()
    } else {
        format!("on: {}; ", names.join(", "))
    };
    if tags == VlanTags::Unknown {
        found += UNKNOWN_TAGS;
    }
    let found = found.trim_end_matches("; ").to_owned();
    if names.is_empty() {
        let advice = advice("tcpdump -e shows the tag; or capture where frames enter the machine");
        return OFFLOADS.warning(found, advice);
    }
    if switches.is_empty() {
        return OFFLOADS.warning(
            found,
            advice("the driver does not let them be changed: take another interface"),
        );
    }
    let command = fix(format!("ethtool -K {}{switches}", interface.link.name));
    OFFLOADS.warning(found, command).that_sets(settings)
}

/// Whether the device announces each frame at once.
pub(super) fn coalescing(interface: &Interface) -> Check {
    let set = match &interface.coalescing {
        Ok(None) => return COALESCING.good("none: the driver has no such setting"),
        Ok(Some(set)) => set,
        Err(error) => {
            return COALESCING.warning(
                format!("not known: {error}"),
                fix(format!("ethtool -c {}", interface.link.name)),
            );
        }
    };
    let mut switches = String::new();
    if set.adaptive {
        switches += " adaptive-rx off";
    }
    if set.rx_usecs > 0 {
        switches += " rx-usecs 0";
    }
    // The kernel's words on `struct ethtool_coalesce`: no coalescing is 0 µs and
    // 1 frame. Where a driver has no such limit it says 0.
    if set.rx_frames > 1 {
        switches += " rx-frames 1";
    }
    let adaptive = if set.adaptive { ", adaptive" } else { "" };
    let found = format!(
        "rx-usecs {}, rx-frames {}{adaptive}",
        set.rx_usecs, set.rx_frames
    );
    if switches.is_empty() {
        COALESCING.good(found)
    } else {
        COALESCING.warning(
            found,
            fix(format!("ethtool -C {}{switches}", interface.link.name)),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Verdict::{Good, Warning};
    use tscap_network::ethtool::{Coalescing, Feature};

    #[test]
    fn tags_that_nobody_can_read_may_be_missing() {
        let mut interface = Interface::recorded();
        hiding(&interface).is(Good, "none");
        interface.xdp_features = Some(XdpFeatures::native(true));
        hiding(&interface)
            .is(Warning, "VLAN tags may be missing")
            .advises("tcpdump -e");
        // At tcx ingress the tag is beside the frame.
        interface.xdp_features = Some(XdpFeatures::none());
        hiding(&interface).is(Good, "none");
    }

    #[test]
    fn offloads_that_hide_frames_can_be_turned_off_or_not() {
        let mut interface = Interface::recorded();
        interface.link.kind = None;
        interface.xdp_features = Some(XdpFeatures::native(true));
        let mut set = |name: &str, on, fixed| {
            interface
                .features
                .insert(name.into(), Feature { on, fixed });
            hiding(&interface)
        };
        set("rx-vlan-hw-parse", false, false).is(Good, "none");
        // Behind native XDP.
        set("rx-gro", true, false).is(Good, "none");
        set("rx-lro", true, true)
            .is(Warning, "on: rx-lro (fixed)")
            .advises("another interface");
        set("rx-vlan-hw-parse", true, false)
            .is(Warning, "on: rx-vlan-hw-parse, rx-lro (fixed)")
            .fixed_by("ethtool -K veth0 rx-vlan-hw-parse off");
        interface.xdp_features = Some(XdpFeatures::none());
        hiding(&interface)
            .is(Warning, "rx-gro")
            .fixed_by("ethtool -K veth0 rx-gro off");
    }

    #[test]
    fn interrupts_are_to_come_at_once() {
        let check = |coalescing| {
            super::coalescing(&Interface {
                coalescing,
                ..Interface::recorded()
            })
        };
        let set = |rx_usecs, rx_frames, adaptive| {
            check(Ok(Some(Coalescing {
                rx_usecs,
                rx_frames,
                adaptive,
            })))
        };
        check(Ok(None)).is(Good, "no such setting");
        set(0, 0, false).is(Good, "rx-usecs 0, rx-frames 0");
        set(0, 1, false).is(Good, "rx-frames 1");
        set(50, 0, false)
            .is(Warning, "rx-usecs 50")
            .fixed_by("ethtool -C veth0 rx-usecs 0");
        set(8, 64, true)
            .is(Warning, "rx-usecs 8, rx-frames 64, adaptive")
            .fixed_by("ethtool -C veth0 adaptive-rx off rx-usecs 0 rx-frames 1");
        check(Err("cannot read".into()))
            .is(Warning, "cannot read")
            .fixed_by("ethtool -c veth0");
    }
}
