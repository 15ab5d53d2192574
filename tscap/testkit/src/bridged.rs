//! Two veth pairs joined by a bridge.

use std::sync::Arc;

use crate::bench::Bench;
use crate::frame::Frame;
use crate::netns::Netns;
use crate::port::Port;

/// Frames from `tx0` go through `rx0` and `out0`, the ports of `bridge0` in the receiver's
/// namespace, to `far0` in a namespace of its own.
#[derive(Debug)]
pub struct Bridged {
    /// The first pair.
    pub bench: Bench,
    /// The bridge's other port.
    pub out: Port,
    /// The bridge.
    pub bridge: Port,
    /// The end behind `out0`.
    pub far: Port,
}

impl Bridged {
    /// With frames of up to `mtu` bytes behind the Ethernet header, up.
    pub fn new(tag: &str, mtu: u32) -> Self {
        let bench = Bench::with_mtu(tag, mtu);
        let middle = &bench.rx.netns;
        let far = Arc::new(Netns::new(&format!("{tag}-far")));
        let mtu = mtu.to_string();
        let pair = [
            "link", "add", "out0", "mtu", &mtu, "type", "veth", "peer", "name", "far0",
        ];
        middle.ip(&[&pair[..], &["mtu", &mtu, "netns", far.name()]].concat());
        // Without snooping the bridge sends nothing of its own.
        let bridge = ["link", "add", "bridge0", "type", "bridge"];
        middle.ip(&[&bridge[..], &["mcast_snooping", "0"]].concat());
        let (out, bridge) = (Port::find(middle, "out0"), Port::find(middle, "bridge0"));
        let far = Port::find(&far, "far0");
        for port in [&bench.rx, &out] {
            port.set(&["master", "bridge0"]);
        }
        for port in [&bridge, &out, &far] {
            port.set(&["up"]);
        }
        far.wait_up();
        bridge.wait_up();
        // Its address is that of a port.
        let bridge = Port::find(middle, "bridge0");
        Self {
            bench,
            out,
            bridge,
            far,
        }
    }

    /// A frame of `size` bytes from one end to the other.
    pub fn frame(&self, size: usize) -> Frame {
        Frame::new(&self.bench.tx, &self.far, size)
    }
}
