//! What is received about interfaces, and which ones carry default routes, against what `ip`
//! does. Needs root: makes namespaces and veth pairs.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::time::Duration;

use tscap_network::link_watch::{LinkEvent, LinkWatch};
use tscap_network::{netdev, route};
use tscap_testkit::netns::Netns;
use tscap_testkit::root::root;
use tscap_testkit::wait;

const SOON: Duration = Duration::from_secs(20);
const MANY: usize = 200;

/// A watch with what it has heard.
struct Heard {
    watch: LinkWatch,
    events: Vec<LinkEvent>,
}

impl Heard {
    fn in_namespace(netns: &Netns) -> Self {
        Self {
            watch: netns.enter(LinkWatch::new).expect("a watch"),
            events: Vec::new(),
        }
    }

    fn read(&mut self) {
        match self.watch.read() {
            Ok(events) => self.events.extend(events),
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock, "{error}"),
        }
    }

    /// Waits for an event, and forgets those up to it.
    #[track_caller]
    fn wait_for(&mut self, what: &str, is_it: impl Fn(&LinkEvent) -> bool) -> LinkEvent {
        let position = wait::until(what, SOON, || {
            self.read();
            self.events.iter().position(&is_it)
        });
        self.events
            .drain(..=position)
            .next_back()
            .expect("an event")
    }

    /// Waits for interface `name` to be as wanted; returns its number.
    #[track_caller]
    fn wait_for_link(&mut self, name: &str, is_it: impl Fn(&netdev::Link) -> bool) -> u32 {
        let changed = |event: &LinkEvent| match event {
            LinkEvent::Changed(link) => link.name == name && is_it(link),
            _ => false,
        };
        match self.wait_for(name, changed) {
            LinkEvent::Changed(link) => link.index,
            _ => unreachable!("just looked at"),
        }
    }

    #[track_caller]
    fn wait_for_end(&mut self, index: u32, name: &str) {
        let gone = LinkEvent::Gone {
            index,
            name: name.into(),
        };
        self.wait_for(name, |event| *event == gone);
    }
}

#[test]
fn an_interface_is_followed_from_its_beginning_to_its_end() {
    let Some(_lock) = root() else { return };
    let (netns, other) = (Netns::new("links"), Netns::new("links-other"));
    let (mut heard, mut there) = (Heard::in_namespace(&netns), Heard::in_namespace(&other));
    netns.ip(&["link", "add", "la", "type", "veth", "peer", "name", "lb"]);
    let index = heard.wait_for_link("la", |link| {
        !link.is_up && link.kind.as_deref() == Some("veth")
    });
    netns.ip(&["link", "set", "la", "up"]);
    netns.ip(&["link", "set", "lb", "up"]);
    assert_eq!(heard.wait_for_link("la", |link| link.has_carrier), index);
    netns.ip(&["link", "set", "la", "down"]);
    heard.wait_for_link("la", |link| !link.is_up);
    netns.ip(&["link", "set", "la", "name", "lc"]);
    assert_eq!(heard.wait_for_link("lc", |_| true), index);
    netns.ip(&["link", "set", "lc", "netns", other.name()]);
    heard.wait_for_end(index, "lc");
    let moved = there.wait_for_link("lc", |_| true);
    other.ip(&["link", "del", "lc"]);
    there.wait_for_end(moved, "lc");
    assert!(!heard.events.contains(&LinkEvent::Missed));
}

#[test]
fn a_port_that_leaves_its_bridge_stays() {
    let Some(_lock) = root() else { return };
    let netns = Netns::new("links");
    netns.ip(&["link", "add", "pa", "type", "veth", "peer", "name", "pb"]);
    netns.ip(&["link", "add", "bridge0", "type", "bridge"]);
    let mut heard = Heard::in_namespace(&netns);
    netns.ip(&["link", "set", "pa", "master", "bridge0"]);
    let bridge = netns
        .enter(|| netdev::by_name("bridge0"))
        .unwrap()
        .unwrap()
        .index;
    heard.wait_for_link("pa", |link| link.master == Some(bridge));
    netns.ip(&["link", "set", "pa", "nomaster"]);
    heard.wait_for_link("pa", |link| link.master.is_none());
    // Comes behind whatever is said of the port.
    netns.ip(&["link", "set", "pb", "mtu", "1400"]);
    heard.wait_for_link("pb", |link| link.mtu == 1400);
    assert!(
        !heard
            .events
            .iter()
            .any(|event| matches!(event, LinkEvent::Gone { .. }))
    );
}

#[test]
fn many_at_once_are_all_heard_of() {
    let Some(_lock) = root() else { return };
    let netns = Netns::new("links");
    let mut heard = Heard::in_namespace(&netns);
    let folder = tempfile::tempdir().unwrap();
    let batch = folder.path().join("batch");
    let pairs = (0..MANY / 2)
        .map(|it| format!("link add ma{it} up type veth peer name mb{it}\nlink set mb{it} up\n"));
    fs::write(&batch, pairs.collect::<String>()).unwrap();
    // Nobody reads meanwhile.
    netns.ip(&["-batch", batch.to_str().unwrap()]);
    heard.read();
    let mut up = BTreeSet::new();
    for event in &heard.events {
        match event {
            LinkEvent::Changed(link) if link.is_up => drop(up.insert(link.name.clone())),
            LinkEvent::Changed(_) => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(up.len(), MANY);
}

#[test]
fn lost_events_are_told() {
    let Some(_lock) = root() else { return };
    let netns = Netns::new("links");
    netns.ip(&["link", "add", "xa", "type", "veth", "peer", "name", "xb"]);
    let mut heard = Heard::in_namespace(&netns);
    // The least that the kernel allows.
    nix::sys::socket::setsockopt(&heard.watch, nix::sys::socket::sockopt::RcvBuf, &0).unwrap();
    for mtu in 1400..1450 {
        netns.ip(&["link", "set", "xa", "mtu", &mtu.to_string()]);
    }
    heard.wait_for("lost events", |event| *event == LinkEvent::Missed);
    // What comes later is noticed.
    heard.read();
    netns.ip(&["link", "set", "xa", "mtu", "1300"]);
    heard.wait_for_link("xa", |link| link.mtu == 1300);
}

#[test]
fn default_routes_name_their_interfaces() {
    let Some(_lock) = root() else { return };
    let netns = Netns::new("links");
    let index = |name: &str| {
        netns
            .enter(|| netdev::by_name(name))
            .unwrap()
            .unwrap()
            .index
    };
    let defaults = || {
        netns
            .enter(route::carriers_of_default)
            .expect("rtnetlink answers")
    };
    for (one, other) in [("ra", "rb"), ("rc", "rd")] {
        netns.ip(&[
            "link", "add", one, "up", "type", "veth", "peer", "name", other,
        ]);
        netns.ip(&["link", "set", other, "up"]);
    }
    netns.ip(&["address", "add", "10.7.0.1/24", "dev", "ra"]);
    netns.ip(&["route", "add", "10.8.0.0/24", "dev", "ra"]);
    netns.ip(&["route", "add", "default", "dev", "rb", "table", "100"]);
    assert_eq!(defaults(), BTreeSet::new());
    netns.ip(&["route", "add", "default", "dev", "ra"]);
    assert_eq!(defaults(), [index("ra")].into());
    netns.ip(&[
        "route", "add", "default", "metric", "7", "nexthop", "dev", "rb", "nexthop", "dev", "rc",
    ]);
    assert_eq!(defaults(), ["ra", "rb", "rc"].map(index).into());
    netns.ip(&["route", "flush", "default"]);
    // What it goes through below the interface it names, too.
    let above = [
        "link", "add", "above", "link", "rb", "up", "type", "macvlan",
    ];
    netns.ip(&above);
    netns.ip(&["link", "add", "bridge0", "up", "type", "bridge"]);
    netns.ip(&["link", "set", "rd", "master", "bridge0"]);
    netns.ip(&["route", "add", "default", "dev", "above"]);
    assert_eq!(defaults(), ["above", "rb"].map(index).into());
    netns.ip(&["route", "add", "default", "dev", "bridge0", "metric", "7"]);
    assert_eq!(
        defaults(),
        ["above", "rb", "bridge0", "rd"].map(index).into()
    );
    netns.ip(&["route", "flush", "default"]);
    netns.ip(&["link", "set", "rd", "nomaster"]);
    netns.set("ipv6/conf/rd/disable_ipv6", "0");
    netns.ip(&["-6", "route", "add", "default", "dev", "rd"]);
    assert!(defaults().contains(&index("rd")));
}
