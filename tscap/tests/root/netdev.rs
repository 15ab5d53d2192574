//! What `sys` says about interfaces and does to them, against what `ip` and
//! `ethtool` say. Needs root: makes namespaces and veth pairs.

use std::io::Write as _;

use aya::programs::XdpMode;
use tscap_network::ethtool::{self, EthtoolError};
use tscap_network::netdev::{self, AttachedMode, AttachedXdp, Link};
use tscap_network::promisc::{Promiscuous, PromiscuousError};
use tscap_testkit::bench::Bench;
use tscap_testkit::netns::Netns;
use tscap_testkit::port::Port;
use tscap_testkit::probes::Attached;
use tscap_testkit::root::alone;

/// Why tests run alone that let go of a program or a socket and look whether it is gone.
const DESCRIPTORS: &str = "children of other tests keep its descriptors for a moment";

/// The link of `port`, asked for in its namespace.
fn link(port: &Port) -> Link {
    let found = port.netns.enter(|| netdev::by_name(&port.name));
    found
        .expect("rtnetlink answers")
        .expect("the interface is there")
}

#[test]
fn links_are_those_of_ip() {
    let Some(_lock) = alone(DESCRIPTORS) else {
        return;
    };
    let bench = Bench::with_mtu("nd", 9000);
    bench.rx.set(&["alias", "capturing end"]);
    let (port, shown) = (&bench.rx, bench.rx.show());
    let link = link(port);

    assert_eq!((link.index, link.name.as_str()), (port.index, "rx0"));
    assert_eq!(link.kind.as_deref(), Some("veth"));
    assert_eq!(link.alias.as_deref(), Some("capturing end"));
    assert_eq!(link.mac, Some(port.mac));
    assert_eq!((link.mtu, link.link_type), (9000, netdev::ARPHRD_ETHER));
    assert_eq!(u64::from(link.rx_queues), port.queues());
    assert_eq!((link.promiscuity, link.xdp.as_ref()), (0, None));
    let stats = link.stats.expect("counters");
    let counted = &shown["stats64"]["rx"];
    assert_eq!(counted["packets"], stats.packets);
    assert_eq!(counted["bytes"], stats.bytes);
    assert_eq!(counted["errors"], stats.errors);
    assert_eq!(counted["dropped"], stats.dropped);
    let (stats, counted) = (link.tx_stats.expect("counters"), &shown["stats64"]["tx"]);
    assert_eq!(counted["packets"], stats.packets);
    assert_eq!(counted["bytes"], stats.bytes);
    assert_eq!(counted["dropped"], stats.dropped);

    let (by_index, all, loopback) = port.netns.enter(|| {
        let by_index = netdev::by_index(port.index);
        (by_index, netdev::all(), netdev::by_name("lo"))
    });
    assert_eq!(by_index.expect("rtnetlink answers").as_ref(), Some(&link));
    let loopback = loopback.expect("rtnetlink answers").expect("lo is there");
    assert_eq!((loopback.kind.as_deref(), loopback.link_type), (None, 772));
    // Only this namespace's own interfaces, in their order. The kernel may have
    // made tunnels of its own in it.
    let all = all.expect("rtnetlink answers");
    assert!(all.is_sorted_by_key(|link| link.index) && all.contains(&link) && all[0].name == "lo");
    assert!(
        !all.iter()
            .any(|link| link.name == "eth0" || link.name == "tx0"),
        "{all:?}"
    );
}

#[test]
fn interfaces_that_are_not_there_are_none() {
    let Some(_lock) = alone(DESCRIPTORS) else {
        return;
    };
    let netns = Netns::new("nd");
    netns.enter(|| {
        for name in [
            "",
            "rx0",
            "rx0\0",
            "a/b",
            "a b\n",
            "größe",
            "fifteen-bytes-x",
            "sixteen-bytes-xx",
        ] {
            assert_eq!(netdev::by_name(name).expect("no error"), None, "{name:?}");
            assert_eq!(ethtool::driver(name), None, "{name:?}");
            assert_eq!(ethtool::speed_bits_per_s(name), None, "{name:?}");
        }
        for index in [0, 4711, i32::MAX as u32, u32::MAX] {
            assert_eq!(netdev::by_index(index).expect("no error"), None, "{index}");
        }
        assert!(matches!(
            ethtool::features("rx0"),
            Err(EthtoolError::Request { .. })
        ));
        assert!(matches!(
            Promiscuous::enable(4711),
            Err(PromiscuousError::Kernel { .. })
        ));
    });
}

#[test]
fn up_and_carrier_are_told_apart() {
    let Some(_lock) = alone(DESCRIPTORS) else {
        return;
    };
    let bench = Bench::new("nd");
    let state = || {
        let link = link(&bench.rx);
        (link.is_up, link.has_carrier)
    };
    assert_eq!(state(), (true, true));
    bench.tx.set(&["down"]);
    assert_eq!(state(), (true, false));
    bench.rx.set(&["down"]);
    assert_eq!(state(), (false, false));
    bench.tx.set(&["up"]);
    bench.rx.set(&["up"]);
    assert_eq!(state(), (true, true));
}

#[test]
fn a_long_list_is_whole() {
    const PAIRS: usize = 60;
    let Some(_lock) = alone(DESCRIPTORS) else {
        return;
    };
    let netns = Netns::new("nd");
    let mut batch = tempfile::NamedTempFile::new().expect("temporary file");
    for number in 0..PAIRS {
        writeln!(batch, "link add a{number} type veth peer name b{number}").expect("write");
    }
    netns.ip(&["-batch", batch.path().to_str().expect("a UTF-8 path")]);

    let mut names: Vec<_> = netns
        .enter(netdev::all)
        .expect("rtnetlink answers")
        .into_iter()
        .filter(|link| link.kind.as_deref() == Some("veth"))
        .map(|link| link.name)
        .collect();
    names.sort();
    let mut made: Vec<_> = (0..PAIRS)
        .flat_map(|number| [format!("a{number}"), format!("b{number}")])
        .collect();
    made.sort();
    assert_eq!(names, made);
}

#[test]
fn attached_programs_are_named() {
    let Some(_lock) = alone(DESCRIPTORS) else {
        return;
    };
    let bench = Bench::new("nd");
    for (mode, shown) in [
        (XdpMode::Driver, AttachedMode::Native),
        (XdpMode::Skb, AttachedMode::Generic),
    ] {
        let attached = Attached::pass(&bench.rx, mode);
        let expected = AttachedXdp {
            mode: shown,
            program_ids: vec![attached.id],
        };
        assert_eq!(link(&bench.rx).xdp, Some(expected));
        drop(attached);
        assert_eq!(link(&bench.rx).xdp, None);
    }
}

#[test]
fn promiscuous_mode_ends_with_its_guard() {
    let Some(_lock) = alone(DESCRIPTORS) else {
        return;
    };
    let bench = Bench::new("nd");
    let enable = || Promiscuous::enable(bench.rx.index).expect("root may");
    let (first, second) = bench.rx.netns.enter(|| (enable(), enable()));
    assert_eq!(
        (link(&bench.rx).promiscuity, bench.rx.promiscuity()),
        (2, 2)
    );
    drop(first);
    assert_eq!(
        (link(&bench.rx).promiscuity, bench.rx.promiscuity()),
        (1, 1)
    );
    drop(second);
    assert_eq!(
        (link(&bench.rx).promiscuity, bench.rx.promiscuity()),
        (0, 0)
    );
}

#[test]
fn offloads_are_those_of_ethtool() {
    let Some(_lock) = alone(DESCRIPTORS) else {
        return;
    };
    let bench = Bench::new("nd");
    let port = &bench.rx;
    let features = port
        .netns
        .enter(|| ethtool::features(&port.name))
        .expect("root may");
    let text = port.netns.must("ethtool", &["-k", &port.name]);
    let mut compared = 0;
    for (name, state) in text.lines().filter_map(|line| line.trim().split_once(": ")) {
        // ethtool groups some and has names of its own for others.
        let Some(feature) = features.get(name) else {
            continue;
        };
        let expected = (state.starts_with("on"), state.ends_with("[fixed]"));
        assert_eq!((feature.on, feature.fixed), expected, "{name}");
        compared += 1;
    }
    assert!(compared >= 30, "only {compared} names are known to both");
    for name in [
        "rx-vlan-hw-parse",
        "rx-gro",
        "rx-lro",
        "rx-gro-hw",
        "tx-tcp-segmentation",
    ] {
        assert!(features.contains_key(name), "{name}");
    }
}

#[test]
fn offloads_are_switched_and_restored() {
    const NAMES: [&str; 2] = ["rx-vlan-hw-parse", "tx-tcp-segmentation"];
    let Some(_lock) = alone(DESCRIPTORS) else {
        return;
    };
    let bench = Bench::new("nd");
    let port = &bench.rx;
    let set = |wanted: [bool; 2]| {
        let wanted: Vec<_> = NAMES.into_iter().zip(wanted).collect();
        port.netns
            .enter(|| ethtool::set_features(&port.name, &wanted))
            .expect("veth can");
        // What ethtool calls them.
        let offloads = port.offloads();
        [offloads["rx-vlan-offload"], offloads["tx-tcp-segmentation"]]
    };
    for wanted in [
        [true, true],
        [false, true],
        [false, false],
        [true, false],
        [true, true],
    ] {
        assert_eq!(set(wanted), wanted);
    }
}

#[test]
fn offloads_that_cannot_be_switched_are_named() {
    let Some(_lock) = alone(DESCRIPTORS) else {
        return;
    };
    let bench = Bench::new("nd");
    let port = &bench.rx;
    port.netns.enter(|| {
        let before = ethtool::features(&port.name).expect("root may");
        let fixed = before
            .iter()
            .find(|(_, feature)| feature.fixed)
            .expect("some are fixed");
        let free = before
            .iter()
            .find(|(_, feature)| !feature.fixed)
            .expect("some are not");

        let both = [(fixed.0, !fixed.1.on), (free.0, !free.1.on)];
        match ethtool::set_features(&port.name, &both) {
            Err(EthtoolError::Refused { features, .. }) => assert_eq!(features, [fixed.0.as_str()]),
            other => panic!("{other:?}"),
        }
        match ethtool::set_features(&port.name, &[("rx-teleport", true), (free.0, !free.1.on)]) {
            Err(EthtoolError::Unknown { features }) => assert_eq!(features, ["rx-teleport"]),
            other => panic!("{other:?}"),
        }
        assert_eq!(
            ethtool::features(&port.name).expect("root may"),
            before,
            "nothing changed"
        );
        // To ask a fixed one for what it is already is no fault.
        ethtool::set_features(&port.name, &[(fixed.0, fixed.1.on)]).expect("nothing to do");
    });
}

#[test]
fn the_driver_and_its_speed_are_those_of_ethtool() {
    let Some(_lock) = alone(DESCRIPTORS) else {
        return;
    };
    let bench = Bench::new("nd");
    let port = &bench.rx;
    let text = port.netns.must("ethtool", &["-i", &port.name]);
    let shown = |key: &str| {
        let mut fields = text.lines().filter_map(|line| line.split_once(':'));
        fields
            .find(|(name, _)| *name == key)
            .expect(key)
            .1
            .trim()
            .to_owned()
    };
    let driver = port
        .netns
        .enter(|| ethtool::driver(&port.name))
        .expect("veth says");
    assert_eq!(driver.name, "veth");
    assert_eq!(driver.version, shown("version"));
    assert_eq!(driver.firmware, shown("firmware-version"));
    assert_eq!(driver.bus, shown("bus-info"));
    let speed = port.netns.enter(|| ethtool::speed_bits_per_s(&port.name));
    assert_eq!(speed, Some(10_000_000_000));
}
