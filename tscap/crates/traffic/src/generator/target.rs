//! The interface that frames go to, and what it takes of them.

use super::native::NativeError;
use tscap_network::ethtool;
use tscap_network::netdev::{self, Link};

/// An interface, in the network namespace of the thread that asks.
#[derive(Debug)]
pub(super) struct Target {
    name: String,
    ifindex: u32,
}

impl Target {
    pub fn new(name: &str, ifindex: u32) -> Self {
        Self {
            name: name.into(),
            ifindex,
        }
    }

    pub fn ifindex(&self) -> u32 {
        self.ifindex
    }

    /// Frames that the driver of a veth has taken from XDP so far, whoever sent them; those that
    /// it refused are a counter of their own (`veth_xdp_xmit`, drivers/net/veth.c). Not
    /// exact while several CPUs send into one queue: it counts for them without a lock.
    pub fn taken(&self) -> Result<u64, NativeError> {
        // It may have been renamed.
        let counters = ethtool::statistics(&self.link()?.name)?;
        let of_queues = counters.iter().filter(|(name, _)| {
            let queue = name.strip_prefix("tx_queue_");
            let queue = queue.map(|name| name.trim_start_matches(|c: char| c.is_ascii_digit()));
            queue == Some("_xdp_xmit")
        });
        Ok(of_queues.map(|(_, count)| count).sum())
    }

    /// Its name if it is there, but takes no frames at all: it, or its other end, is
    /// down.
    pub fn if_down(&self) -> Option<String> {
        let link = self.link().ok()?;
        (!link.is_up || !link.has_carrier).then_some(link.name)
    }

    /// What to say when it is gone.
    pub fn gone(&self) -> NativeError {
        NativeError::Gone {
            name: self.name.clone(),
        }
    }

    fn link(&self) -> Result<Link, NativeError> {
        netdev::by_index(self.ifindex)?.ok_or_else(|| self.gone())
    }
}
