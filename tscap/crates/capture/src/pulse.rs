//! Whether a capture is alive, for who watches over it.

use std::sync::Arc;

use super::writers::Writers;
use tscap_engine::Shared;

/// Tells whether the converters of a capture get on.
#[derive(Clone, Debug)]
pub struct Pulse(Vec<Arc<Shared>>);

impl Pulse {
    pub(super) fn of(writers: &Writers) -> Self {
        let shared = writers.each.iter().map(|it| Arc::clone(&it.shared));
        Self(shared.collect())
    }

    /// For each converter a number that grows while it drains rings and writes, also when there
    /// is nothing to drain: at least a hundred times a second, unless one write takes longer.
    pub fn beats(&self) -> Vec<u64> {
        self.0.iter().map(|it| it.heartbeat()).collect()
    }
}
