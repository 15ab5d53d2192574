//! What a reflector was asked to be.

use std::net::IpAddr;

use ipnet::IpNet;
use tscap_protocol::Key;

/// How many requests may be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// A second, on average.
    pub per_second: u64,
    /// At once.
    pub burst: u64,
}

/// Whom a reflector answers, and how.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Its port.
    pub port: u16,
    /// Sources that may be answered; none for private, link-local and loopback addresses.
    pub allowed: Vec<IpNet>,
    /// Session identifiers that are answered; none for all.
    pub ssids: Vec<u16>,
    /// The key of authenticated requests; nothing else is answered then.
    pub key: Option<Key>,
    /// It keeps nothing of a session: replies have the sequence number of their request.
    pub is_stateless: bool,
    /// Of one source: an IPv4 address, or 64 bits of one of IPv6.
    pub per_source: Rate,
    /// Of all.
    pub whole: Rate,
    /// Sessions that are remembered.
    pub most_sessions: usize,
    /// Requests of 14 octets are answered by 44.
    pub takes_twamp_light: bool,
}

impl Policy {
    /// Whether a source may be answered.
    pub fn allows(&self, source: IpAddr) -> bool {
        if self.allowed.is_empty() {
            return is_near(source);
        }
        self.allowed.iter().any(|it| it.contains(&source))
    }

    /// Whether a session is one of those that are answered.
    pub fn takes_session(&self, ssid: u16) -> bool {
        self.ssids.is_empty() || self.ssids.contains(&ssid)
    }
}

/// An address that is not routed on the Internet.
fn is_near(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(it) => it.is_private() || it.is_link_local() || it.is_loopback(),
        IpAddr::V6(it) => it.is_unique_local() || it.is_unicast_link_local() || it.is_loopback(),
    }
}

/// Whether it can be that of one host.
pub(super) fn is_one_host(address: IpAddr) -> bool {
    let is_broadcast = matches!(address, IpAddr::V4(it) if it.is_broadcast());
    !(address.is_multicast() || address.is_unspecified() || is_broadcast)
}
