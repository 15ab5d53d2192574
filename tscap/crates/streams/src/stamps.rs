//! The two stamps of a stream header, of which 48 bits are sent.

use tscap_common::stream::STAMP_BITS;

use tscap_clock::{CounterReport, RawStamp, TaiNs};

/// Two readings of one counter may lie so far apart, ns. Those of two machines
/// lie hours or days apart.
pub(super) const SAME_COUNTER_NS: u64 = 1_000_000_000;

/// A sender's reading of the counter that stamped its frame's arrival; `None` if it has read
/// none, or another one.
pub fn unwrapped_counter(
    sent: u64,
    received: RawStamp,
    counter: &CounterReport,
) -> Option<RawStamp> {
    let cycles = signed_difference(received.0.wrapping_sub(sent));
    let apart_ns = counter.ns_per_cycle_2_58.duration_ns(cycles.unsigned_abs());
    let is_same = sent != 0 && apart_ns < SAME_COUNTER_NS;
    is_same.then(|| RawStamp(received.0.wrapping_add_signed(-cycles)))
}

/// The receive time less the send stamp, whose 48 bits are those of the nearest
/// instant: right for delays within ±39 hours.
pub fn path_delay_ns(sent: u64, received: TaiNs) -> i64 {
    signed_difference(received.0.wrapping_sub(sent))
}

/// The difference of two stamps of which 48 bits are known, as the one nearest
/// to 0.
pub fn signed_difference(difference: u64) -> i64 {
    let unknown = u64::BITS - STAMP_BITS;
    (difference << unknown).cast_signed() >> unknown
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tscap_common::stream::STAMP_MASK;

    use super::*;
    use tscap_clock::NsPerCycle;

    #[test]
    fn a_counter_may_wrap_and_is_that_of_one_machine() {
        let wrap = 1 << STAMP_BITS;
        // Cycles of half a nanosecond.
        let counter = CounterReport {
            ns_per_cycle_2_58: NsPerCycle(NsPerCycle::ONE.0 / 2),
            rate_bound_ppb: 1,
            raw: None,
        };
        let sent = |sent: u64, received| {
            unwrapped_counter(sent & STAMP_MASK, RawStamp(received), &counter)
        };
        assert_eq!(sent(10_000, 10_400), Some(RawStamp(10_000)));
        assert_eq!(sent(wrap - 100, wrap + 300), Some(RawStamp(wrap - 100)));
        assert_eq!(sent(0, 400), None, "the sender has read none");
        assert_eq!(sent(10_000 + 3_000_000_000, 10_400), None, "another one");
    }

    proptest! {
        #[test]
        fn a_send_stamp_unwraps_to_the_nearest_instant(
            sent in 1u64 << 60..1 << 62, delay in -(1i64 << 47)..1 << 47
        ) {
            let received = TaiNs(sent.wrapping_add_signed(delay));
            prop_assert_eq!(path_delay_ns(sent & STAMP_MASK, received), delay);
        }
    }
}
