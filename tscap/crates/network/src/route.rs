//! Which interfaces routes go through, asked of the kernel over rtnetlink.

use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;

use netlink_packet_core::{
    DecodeError, NLM_F_DUMP, NLM_F_REQUEST, NetlinkMessage, NlasIterator, parse_u32,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::{Socket, protocols::NETLINK_ROUTE};

use crate::netdev::{self, Link};
use crate::{address, netlink};

/// Bytes of `struct rtmsg` (`linux/rtnetlink.h`), ahead of the attributes.
const HEADER_LEN: usize = 12;
/// Bytes of `struct rtnexthop`, ahead of the attributes of one hop.
const NEXT_HOP_LEN: usize = size_of::<NextHop>();

/// `struct rtnexthop` (`linux/rtnetlink.h`).
#[repr(C)]
struct NextHop {
    len: u16,
    flags: u8,
    hops: u8,
    ifindex: i32,
}

/// The numbers of the interfaces of this thread's network namespace that carry a default
/// route of the main table, IPv4 or IPv6; and of those below them: ports, and what VLANs
/// and tunnels send through.
///
/// # Errors
/// If the kernel can't be asked.
pub fn carriers_of_default() -> io::Result<BTreeSet<u32>> {
    let carriers = default_interfaces()?;
    let links = netdev::all().map_err(io::Error::other)?;
    Ok(with_lower(carriers, &links))
}

/// `carriers` and all interfaces of `links` below them.
fn with_lower(mut carriers: BTreeSet<u32>, links: &[Link]) -> BTreeSet<u32> {
    let mut upper: Vec<_> = carriers.iter().copied().collect();
    while let Some(index) = upper.pop() {
        let below = links.iter().filter_map(|link| {
            let is_port = link.master == Some(index);
            // The peer of a veth is beside it.
            let sends_through = link.index == index && link.kind.as_deref() != Some("veth");
            match (is_port, sends_through) {
                (true, _) => Some(link.index),
                (_, true) => link.lower,
                _ => None,
            }
        });
        upper.extend(below.filter(|index| carriers.insert(*index)));
    }
    carriers
}

/// The destination of a route through interface `index` of this thread's network namespace,
/// in any table: 192.0.2.0/24, or default. Routes that the kernel makes by itself for
/// link-local and multicast addresses of IPv6 don't count.
///
/// # Errors
/// If the kernel can't be asked.
pub fn through(index: u32) -> io::Result<Option<String>> {
    let routes = all()?;
    let mut through = routes.iter().filter(|it| it.interfaces.contains(&index));
    Ok(through
        .find(|it| !it.is_automatic())
        .map(Route::destination))
}

/// How this thread's network namespace sends to an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WayTo {
    /// Number of the interface.
    pub interface: u32,
    /// Whether the address is of this namespace itself.
    pub is_local: bool,
    /// Whether a router is on the way.
    pub has_gateway: bool,
}

/// The way to `address`, as a packet without marks takes it.
///
/// # Errors
/// If there is none (ENETUNREACH), or the kernel can't be asked.
pub fn way_to(address: IpAddr) -> io::Result<WayTo> {
    let (family, to, prefix) = match address {
        IpAddr::V4(to) => (AddressFamily::Inet, RouteAddress::Inet(to), 32),
        IpAddr::V6(to) => (AddressFamily::Inet6, RouteAddress::Inet6(to), 128),
    };
    let mut message = RouteMessage::default();
    message.header.address_family = family;
    message.header.destination_prefix_length = prefix;
    message.attributes = vec![RouteAttribute::Destination(to)];
    let mut request = NetlinkMessage::from(RouteNetlinkMessage::GetRoute(message));
    request.header.flags = NLM_F_REQUEST;
    request.header.sequence_number = 1;
    let socket = Socket::new(NETLINK_ROUTE)?;
    let answer = netlink::ask(&socket, &netlink::bytes(request), 1)?;
    let route = answer.messages.first();
    let way = route.map(|route| WayTo::parse(route)).transpose();
    let way = way.map_err(io::Error::other)?.flatten();
    way.ok_or_else(|| io::Error::from_raw_os_error(libc::ENETUNREACH))
}

impl WayTo {
    /// `None` without an interface, as of a route that refuses.
    fn parse(payload: &[u8]) -> Result<Option<Self>, DecodeError> {
        let header = RouteHeader::parse(payload)?;
        let (mut interface, mut has_gateway) = (None, false);
        for attribute in NlasIterator::new(payload.get(HEADER_LEN..).unwrap_or_default()) {
            let attribute = attribute?;
            match attribute.kind() {
                libc::RTA_OIF => interface = Some(parse_u32(attribute.value())?),
                libc::RTA_GATEWAY | libc::RTA_VIA => has_gateway = true,
                _ => {}
            }
        }
        Ok(interface.map(|interface| Self {
            interface,
            is_local: header.kind == RouteType::Local,
            has_gateway,
        }))
    }
}

fn default_interfaces() -> io::Result<BTreeSet<u32>> {
    let routes = all()?.into_iter().filter(Route::is_default_of_main);
    Ok(routes.flat_map(|it| it.interfaces).collect())
}

fn all() -> io::Result<Vec<Route>> {
    let socket = Socket::new(NETLINK_ROUTE)?;
    let mut found = Vec::new();
    for (sequence, family) in [(1, AddressFamily::Inet), (2, AddressFamily::Inet6)] {
        // A listing that changes meanwhile is of its time all the same.
        let answer = netlink::ask(&socket, &request(family, sequence), sequence)?;
        for message in answer.messages {
            found.extend(Route::parse(&message, family).map_err(io::Error::other)?);
        }
    }
    Ok(found)
}

fn request(family: AddressFamily, sequence: u32) -> Vec<u8> {
    let mut message = RouteMessage::default();
    message.header.address_family = family;
    let mut request = NetlinkMessage::from(RouteNetlinkMessage::GetRoute(message));
    request.header.flags = NLM_F_REQUEST | NLM_F_DUMP;
    request.header.sequence_number = sequence;
    netlink::bytes(request)
}

#[derive(Debug)]
struct Route {
    /// `None` for the whole address space.
    to: Option<IpAddr>,
    /// Bits of `to` that count.
    prefix: u8,
    /// Number of the table, if that is below 256.
    table: u8,
    interfaces: Vec<u32>,
}

impl Route {
    fn parse(payload: &[u8], family: AddressFamily) -> Result<Option<Self>, DecodeError> {
        let header = RouteHeader::parse(payload)?;
        if header.address_family != family || header.kind != RouteType::Unicast {
            return Ok(None);
        }
        let mut route = Self {
            to: None,
            prefix: header.destination_prefix_length,
            table: header.table,
            interfaces: Vec::new(),
        };
        for attribute in NlasIterator::new(payload.get(HEADER_LEN..).unwrap_or_default()) {
            let attribute = attribute?;
            match attribute.kind() {
                libc::RTA_DST => route.to = address::ip(attribute.value()),
                libc::RTA_OIF => route.interfaces.push(parse_u32(attribute.value())?),
                libc::RTA_MULTIPATH => route.interfaces.extend(next_hops(attribute.value())?),
                _ => {}
            }
        }
        Ok(Some(route))
    }

    fn is_default_of_main(&self) -> bool {
        // The main table needs no attribute, its number is below 256.
        self.prefix == 0 && self.table == RouteHeader::RT_TABLE_MAIN
    }

    /// Whether the kernel makes it for each interface that is up.
    fn is_automatic(&self) -> bool {
        let is_for_itself = match self.to {
            Some(IpAddr::V6(to)) => to.is_unicast_link_local() || to.is_multicast(),
            _ => false,
        };
        is_for_itself || self.table == libc::RT_TABLE_LOCAL
    }

    fn destination(&self) -> String {
        match self.to {
            Some(to) => format!("{to}/{}", self.prefix),
            None => "default".into(),
        }
    }
}

/// The interfaces of several next hops.
fn next_hops(mut rest: &[u8]) -> Result<Vec<u32>, DecodeError> {
    let mut found = Vec::new();
    while rest.len() >= NEXT_HOP_LEN {
        let length = usize::from(u16::from_ne_bytes([rest[0], rest[1]]));
        if !(NEXT_HOP_LEN..=rest.len()).contains(&length) {
            return Err(format!("a next hop of {length} bytes in {}", rest.len()).into());
        }
        found.push(parse_u32(
            &rest[std::mem::offset_of!(NextHop, ifindex)..NEXT_HOP_LEN],
        )?);
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use netlink_packet_core::Emitable as _;
    use netlink_packet_route::route::RouteNextHop;

    use super::*;
    use crate::recorded;

    fn route(change: impl FnOnce(&mut RouteMessage)) -> Vec<u8> {
        let mut message = RouteMessage::default();
        message.header.address_family = AddressFamily::Inet;
        message.header.table = RouteHeader::RT_TABLE_MAIN;
        message.header.kind = RouteType::Unicast;
        message.attributes = vec![RouteAttribute::Priority(100), RouteAttribute::Oif(7)];
        change(&mut message);
        let mut bytes = vec![0; message.buffer_len()];
        message.emit(&mut bytes);
        bytes
    }

    #[track_caller]
    fn check(route: &[u8], interfaces: &[u32]) {
        let found = Route::parse(route, AddressFamily::Inet).unwrap();
        let found = found.filter(Route::is_default_of_main);
        assert_eq!(found.map_or_else(Vec::new, |it| it.interfaces), interfaces);
    }

    #[test]
    fn a_way_tells_its_interface_and_whether_it_leaves_the_network() {
        let near = WayTo {
            interface: 7,
            is_local: false,
            has_gateway: false,
        };
        let parse = |route: &[u8]| WayTo::parse(route).unwrap();
        assert_eq!(parse(&route(|_| {})), Some(near));
        let gateway = RouteAttribute::Gateway(RouteAddress::Inet([10, 0, 0, 1].into()));
        let far = parse(&route(|it| it.attributes.push(gateway)));
        assert!(far.unwrap().has_gateway);
        let local = parse(&route(|it| it.header.kind = RouteType::Local));
        assert!(local.unwrap().is_local);
        assert_eq!(parse(&route(|it| it.attributes.clear())), None);
    }

    #[test]
    fn the_way_to_this_host_is_local() {
        let way = way_to([127, 0, 0, 1].into()).unwrap();
        assert!(way.is_local && !way.has_gateway, "{way:?}");
    }

    #[test]
    fn only_default_routes_of_the_main_table_count() {
        check(&route(|_| {}), &[7]);
        check(&route(|it| it.header.destination_prefix_length = 24), &[]);
        check(&route(|it| it.header.table = 100), &[]);
        check(&route(|it| it.header.kind = RouteType::BlackHole), &[]);
        check(
            &route(|it| it.header.address_family = AddressFamily::Inet6),
            &[],
        );
    }

    #[test]
    fn routes_that_the_kernel_makes_by_itself_are_told_apart() {
        let destination = |to: &str, prefix, table| {
            let to: IpAddr = to.parse().unwrap();
            let family = match to {
                IpAddr::V4(_) => AddressFamily::Inet,
                IpAddr::V6(_) => AddressFamily::Inet6,
            };
            let route = route(|it| {
                it.header.address_family = family;
                it.header.destination_prefix_length = prefix;
                it.header.table = table;
                let to = match to {
                    IpAddr::V4(to) => RouteAddress::Inet(to),
                    IpAddr::V6(to) => RouteAddress::Inet6(to),
                };
                it.attributes.push(RouteAttribute::Destination(to));
            });
            let route = Route::parse(&route, family).unwrap().unwrap();
            (!route.is_automatic()).then(|| route.destination())
        };
        let (main, local) = (libc::RT_TABLE_MAIN, libc::RT_TABLE_LOCAL);
        assert_eq!(destination("fe80::", 64, main), None);
        assert_eq!(destination("ff00::", 8, local), None);
        assert_eq!(destination("ff00::", 8, main), None);
        assert_eq!(destination("192.0.2.1", 32, local), None);
        for (to, prefix) in [("192.0.2.0", 24), ("2001:db8::", 32)] {
            let expected = Some(format!("{to}/{prefix}"));
            for table in [main, 100] {
                assert_eq!(destination(to, prefix, table), expected);
            }
        }
    }

    #[test]
    fn what_is_below_a_carrier_is_one_too() {
        let link = |index, kind: Option<&str>, master, lower| Link {
            kind: kind.map(str::to_owned),
            master,
            lower,
            ..recorded::link("any", index)
        };
        let links = [
            link(1, None, Some(3), None),
            link(2, None, Some(3), None),
            link(3, Some("bond"), None, None),
            link(4, Some("vlan"), None, Some(3)),
            link(5, Some("veth"), None, Some(6)),
            link(6, Some("veth"), None, Some(5)),
            // The kernel allows no ring, but says things one after the other.
            link(7, Some("macvlan"), None, Some(7)),
        ];
        for (carrier, all) in [
            (4, &[1, 2, 3, 4][..]),
            (3, &[1, 2, 3]),
            (1, &[1]),
            (5, &[5]),
            (7, &[7]),
        ] {
            let found = with_lower(BTreeSet::from([carrier]), &links);
            assert_eq!(found.into_iter().collect::<Vec<_>>(), all);
        }
    }

    #[test]
    fn every_next_hop_counts() {
        let hop = |index| {
            let mut hop = RouteNextHop::default();
            hop.interface_index = index;
            hop.attributes = vec![RouteAttribute::Priority(1)];
            hop
        };
        let several = route(|it| {
            it.attributes = vec![RouteAttribute::MultiPath(vec![hop(3), hop(9)])];
        });
        check(&several, &[3, 9]);
        for rubbish in [[0; 8], [0xff; 8]] {
            assert!(next_hops(&rubbish).is_err());
        }
    }
}
