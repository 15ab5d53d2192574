//! A made-up interface for tests.

use crate::netdev::Link;

/// An Ethernet interface, up, with this name and number.
pub fn link(name: &str, index: u32) -> Link {
    Link {
        index,
        name: name.into(),
        kind: None,
        alias: None,
        mac: None,
        mtu: 1500,
        is_up: true,
        has_carrier: true,
        link_type: 1,
        builds_outer: false,
        receives_behind_hooks: false,
        promiscuity: 0,
        rx_queues: 1,
        master: None,
        lower: None,
        stats: None,
        tx_stats: None,
        xdp: None,
    }
}
