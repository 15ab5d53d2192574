//! Loads of what is not in the frame: Linux gives it to classic programs at offsets
//! beyond any frame (include/uapi/linux/filter.h).

use tscap_common::hook::Direction;

use super::classic::{Operation, Program};

/// Offsets from here on are ancillary data (`SKF_AD_OFF`, −4096).
const ANCILLARY: u32 = 0xffff_f000;
/// Offsets from here on count from the network header (`SKF_NET_OFF`, −0x100000).
const NETWORK: u32 = 0xfff0_0000;
/// Offsets from here on count from the link layer's header (`SKF_LL_OFF`, −0x200000).
const LINK: u32 = 0xffe0_0000;

/// The ancillary data in order, 4 apart: as `tcpdump -d` prints it, the name in the
/// kernel's header, and what it is.
const NAMES: [(&str, &str, &str); 16] = [
    ("proto", "SKF_AD_PROTOCOL", "the protocol beside the frame"),
    ("type", "SKF_AD_PKTTYPE", "the packet type"),
    ("ifidx", "SKF_AD_IFINDEX", "the interface"),
    ("nla", "SKF_AD_NLATTR", "a netlink attribute"),
    ("nlan", "SKF_AD_NLATTR_NEST", "a nested netlink attribute"),
    ("mark", "SKF_AD_MARK", "the mark beside the packet"),
    ("queue", "SKF_AD_QUEUE", "the queue"),
    ("hatype", "SKF_AD_HATYPE", "the interface's hardware type"),
    ("rxhash", "SKF_AD_RXHASH", "the hash beside the packet"),
    ("cpu", "SKF_AD_CPU", "the CPU"),
    ("xor_x", "SKF_AD_ALU_XOR_X", "the old form of xor"),
    (
        "vlan_tci",
        "SKF_AD_VLAN_TAG",
        "the VLAN tag beside the packet",
    ),
    (
        "vlanp",
        "SKF_AD_VLAN_TAG_PRESENT",
        "whether a VLAN tag is beside the packet",
    ),
    ("poff", "SKF_AD_PAY_OFFSET", "the start of the payload"),
    ("random", "SKF_AD_RANDOM", "a random number"),
    (
        "vlan_tpid",
        "SKF_AD_VLAN_TPID",
        "the VLAN protocol beside the packet",
    ),
];

/// What is known of a frame beside its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ancillary {
    /// Whether it is for this host, sent by it, … (`PACKET_HOST`, `PACKET_OUTGOING`, …):
    /// what `inbound` and `outbound` test.
    PacketType,
    /// Number of the interface: what `ifindex` tests.
    Interface,
}

/// What [`Ancillary::PacketType`] is of frames that go this way: `PACKET_HOST` and
/// `PACKET_OUTGOING` (include/uapi/linux/if_packet.h).
pub const fn packet_type(direction: Direction) -> u32 {
    match direction {
        Direction::In => 0,
        Direction::Out => 4,
    }
}

/// A load that tscap has no answer to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "instruction {number} loads {what}: programs for sockets have it, and tscap filters the \
     frame as it is on the wire"
)]
pub struct Unsupported {
    /// The instruction, counted from 0.
    pub number: usize,
    /// What it loads, with the kernel's name of it.
    pub what: String,
}

impl Ancillary {
    /// What an absolute load from offset `k` gives; `None` if that is a part of a frame.
    /// The error says what it is that nobody here knows.
    pub fn at(k: u32) -> Option<Result<Self, String>> {
        let beyond = match k {
            ..LINK => return None,
            LINK..NETWORK => "from the start of the link layer's header (SKF_LL_OFF)",
            NETWORK..ANCILLARY => "from the start of the network header (SKF_NET_OFF)",
            _ => match entry(k) {
                Some((1, _)) => return Some(Ok(Self::PacketType)),
                Some((2, _)) => return Some(Ok(Self::Interface)),
                Some((_, (_, constant, what))) => {
                    return Some(Err(format!("{what} ({constant})")));
                }
                None => return Some(Err(format!("ancillary data at the unknown offset {k:#x}"))),
            },
        };
        Some(Err(beyond.to_owned()))
    }
}

/// How `tcpdump -d` calls what an absolute load from offset `k` gives, if it has a name.
pub(super) fn short_name(k: u32) -> Option<&'static str> {
    entry(k).map(|(_, (short, ..))| *short)
}

fn entry(k: u32) -> Option<(u32, &'static (&'static str, &'static str, &'static str))> {
    let offset = k.checked_sub(ANCILLARY)?;
    let index = offset / 4;
    (offset % 4 == 0)
        .then(|| NAMES.get(index as usize))
        .flatten()
        .map(|names| (index, names))
}

/// Fails if the program loads what tscap does not know of a frame.
pub(super) fn check(program: &Program) -> Result<(), Unsupported> {
    for (number, it) in program.instructions().iter().enumerate() {
        if let Operation::LoadAbsolute(_) = it.operation()
            && let Some(Err(what)) = Ancillary::at(it.k)
        {
            return Err(Unsupported { number, what });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::Filter;

    #[test]
    fn other_loads_are_refused_by_name() {
        let check = |k: u32, expected: &str| {
            let text = format!("2,48 0 0 {k},22 0 0 0");
            let error = Filter::from_bytecode(&text, "f.txt")
                .unwrap_err()
                .to_string();
            assert!(error.starts_with("cannot use f.txt as a filter: instruction 0 loads "));
            assert!(error.contains(expected), "{error}");
        };
        check(
            0xffff_f02c,
            "the VLAN tag beside the packet (SKF_AD_VLAN_TAG)",
        );
        check(0xffff_f030, "(SKF_AD_VLAN_TAG_PRESENT)");
        check(0xffff_f038, "a random number (SKF_AD_RANDOM)");
        check(0xffff_f001, "unknown offset 0xfffff001");
        check(0xffff_ffff, "unknown offset 0xffffffff");
        check(0xfff0_0009, "(SKF_NET_OFF)");
        check(0xffe0_0000, "(SKF_LL_OFF)");
        for k in [0xffff_f004_u32, 0xffff_f008, 0xffdf_ffff] {
            let text = format!("2,48 0 0 {k},22 0 0 0");
            assert!(Filter::from_bytecode(&text, "f.txt").is_ok(), "{k:#x}");
        }
    }
}
