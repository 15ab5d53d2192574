//! One `RTM_NEWLINK` message to a [`Link`].
//!
//! Only the attributes that tscap uses are decoded, each by itself, so that
//! something new in another attribute can never hide an interface.

use netlink_packet_core::{DecodeError, NlasIterator, Parseable, parse_u16, parse_u32};
use netlink_packet_route::link::{LinkFlags, LinkHeader, LinkXdp, Stats64, XdpAttached};

use super::{AttachedMode, AttachedXdp, Link, RxStats, TxStats};

/// Bytes of `struct ifinfomsg` (`linux/rtnetlink.h`), ahead of the attributes.
const HEADER_LEN: usize = size_of::<libc::ifinfomsg>();

/// Inside the `IFLA_INFO_DATA` of GRE (`linux/if_tunnel.h`).
const IFLA_GRE_REMOTE: u16 = 7;
const IFLA_GRE_COLLECT_METADATA: u16 = 18;
/// The same of an ipvlan, 16 bits (`linux/if_link.h`).
const IFLA_IPVLAN_MODE: u16 = 1;
const IPVLAN_MODE_L3S: u16 = 2;

impl Link {
    /// Decodes the payload of an `RTM_NEWLINK` message.
    pub(crate) fn parse(payload: &[u8]) -> Result<Self, DecodeError> {
        let header = LinkHeader::parse(payload)?;
        let mut link = Self {
            index: header.index,
            name: String::new(),
            kind: None,
            alias: None,
            mac: None,
            mtu: 0,
            is_up: header.flags.contains(LinkFlags::Up),
            has_carrier: header.flags.contains(LinkFlags::LowerUp),
            link_type: u16::from(header.link_layer_type),
            builds_outer: false,
            receives_behind_hooks: false,
            promiscuity: 0,
            rx_queues: 1,
            master: None,
            lower: None,
            stats: None,
            tx_stats: None,
            xdp: None,
        };
        let mut lower_is_elsewhere = false;
        for attribute in NlasIterator::new(payload.get(HEADER_LEN..).unwrap_or_default()) {
            let attribute = attribute?;
            let value = attribute.value();
            match attribute.kind() {
                libc::IFLA_IFNAME => link.name = text(value),
                libc::IFLA_IFALIAS => link.alias = Some(text(value)),
                libc::IFLA_ADDRESS => link.mac = value.try_into().ok(),
                libc::IFLA_MTU => link.mtu = parse_u32(value)?,
                libc::IFLA_PROMISCUITY => link.promiscuity = parse_u32(value)?,
                libc::IFLA_NUM_RX_QUEUES => link.rx_queues = parse_u32(value)?,
                libc::IFLA_MASTER => link.master = Some(parse_u32(value)?),
                libc::IFLA_LINK => link.lower = Some(parse_u32(value)?),
                libc::IFLA_LINK_NETNSID => lower_is_elsewhere = true,
                libc::IFLA_STATS64 => {
                    let stats = Stats64::parse(value)?;
                    link.tx_stats = Some((&stats).into());
                    link.stats = Some((&stats).into());
                }
                libc::IFLA_LINKINFO => {
                    let info = Info::parse(value)?;
                    link.kind = info.kind;
                    link.builds_outer = info.builds_outer;
                    link.receives_behind_hooks = info.receives_behind_hooks;
                }
                libc::IFLA_XDP => link.xdp = attached(value)?,
                _ => {}
            }
        }
        if lower_is_elsewhere {
            link.lower = None;
        }
        Ok(link)
    }
}

impl From<&Stats64> for RxStats {
    fn from(stats: &Stats64) -> Self {
        Self {
            packets: stats.rx_packets,
            bytes: stats.rx_bytes,
            errors: stats.rx_errors,
            dropped: stats.rx_dropped,
            missed: stats.rx_missed_errors,
            fifo: stats.rx_fifo_errors,
            no_buffer: stats.rx_over_errors,
            no_handler: stats.rx_nohandler,
        }
    }
}

impl From<&Stats64> for TxStats {
    fn from(stats: &Stats64) -> Self {
        Self {
            packets: stats.tx_packets,
            bytes: stats.tx_bytes,
            dropped: stats.tx_dropped,
        }
    }
}

/// A string of the kernel, which ends at the first zero byte.
fn text(value: &[u8]) -> String {
    let end = value.iter().position(|&b| b == 0).unwrap_or(value.len());
    String::from_utf8_lossy(&value[..end]).into_owned()
}

/// What `IFLA_LINKINFO` tells of a virtual interface.
#[derive(Debug, Default)]
struct Info {
    kind: Option<String>,
    builds_outer: bool,
    receives_behind_hooks: bool,
}

impl Info {
    fn parse(info: &[u8]) -> Result<Self, DecodeError> {
        let (mut kind, mut data) = (None, Vec::new());
        for attribute in NlasIterator::new(info) {
            let attribute = attribute?;
            match attribute.kind() {
                libc::IFLA_INFO_KIND => kind = Some(text(attribute.value())),
                libc::IFLA_INFO_DATA => data = attribute.value().to_vec(),
                _ => {}
            }
        }
        let mut this = Self::default();
        match kind.as_deref() {
            Some("gre" | "ip6gre") => this.builds_outer = has_no_remote_end(&data)?,
            Some("ipvlan" | "ipvtap") => this.receives_behind_hooks = is_l3s(&data)?,
            _ => {}
        }
        Ok(Self { kind, ..this })
    }
}

/// Whether an ipvlan is in mode l3s: a received packet changes its device at the hook of
/// netfilter for local ones (`ipvlan_nf_input`, drivers/net/ipvlan/ipvlan_l3s.c).
fn is_l3s(data: &[u8]) -> Result<bool, DecodeError> {
    for attribute in NlasIterator::new(data) {
        let attribute = attribute?;
        if attribute.kind() == IFLA_IPVLAN_MODE {
            return Ok(parse_u16(attribute.value())? == IPVLAN_MODE_L3S);
        }
    }
    Ok(false)
}

/// Whether a GRE tunnel has no single remote end: its address is none or, with IPv4, one of
/// multicast, and it is not told for each packet by routes or programs. Such a device has
/// `header_ops` (`ipgre_tunnel_init`, `ip6gre_tunnel_init`).
fn has_no_remote_end(data: &[u8]) -> Result<bool, DecodeError> {
    let mut has_one = false;
    for attribute in NlasIterator::new(data) {
        let attribute = attribute?;
        match attribute.kind() {
            IFLA_GRE_REMOTE => has_one |= is_one_host(attribute.value()),
            IFLA_GRE_COLLECT_METADATA => has_one = true,
            _ => {}
        }
    }
    Ok(!has_one)
}

fn is_one_host(address: &[u8]) -> bool {
    let is_multicast = address.len() == 4 && address[0] >> 4 == 0xe;
    address.iter().any(|byte| *byte != 0) && !is_multicast
}

/// The programs named in `IFLA_XDP`. `IFLA_XDP_PROG_ID` repeats the id of a
/// single program and is passed over: its hook's own attribute has it too
/// (`rtnl_xdp_fill`, net/core/rtnetlink.c).
fn attached(xdp: &[u8]) -> Result<Option<AttachedXdp>, DecodeError> {
    let mut mode = None;
    let (mut native, mut generic, mut offloaded) = (None, None, None);
    for attribute in NlasIterator::new(xdp) {
        match LinkXdp::parse(&attribute?)? {
            LinkXdp::Attached(XdpAttached::Driver) => mode = Some(AttachedMode::Native),
            LinkXdp::Attached(XdpAttached::SocketBuffer) => mode = Some(AttachedMode::Generic),
            LinkXdp::Attached(XdpAttached::Hardware) => mode = Some(AttachedMode::Offloaded),
            LinkXdp::Attached(XdpAttached::Multiple) => mode = Some(AttachedMode::Multi),
            LinkXdp::DrvProgId(id) => native = Some(id),
            LinkXdp::SkbProgId(id) => generic = Some(id),
            LinkXdp::HwProgId(id) => offloaded = Some(id),
            _ => {}
        }
    }
    Ok(mode.map(|mode| AttachedXdp {
        mode,
        program_ids: [native, generic, offloaded].into_iter().flatten().collect(),
    }))
}

#[cfg(test)]
mod tests;
