//! Stamps on the wire.

use tscap_common::stream::STAMP_BITS;

/// `a - b`, of which only the low [`STAMP_BITS`] are known.
pub fn difference(a: u64, b: u64) -> i64 {
    let unknown = u64::BITS - STAMP_BITS;
    (a.wrapping_sub(b) << unknown).cast_signed() >> unknown
}
