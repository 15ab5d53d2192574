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
    /// Where in `struct skb_shared_info` the number of an aggregate's segments is.
    Segments,
    /// The device that a socket buffer was received by, at a hook of netfilter.
    HookDevice,
    /// The device of a socket buffer.
    Device,
    /// Number of the interface that a socket buffer was received by.
    ReceivedBy,
    /// Where the data of a socket buffer begins: what the next protocol reads.
    Data,
    /// Bytes of a socket buffer that are not in its own memory.
    DataLength,
    /// How far behind [`Self::Head`] the IP header is, bytes.
    NetworkHeader,
    /// Network namespace of a socket.
    SocketNamespace,
}

impl KernelField {
    /// All of them, by their numbers.
    pub const ALL: [Self; 17] = [
        Self::Length,
        Self::VlanProtocol,
        Self::VlanControl,
        Self::Head,
        Self::End,
        Self::SegmentSize,
        Self::Index,
        Self::Namespace,
        Self::Inode,
        Self::Segments,
        Self::HookDevice,
        Self::Device,
        Self::ReceivedBy,
        Self::Data,
        Self::DataLength,
        Self::NetworkHeader,
        Self::SocketNamespace,
    ];

    /// What a program at the tracepoint before the driver reads.
    pub const BEFORE_DRIVER: &[Self] = &[
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

    /// What a program at a hook of netfilter reads.
    pub const AT_NETFILTER: &[Self] = &[
        Self::Length,
        Self::Head,
        Self::End,
        Self::Segments,
        Self::Index,
        Self::HookDevice,
    ];

    /// What a program of a cgroup reads.
    pub const AT_CGROUP: &[Self] = &[Self::Device, Self::Namespace, Self::Inode];

    /// What a program reads where an application takes a packet.
    pub const AT_APPLICATION: &[Self] = &[
        Self::Length,
        Self::Head,
        Self::Inode,
        Self::ReceivedBy,
        Self::Data,
        Self::DataLength,
        Self::NetworkHeader,
        Self::SocketNamespace,
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
            Self::Segments => &[("skb_shared_info", "gso_segs")],
            Self::HookDevice => &[("nf_hook_state", "in")],
            Self::Device => &[("sk_buff", "dev")],
            Self::ReceivedBy => &[("sk_buff", "skb_iif")],
            Self::Data => &[("sk_buff", "data")],
            Self::DataLength => &[("sk_buff", "data_len")],
            Self::NetworkHeader => &[("sk_buff", "network_header")],
            Self::SocketNamespace => &[("sock", "__sk_common"), ("sock_common", "skc_net")],
        }
    }

    /// What is wanted of it.
    pub const fn want(self) -> Want {
        match self {
            Self::VlanProtocol | Self::VlanControl | Self::NetworkHeader => Want::Bytes(2),
            Self::Length
            | Self::End
            | Self::Index
            | Self::Inode
            | Self::ReceivedBy
            | Self::DataLength => Want::Bytes(4),
            Self::Head
            | Self::Namespace
            | Self::HookDevice
            | Self::Device
            | Self::Data
            | Self::SocketNamespace => Want::Bytes(8),
            Self::SegmentSize | Self::Segments => Want::Offset,
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
