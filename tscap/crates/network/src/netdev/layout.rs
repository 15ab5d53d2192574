//! With what frames begin at tc, by the type of the device and its kind.
//!
//! A program at tc sees what lies before the packet: on ingress from `skb_mac_header` on,
//! which is what the device's receive path left there, on egress what the device's
//! `header_ops` made before the packet was queued. Where that is nothing, the frame is the IP
//! packet itself. `dev_is_mac_header_xmit` (include/linux/if_arp.h) lists the types whose
//! devices send packets without a header; the kinds below are the exceptions to that list.

use tscap_common::hook::Direction;

use super::{ARPHRD_ETHER, Link};
use tscap_filter::libpcap::LinkType;

/// Numbers of linux/if_arp.h that the libc crate lacks.
const ARPHRD_RAWIP: u16 = 519;
const ARPHRD_IP6GRE: u16 = 823;
const ARPHRD_NETLINK: u16 = 824;

/// With what frames of a device begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// With this, in both directions.
    Both(LinkType),
    /// Those that are sent with this; those that are received with something else, which is
    /// named.
    SentOnly(LinkType, &'static str),
    /// Those that are sent with this; those that are received pass no hook of the device.
    SentAlone(LinkType),
    /// With something else, which is named.
    Other(&'static str),
    /// With nothing that is seen: no frame passes a hook of the device. Where they do is named.
    Nothing(&'static str),
    /// That is not known.
    Unknown,
}

/// Why frames of a device can't be taken, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// Why, as what is said of the device.
    pub why: String,
    /// What to do.
    pub advice: String,
}

/// What stands before a packet that a tunnel of IPsec has received: `skb_mac_header_rebuild`
/// moves the header of the interface below there (net/xfrm/xfrm_input.c).
const BELOW: &str = "a header of the interface below it, which IPsec leaves there";
/// `ipgre_header` and `ip6gre_header` make it of an address of the neighbour. The receive path
/// of GRE leaves it there too, for their `parse` (`__ipgre_rcv`, net/ipv4/ip_gre.c).
const OUTER: &str =
    "the outer IP and GRE headers, which the kernel builds for a tunnel without one remote end";

/// Types of devices that are neither Ethernet nor IP, and what they carry.
const OTHERS: &[(u16, &str)] = &[
    (libc::ARPHRD_NETROM, "NET/ROM frames"),
    (libc::ARPHRD_AX25, "AX.25 frames"),
    (libc::ARPHRD_IEEE802, "IEEE 802.2 frames"),
    (libc::ARPHRD_ARCNET, "ARCnet frames"),
    (libc::ARPHRD_DLCI, "frame relay"),
    (libc::ARPHRD_ATM, "ATM cells"),
    (libc::ARPHRD_IEEE1394, "FireWire frames"),
    (libc::ARPHRD_INFINIBAND, "IP over InfiniBand frames"),
    (libc::ARPHRD_SLIP, "a serial line (SLIP)"),
    (libc::ARPHRD_CSLIP, "a serial line (SLIP)"),
    (libc::ARPHRD_X25, "X.25 frames"),
    (280, "CAN frames"),
    (290, "MCTP messages"),
    (libc::ARPHRD_PPP, "PPP frames of a synchronous line"),
    (libc::ARPHRD_HDLC, "HDLC frames"),
    (libc::ARPHRD_RAWHDLC, "HDLC frames"),
    (libc::ARPHRD_FRAD, "frame relay"),
    (libc::ARPHRD_LOCALTLK, "LocalTalk frames"),
    (libc::ARPHRD_FDDI, "FDDI frames"),
    (
        libc::ARPHRD_PIMREG,
        "packets behind the header of multicast routing (PIM)",
    ),
    (libc::ARPHRD_HIPPI, "HIPPI frames"),
    (libc::ARPHRD_IRDA, "IrDA frames"),
    (libc::ARPHRD_IEEE80211, "wireless frames (monitor mode)"),
    (
        libc::ARPHRD_IEEE80211_PRISM,
        "wireless frames (monitor mode)",
    ),
    (
        libc::ARPHRD_IEEE80211_RADIOTAP,
        "wireless frames (monitor mode)",
    ),
    (libc::ARPHRD_IEEE802154, "IEEE 802.15.4 frames"),
    (805, "IEEE 802.15.4 frames (monitor mode)"),
    (820, "Phonet messages"),
    (821, "Phonet messages"),
    (822, "CAIF frames"),
    (ARPHRD_NETLINK, "netlink messages"),
    (825, "6LoWPAN packets"),
    (826, "messages of virtual machine sockets"),
];

impl Layout {
    /// Of a device of this type and kind. It `builds_outer` if its `header_ops` put the header
    /// of a tunnel before each packet.
    fn of(link_type: u16, kind: Option<&str>, builds_outer: bool) -> Self {
        let ip = Self::Both(LinkType::RawIp);
        match (link_type, kind) {
            // What it receives only changes its device behind tc, and what is sent goes to the
            // port at once (`vrf_ip_rcv`, `vrf_ip_out_direct`, drivers/net/vrf.c).
            (ARPHRD_ETHER, Some("vrf")) => Self::Nothing("its ports"),
            (ARPHRD_ETHER | libc::ARPHRD_LOOPBACK, _) => Self::Both(LinkType::Ethernet),
            (libc::ARPHRD_IPGRE | ARPHRD_IP6GRE, _) if builds_outer => Self::Other(OUTER),
            (_, Some("xfrm" | "vti" | "vti6")) => Self::SentOnly(LinkType::RawIp, BELOW),
            // Kernels differ in whether it resets the header of the outer packet.
            (libc::ARPHRD_NONE, Some("ovpn")) => {
                Self::SentOnly(LinkType::RawIp, "the outer headers in some kernels")
            }
            // Of a device of hardware, such as a modem that speaks raw IP, or of one of these.
            (
                libc::ARPHRD_NONE,
                None | Some("tun" | "wireguard" | "gtp" | "bareudp" | "vxlan" | "geneve" | "wwan"),
            ) => ip,
            (libc::ARPHRD_NONE, Some("amt")) => {
                Self::SentOnly(LinkType::RawIp, "an Ethernet header that it makes")
            }
            (libc::ARPHRD_NONE, Some(_)) => Self::Unknown,
            // It adds its header behind tc, and takes it off before (drivers/net/ppp).
            (libc::ARPHRD_PPP, Some("ppp")) => ip,
            (
                ARPHRD_RAWIP
                | libc::ARPHRD_TUNNEL
                | libc::ARPHRD_TUNNEL6
                | libc::ARPHRD_SIT
                | libc::ARPHRD_IPGRE
                | ARPHRD_IP6GRE,
                _,
            ) => ip,
            (link_type, _) => match OTHERS.iter().find(|(number, _)| *number == link_type) {
                Some((_, carried)) => Self::Other(carried),
                None => Self::Unknown,
            },
        }
    }

    /// The link type of what is taken of it at all.
    fn link_type(self) -> Option<LinkType> {
        match self {
            Self::Both(link_type) | Self::SentOnly(link_type, _) | Self::SentAlone(link_type) => {
                Some(link_type)
            }
            Self::Other(_) | Self::Nothing(_) | Self::Unknown => None,
        }
    }
}

impl Link {
    /// With what its frames begin.
    pub fn layout(&self) -> Layout {
        let layout = Layout::of(self.link_type, self.kind.as_deref(), self.builds_outer);
        match layout {
            Layout::Both(link_type) if self.receives_behind_hooks => Layout::SentAlone(link_type),
            layout => layout,
        }
    }

    /// The link type of the frames that can be taken of it; `None` if none can.
    pub fn frames(&self) -> Option<LinkType> {
        self.layout().link_type()
    }

    /// Whether its frames start with an Ethernet header, as the loopback's do.
    pub fn is_ethernet(&self) -> bool {
        self.frames() == Some(LinkType::Ethernet)
    }

    /// Why its frames of one of these directions can't be taken, if so.
    pub fn obstacle(&self, directions: &[Direction]) -> Option<Obstacle> {
        let name = &self.name;
        let elsewhere = format!("tcpdump -i {name} takes them");
        let number = self.link_type;
        let (why, advice) = match self.layout() {
            Layout::Both(_) => return None,
            Layout::SentOnly(..) | Layout::SentAlone(_)
                if !directions.contains(&Direction::In) =>
            {
                return None;
            }
            Layout::SentOnly(_, first) => (
                format!("what it receives begins with {first}"),
                format!("-Q out takes what it sends; tcpdump -i {name} takes both"),
            ),
            Layout::SentAlone(_) => (
                "what it receives from the interface below passes no hook of its own, for it is in \
                 mode l3s"
                    .into(),
                format!(
                    "-Q out takes what {name} sends; the interface below it has what it \
                     receives (ip -d link show {name} names that one)"
                ),
            ),
            Layout::Other(OUTER) => (
                format!("its frames begin with {OUTER}"),
                "capture on the interface that the tunnel's packets go through, with the filter \
                 'proto gre'"
                    .into(),
            ),
            Layout::Other(carried) => (
                format!(
                    "it carries {carried}, no Ethernet frames or IP packets (link type {number})"
                ),
                elsewhere,
            ),
            Layout::Nothing(place) => (
                format!("its frames are seen at {place} alone"),
                format!("capture on {place}: `ip link show master {name}` lists them"),
            ),
            Layout::Unknown => {
                let kind = self.kind.as_deref().unwrap_or("unknown");
                let what = "how frames of such a device begin is not known";
                (
                    format!("{what} (kind {kind}, link type {number})"),
                    elsewhere,
                )
            }
        };
        Some(Obstacle { why, advice })
    }
}

#[cfg(test)]
mod tests;
