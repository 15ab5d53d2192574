//! A port that only listens: what must not be taken from the network stack.

use std::net::IpAddr;

use super::plan::{Capture, Tap};
use super::selection::{self, Interfaces};
use tscap_base::failure::{Context as _, Failure, Hint as _};
use tscap_network::netdev::{self, Link};
use tscap_network::{address, route};
use tscap_programs::hook::{AttachedProgram, HookChoice};

impl Capture {
    /// What of this a port that only listens contradicts.
    pub(super) fn contradiction_of_tap(&self) -> Option<&'static str> {
        let (tap, is_open) = (self.tap?, |name: &String| selection::is_open(name));
        match tap {
            _ if self.direction.takes_sent() => {
                Some("--tap takes received frames only: leave out -Q, or give -Q in")
            }
            _ if self.hook == HookChoice::Tcx => {
                Some("--tap ends frames at XDP: give --hook xdp or generic, or leave out --hook")
            }
            _ if !self.promiscuous => {
                Some("--tap takes every frame that reaches the port: leave out -p")
            }
            _ if self.interfaces.iter().any(is_open) => Some(
                "--tap takes the frames of an interface away from this machine: name each \
                 interface, without any or patterns",
            ),
            _ => None,
        }
    }
}

/// Refuses interfaces that something else uses, or whose frames can't end in the program.
pub(super) fn check(plan: &Capture, interfaces: &Interfaces) -> Result<(), Failure> {
    let Some(tap) = plan.tap else { return Ok(()) };
    for selected in &interfaces.now {
        let scope = interfaces.scope_of(selected);
        let name = scope.name_of(&selected.link.name);
        scope.visit(|| check_one(&selected.link, &name, tap))??;
    }
    Ok(())
}

fn check_one(link: &Link, name: &str, tap: Tap) -> Result<(), Failure> {
    check_port(link, name)?;
    if tap == Tap::Force {
        return Ok(());
    }
    let what = || format!("cannot tell what uses {name}");
    let links = netdev::all().context(what())?;
    let used = Used {
        carries_default: route::carriers_of_default()
            .context(what())?
            .contains(&link.index),
        addresses: address::of(link.index).context(what())?,
        route: route::through(link.index).context(what())?,
    };
    match used.by(link, &links) {
        None => Ok(()),
        Some(by) => Err(Failure::new(format!(
            "cannot listen on {name}: {by}, and --tap would take its frames away"
        )))
        .hint(
            "--tap is for a port that nothing else uses (mirror, SPAN, tap): leave it out, or \
             give --tap=force",
        ),
    }
}

/// Refuses what is no port whose frames can end in the program.
fn check_port(link: &Link, name: &str) -> Result<(), Failure> {
    if link.is_loopback() || !link.is_ethernet() {
        let failure = Failure::new(format!("cannot listen on {name}: it is no Ethernet port"));
        return Err(failure.hint("--tap is for a mirror, SPAN or tap port: leave it out here"));
    }
    let Some(xdp) = &link.xdp else { return Ok(()) };
    Err(Failure::new(format!(
        "cannot listen on {name}: XDP program {} of somebody else is there, and decides what \
         becomes of frames",
        xdp.ids()
    ))
    .hint(AttachedProgram::of(xdp).removal(&link.name, xdp.mode)))
}

/// What uses an interface besides its neighbours.
#[derive(Debug, Default)]
struct Used {
    carries_default: bool,
    addresses: Vec<IpAddr>,
    /// Destination of a route through it.
    route: Option<String>,
}

impl Used {
    /// What uses `link`, one of `links`; the most important first.
    fn by(&self, link: &Link, links: &[Link]) -> Option<String> {
        let mut others = links.iter().filter(|it| it.index != link.index);
        if self.carries_default {
            return Some("the default route goes through it".into());
        }
        if let Some(master) = link.master {
            let mut masters = others.filter(|it| it.index == master);
            return Some(match masters.next() {
                Some(Link { name, .. }) => format!("it is a port of {name}"),
                None => format!("it is a port of interface number {master}"),
            });
        }
        // The peer of a veth is beside it.
        let sends_through =
            |it: &&Link| it.lower == Some(link.index) && it.kind.as_deref() != Some("veth");
        if let Some(upper) = others.find(sends_through) {
            let kind = upper.kind.as_deref().unwrap_or("interface");
            return Some(format!("{kind} {} is on it", upper.name));
        }
        // The kernel gives one to each interface that is up.
        let is_automatic =
            |it: &IpAddr| matches!(it, IpAddr::V6(address) if address.is_unicast_link_local());
        if let Some(address) = self.addresses.iter().find(|it| !is_automatic(it)) {
            return Some(format!("it has the address {address}"));
        }
        let route = self.route.as_ref();
        route.map(|to| format!("the route to {to} goes through it"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DirectionChoice;
    use tscap_network::netdev::{AttachedMode, AttachedXdp};
    use tscap_network::recorded::link;

    fn tap(interface: &str) -> Capture {
        Capture {
            tap: Some(Tap::Unused),
            direction: DirectionChoice::In,
            ..Capture::on([interface], "f")
        }
    }

    #[test]
    fn what_does_not_go_with_listening_is_refused() {
        assert_eq!(Capture::on(["any"], "f").contradiction(), None);
        let plain = tap("eth0");
        assert_eq!(plain.contradiction(), None);
        for hook in [HookChoice::Xdp, HookChoice::Generic] {
            let plan = Capture {
                hook,
                ..plain.clone()
            };
            assert_eq!(plan.contradiction(), None);
        }
        let (direction, promiscuous) = (DirectionChoice::Inout, false);
        let hook = HookChoice::Tcx;
        for (plan, word) in [
            (tap("any"), "name each interface"),
            (tap("eth*"), "name each interface"),
            (
                Capture {
                    direction,
                    ..plain.clone()
                },
                "-Q in",
            ),
            (
                Capture {
                    promiscuous,
                    ..plain.clone()
                },
                "leave out -p",
            ),
            (Capture { hook, ..plain }, "--hook xdp or generic"),
        ] {
            let why = plan.contradiction().unwrap();
            assert!(why.contains(word), "{why}");
        }
    }

    #[track_caller]
    fn check_used(used: &Used, of: &Link, others: &[Link], expected: Option<&str>) {
        let links: Vec<_> = others.iter().chain([of]).cloned().collect();
        assert_eq!(used.by(of, &links).as_deref(), expected);
    }

    #[test]
    fn whatever_uses_the_interface_is_named() {
        let (port, free) = (link("eth0", 2), Used::default());
        let on = |kind: &str| Link {
            kind: Some(kind.into()),
            lower: Some(2),
            ..link("other", 3)
        };
        check_used(&free, &port, &[], None);
        check_used(&free, &port, &[on("veth")], None);
        check_used(&free, &port, &[on("vlan")], Some("vlan other is on it"));
        let of_bridge = Link {
            master: Some(9),
            ..port.clone()
        };
        let bridge = [link("br0", 9)];
        check_used(&free, &of_bridge, &bridge, Some("it is a port of br0"));
        let unseen = "it is a port of interface number 9";
        check_used(&free, &of_bridge, &[], Some(unseen));
        let carries_default = Used {
            carries_default: true,
            ..Used::default()
        };
        let default = "the default route goes through it";
        check_used(&carries_default, &of_bridge, &bridge, Some(default));
        let addresses = |addresses: &[&str]| Used {
            addresses: addresses.iter().map(|it| it.parse().unwrap()).collect(),
            ..Used::default()
        };
        check_used(&addresses(&["fe80::1"]), &port, &[], None);
        let v6 = addresses(&["fe80::1", "2001:db8::7"]);
        check_used(&v6, &port, &[], Some("it has the address 2001:db8::7"));
        // What a host without DHCP gives itself is an address all the same.
        let v4 = addresses(&["169.254.3.4"]);
        check_used(&v4, &port, &[], Some("it has the address 169.254.3.4"));
        let routed = Used {
            route: Some("192.0.2.0/24".into()),
            ..Used::default()
        };
        let expected = "the route to 192.0.2.0/24 goes through it";
        check_used(&routed, &port, &[], Some(expected));
    }

    #[test]
    fn only_free_ethernet_ports_can_end_frames() {
        check_port(&link("eth0", 2), "eth0").unwrap();
        for link_type in [libc::ARPHRD_LOOPBACK, libc::ARPHRD_NONE] {
            let other = Link {
                link_type,
                ..link("x", 2)
            };
            let failure = check_port(&other, "x in web").unwrap_err().to_string();
            assert!(
                failure.contains("x in web: it is no Ethernet port"),
                "{failure}"
            );
        }
        let taken = Link {
            xdp: Some(AttachedXdp {
                mode: AttachedMode::Native,
                program_ids: vec![4711],
            }),
            ..link("eth0", 2)
        };
        let failure = check_port(&taken, "eth0").unwrap_err().to_string();
        assert!(
            failure.contains("XDP program 4711 of somebody else"),
            "{failure}"
        );
        assert!(failure.contains("hint: "), "{failure}");
    }
}
