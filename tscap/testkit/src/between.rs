//! What lies between two ends: a bridge, a router, NAT, a firewall.

use std::sync::Arc;

use serde_json::Value;

use crate::bench::{Bench, pair};
use crate::capture::LIMIT;
use crate::netns::Netns;
use crate::port::Port;
use crate::wait;

/// The usual MTU.
const MTU: u32 = 1500;
/// Addresses of the ends, and of the device towards them.
const TX: &str = "10.9.0.1";
const RX: &str = "10.9.0.2";
const OUT: &str = "10.10.0.2";
const FAR: &str = "10.10.0.1";
/// Port that the NAT at [`RX`] hands on to [`FAR`], and the port there.
const NAT_PORT: &str = "9";
const FAR_PORT: &str = "4000";

/// Frames from `tx0` go through `rx0` and `out0`, which are in one namespace, the device's,
/// to `far0`. Each end is in a namespace of its own.
#[derive(Debug)]
pub struct Between {
    /// The first pair: `tx0`, where frames are sent, and `rx0`, where the device gets them.
    pub bench: Bench,
    /// `out0`, where the device sends them.
    pub out: Port,
    /// `far0`, where they arrive.
    pub far: Port,
    /// What frames are addressed to.
    to: Destination,
}

/// Addresses of frames that go through.
#[derive(Clone, Debug)]
struct Destination {
    mac: String,
    ip: &'static str,
    port: &'static str,
}

impl Between {
    /// Both pairs, up, and nothing that joins them.
    pub fn new(tag: &str, mtu: u32) -> Self {
        let bench = Bench::with_mtu(tag, mtu);
        let far = Arc::new(Netns::new(&format!("{tag}-far")));
        let (out, far) = pair((&bench.rx.netns, "out0"), (&far, "far0"), mtu);
        let to = Destination {
            mac: far.mac_text(),
            ip: FAR,
            port: NAT_PORT,
        };
        Self {
            bench,
            out,
            far,
            to,
        }
    }

    /// The namespace of the device.
    pub fn device(&self) -> &Netns {
        &self.bench.rx.netns
    }

    /// Joined by a bridge, `bridge0`, that sends nothing of its own.
    pub fn bridge(tag: &str) -> Self {
        let between = Self::new(tag, MTU);
        between.join();
        between
    }

    /// Makes `bridge0` of the device's interfaces.
    pub fn join(&self) -> Port {
        let middle = &self.bench.rx.netns;
        // Without snooping the bridge sends nothing of its own.
        let bridge = ["link", "add", "bridge0", "type", "bridge"];
        middle.ip(&[&bridge[..], &["mcast_snooping", "0"]].concat());
        for port in [&self.bench.rx, &self.out] {
            port.set(&["master", "bridge0"]);
        }
        let bridge = Port::find(middle, "bridge0");
        bridge.set(&["up"]);
        bridge.wait_up();
        // Its address is that of a port.
        Port::find(middle, "bridge0")
    }

    /// Joined by a router, which knows its neighbours and asks nobody.
    pub fn router(tag: &str) -> Self {
        let mut between = Self::new(tag, MTU);
        between.bench.add_addresses();
        let subnet = |address: &str| format!("{address}/24");
        let (out, far) = (&between.out, &between.far);
        out.netns
            .ip(&["address", "add", &subnet(OUT), "dev", &out.name]);
        far.netns
            .ip(&["address", "add", &subnet(FAR), "dev", &far.name]);
        far.netns.ip(&["route", "add", "default", "via", OUT]);
        let tx = &between.bench.tx;
        tx.netns.ip(&["route", "add", "default", "via", RX]);
        for (at, address, of) in [
            (&between.bench.rx, TX, tx),
            (out, FAR, far),
            (tx, RX, &between.bench.rx),
            (far, OUT, out),
        ] {
            at.knows(address, of);
        }
        between.device().set("ipv4/ip_forward", "1");
        between.to.mac = between.bench.rx.mac_text();
        between
    }

    /// A router that changes addresses and ports of both sides.
    pub fn nat(tag: &str) -> Self {
        let mut between = Self::router(tag);
        between.rules(&format!(
            "table ip nat {{
               chain in {{
                 type nat hook prerouting priority dstnat;
                 ip daddr {RX} udp dport {NAT_PORT} dnat to {FAR}:{FAR_PORT}
               }}
               chain out {{
                 type nat hook postrouting priority srcnat;
                 oifname out0 ip protocol udp snat to {OUT}:20000-29999
               }}
             }}"
        ));
        between.to.ip = RX;
        between
    }

    /// A router with a firewall of so many rules that match nothing before the one that lets
    /// everything through.
    pub fn firewall(tag: &str, rules: usize) -> Self {
        let between = Self::router(tag);
        let rules = (0..rules).map(|number| format!("udp dport {} drop\n", 30_000 + number));
        let rules: String = rules.collect();
        between.rules(&format!(
            "table ip firewall {{
               chain forward {{
                 type filter hook forward priority filter; policy drop;
                 {rules}
                 accept
               }}
             }}"
        ));
        between
    }

    fn rules(&self, rules: &str) {
        self.device().must("nft", &[rules]);
    }

    /// Makes the device send no faster than `rate` (as tc has it), with so many bytes at
    /// once, and keep so many bytes that wait.
    pub fn throttle(&self, rate: &str, burst: u64, limit: u64) {
        let (burst, limit) = (burst.to_string(), limit.to_string());
        let qdisc = ["qdisc", "add", "dev", &self.out.name, "root", "tbf"];
        let values = ["rate", rate, "burst", &burst, "limit", &limit];
        self.device().must("tc", &[&qdisc[..], &values].concat());
    }

    /// Waits until nothing waits at [`Self::out`] any more.
    pub fn drained(&self) {
        wait::until("an empty queue", LIMIT, || {
            let show = ["-s", "-j", "qdisc", "show", "dev", &self.out.name];
            let text = self.device().must("tc", &show);
            let all: Value = serde_json::from_str(&text).expect("tc writes JSON");
            (all[0]["backlog"] == 0).then_some(())
        });
    }

    /// Options of `tscap gen` for frames that go through.
    pub fn through(&self) -> [String; 8] {
        let options = ["--src", TX, "--dst", self.to.ip];
        let rest = ["--dst-port", self.to.port, "--dst-mac", &self.to.mac];
        let options: Vec<String> = options.iter().chain(&rest).map(|&it| it.into()).collect();
        options.try_into().expect("eight words")
    }
}
