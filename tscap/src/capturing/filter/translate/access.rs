//! How a program reaches its frame at the hook where it runs.

/// What depends on the hook, in numbers of the kernel's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameAccess {
    /// Where the context has the start of the frame's linear part (u32 that is loaded as
    /// a pointer).
    pub data_offset: i16,
    /// Where it has the end.
    pub data_end_offset: i16,
    /// The helper that copies bytes from anywhere in the frame: (context, offset, to,
    /// length) to 0 or an error.
    pub load_helper: u32,
    /// Loads from beyond this offset reject the frame: the helper refuses them.
    pub most_offset: u32,
    /// How the frame's length is found.
    pub length: FrameLength,
    /// What `inbound` and `outbound` compare with (`PACKET_HOST`, …).
    pub packet_type: u32,
    /// Where the context has the number of the interface (u32).
    pub interface_offset: i16,
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
        data_offset: 0,
        data_end_offset: 4,
        load_helper: 189,
        // `bpf_xdp_pointer` in net/core/filter.c.
        most_offset: 0xffff,
        length: FrameLength::Helper(188),
        packet_type: 0,
        interface_offset: 12,
    };
}
