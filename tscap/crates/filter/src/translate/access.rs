//! How a program reaches its frame at the hook where it runs.

use std::mem::offset_of;

use tscap_common::entry::EnteredFrame;
use tscap_common::hook::Direction;

use crate::packet_type;

/// What depends on the hook, in numbers of the kernel's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameAccess {
    /// Where the context has the start of the frame's linear part (u32 that is loaded as
    /// a pointer), and its end; `None` where programs can't look into it.
    pub linear: Option<[i16; 2]>,
    /// How bytes are copied from anywhere in the frame.
    pub load: FrameLoad,
    /// Loads from beyond this offset reject the frame: the helper refuses them.
    pub most_offset: u32,
    /// How the frame's length is found.
    pub length: FrameLength,
    /// What `inbound` and `outbound` compare with: [`packet_type`].
    pub packet_type: u32,
    /// Where the context has the number of the interface (u32).
    pub interface_offset: i16,
    /// The frame has a VLAN tag that is not among its bytes: r3 has it.
    pub tag_beside: bool,
}

/// The helper that copies bytes from anywhere in the frame. It returns 0 or an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameLoad {
    /// (context, offset, to, length).
    OfContext(u32),
    /// The context begins with a dynptr: (to, length, context, offset, 0).
    OfDynptr(u32),
    /// (to, length, from), of memory of the kernel: the first buffer of the frame is all
    /// that is there.
    OfMemory {
        /// The helper.
        helper: u32,
        /// Where the context has the address of that buffer (u64).
        address: i16,
        /// Where it has its length (u32).
        length: i16,
    },
}

/// How the length of a whole frame is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameLength {
    /// By a helper: (context) to length.
    Helper(u32),
    /// The context has it here (u32).
    Field(i16),
}

impl FrameAccess {
    /// XDP: `struct xdp_md`, `bpf_xdp_load_bytes` and `bpf_xdp_get_buff_len` (Linux 5.18,
    /// include/uapi/linux/bpf.h). Frames come in.
    pub const XDP: Self = Self {
        linear: Some([0, 4]),
        load: FrameLoad::OfContext(189),
        // `bpf_xdp_pointer` in net/core/filter.c.
        most_offset: 0xffff,
        length: FrameLength::Helper(188),
        packet_type: packet_type(Direction::In),
        interface_offset: 12,
        tag_beside: false,
    };

    /// What comes in by tc: `struct __sk_buff` and `bpf_skb_load_bytes` (include/uapi/linux/bpf.h).
    ///
    /// The packet type is a constant, and not `pkt_type` of the context: libpcap compares it
    /// with `PACKET_OUTGOING` only, for `inbound` and `outbound`, and a filter shall mean the
    /// same at each hook.
    pub const SKB_IN: Self = Self {
        linear: Some([76, 80]),
        load: FrameLoad::OfContext(26),
        // `bpf_skb_load_bytes` in net/core/filter.c since Linux 5.19 and in stable kernels;
        // 5.18 itself has 0xffff, and refuses to load beyond that.
        most_offset: i32::MAX as u32,
        length: FrameLength::Field(0),
        packet_type: packet_type(Direction::In),
        interface_offset: 40,
        tag_beside: false,
    };

    /// What goes out by tc. The kernel says `PACKET_OUTGOING` only to packet sockets, of the
    /// copies that it makes for them: here `pkt_type` is what it was when the frame came in
    /// or was made.
    pub const SKB_OUT: Self = Self {
        packet_type: packet_type(Direction::Out),
        ..Self::SKB_IN
    };

    /// What goes out, at the tracepoint before the driver: the context is tscap's own
    /// (`View` in tscap-ebpf/src/transmitted.rs), and `bpf_dynptr_read` is its helper.
    pub const TRANSMITTED: Self = Self {
        linear: None,
        load: FrameLoad::OfDynptr(201),
        length: FrameLength::Field(16),
        interface_offset: 20,
        ..Self::SKB_OUT
    };

    /// What goes out, as a filter of a packet socket sees it: `struct __sk_buff`, whose bytes
    /// it can't look into.
    pub const TAPPED: Self = Self {
        linear: None,
        ..Self::SKB_OUT
    };

    /// The entry of an XDP program: an [`EnteredFrame`] and `bpf_probe_read_kernel`. Frames
    /// come in. What a filter asks of the bytes behind the first buffer is not there, so
    /// that it rejects the frame.
    pub const ENTERED: Self = Self {
        linear: None,
        load: FrameLoad::OfMemory {
            helper: 113,
            address: offset_of!(EnteredFrame, data) as i16,
            length: offset_of!(EnteredFrame, first_len) as i16,
        },
        length: FrameLength::Field(offset_of!(EnteredFrame, len) as i16),
        interface_offset: offset_of!(EnteredFrame, ifindex) as i16,
        ..Self::XDP
    };

    /// The same for frames that have a VLAN tag beside their bytes, where a device or the
    /// network stack has put it. The verdict is that on the frame with the tag in its place.
    pub const fn with_tag_beside(self) -> Self {
        Self {
            tag_beside: true,
            ..self
        }
    }
}
