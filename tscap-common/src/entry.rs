//! A frame as a program at the entry of an XDP program sees it.

/// What is read of the kernel's `struct xdp_buff`. Where that has it depends on the kernel:
/// user space puts the loads in the place of a marked call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct EnteredFrame {
    /// Address where its first buffer starts.
    pub data: u64,
    /// Bytes in its first buffer.
    pub first_len: u32,
    /// Bytes in all its buffers.
    pub len: u32,
    /// Number of the interface that received it.
    pub ifindex: u32,
    /// Inode number of that one's network namespace.
    pub netns: u32,
    /// Number of the queue that it came by.
    pub queue: u64,
}

const _: () = assert!(
    size_of::<EnteredFrame>() == 32,
    "padding would be any bytes"
);
