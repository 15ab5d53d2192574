//! A filter for packets to and from some hosts, where libpcap is not there to compile one.

use std::fmt::Write as _;
use std::net::IpAddr;

use tscap_filter::Filter;

/// Jumps of classic BPF reach over 255 instructions: addresses of so many hosts.
const MOST_HOSTS: usize = 50;

// Classic BPF (Linux, Documentation/networking/filter.rst).
const LOAD_HALF: u32 = 0x28;
const LOAD_WORD: u32 = 0x20;
const IF_EQUAL: u32 = 0x15;
const RETURN: u32 = 0x06;

const ETHERTYPE: u32 = 12;
const IPV4: u32 = 0x0800;
const IPV6: u32 = 0x86dd;
const TAGGED: [u32; 2] = [0x8100, 0x88a8];

/// Where the source is in a frame without tags, and where the destination is; of IPv6 the last four
/// octets.
const V4: [u32; 2] = [26, 30];
const V6: [u32; 2] = [34, 50];

/// Takes frames of IP from or to these hosts, and all that have a VLAN tag. `None` of more hosts
/// than it can hold.
pub(super) fn filter(hosts: &[IpAddr]) -> Option<Filter> {
    if hosts.len() > MOST_HOSTS {
        return None;
    }
    let v4 = hosts.iter().filter_map(|it| match it {
        IpAddr::V4(address) => Some(u32::from(*address)),
        IpAddr::V6(_) => None,
    });
    let v6 = hosts.iter().filter_map(|it| match it {
        IpAddr::V6(address) => Some(u128::from(*address) as u32),
        IpAddr::V4(_) => None,
    });
    let parts = [(V4, v4.collect::<Vec<_>>()), (V6, v6.collect::<Vec<_>>())];
    // An address is loaded and compared, at the source and at the destination, and then refused.
    let length = |part: &(_, Vec<u32>)| 2 * (1 + part.1.len()) + 1;
    let lengths = parts.each_ref().map(length);
    // Behind the five first instructions are both parts, then what takes a frame.
    let take = 5 + lengths[0] + lengths[1];
    let mut program = vec![
        (LOAD_HALF, 0, 0, ETHERTYPE),
        (IF_EQUAL, 3, 0, IPV4),
        (IF_EQUAL, 2 + lengths[0], 0, IPV6),
        (IF_EQUAL, take - 4, 0, TAGGED[0]),
        // The last instruction of the first part refuses.
        (IF_EQUAL, take - 5, lengths[0] - 1, TAGGED[1]),
    ];
    for (places, addresses) in parts {
        for place in places {
            program.push((LOAD_WORD, 0, 0, place));
            for address in &addresses {
                let behind = program.len() + 1;
                program.push((IF_EQUAL, take - behind, 0, *address));
            }
        }
        program.push((RETURN, 0, 0, 0));
    }
    program.push((RETURN, 0, 0, 0x4_0000));
    let mut text = format!("{}\n", program.len());
    for (code, on_true, on_false, value) in program {
        let _ = writeln!(text, "{code} {on_true} {on_false} {value}");
    }
    Filter::from_bytecode(&text, "the peers' addresses").ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::PacketBuilder;
    use tscap_filter::{Frame, LinkType};

    #[test]
    fn packets_of_the_hosts_are_taken() {
        let hosts = ["10.9.0.2", "10.9.0.3", "fd09::2"].map(|it| it.parse().unwrap());
        let filter = filter(&hosts).unwrap();
        let program = filter.program_for(LinkType::Ethernet, None).unwrap();
        let takes = |bytes: &[u8]| program.verdict(&Frame::received(bytes)) > 0;
        let v4 = |source: [u8; 4], destination: [u8; 4], is_tagged: bool| {
            let link = PacketBuilder::ethernet2([2; 6], [4; 6]);
            let mut bytes = Vec::new();
            let payload = [0; 20];
            if is_tagged {
                let tagged = link.single_vlan(5.try_into().unwrap());
                let packet = tagged.ipv4(source, destination, 64).udp(1, 2);
                packet.write(&mut bytes, &payload).unwrap();
            } else {
                let packet = link.ipv4(source, destination, 64).udp(1, 2);
                packet.write(&mut bytes, &payload).unwrap();
            }
            bytes
        };
        let v6 = |source: &str, destination: &str| {
            let [source, destination] =
                [source, destination].map(|it| it.parse::<std::net::Ipv6Addr>().unwrap().octets());
            let link = PacketBuilder::ethernet2([2; 6], [4; 6]);
            let mut bytes = Vec::new();
            let packet = link.ipv6(source, destination, 64).udp(1, 2);
            packet.write(&mut bytes, &[0; 20]).unwrap();
            bytes
        };
        let other = [10, 9, 0, 9];
        for host in [[10, 9, 0, 2], [10, 9, 0, 3]] {
            assert!(takes(&v4(host, other, false)) && takes(&v4(other, host, false)));
        }
        assert!(!takes(&v4(other, other, false)));
        assert!(takes(&v4(other, other, true)));
        assert!(takes(&v6("fd09::2", "fd09::9")) && takes(&v6("fd09::9", "fd09::2")));
        assert!(!takes(&v6("fd09::9", "fd09::8")));
        assert!(!takes(&[0; 60]));
    }

    #[test]
    fn any_number_of_hosts_that_jumps_reach() {
        for many in [0, 1, MOST_HOSTS] {
            for address in ["10.0.0.1", "fd09::1"] {
                let hosts = vec![address.parse().unwrap(); many];
                assert!(filter(&hosts).is_some(), "{many} {address}");
            }
        }
        let hosts = vec!["10.0.0.1".parse().unwrap(); MOST_HOSTS + 1];
        assert!(filter(&hosts).is_none());
    }
}
