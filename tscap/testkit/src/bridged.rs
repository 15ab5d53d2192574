//! Two veth pairs joined by a bridge.

use crate::bench::Bench;
use crate::between::Between;
use crate::frame::Frame;
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
        let between = Between::new(tag, mtu);
        let bridge = between.join();
        let Between {
            bench, out, far, ..
        } = between;
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
