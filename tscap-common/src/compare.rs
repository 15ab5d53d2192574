//! What the programs of `tscap compare` leave for user space.

/// Array map of one [`Series`].
pub const SERIES: &str = "SERIES";
/// u32: the CPU whose frames are measured.
pub const ON_CPU: &str = "ON_CPU";
/// u32: what the program returns (`enum xdp_action`).
pub const ACTION: &str = "ACTION";
/// u32, at most 8: reads besides the one.
pub const MORE_READS: &str = "MORE_READS";

/// Reads in one run of a `read_…` program.
pub const UNROLLED: u32 = 64;
/// Most values of a series.
pub const SERIES_LENGTH: usize = 65_536;

/// The values of frames, in order.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Series {
    /// Frames measured; those past [`SERIES_LENGTH`] left no value.
    pub count: u64,
    /// Where stamps go.
    pub unused: u64,
    /// Second checkpoint less first, ns.
    pub values: [u32; SERIES_LENGTH],
}

const _: () = assert!(size_of::<Series>() == 16 + 4 * SERIES_LENGTH);
