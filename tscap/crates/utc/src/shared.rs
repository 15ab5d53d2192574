//! The bound for other threads than the one that reads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// No source bounds the clock.
const UNKNOWN: u64 = u64::MAX;

/// The latest bound of the host's clock to UTC, for threads that must not wait for a reading. Copies
/// share it.
#[derive(Clone, Debug)]
pub struct SharedUtcBound(Arc<AtomicU64>);

impl SharedUtcBound {
    /// With this bound, ns; `None` while nothing bounds the clock.
    pub fn new(bound_ns: Option<u64>) -> Self {
        Self(Arc::new(AtomicU64::new(bound_ns.unwrap_or(UNKNOWN))))
    }

    /// Has all copies give this bound from now on.
    pub fn set(&self, bound_ns: Option<u64>) {
        self.0.store(bound_ns.unwrap_or(UNKNOWN), Ordering::Relaxed);
    }

    /// The latest one.
    pub fn ns(&self) -> Option<u64> {
        Some(self.0.load(Ordering::Relaxed)).filter(|it| *it != UNKNOWN)
    }
}
