use super::*;
use crate::recorded::link;

fn device(link_type: u16, kind: Option<&str>) -> Link {
    Link {
        link_type,
        kind: kind.map(str::to_owned),
        ..link("x0", 7)
    }
}

#[track_caller]
fn check(link_type: u16, kind: Option<&str>, expected: Layout) {
    let layout = device(link_type, kind).layout();
    assert_eq!(layout, expected, "{link_type} {kind:?}");
}

/// The numbers are those of include/uapi/linux/if_arp.h.
#[test]
fn each_type_of_device_has_its_layout() {
    let ethernet = Layout::Both(LinkType::Ethernet);
    for kind in ["veth", "bridge", "vxlan", "gretap", "ip6gretap", "tun"] {
        check(1, Some(kind), ethernet);
    }
    check(1, None, ethernet);
    check(772, None, ethernet);
    let ip = Layout::Both(LinkType::RawIp);
    for (link_type, kind) in [
        (0xfffe, Some("tun")),
        (0xfffe, Some("wireguard")),
        (0xfffe, Some("vxlan")),
        (0xfffe, None),
        (519, Some("rmnet")),
        (512, Some("ppp")),
        (768, Some("ipip")),
        (769, Some("ip6tnl")),
        (776, Some("sit")),
        (778, Some("gre")),
        (823, Some("ip6gre")),
    ] {
        check(link_type, kind, ip);
    }
    for (link_type, kind) in [(0xfffe, "xfrm"), (768, "vti"), (769, "vti6")] {
        check(
            link_type,
            Some(kind),
            Layout::SentOnly(LinkType::RawIp, BELOW),
        );
    }
    for (link_type, carried) in [
        (32, "IP over InfiniBand frames"),
        (280, "CAN frames"),
        (512, "PPP frames of a synchronous line"),
        (804, "IEEE 802.15.4 frames"),
        (824, "netlink messages"),
        (826, "messages of virtual machine sockets"),
    ] {
        check(link_type, None, Layout::Other(carried));
    }
    check(0xfffe, Some("invented"), Layout::Unknown);
    check(4711, None, Layout::Unknown);
    check(1, Some("vrf"), Layout::Nothing("its ports"));
}

/// A type that stood twice, or that is captured, would never be found.
#[test]
fn each_other_type_stands_once() {
    for (position, (number, _)) in OTHERS.iter().enumerate() {
        let mut later = OTHERS[position + 1..].iter();
        assert!(later.all(|(other, _)| other != number), "{number}");
        assert!(device(*number, None).frames().is_none(), "{number}");
    }
}

#[test]
fn a_header_of_the_kernels_is_an_obstacle() {
    for (link_type, kind) in [(778, "gre"), (823, "ip6gre")] {
        let multipoint = Link {
            builds_outer: true,
            ..device(link_type, Some(kind))
        };
        assert_eq!(multipoint.frames(), None);
        let obstacle = multipoint.obstacle(&[Direction::Out]).unwrap();
        assert!(obstacle.why.contains("outer IP and GRE"), "{obstacle:?}");
        assert!(obstacle.advice.contains("'proto gre'"), "{obstacle:?}");
    }
}

#[test]
fn what_is_sent_alone_can_be_taken() {
    let in_mode_l3s = Link {
        receives_behind_hooks: true,
        ..device(1, Some("ipvlan"))
    };
    for (device, link_type) in [
        (device(0xfffe, Some("xfrm")), LinkType::RawIp),
        (in_mode_l3s, LinkType::Ethernet),
    ] {
        assert_eq!(device.frames(), Some(link_type));
        assert_eq!(device.obstacle(&[Direction::Out]), None);
        for directions in [&Direction::ALL[..], &[Direction::In]] {
            let obstacle = device.obstacle(directions).unwrap();
            assert!(obstacle.why.contains("what it receives"), "{obstacle:?}");
            assert!(obstacle.advice.contains("-Q out"), "{obstacle:?}");
        }
    }
    check(1, Some("ipvlan"), Layout::Both(LinkType::Ethernet));
}

#[test]
fn each_obstacle_says_why_and_what_to_do() {
    let all = OTHERS.iter().map(|(number, _)| (*number, None));
    for (number, kind) in all.chain([(4711, None), (0xfffe, Some("new")), (1, Some("vrf"))]) {
        let obstacle = device(number, kind).obstacle(&Direction::ALL).unwrap();
        let names_it = obstacle.advice.contains("x0") && !obstacle.why.is_empty();
        assert!(names_it, "{obstacle:?}");
    }
    for number in [1, 772, 0xfffe, 778] {
        assert_eq!(device(number, None).obstacle(&Direction::ALL), None);
    }
}
