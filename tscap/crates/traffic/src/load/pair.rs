//! A veth pair between two namespaces of our own.

use std::io;

use tscap_network::ethtool;
use tscap_network::netdev::{self, Link};
use tscap_network::own_netns::OwnNetns;
use tscap_network::veth;

/// Name of the end that sends.
const TX: &str = "tscap-tx";
/// Name of the end that receives.
const RX: &str = "tscap-rx";

/// The pair; gone when it is dropped, or when the process ends in any way.
#[derive(Debug)]
pub struct Pair {
    /// Where the sending end is.
    pub tx_netns: OwnNetns,
    /// Where the receiving end is.
    pub rx_netns: OwnNetns,
    /// The sending end.
    pub tx: Link,
    /// The receiving end.
    pub rx: Link,
}

/// Without an XDP program, redirected frames are taken by a veth that has GRO.
const GRO: &str = "rx-gro";

impl Pair {
    /// Makes it.
    ///
    /// # Errors
    /// EPERM without CAP_SYS_ADMIN and CAP_NET_ADMIN.
    pub fn new() -> io::Result<Self> {
        let (tx_netns, rx_netns) = (OwnNetns::new()?, OwnNetns::new()?);
        tx_netns.within(|| veth::make_pair(TX, RX, rx_netns.file()))?;
        let find = |netns: &OwnNetns, name: &'static str| {
            netns.within(|| {
                let link = netdev::by_name(name).map_err(io::Error::other)?;
                let link = link.ok_or_else(|| io::Error::other(format!("{name} is not there")))?;
                veth::set_up(link.index)?;
                Ok(link)
            })
        };
        Ok(Self {
            tx: find(&tx_netns, TX)?,
            rx: find(&rx_netns, RX)?,
            tx_netns,
            rx_netns,
        })
    }

    /// Lets the receiving end take native frames from now on also while it has no XDP program.
    ///
    /// # Errors
    /// If the kernel refuses to turn GRO on.
    pub fn take_redirected(&self) -> io::Result<()> {
        let with_gro = || ethtool::set_features(&self.rx.name, &[(GRO, true)]);
        self.rx_netns
            .within(|| with_gro().map_err(io::Error::other))?;
        Ok(())
    }
}
