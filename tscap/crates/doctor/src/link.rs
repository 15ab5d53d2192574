//! The interface itself, and programs of others on it.

use super::Interface;
use super::check::{Check, Topic, advice, fix};
use tscap_file::accounting::Direction;
use tscap_network::netdev::Obstacle;

const LINK: Topic = Topic {
    id: "link",
    why: "A capture needs an interface of Ethernet or IP that is up, and frames need a link.",
};
const PROGRAMS: Topic = Topic {
    id: "xdp_programs",
    why: "An interface takes one XDP program: beside another one received frames are stamped later.",
};

/// Whether frames can be captured on it at all.
pub(super) fn link(interface: &Interface) -> Check {
    let link = &interface.link;
    let name = &link.name;
    let kind = link.kind.as_deref().or(interface.driver.as_deref());
    let kind = kind.unwrap_or("unknown driver");
    if let Some(Obstacle { why, advice: what }) = link.obstacle(&Direction::ALL) {
        return LINK.bad(format!("{kind}: {why}"), advice(what));
    }
    if !link.is_up {
        return LINK.bad(
            format!("{kind}, down"),
            fix(format!("ip link set dev {name} up")),
        );
    }
    if !link.has_carrier {
        return LINK.warning(
            format!("{kind}, up, but without carrier"),
            advice("plug in the cable, or set its peer up"),
        );
    }
    LINK.good(format!("{kind}, up, with carrier"))
}

/// Whether an XDP program of somebody else is attached.
pub(super) fn programs(interface: &Interface) -> Check {
    let Some(xdp) = &interface.link.xdp else {
        return PROGRAMS.good("none");
    };
    let occupant = &interface.occupant;
    let named = occupant.name.as_ref().map(|name| format!(" ({name})"));
    let found = format!(
        "program {}{} is attached, {}",
        xdp.ids(),
        named.unwrap_or_default(),
        xdp.mode
    );
    if occupant
        .name
        .as_ref()
        .is_some_and(|name| name.starts_with("tscap_"))
    {
        return PROGRAMS.warning(
            found,
            advice(format!(
                "another tscap captures there: the later one stamps at {}",
                interface.in_stack()
            )),
        );
    }
    PROGRAMS.warning(found, fix(occupant.command(&interface.link.name, xdp.mode)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Verdict::{Bad, Good, Warning};
    use tscap_network::netdev::{AttachedMode, AttachedXdp};
    use tscap_programs::hook::AttachedProgram;

    #[test]
    fn it_must_be_up_and_of_a_known_kind() {
        let mut interface = Interface::recorded();
        link(&interface).is(Good, "veth, up, with carrier");
        interface.link.has_carrier = false;
        link(&interface)
            .is(Warning, "without carrier")
            .advises("peer");
        interface.link.is_up = false;
        link(&interface)
            .is(Bad, "veth, down")
            .fixed_by("ip link set dev veth0 up");
        interface.link.is_up = true;
        interface.link.has_carrier = true;
        interface.link.kind = Some("tun".into());
        interface.link.link_type = libc::ARPHRD_NONE;
        link(&interface).is(Good, "tun, up, with carrier");
        interface.link.kind = None;
        interface.driver = Some("ib_ipoib".into());
        interface.link.link_type = libc::ARPHRD_INFINIBAND;
        link(&interface)
            .is(
                Bad,
                "ib_ipoib: it carries IP over InfiniBand frames, no Ethernet",
            )
            .advises("tcpdump");
    }

    #[test]
    fn a_program_that_is_there_is_named_with_what_detaches_it() {
        let mut interface = Interface::recorded();
        programs(&interface).is(Good, "none");
        let attached = |mode| {
            Some(AttachedXdp {
                mode,
                program_ids: vec![7],
            })
        };
        for (mode, command) in [
            (AttachedMode::Native, "ip link set dev veth0 xdpdrv off"),
            (
                AttachedMode::Generic,
                "ip link set dev veth0 xdpgeneric off",
            ),
            (
                AttachedMode::Offloaded,
                "ip link set dev veth0 xdpoffload off",
            ),
            (
                AttachedMode::Multi,
                "ip link set dev veth0 xdpdrv off; ip link set dev veth0 xdpgeneric off",
            ),
        ] {
            interface.link.xdp = attached(mode);
            programs(&interface)
                .is(Warning, "program 7 is attached")
                .fixed_by(command);
        }
        interface.occupant = AttachedProgram {
            name: Some("filter".into()),
            link_id: Some(12),
            holders: Vec::new(),
        };
        programs(&interface)
            .is(Warning, "program 7 (filter) is attached, multi")
            .fixed_by("bpftool link detach id 12");
        interface.occupant = AttachedProgram {
            name: Some("tscap_ktime".into()),
            ..interface.occupant
        };
        programs(&interface)
            .is(Warning, "tscap_ktime")
            .advises("another tscap");
    }
}
