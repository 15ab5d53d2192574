//! Whether a capture is alive, for who watches over it.

use std::sync::Arc;

use crate::capturing::engine::Shared;

/// Tells whether the converter of a capture gets on.
#[derive(Clone, Debug)]
pub struct Pulse(Arc<Shared>);

impl Pulse {
    pub(super) fn of(shared: &Arc<Shared>) -> Self {
        Self(Arc::clone(shared))
    }

    /// A number that grows while the converter drains rings and writes, also when there is
    /// nothing to drain: at least a hundred times a second, unless one write takes longer.
    pub fn beats(&self) -> u64 {
        self.0.heartbeat()
    }
}
