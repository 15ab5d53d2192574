//! All that differs between the architectures of processors that tscap runs on. A module for
//! each gives the same names.

#![allow(
    unsafe_code,
    reason = "instructions and system calls of one architecture"
)]

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
use aarch64 as here;
#[cfg(target_arch = "x86_64")]
use x86_64 as here;

/// Which architecture's names these are: compiled for each, so that no module can lack one.
pub use here::{
    CLOCK_SOURCE, CONSTANT_FEATURES, COUNTER, FEATURES_FIELD, KEEPS_ORDER, LEGACY_SYSTEM_CALLS,
    Ports, VMCLOCK_COUNTER, has_constant_rate, prefetch, read_in_order, read_unordered,
};

/// The examples of README.md are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(test)]
mod tests {
    use super::*;

    /// A counter of 1 MHz, which no architecture allows to be slower, has ticked by then.
    const TICKED_WITHIN: std::time::Duration = std::time::Duration::from_secs(5);

    #[test]
    fn the_counter_counts_up() {
        let first = read_in_order();
        let start = std::time::Instant::now();
        while read_in_order() == first {
            assert!(start.elapsed() < TICKED_WITHIN, "it stands at {first}");
        }
        let readings = [read_unordered(), read_in_order(), read_unordered()];
        assert!(
            readings[1] > first && readings[1] >= readings[0],
            "{readings:?}"
        );
    }

    /// It is a hint: whatever the address is, nothing happens.
    #[test]
    fn any_address_may_be_prefetched() {
        let mapped = [0u8; 64];
        for at in [
            std::ptr::null(),
            mapped.as_ptr(),
            std::ptr::without_provenance(usize::MAX),
        ] {
            prefetch(at);
        }
        assert_eq!(mapped, [0; 64]);
    }

    #[test]
    fn ports_are_given_or_refused() {
        // Of the first DMA controller's page registers on a PC: reading one changes nothing.
        if let Err(refused) = Ports::open(0x80, 4) {
            let is_known = [
                std::io::ErrorKind::PermissionDenied,
                std::io::ErrorKind::Unsupported,
            ];
            assert!(is_known.contains(&refused.kind()), "{refused}");
        }
    }
}
