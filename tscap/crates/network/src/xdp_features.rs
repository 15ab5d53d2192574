//! What XDP can do on an interface, as its driver tells the kernel since 6.3
//! (`netdev_xdp_act`, `linux/netdev.h`).

use std::io;

use crate::netdev_family;

/// `NETDEV_XDP_ACT_BASIC`: native programs, with pass, drop, abort and TX.
const BASIC: u64 = 1 << 0;
/// `NETDEV_XDP_ACT_NDO_XMIT`: frames can be redirected to it. A veth interface has
/// this while its other end has an XDP program or GRO (`veth_set_xdp_features`,
/// drivers/net/veth.c).
const NDO_XMIT: u64 = 1 << 2;
/// `NETDEV_XDP_ACT_RX_SG`: frames in several buffers.
const RX_SG: u64 = 1 << 5;
/// `NETDEV_XDP_RX_METADATA_TIMESTAMP`: a program bound to the device can read the stamp that
/// it gave a frame.
const METADATA_TIMESTAMP: u64 = 1 << 0;
/// `NETDEV_XDP_RX_METADATA_VLAN_TAG`: a program bound to the device can read the VLAN tag
/// that was taken off a frame.
const METADATA_VLAN_TAG: u64 = 1 << 2;

/// The features of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XdpFeatures {
    actions: u64,
    metadata: u64,
}

impl XdpFeatures {
    /// What a driver tells that has native XDP, for frames in several buffers or
    /// in one only.
    #[cfg(any(test, feature = "fixtures"))]
    pub fn native(multi_buffer: bool) -> Self {
        Self::new(BASIC | if multi_buffer { RX_SG } else { 0 }, 0)
    }

    /// The same of a driver that tells the VLAN tag as well.
    #[cfg(any(test, feature = "fixtures"))]
    pub fn telling_vlan_tags(self) -> Self {
        Self::new(self.actions, METADATA_VLAN_TAG)
    }

    /// What a driver tells that has no native XDP.
    #[cfg(any(test, feature = "fixtures"))]
    pub fn none() -> Self {
        Self::new(0, 0)
    }

    fn new(actions: u64, metadata: u64) -> Self {
        Self { actions, metadata }
    }

    /// Whether programs can run in the driver.
    pub fn has_native(self) -> bool {
        self.actions & BASIC != 0
    }

    /// Whether other programs can redirect frames to the interface.
    pub fn takes_redirects(self) -> bool {
        self.actions & NDO_XMIT != 0
    }

    /// Whether they can take frames that are longer than a buffer.
    pub fn has_multi_buffer(self) -> bool {
        self.actions & RX_SG != 0
    }

    /// Whether a program bound to the device can read the VLAN tag that was taken off a
    /// frame.
    pub fn tells_vlan_tags(self) -> bool {
        self.metadata & METADATA_VLAN_TAG != 0
    }

    /// Whether a program bound to the device can read the stamp that it gave a frame.
    pub fn tells_hardware_stamps(self) -> bool {
        self.metadata & METADATA_TIMESTAMP != 0
    }
}

/// The features of interface `ifindex` in this thread's network namespace;
/// `None` from a kernel that doesn't tell.
pub fn of(ifindex: u32) -> io::Result<Option<XdpFeatures>> {
    let features = netdev_family::xdp_features(ifindex)?;
    Ok(features.map(|(actions, metadata)| XdpFeatures::new(actions, metadata)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_has_no_native_xdp() {
        // A kernel before 6.3 can't be asked.
        assert!(of(1).unwrap().is_none_or(|features| !features.has_native()));
    }

    #[test]
    fn bits_have_their_meaning() {
        // virtio_net: basic, redirect, transmit, several buffers.
        let features = |actions| XdpFeatures::new(actions, 0x3);
        let virtio = features(0x27);
        assert!(virtio.has_native() && virtio.has_multi_buffer());
        assert!(!virtio.tells_vlan_tags() && virtio.tells_hardware_stamps());
        assert!(XdpFeatures::new(0x27, 0x7).tells_vlan_tags());
        assert!(!XdpFeatures::new(0x27, 0x6).tells_hardware_stamps());
        assert!(!features(0x0f).has_multi_buffer());
        assert!(features(0x0f).takes_redirects());
        assert!(!features(0x0b).takes_redirects());
        assert!(!features(0x20).has_native());
    }
}
