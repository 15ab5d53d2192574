//! What XDP can do on an interface, as its driver tells the kernel since 6.3
//! (`netdev_xdp_act`, `linux/netdev.h`).

use std::io;

use super::netdev_family;

/// `NETDEV_XDP_ACT_BASIC`: native programs, with pass, drop, abort and TX.
const BASIC: u64 = 1 << 0;
/// `NETDEV_XDP_ACT_NDO_XMIT`: frames can be redirected to it. A veth interface has
/// this while its other end has an XDP program or GRO (`veth_set_xdp_features`,
/// drivers/net/veth.c).
const NDO_XMIT: u64 = 1 << 2;
/// `NETDEV_XDP_ACT_RX_SG`: frames in several buffers.
const RX_SG: u64 = 1 << 5;

/// The features of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XdpFeatures(u64);

impl XdpFeatures {
    /// What a driver tells that has native XDP, for frames in several buffers or
    /// in one only.
    #[cfg(test)]
    pub(crate) fn native(multi_buffer: bool) -> Self {
        Self(BASIC | if multi_buffer { RX_SG } else { 0 })
    }

    /// What a driver tells that has no native XDP.
    #[cfg(test)]
    pub(crate) fn none() -> Self {
        Self(0)
    }

    /// Whether programs can run in the driver.
    pub fn has_native(self) -> bool {
        self.0 & BASIC != 0
    }

    /// Whether other programs can redirect frames to the interface.
    pub fn takes_redirects(self) -> bool {
        self.0 & NDO_XMIT != 0
    }

    /// Whether they can take frames that are longer than a buffer.
    pub fn has_multi_buffer(self) -> bool {
        self.0 & RX_SG != 0
    }
}

/// The features of interface `ifindex` in this thread's network namespace;
/// `None` from a kernel that doesn't tell.
pub fn of(ifindex: u32) -> io::Result<Option<XdpFeatures>> {
    Ok(netdev_family::xdp_features(ifindex)?.map(XdpFeatures))
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
        let virtio = XdpFeatures(0x27);
        assert!(virtio.has_native() && virtio.has_multi_buffer());
        assert!(!XdpFeatures(0x0f).has_multi_buffer());
        assert!(XdpFeatures(0x0f).takes_redirects());
        assert!(!XdpFeatures(0x0b).takes_redirects());
        assert!(!XdpFeatures(0x20).has_native());
    }
}
