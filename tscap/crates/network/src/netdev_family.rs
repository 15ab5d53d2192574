//! The kernel's family "netdev" of generic netlink (`linux/netdev.h`): an
//! interface's XDP features (`dev-get`) and its NAPIs (`napi-get`).

use std::io;

use netlink_packet_core::{
    NLM_F_DUMP, NLM_F_REQUEST, NLMSG_ALIGNTO, NlasIterator, parse_u16, parse_u32, parse_u64,
};
use netlink_sys::{Socket, protocols::NETLINK_GENERIC};

use crate::netlink;

/// `GENL_ID_CTRL` (`linux/genetlink.h`): the family that knows the others.
const GENL_ID_CTRL: u16 = 0x10;
/// `CTRL_CMD_GETFAMILY`.
const CTRL_CMD_GETFAMILY: u8 = 3;
/// `CTRL_ATTR_FAMILY_ID`, u16.
const CTRL_ATTR_FAMILY_ID: u16 = 1;
/// `CTRL_ATTR_FAMILY_NAME`, a string that ends with a zero.
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
/// `NETDEV_FAMILY_NAME` (`linux/netdev.h`, like the rest).
const NETDEV: &[u8] = b"netdev\0";
/// `NETDEV_CMD_DEV_GET`, since 6.3.
const NETDEV_CMD_DEV_GET: u8 = 1;
/// `NETDEV_A_DEV_IFINDEX`, u32.
const NETDEV_A_DEV_IFINDEX: u16 = 1;
/// `NETDEV_A_DEV_XDP_FEATURES`, u64.
const NETDEV_A_DEV_XDP_FEATURES: u16 = 3;
/// `NETDEV_A_DEV_XDP_RX_METADATA_FEATURES`, u64, since 6.6.
const NETDEV_A_DEV_XDP_RX_METADATA_FEATURES: u16 = 5;
/// `NETDEV_CMD_NAPI_GET`, since 6.8.
const NETDEV_CMD_NAPI_GET: u8 = 11;
/// `NETDEV_A_NAPI_IFINDEX`, u32.
const NETDEV_A_NAPI_IFINDEX: u16 = 1;
/// `NETDEV_A_NAPI_ID`, u32.
const NETDEV_A_NAPI_ID: u16 = 2;

/// Bytes of `struct genlmsghdr`: command, version, two reserved.
const GENL_HEADER: usize = 4;
/// Bytes of `struct nlmsghdr`.
const HEADER: usize = 16;
/// Number of each request: the answer to one comes before the next.
const SEQUENCE: u32 = 1;

/// The numbers of the NAPIs of an interface; `None` where the kernel can't tell.
pub(super) fn napi_ids(ifindex: u32) -> io::Result<Option<Vec<u32>>> {
    let interface = attribute(NETDEV_A_NAPI_IFINDEX, &ifindex.to_ne_bytes());
    let flags = NLM_F_REQUEST | NLM_F_DUMP;
    let Some(answer) = ask_netdev(flags, NETDEV_CMD_NAPI_GET, &interface)? else {
        return Ok(None);
    };
    let ids = numbers(&answer, NETDEV_A_NAPI_ID)?;
    Ok(Some(
        ids.into_iter()
            .filter_map(|id| u32::try_from(id).ok())
            .collect(),
    ))
}

/// The XDP features of an interface, and what metadata of frames its driver tells XDP
/// programs (0 from a kernel that doesn't say); `None` where the kernel can't tell.
pub(super) fn xdp_features(ifindex: u32) -> io::Result<Option<(u64, u64)>> {
    let interface = attribute(NETDEV_A_DEV_IFINDEX, &ifindex.to_ne_bytes());
    let Some(answer) = ask_netdev(NLM_F_REQUEST, NETDEV_CMD_DEV_GET, &interface)? else {
        return Ok(None);
    };
    let first = |kind| Ok::<_, io::Error>(numbers(&answer, kind)?.first().copied());
    let metadata = first(NETDEV_A_DEV_XDP_RX_METADATA_FEATURES)?.unwrap_or(0);
    Ok(first(NETDEV_A_DEV_XDP_FEATURES)?.map(|features| (features, metadata)))
}

/// The attributes of each message of the family's answer; `None` where there is
/// no such family, or it is older than the command.
fn ask_netdev(flags: u16, command: u8, attributes: &[u8]) -> io::Result<Option<Vec<Vec<u8>>>> {
    let socket = Socket::new(NETLINK_GENERIC)?;
    let name = attribute(CTRL_ATTR_FAMILY_NAME, NETDEV);
    let family = request(GENL_ID_CTRL, NLM_F_REQUEST, CTRL_CMD_GETFAMILY, &name);
    let family = match ask(&socket, &family) {
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => return Ok(None),
        answer => numbers(&answer?, CTRL_ATTR_FAMILY_ID)?,
    };
    let Some(family) = family.first().and_then(|id| u16::try_from(*id).ok()) else {
        return Ok(None);
    };
    match ask(&socket, &request(family, flags, command, attributes)) {
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(None),
        answer => answer.map(Some),
    }
}

fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = (4 + value.len()) as u16;
    let mut bytes = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
    bytes.extend_from_slice(value);
    bytes.resize(bytes.len().next_multiple_of(NLMSG_ALIGNTO as usize), 0);
    bytes
}

/// A whole message with one attribute.
fn request(kind: u16, flags: u16, command: u8, attribute: &[u8]) -> Vec<u8> {
    let length = (HEADER + GENL_HEADER + attribute.len()) as u32;
    let mut bytes = length.to_ne_bytes().to_vec();
    bytes.extend_from_slice(&kind.to_ne_bytes());
    bytes.extend_from_slice(&flags.to_ne_bytes());
    bytes.extend_from_slice(&SEQUENCE.to_ne_bytes());
    // The port, which the kernel fills in for itself.
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(&[command, 1, 0, 0]);
    bytes.extend_from_slice(attribute);
    bytes
}

/// Sends a request; returns the attributes of each message of the answer.
fn ask(socket: &Socket, request: &[u8]) -> io::Result<Vec<Vec<u8>>> {
    let answer = netlink::ask(socket, request, SEQUENCE)?;
    let attributes = |message: &Vec<u8>| message.get(GENL_HEADER..).unwrap_or_default().to_vec();
    Ok(answer.messages.iter().map(attributes).collect())
}

/// The numbers under attribute `kind`, of 16, 32 or 64 bits, one of each message.
fn numbers(messages: &[Vec<u8>], kind: u16) -> io::Result<Vec<u64>> {
    let mut numbers = Vec::new();
    for message in messages {
        for attribute in NlasIterator::new(message.as_slice()) {
            let attribute = attribute.map_err(io::Error::other)?;
            if attribute.kind() == kind {
                let value = attribute.value();
                let number = match value.len() {
                    2 => parse_u16(value).map(u64::from),
                    4 => parse_u32(value).map(u64::from),
                    _ => parse_u64(value),
                };
                numbers.push(number.map_err(io::Error::other)?);
            }
        }
    }
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_gives_one_number_a_message() {
        let message = |id: u32| {
            let mut attributes = attribute(NETDEV_A_NAPI_IFINDEX, &7u32.to_ne_bytes());
            attributes.extend(attribute(NETDEV_A_NAPI_ID, &id.to_ne_bytes()));
            attributes
        };
        let ids = numbers(&[message(8193), message(8194)], NETDEV_A_NAPI_ID).unwrap();
        assert_eq!(ids, [8193, 8194]);
    }

    #[test]
    fn rubbish_is_an_error() {
        assert!(numbers(&[vec![1, 2, 3]], 1).is_err());
        assert!(numbers(&[attribute(1, &[0; 3])], 1).is_err());
    }
}
