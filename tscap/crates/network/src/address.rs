//! The addresses of an interface, asked of the kernel over rtnetlink.

use std::io;
use std::net::{IpAddr, Ipv4Addr};

use netlink_packet_core::{
    DecodeError, NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, NLM_F_REQUEST, NetlinkMessage,
    NlasIterator,
};
use netlink_packet_route::address::{AddressAttribute, AddressHeader, AddressMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::{Socket, protocols::NETLINK_ROUTE};

use crate::netlink;

/// Bytes of `struct ifaddrmsg` (`linux/if_addr.h`), ahead of the attributes.
const HEADER_LEN: usize = size_of::<libc::ifaddrmsg>();

/// The addresses, IPv4 and IPv6, of interface `index` of this thread's network namespace.
///
/// # Errors
/// If the kernel can't be asked.
pub fn of(index: u32) -> io::Result<Vec<IpAddr>> {
    let socket = Socket::new(NETLINK_ROUTE)?;
    let answer = netlink::ask(&socket, &request(), 1)?;
    let addresses = answer.messages.iter().map(|it| address(it, index));
    let addresses = addresses.filter_map(Result::transpose);
    addresses
        .collect::<Result<_, _>>()
        .map_err(io::Error::other)
}

/// The netmask of the first IPv4 address of interface `index` of this thread's network
/// namespace, as `ip broadcast` in a filter goes by; `None` if it has no such address.
///
/// # Errors
/// If the kernel can't be asked.
pub fn netmask(index: u32) -> io::Result<Option<Ipv4Addr>> {
    let socket = Socket::new(NETLINK_ROUTE)?;
    let answer = netlink::ask(&socket, &request(), 1)?;
    let netmasks = answer.messages.iter().map(|it| netmask_of(it, index));
    let first = netmasks.filter_map(Result::transpose).next();
    first.transpose().map_err(io::Error::other)
}

/// The netmask of a message, if it is of an IPv4 address of interface `index`.
fn netmask_of(payload: &[u8], index: u32) -> Result<Option<Ipv4Addr>, DecodeError> {
    let header = AddressHeader::parse(payload)?;
    let is_it = header.index == index && header.family == AddressFamily::Inet;
    let host_bits = 32_u32.saturating_sub(header.prefix_len.into());
    Ok(is_it.then(|| Ipv4Addr::from(u32::MAX.checked_shl(host_bits).unwrap_or(0))))
}

/// Gives an address of so many leading bits of network to interface `index` of this thread's
/// network namespace.
///
/// # Errors
/// EPERM without CAP_NET_ADMIN; EEXIST if it has it.
pub fn add(index: u32, address: Ipv4Addr, prefix: u8) -> io::Result<()> {
    const SEQUENCE: u32 = 1;
    let mut message = AddressMessage::default();
    message.header.family = AddressFamily::Inet;
    message.header.prefix_len = prefix;
    message.header.index = index;
    message.attributes = vec![
        AddressAttribute::Local(address.into()),
        AddressAttribute::Address(address.into()),
    ];
    let mut request = NetlinkMessage::from(RouteNetlinkMessage::NewAddress(message));
    request.header.flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL;
    request.header.sequence_number = SEQUENCE;
    let socket = Socket::new(NETLINK_ROUTE)?;
    netlink::ask(&socket, &netlink::bytes(request), SEQUENCE)?;
    Ok(())
}

fn request() -> Vec<u8> {
    let message = AddressMessage::default();
    let mut request = NetlinkMessage::from(RouteNetlinkMessage::GetAddress(message));
    request.header.flags = NLM_F_REQUEST | NLM_F_DUMP;
    request.header.sequence_number = 1;
    netlink::bytes(request)
}

/// The address of a message, if it is one of interface `index`.
fn address(payload: &[u8], index: u32) -> Result<Option<IpAddr>, DecodeError> {
    let header = AddressHeader::parse(payload)?;
    if header.index != index {
        return Ok(None);
    }
    let (mut address, mut local) = (None, None);
    for attribute in NlasIterator::new(payload.get(HEADER_LEN..).unwrap_or_default()) {
        let attribute = attribute?;
        match attribute.kind() {
            libc::IFA_ADDRESS => address = ip(attribute.value()),
            libc::IFA_LOCAL => local = ip(attribute.value()),
            _ => {}
        }
    }
    // Of a point-to-point link, `IFA_ADDRESS` is the other end.
    Ok(local.or(address))
}

/// An address of either family as netlink has it.
pub(super) fn ip(bytes: &[u8]) -> Option<IpAddr> {
    let v4 = || Some(IpAddr::from(<[u8; 4]>::try_from(bytes).ok()?));
    let v6 = || Some(IpAddr::from(<[u8; 16]>::try_from(bytes).ok()?));
    v4().or_else(v6)
}

#[cfg(test)]
mod tests {
    use netlink_packet_core::Emitable as _;

    use super::*;

    fn message(index: u32, attributes: Vec<AddressAttribute>) -> Vec<u8> {
        let mut message = AddressMessage::default();
        message.header.index = index;
        message.attributes = attributes;
        let mut bytes = vec![0; message.buffer_len()];
        message.emit(&mut bytes);
        bytes
    }

    #[test]
    fn the_netmask_is_that_of_an_ipv4_address() {
        let of = |family, prefix_len| {
            let mut message = AddressMessage::default();
            message.header = AddressHeader {
                family,
                prefix_len,
                index: 7,
                ..message.header
            };
            let mut bytes = vec![0; message.buffer_len()];
            message.emit(&mut bytes);
            [7, 8].map(|index| netmask_of(&bytes, index).unwrap())
        };
        for (prefix, netmask) in [
            (24, [255, 255, 255, 0]),
            (32, [255; 4]),
            (9, [255, 128, 0, 0]),
            (0, [0; 4]),
        ] {
            let expected = [Some(Ipv4Addr::from(netmask)), None];
            assert_eq!(of(AddressFamily::Inet, prefix), expected, "{prefix}");
        }
        assert_eq!(of(AddressFamily::Inet6, 24), [None; 2]);
        assert!(netmask_of(&[0; 3], 7).is_err());
    }

    #[test]
    fn the_own_end_of_a_link_counts() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let (own, other) = (ip("192.0.2.1"), ip("192.0.2.2"));
        let both = vec![
            AddressAttribute::Address(other),
            AddressAttribute::Local(own),
        ];
        let both = message(7, both);
        assert_eq!(address(&both, 7).unwrap(), Some(own));
        assert_eq!(address(&both, 8).unwrap(), None);
        let v6 = ip("2001:db8::1");
        let one = message(7, vec![AddressAttribute::Address(v6)]);
        assert_eq!(address(&one, 7).unwrap(), Some(v6));
        assert!(address(&[0; 3], 7).is_err());
    }
}
