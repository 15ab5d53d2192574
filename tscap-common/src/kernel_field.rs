//! Members of the kernel's structures that programs at tracepoints read. Where they are
//! differs from kernel to kernel: user space looks it up, and puts each load in the place of
//! a call.

use crate::config::FIELD_CALL;

/// A member of a structure, by the names of the structure and of the member; from a
/// structure inside it on, once more.
pub type Path = &'static [(&'static str, &'static str)];

/// What a program wants of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// So many bytes of it: the structure is in r1.
    Bytes(u8),
    /// Where it is, bytes from the start of the structure.
    Offset,
}

/// A member, and what is wanted of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelField {
    /// Length of the frame in a socket buffer, bytes.
    Length,
    /// EtherType of the VLAN tag beside it, in network byte order.
    VlanProtocol,
    /// The rest of that tag. Without a tag both are 0.
    VlanControl,
    /// Where the memory of a socket buffer begins.
    Head,
    /// How far behind that `struct skb_shared_info` is, bytes.
    End,
    /// Where in that the size of an aggregate's segments is.
    SegmentSize,
    /// Number of an interface in its network namespace.
    Index,
    /// That namespace.
    Namespace,
    /// Inode number of a network namespace.
    Inode,
}

impl KernelField {
    /// All of them, by their numbers.
    pub const ALL: [Self; 9] = [
        Self::Length,
        Self::VlanProtocol,
        Self::VlanControl,
        Self::Head,
        Self::End,
        Self::SegmentSize,
        Self::Index,
        Self::Namespace,
        Self::Inode,
    ];

    /// Number of the call in whose place it is put.
    pub const fn call(self) -> u32 {
        FIELD_CALL + self as u32
    }

    /// Which member it is.
    pub const fn path(self) -> Path {
        match self {
            Self::Length => &[("sk_buff", "len")],
            Self::VlanProtocol => &[("sk_buff", "vlan_proto")],
            Self::VlanControl => &[("sk_buff", "vlan_tci")],
            Self::Head => &[("sk_buff", "head")],
            Self::End => &[("sk_buff", "end")],
            Self::SegmentSize => &[("skb_shared_info", "gso_size")],
            Self::Index => &[("net_device", "ifindex")],
            Self::Namespace => &[("net_device", "nd_net")],
            Self::Inode => &[("net", "ns"), ("ns_common", "inum")],
        }
    }

    /// What is wanted of it.
    pub const fn want(self) -> Want {
        match self {
            Self::VlanProtocol | Self::VlanControl => Want::Bytes(2),
            Self::Length | Self::End | Self::Index | Self::Inode => Want::Bytes(4),
            Self::Head | Self::Namespace => Want::Bytes(8),
            Self::SegmentSize => Want::Offset,
        }
    }
}

const _: () = {
    let mut number = 0;
    while number < KernelField::ALL.len() {
        assert!(KernelField::ALL[number] as usize == number);
        number += 1;
    }
};
