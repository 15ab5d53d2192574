//! Names of the maps and of the frozen globals that user space sets before it
//! loads the programs. Both sides use these names.

/// Array map of the rings, memory-mapped by user space.
pub const RINGS: &str = "RINGS";
/// Array map of [`crate::state::CpuState`], indexed by CPU number.
pub const CPUS: &str = "CPUS";
/// Per-CPU array of [`crate::state::Losses`], indexed by [`crate::hook::Slot`].
pub const LOSSES: &str = "LOSSES";
/// Per-CPU array of one u64: copies for a mirrored port that were not sent.
pub const MIRROR_LOSSES: &str = "MIRROR_LOSSES";
/// Perf event array of the TSC events, indexed by CPU number.
pub const TSC_EVENTS: &str = "TSC_EVENTS";
/// Array map of one array of [`crate::state::TscBracket`].
pub const TSC_BRACKETS_MAP: &str = "TSC_BRACKETS";

/// u64: ring length in bytes, less one.
pub const RING_MASK: &str = "RING_MASK";
/// u32: most bytes of a frame to record.
pub const SNAPLEN: &str = "SNAPLEN";
/// u32: 1 to add the raw stamp to each block, as its first option, else 0.
pub const KEEP_RAW: &str = "KEEP_RAW";
/// u32: 1 to add direction and state of the frame to each block, else 0.
pub const PACKET_FLAGS: &str = "PACKET_FLAGS";
/// u32: 1 to add the queue of a received frame to each block, else 0.
pub const PACKET_QUEUE: &str = "PACKET_QUEUE";

/// Number of a helper that no kernel has: what a program calls in the place of the
/// kfunc that reads the counter, until user space has put that one's BTF id there. A
/// program that nobody has patched is refused.
pub const STAMP_CALL: u32 = 0x7473_6370;
/// The same for the kfunc that turns the CPU's interrupts off.
pub const IRQ_SAVE_CALL: u32 = 0x7473_6371;
/// The same for the one that turns them on again.
pub const IRQ_RESTORE_CALL: u32 = 0x7473_6372;
/// The same for the kfunc that tells a frame's VLAN tag. Where there is none, user
/// space puts "no tag" in its place.
pub const VLAN_TAG_CALL: u32 = 0x7473_6373;
/// The same for the code of a filter, which is no function: user space puts the code, or
/// "every frame", in the place of the call. The code gets the context in r1 and
/// [`FILTER_SCRATCH_BYTES`] of memory in r2; r0 is 0 for a frame that is not wanted.
pub const FILTER_CALL: u32 = 0x7473_6374;
/// The same for a frame with a VLAN tag beside it, which is judged as if the tag stood in
/// it: r3 has the tag's four bytes as they lie in memory.
pub const FILTER_TAGGED_CALL: u32 = 0x7473_6375;
/// The same for the program's own [`crate::hook::Slot`], a constant.
pub const SLOT_CALL: u32 = 0x7473_6376;
/// The same for the code that tells whether a socket buffer's checksum is yet to be
/// filled in: 0 if not, or if nobody can tell.
pub const CHECKSUM_PARTIAL_CALL: u32 = 0x7473_6377;
/// The same for the kfunc that makes a dynptr of a socket buffer.
pub const DYNPTR_CALL: u32 = 0x7473_6378;
/// The same for the number of the one interface whose frames a program takes, a constant.
pub const OWN_INDEX_CALL: u32 = 0x7473_6379;
/// The same for the inode number of that interface's network namespace.
pub const OWN_NETNS_CALL: u32 = 0x7473_637a;
/// The same for the code that fills in a [`crate::entry::EnteredFrame`]: r1 has the
/// `struct xdp_buff` of the kernel, r2 the memory.
pub const ENTERED_FRAME_CALL: u32 = 0x7473_637c;
/// As [`CHECKSUM_PARTIAL_CALL`], of the kernel's own structure in r1.
pub const BUFFER_CHECKSUM_CALL: u32 = 0x7473_637b;
/// The same for what a program at XDP answers, a constant: `XDP_PASS` or `XDP_DROP`.
pub const VERDICT_CALL: u32 = 0x7473_637d;
/// The same for the kfunc that gives the kernel's own structure of a context; where there is
/// none, user space puts "none" in its place.
pub const KERNEL_CONTEXT_CALL: u32 = 0x7473_637e;
/// The same for the kfunc that tells a frame's hardware stamp. Where there is none, or nobody
/// asks, user space puts "no stamp" in its place.
pub const HARDWARE_STAMP_CALL: u32 = 0x7473_637f;
/// The same for the code that gives the first [`crate::kernel_counter::KernelCounter`]; each
/// has a number of its own. The code gets [`COUNTER_SCRATCH_BYTES`] of memory in r2.
pub const COUNTER_CALL: u32 = 0x7473_63a0;
/// The same for the first [`crate::kernel_field::KernelField`]; each has a number of its own.
pub const FIELD_CALL: u32 = 0x7473_6380;

/// Bytes of its stack that a program gives to the code that gives a counter of the kernel.
pub const COUNTER_SCRATCH_BYTES: usize = 128;
/// Bytes of its stack that a program gives to the code of a filter.
pub const FILTER_SCRATCH_BYTES: usize = 88;
