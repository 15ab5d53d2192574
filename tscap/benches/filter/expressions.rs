//! What is filtered by.

use std::net::Ipv4Addr;

use tscap_traffic::generator::Network;

/// Numbers of hosts in the long expressions.
pub const HOSTS: [u32; 2] = [100, 800];
/// Hosts that no expression has.
pub const OUTSIDERS: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 2, 0, 1), Ipv4Addr::new(10, 2, 0, 2)];
/// Before the hosts of the long expressions.
const STRANGERS: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 0);

/// Where the generator's frames come from and go to.
pub fn addresses() -> [Ipv4Addr; 2] {
    let Network::V4(from, to) = Network::BENCHMARK_V4 else {
        unreachable!("it is of IPv4");
    };
    [from, to]
}

/// As many hosts; a frame is compared with all others before the last one.
pub fn hosts(number: u32, last: Ipv4Addr) -> String {
    let others = (1..number).map(|it| Ipv4Addr::from_bits(STRANGERS.to_bits() + it));
    let hosts: Vec<_> = others.chain([last]).map(|host| host.to_string()).collect();
    format!("host {}", hosts.join(" or "))
}

/// A host, and not a port.
pub fn host_and_not_port(host: Ipv4Addr) -> String {
    format!("host {host} and not port 22")
}
