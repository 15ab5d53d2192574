//! How the TSC stamps of the payloads are read.

use tscap_clock::{StampPath, TscPath};

/// The read, in the words of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TscStamps {
    pub path: &'static str,
    /// Whether it is ordered (fenced); one that is not may come some tens of ns early.
    pub ordered: bool,
    /// Greatest error of its value, ns.
    pub bound_ns: u64,
}

impl TscStamps {
    /// The packet sender's ([`tscap_time::tsc::read`]).
    pub const IN_USER_SPACE: Self = Self {
        path: "RDTSC in user space",
        ordered: true,
        bound_ns: 0,
    };

    /// The native sender's.
    pub fn in_xdp(path: TscPath, bound_ns: u64) -> Self {
        let path = StampPath::Tsc(path);
        Self {
            path: path.function(),
            ordered: path.is_ordered(),
            bound_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_modules_plain_read_is_unordered() {
        let plain = TscStamps::in_xdp(TscPath::Module, 0);
        assert_eq!(plain.path, "tscap_rdtsc of the module tscap");
        assert!(!plain.ordered);
        let perf = TscStamps::in_xdp(TscPath::Perf, 9);
        assert!(perf.ordered && perf.bound_ns == 9, "{perf:?}");
    }
}
