//! Two namespaces joined by veth pairs.

use std::process::Command;
use std::sync::Arc;

use crate::command::must;
use crate::netns::Netns;
use crate::port::Port;

/// Two namespaces: one sends, the other captures.
#[derive(Debug)]
pub struct Bench {
    /// The sending end: `tx0`.
    pub tx: Port,
    /// The capturing end: `rx0`.
    pub rx: Port,
    mtu: u32,
}

impl Bench {
    /// A veth pair `tx0`–`rx0` with the usual MTU of 1500, up.
    pub fn new(tag: &str) -> Self {
        Self::with_mtu(tag, 1500)
    }

    /// A veth pair with frames of up to `mtu` bytes behind the Ethernet header.
    pub fn with_mtu(tag: &str, mtu: u32) -> Self {
        let tx = Arc::new(Netns::new(&format!("{tag}-tx")));
        let rx = Arc::new(Netns::new(&format!("{tag}-rx")));
        let (tx, rx) = numbered(&tx, &rx, 0, mtu);
        Self { tx, rx, mtu }
    }

    /// Another pair between the same namespaces: `tx<number>`–`rx<number>`.
    pub fn add_pair(&self, number: u32) -> (Port, Port) {
        numbered(&self.tx.netns, &self.rx.netns, number, self.mtu)
    }

    /// Gives the pair addresses, 10.9.0.1 (sender) and 10.9.0.2, for programs
    /// that talk IP.
    pub fn add_addresses(&self) {
        self.tx
            .netns
            .ip(&["address", "add", "10.9.0.1/24", "dev", &self.tx.name]);
        self.rx
            .netns
            .ip(&["address", "add", "10.9.0.2/24", "dev", &self.rx.name]);
    }

    /// The same, and each end knows the other, so that nobody has to ask.
    pub fn acquaint(&self) {
        self.add_addresses();
        for (of, other, address) in [
            (&self.rx, &self.tx, "10.9.0.1"),
            (&self.tx, &self.rx, "10.9.0.2"),
        ] {
            of.knows(address, other);
        }
    }
}

/// `tx<number>`–`rx<number>`.
fn numbered(tx: &Arc<Netns>, rx: &Arc<Netns>, number: u32, mtu: u32) -> (Port, Port) {
    let (tx_name, rx_name) = (format!("tx{number}"), format!("rx{number}"));
    pair((tx, &tx_name), (rx, &rx_name), mtu)
}

/// A veth pair between two namespaces, up.
pub(crate) fn pair(one: (&Arc<Netns>, &str), other: (&Arc<Netns>, &str), mtu: u32) -> (Port, Port) {
    let ((one, one_name), (other, other_name)) = (one, other);
    let mtu = mtu.to_string();
    must(
        Command::new("ip")
            .args(["link", "add", one_name, "mtu", &mtu])
            .args(["netns", one.name(), "type", "veth"])
            .args(["peer", "name", other_name, "mtu", &mtu])
            .args(["netns", other.name()]),
    );
    let (one, other) = (Port::find(one, one_name), Port::find(other, other_name));
    for port in [&one, &other] {
        // Frames must arrive as they were sent, one by one.
        port.netns.must(
            "ethtool",
            &["-K", &port.name, "gro", "off", "gso", "off", "tso", "off"],
        );
        port.set(&["up"]);
    }
    one.wait_up();
    other.wait_up();
    (one, other)
}
