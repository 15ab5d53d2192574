//! What becomes of a frame that is not written: the one table of the accounting.

/// Who counts an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The XDP program, before the ring.
    Kernel,
    /// The XDP program, because of the ring.
    Ring,
    /// The converter, after the ring.
    Converter,
    /// The converter, because of the file.
    File,
}

/// One line of the table.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its name in JSON and in the summary.
    pub name: &'static str,
    /// Who counts it.
    pub place: Place,
    /// Whether the frame is lost: it was wanted, and is not in the file.
    pub is_loss: bool,
    /// What it means, and what helps.
    pub meaning: &'static str,
}

macro_rules! outcomes {
    ($($outcome:ident $name:literal $place:ident $is_loss:ident $meaning:literal)*) => {
        /// What became of a frame that was not written. Those that a program counts come
        /// first.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Outcome {
            $(#[doc = $meaning] $outcome,)*
        }

        impl Outcome {
            /// All of them, in the order of the table.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$outcome),*];

            /// Its line in the table.
            pub const fn entry(self) -> Entry {
                const LOSS: bool = true;
                const NO_LOSS: bool = false;
                match self {
                    $(Self::$outcome => Entry {
                        name: $name,
                        place: Place::$place,
                        is_loss: $is_loss,
                        meaning: $meaning,
                    },)*
                }
            }
        }
    };
}

outcomes! {
    RingFull         "ring_full"         Ring      LOSS    "no room in the ring: raise --ring-size"
    CopyFailed       "copy_failed"       Kernel    LOSS    "the kernel refused the copy"
    TooLong          "too_long"          Kernel    LOSS    "longer than a ring record: lower --snapshot-length"
    TooShort         "too_short"         Kernel    LOSS    "shorter than an Ethernet header"
    NoRing           "no_ring"           Ring      LOSS    "on a CPU that came online after the start"
    NoStamp          "no_stamp"          Kernel    LOSS    "its CPU's clock could not be read"
    Filtered         "filtered"          Kernel    NO_LOSS "not of the frames that the filter asks for"
    AfterStop        "after_stop"        Converter NO_LOSS "after the capture's end"
    WriteFailed      "write_failed"      File      LOSS    "could not be written"
}

impl Outcome {
    /// How many of them a program counts: the first ones.
    pub const IN_KERNEL: usize = {
        let mut count = 0;
        while count < Self::ALL.len() && Self::ALL[count].entry().is_in_kernel() {
            count += 1;
        }
        count
    };
}

impl Entry {
    /// Whether a program counts it.
    pub const fn is_in_kernel(&self) -> bool {
        matches!(self.place, Place::Kernel | Place::Ring)
    }
}

const _: () = {
    let mut index = Outcome::IN_KERNEL;
    while index < Outcome::ALL.len() {
        assert!(
            !Outcome::ALL[index].entry().is_in_kernel(),
            "those of the programs come first"
        );
        index += 1;
    }
};
