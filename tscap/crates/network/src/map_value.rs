//! Values of eBPF maps as the structures that programs and user space share.

use aya::Pod;
use tscap_common::compare::{Counts, Sample};
use tscap_common::generator::{HEADERS, Orders, Sending};
use tscap_common::outcome::Outcome;
use tscap_common::state::{CpuState, Losses, TscBracket};

/// A structure of `tscap-common` as a map holds it. The structures can't be [`Pod`]
/// themselves: neither they nor the trait are of this crate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct MapValue<T>(pub T);

macro_rules! map_values {
    ($($structure:ty: $bytes:expr,)+) => {
        $(
            const _: () = assert!(size_of::<$structure>() == $bytes);
            // SAFETY: the structure is `repr(C)` of integers, for which any bytes are valid. It
            // is as large as its fields together, which is asserted above: it has no padding.
            unsafe impl Pod for MapValue<$structure> {}
        )+
    };
}

map_values! {
    Counts: 4 * 8,
    CpuState: 2 * 4 + 15 * 8,
    Losses: (Outcome::IN_KERNEL + 1) * 8,
    Orders: HEADERS + 2 * 4 + 8 + 4 + 2 * 2 + 8,
    Sample: 7 * 8 + 2 * 4,
    Sending: 4 * 8 + 4 * 4 + 4 * 8,
    TscBracket: 3 * 8,
}
