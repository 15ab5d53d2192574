//! The host names in an expression, and what they stand for.

use std::net::{IpAddr, ToSocketAddrs as _};

use super::words::{Word, words};

/// A host name, and the addresses that the system's resolver gives for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostName {
    /// As the expression has it.
    pub name: String,
    /// None if there is no answer now.
    pub addresses: Vec<IpAddr>,
}

/// Words that begin or continue the qualifiers of a host's name.
const OF_HOSTS: [&str; 13] = [
    "src", "dst", "host", "gateway", "ip", "ip6", "arp", "rarp", "tcp", "udp", "sctp", "icmp",
    "subtype",
];
/// The same of any other name: one of them among the qualifiers decides.
const OF_OTHERS: [&str; 14] = [
    "net",
    "port",
    "portrange",
    "proto",
    "protochain",
    "mask",
    "ether",
    "fddi",
    "tr",
    "wlan",
    "link",
    "less",
    "greater",
    "type",
];
/// Words that stand by themselves.
const KEYWORDS: [&str; 74] = [
    "and",
    "or",
    "not",
    "len",
    "length",
    "inbound",
    "outbound",
    "broadcast",
    "multicast",
    "vlan",
    "mpls",
    "pppoed",
    "pppoes",
    "geneve",
    "ifindex",
    "llc",
    "igmp",
    "igrp",
    "pim",
    "vrrp",
    "carp",
    "radio",
    "icmp6",
    "ah",
    "esp",
    "atalk",
    "aarp",
    "decnet",
    "lat",
    "sca",
    "moprc",
    "mopdl",
    "iso",
    "esis",
    "es-is",
    "isis",
    "is-is",
    "l1",
    "l2",
    "iih",
    "lsp",
    "snp",
    "csnp",
    "psnp",
    "clnp",
    "stp",
    "ipx",
    "netbeui",
    "byte",
    "icmptype",
    "icmpcode",
    "icmp6type",
    "icmp6code",
    "tcpflags",
    "tcp-fin",
    "tcp-syn",
    "tcp-rst",
    "tcp-push",
    "tcp-ack",
    "tcp-urg",
    "tcp-ece",
    "tcp-cwr",
    "ppp",
    "slip",
    "ra",
    "ta",
    "addr1",
    "addr2",
    "addr3",
    "addr4",
    "dir",
    "direction",
    "on",
    "ifname",
];

/// Host names of an expression with their addresses, each once: for people to see what
/// libpcap, which asks the same resolver, has compiled in. Waits for the resolver.
pub fn host_names(expression: &str) -> Vec<HostName> {
    let mut names: Vec<HostName> = Vec::new();
    for word in host_words(expression) {
        let name = word.text.trim_start_matches('\\');
        if names.iter().any(|known| known.name == name) {
            continue;
        }
        let found = (name, 0).to_socket_addrs();
        let mut addresses: Vec<_> = found.into_iter().flatten().map(|it| it.ip()).collect();
        addresses.sort_unstable();
        addresses.dedup();
        names.push(HostName {
            name: name.to_owned(),
            addresses,
        });
    }
    names
}

/// The words of an expression that are names of hosts.
pub(super) fn host_words(expression: &str) -> Vec<Word<'_>> {
    let (mut host, mut among_qualifiers) = (true, false);
    let mut names = Vec::new();
    let mut brackets = 0;
    for word in words(expression) {
        let text = word.text;
        match text {
            "[" => brackets += 1,
            "]" => brackets -= 1,
            _ => {}
        }
        let of_other = OF_OTHERS.contains(&text);
        if of_other || OF_HOSTS.contains(&text) {
            // `tcp src` is of a host, `tcp src port` is not.
            host = (host || !among_qualifiers) && !of_other;
            among_qualifiers = true;
            continue;
        }
        let qualified = std::mem::take(&mut among_qualifiers);
        if KEYWORDS.contains(&text) {
            // `src or dst host a`: still qualifiers; what follows a name has its own.
            among_qualifiers = qualified && ["and", "or"].contains(&text);
        } else if host && brackets == 0 && is_name(text) {
            names.push(word);
        }
    }
    names
}

/// Neither an operator nor a number nor an address.
fn is_name(text: &str) -> bool {
    let text = text.trim_start_matches('\\');
    let of_addresses = |c: char| c.is_ascii_hexdigit() || "xX.".contains(c);
    text.starts_with(|c: char| c.is_alphanumeric() || c == '_')
        && !text.contains(':')
        && !(text.starts_with(|c: char| c.is_ascii_digit()) && text.chars().all(of_addresses))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_hosts_are_found_among_other_words() {
        let check = |expression: &str, expected: &[&str]| {
            let words = host_words(expression);
            let found: Vec<_> = words.into_iter().map(|word| word.text).collect();
            assert_eq!(found, expected, "{expression}");
        };
        check("host sundown", &["sundown"]);
        check("host helios and ( hot or ace )", &["helios", "hot", "ace"]);
        check("tcp src port http or ftp", &[]);
        check("src or dst host a.b-c.example", &["a.b-c.example"]);
        check("ip host ace and not helios", &["ace", "helios"]);
        check("port ftp and host ace", &["ace"]);
        check("port ftp or host ace or 10.0.0.1", &["ace"]);
        check("ether host foo or ether proto \\arp", &[]);
        check("net foo or tcp[tcpflags] & tcp-syn != 0", &[]);
        check(
            "host 10.0.0.1 or 2001:db8::1 or 3com.example",
            &["3com.example"],
        );
        check("tcp and len > 64 or vlan 5 or aa:bb:cc:dd:ee:ff", &[]);
        check("ace", &["ace"]);
        check("src host \\tcp", &["\\tcp"]);
        check("ip6 proto tcp or icmp6 or less 60", &[]);
    }

    #[test]
    fn a_name_is_listed_once_with_its_addresses() {
        let names = host_names("host localhost or src localhost");
        let [name] = &names[..] else {
            panic!("{names:?}");
        };
        assert_eq!(name.name, "localhost");
        assert!(name.addresses.iter().all(IpAddr::is_loopback));
        assert!(!name.addresses.is_empty());
    }
}
