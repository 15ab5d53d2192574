//! One network interface in a namespace, as `ip` and `ethtool` show it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::netns::Netns;
use crate::wait;

/// A network interface.
#[derive(Clone, Debug)]
pub struct Port {
    /// Where it is.
    pub netns: Arc<Netns>,
    /// Its name.
    pub name: String,
    /// Its index in the namespace.
    pub index: u32,
    /// Its hardware address.
    pub mac: [u8; 6],
}

impl Port {
    /// The interface `name`, which is there already.
    pub fn find(netns: &Arc<Netns>, name: &str) -> Self {
        let link = show(netns, name);
        let mac = link["address"].as_str().unwrap_or("00");
        let mut bytes = [0; 6];
        // An interface without Ethernet has none.
        for (byte, text) in bytes.iter_mut().zip(mac.split(':')) {
            *byte = u8::from_str_radix(text, 16).expect("hardware address");
        }
        Self {
            netns: Arc::clone(netns),
            name: name.into(),
            index: link["ifindex"].as_u64().expect("ifindex") as u32,
            mac: bytes,
        }
    }

    /// Its hardware address as programs take it.
    pub fn mac_text(&self) -> String {
        self.mac.map(|byte| format!("{byte:02x}")).join(":")
    }

    /// Makes the hardware address of a neighbour known, for good.
    pub fn knows(&self, address: &str, neighbour: &Self) {
        let mac = neighbour.mac_text();
        let entry = ["neigh", "replace", address, "lladdr", &mac];
        let entry = [&entry[..], &["dev", &self.name, "nud", "permanent"]];
        self.netns.ip(&entry.concat());
    }

    /// `ip -d -s -j link show` of this interface.
    pub fn show(&self) -> Value {
        show(&self.netns, &self.name)
    }

    /// `ip link set <this> <arguments>`.
    pub fn set(&self, arguments: &[&str]) {
        self.netns
            .ip(&[&["link", "set", &self.name], arguments].concat());
    }

    /// Waits until the interface is up and has a carrier.
    pub fn wait_up(&self) {
        wait::until(
            &format!("{} to be up", self.name),
            Duration::from_secs(10),
            || (self.show()["operstate"] == "UP").then_some(()),
        );
    }

    /// Id of the XDP program attached.
    pub fn xdp_program(&self) -> Option<u64> {
        let link = self.show();
        let program = link["xdp"]["prog"]["id"].as_u64();
        assert_eq!(program.is_some(), link.get("xdp").is_some(), "{link}");
        program
    }

    /// How many have asked for promiscuous mode.
    pub fn promiscuity(&self) -> u64 {
        self.show()["promiscuity"].as_u64().expect("promiscuity")
    }

    /// Frames received, by the interface's own counter.
    pub fn received(&self) -> u64 {
        self.show()["stats64"]["rx"]["packets"]
            .as_u64()
            .expect("rx packets")
    }

    /// Frames sent, by the interface's own counter.
    pub fn sent(&self) -> u64 {
        self.show()["stats64"]["tx"]["packets"]
            .as_u64()
            .expect("tx packets")
    }

    /// Receive queues.
    pub fn queues(&self) -> u64 {
        self.show()["num_rx_queues"]
            .as_u64()
            .expect("num_rx_queues")
    }

    /// Turns an offload on or off by its ethtool name.
    pub fn offload(&self, name: &str, on: bool) {
        let state = if on { "on" } else { "off" };
        self.netns.must("ethtool", &["-K", &self.name, name, state]);
    }

    /// All offloads by their long ethtool names: true for on.
    pub fn offloads(&self) -> BTreeMap<String, bool> {
        let text = self.netns.must("ethtool", &["-k", &self.name]);
        let lines = text.lines().filter_map(|line| line.trim().split_once(": "));
        lines
            .map(|(name, state)| (name.into(), state.starts_with("on")))
            .collect()
    }

    /// The driver's own counters (`ethtool -S`), summed over queues: `rx_queue_3_drops`
    /// counts as `rx_drops`.
    pub fn driver_counters(&self) -> BTreeMap<String, u64> {
        let text = self.netns.must("ethtool", &["-S", &self.name]);
        let mut counters = BTreeMap::new();
        for (name, value) in text.lines().filter_map(|line| line.trim().split_once(": ")) {
            let (direction, rest) = name.split_once("_queue_").unwrap_or(("", name));
            let counter = rest.trim_start_matches(|c: char| c.is_ascii_digit());
            *counters.entry(format!("{direction}{counter}")).or_default() +=
                value.parse::<u64>().unwrap_or(0);
        }
        counters
    }
}

fn show(netns: &Netns, name: &str) -> Value {
    let text = netns.ip(&["-d", "-s", "-j", "link", "show", "dev", name]);
    let links: Value = serde_json::from_str(&text).expect("ip -j writes JSON");
    links[0].clone()
}
