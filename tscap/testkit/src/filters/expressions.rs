//! Expressions: those of pcap-filter(7) and tcpdump(8), every primitive that Ethernet
//! has, and combinations of them. No names, which other machines resolve otherwise.

/// Single ones.
const PRIMITIVES: &str = r"
host 10.0.0.1
src host 10.0.0.2
dst host 10.0.0.3
src or dst host 192.168.1.1
src and dst host 10.0.0.1
ip host 10.0.0.1
arp host 10.0.0.1
rarp host 10.0.0.1
ip6 host 2001:db8::1
host 2001:db8::2
src host 2001:db8::3
dst 2001:db8::1
src 10.0.0.4
ether host 02:00:00:00:00:01
ether src 02:00:00:00:00:02
ether dst 02:00:00:00:00:03
ether src or dst 0200.0000.0001
net 10
net 10.0.0
net 192.168.1.0/24
src net 10.0.0.0/30
dst net 172.16
net 10.0.0.0 mask 255.255.255.252
net 2001:db8::/32
src net 2001:db8::/126
dst net 2001:db8:0:1::/64
port 80
src port 53
dst port 443
tcp port 443
udp port 53
sctp port 2905
tcp src port 80
udp dst port 53
portrange 50-90
src portrange 1000-2000
dst portrange 0-1023
tcp portrange 400-500
udp portrange 1-65535
tcp dst portrange 443-443
less 64
greater 512
len = 60
len >= 1514
len < 100 and len > 50
ip proto 6
ip proto 17
ip proto 132
ip proto 89
ip6 proto 6
ip6 proto 58
ip6 proto 44
proto 47
proto 50
proto 1
icmp
icmp6
igmp
igrp
pim
vrrp
carp
ah
esp
sctp
tcp
udp
ip
ip6
arp
rarp
atalk
aarp
decnet
lat
moprc
mopdl
iso
stp
ipx
netbeui
clnp
esis
isis
iso proto 0x83
iso proto 0x81
l1
l2
iih
lsp
snp
csnp
psnp
llc
llc i
llc s
llc u
llc rr
llc rnr
llc rej
llc ui
llc ua
llc disc
llc sabme
llc test
llc xid
llc frmr
ether broadcast
broadcast
ether multicast
multicast
ip multicast
ip6 multicast
ether proto 0x0800
ether proto 0x86dd
ether proto 0x8863
ether proto \arp
ether proto \stp
ether proto \iso
ether proto \netbeui
ether proto \ipx
ether proto \atalk
ether proto \aarp
ether proto 0x42
vlan
vlan 5
vlan 100
vlan and ip
vlan and tcp port 80
vlan 5 and vlan 100
vlan and vlan and ip6
vlan 5 or vlan 100
vlan and host 10.0.0.1
vlan and vlan 100 and udp
mpls
mpls 1000
mpls and ip
mpls 1000 and mpls 2000
mpls and mpls and host 10.0.0.1
pppoed
pppoes
pppoes 0x27
pppoes and ip
pppoes 39 and ip6
pppoes and tcp port 80
geneve
geneve 7
geneve and ip
ip protochain 6
ip6 protochain 6
ip6 protochain 17
ip6 protochain 58
protochain 6
protochain 17
protochain 132
ip6 protochain 6 or ip protochain 17
";

/// Those with arithmetic.
const ARITHMETIC: &str = r"
ether[0] & 1 != 0
ip[0] & 0xf != 5
ip[6:2] & 0x1fff = 0
ip[6:2] & 0x1fff != 0
ip[6:2] & 0x2000 != 0
ip[8] < 64
ip[9] = 6
ip[2:2] > 576
ip[12:4] = 0x0a000001
ip[16:4] & 0xffffff00 = 0x0a000000
ip6[6] = 17
ip6[7] > 63
ip6[0] & 0xf0 == 0x60
ip6[40] = 128
tcp[13] & 3 != 0
tcp[tcpflags] & (tcp-syn|tcp-fin) != 0
tcp[tcpflags] == tcp-syn
tcp[tcpflags] & tcp-ack == 0
tcp[tcpflags] & (tcp-rst|tcp-push|tcp-urg) != 0
tcp[0:2] > 1024
tcp[((tcp[12:1] & 0xf0) >> 2):4] = 0x47455420
tcp port 80 and (((ip[2:2] - ((ip[0]&0xf)<<2)) - ((tcp[12]&0xf0)>>2)) != 0)
udp[4:2] > 20
udp[8:4] = 0x01020304
udp[8] * 2 = 2
udp[0:2] + udp[2:2] = 133
udp[0:2] - udp[2:2] > 1000
sctp[0:2] = 2905
icmp[icmptype] != icmp-echo and icmp[icmptype] != icmp-echoreply
icmp[icmptype] = icmp-unreach
icmp[icmpcode] = 3
icmp[0] = 8
icmp6[icmp6type] = icmp6-echo
icmp6[0] = 135
igmp[0] = 0x16
pim[0] & 0xf = 2
arp[6:2] = 1
arp[6:2] = 2 and arp[14:4] = 0x0a000001
rarp[6:2] = 3
ether[12:2] > 1500
ether[12:2] <= 1500
ether[6:4] = 0x02000000
link[0:4] = 0xffffffff
len - 14 > 100
len % 2 = 1
len / 64 > 3
len * 3 > 1000
len & 0xff = 60
len | 1 = 61
len ^ 60 = 0
len << 2 > 1000
len >> 4 = 4
ether[len - 1] = 0
ether[len - 4:4] > 0x80000000
ether[len:1] = 0
ether[ether[0]] = 0
ether[ip[0] & 0xf] != 0
ip[ip[8]] > 100
ip[ip[2:2] - 1] = 0
ip[ip[2:2] - 4:4] != 0
100 / ether[14] > 2
len / udp[8] > 3
len % tcp[13] = 0
ip[8] << ip[1] > 256
ip[2:2] >> udp[9] > 0
0x80000000 > ip[12:4]
ip[12:4] > ip[16:4]
ip[12:4] = ip[16:4]
ip[12:4] >= ip[16:4]
tcp[0:2] = tcp[2:2]
ip[12:4] & ip[16:4] != 0
tcp[4:4] - tcp[8:4] < 1000
ip[4:2] ^ ip[10:2] > 30000
ether[60:4] = 0
ether[1000] = 0
ether[3000:4] != 0
ether[8000:2] > 0
ether[70000] = 0
ether[0xfffffff0] = 0
ether[0x7fff0000:4] = 1
ip[0xffffffff] = 0
ether[ip[12:4]] = 0
(ether[0] + ether[1]) * (ether[2] + ether[3]) = 0
(ip[0] & 0xf) * 4 > 20 and tcp
ip[20:1] != 0 and ip[0] & 0xf > 5
-ip[8] > 5
";

/// Longer ones, as people write them.
const COMBINED: &str = r"
host 10.0.0.1 and not port 22
host 10.0.0.1 and (10.0.0.2 or 10.0.0.3)
ip host 10.0.0.4 and not 10.0.0.2
net 10.0.0 and not (src net 10.0.0.0/30)
tcp port 80 and host 10.0.0.1
tcp port 80 or tcp port 443 or udp port 53
not arp and not ip6
not (tcp or udp)
src net 10 and dst net 192.168 and udp
ip and not tcp
ip6 and tcp port 443
ip6 and udp port 53
ether[0] & 1 = 0 and ip[16] >= 224
tcp and dst portrange 80-443 and not src host 10.0.0.2
icmp or icmp6 or arp
udp and len > 200
(tcp[tcpflags] & tcp-syn != 0 and tcp[tcpflags] & tcp-ack = 0) or icmp
ip proto 6 and ip[6:2] & 0x1fff = 0 and port 80
vlan 5 and tcp[tcpflags] & tcp-syn != 0
not vlan and ip
ip or vlan and ip
mpls 1000 and tcp port 80
pppoes and ip6 and udp
host 10.0.0.1 or vlan and host 10.0.0.1
src host 2001:db8::1 and dst port 443 and tcp
ip multicast and not broadcast
stp or llc or isis
sctp and (port 2905 or portrange 3000-4000)
ip protochain 17 and host 10.0.0.1
ip6 protochain 6 and host 2001:db8::1
tcp and not (src portrange 1-1023 or dst portrange 1-1023)
tcp[13] = 2 or tcp[13] = 18 or tcp[13] = 16 or tcp[13] = 24
ether src 02:00:00:00:00:01 and ether dst 02:00:00:00:00:02 and ip
less 100 and greater 60 and tcp
host 10.0.0.1 and host 10.0.0.2 and tcp port 80 and len < 1000
";

/// Parts that combinations are made of.
const PARTS: [&str; 14] = [
    "host 10.0.0.1",
    "tcp",
    "udp port 53",
    "ip6",
    "net 192.168.1.0/24",
    "len > 100",
    "port 443",
    "ip[8] > 60",
    "ether multicast",
    "tcp[tcpflags] & tcp-syn != 0",
    "src net 2001:db8::/64",
    "portrange 1000-3000",
    "icmp[0] = 8",
    "ip[6:2] & 0x1fff = 0",
];

/// All of them, each once.
pub fn all() -> Vec<String> {
    let single = [PRIMITIVES, ARITHMETIC, COMBINED].map(str::lines);
    let single = single.into_iter().flatten().filter(|line| !line.is_empty());
    let mut all: Vec<_> = single.map(str::to_owned).collect();
    for (number, first) in PARTS.iter().enumerate() {
        for second in &PARTS[number + 1..] {
            all.push(format!("{first} and {second}"));
            all.push(format!("not ({first}) or {second}"));
        }
    }
    all
}

/// Those that make long programs, one of them of so many hosts: libpcap takes 20 s for 800.
pub fn long(most_hosts: u32) -> Vec<(&'static str, String)> {
    let join = |terms: Vec<String>| terms.join(" or ");
    let hosts = |count: u32| {
        let host = |n| format!("host 10.{}.{}.1", n / 250, n % 250);
        join((0..count).map(host).collect())
    };
    let ip6_host = |n: u32| format!("host 2001:db8:{n:x}::{:x}", n + 1);
    let payload = |n: u32| format!("tcp[((tcp[12:1]&0xf0)>>2)+{n}:4] = {:#x}", 0x4745_5420 + n);
    vec![
        ("100 hosts", hosts(100)),
        ("many hosts", hosts(most_hosts)),
        ("200 IPv6 hosts", join((0..200).map(ip6_host).collect())),
        ("50 payload terms", join((0..50).map(payload).collect())),
    ]
}
