//! What the programs of `tscap compare` leave for user space.

/// Array map of [`Sample`]s, in the order of the frames.
pub const SAMPLES: &str = "SAMPLES";
/// Array map of one [`Counts`].
pub const COUNTS: &str = "COUNTS";
/// u32: the CPU whose frames are measured.
pub const ON_CPU: &str = "ON_CPU";
/// u32: what the program returns (`enum xdp_action`).
pub const ACTION: &str = "ACTION";
/// u32, at most 8: reads besides the one.
pub const MORE_READS: &str = "MORE_READS";
/// u32, at most [`MOST_WORK`]: multiplications between the checkpoints, each of
/// the last one's product.
pub const MORE_WORK: &str = "MORE_WORK";

/// Reads in one run of a `read_…` program.
pub const UNROLLED: u32 = 64;
/// Most multiplications of [`MORE_WORK`].
pub const MOST_WORK: u32 = 64;
/// Most samples of a turn.
pub const MOST_SAMPLES: u32 = 32_768;

/// One frame.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// The stamp, in the unit of its clock; 0 for the floor.
    pub stamp: u64,
    /// Second checkpoint less first, ns.
    pub cost_ns: u64,
    /// Run and flow of the frame by `tscap gen`, and its sequence number
    /// (`run << 48 | flow << 32 | seq`); 0 for another frame.
    pub frame: u64,
    /// CLOCK_TAI at the sending, ns, low 48 bits.
    pub sent_tai: u64,
    /// TSC at the sending, low 48 bits.
    pub sent_tsc: u64,
    /// [`KernelCounter::Stolen`] before the first checkpoint. This and what follows is 0 where
    /// programs can't read the kernel's counters.
    ///
    /// [`KernelCounter::Stolen`]: crate::kernel_counter::KernelCounter::Stolen
    pub stolen_ns: u64,
    /// [`KernelCounter::Accounted`] then.
    ///
    /// [`KernelCounter::Accounted`]: crate::kernel_counter::KernelCounter::Accounted
    pub accounted_ns: u64,
    /// [`KernelCounter::OtherSoftirqs`] then, low 32 bits.
    ///
    /// [`KernelCounter::OtherSoftirqs`]: crate::kernel_counter::KernelCounter::OtherSoftirqs
    pub other_softirqs: u32,
    /// Interrupts from before the first checkpoint until after the second one.
    pub interrupts: u32,
}

/// How many there were.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Frames measured; those past [`MOST_SAMPLES`] left no sample.
    pub measured: u64,
    /// Frames on another CPU, not measured.
    pub elsewhere: u64,
    /// Frames on which the clock could not be read; they left a sample.
    pub bad: u64,
    /// Where reads go that nobody uses.
    pub sink: u64,
}

const _: () = assert!(size_of::<Sample>() == 64);
const _: () = assert!(size_of::<Counts>() == 32);
