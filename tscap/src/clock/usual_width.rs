//! How long cross-timestamps take that are not interrupted.

/// The least of late, in units of 1/1024 ns. It is forgotten by a thousandth with each,
/// so that a machine on which all take longer is no interrupted one for ever.
#[derive(Clone, Copy, Debug)]
pub(super) struct UsualWidth(u64);

impl UsualWidth {
    /// Of the first one.
    pub fn new(ns: u64) -> Self {
        Self(ns.saturating_mul(1_024))
    }

    /// Of one more.
    pub fn take(&mut self, ns: u64) {
        self.0 = Self::new(ns)
            .0
            .min(self.0.saturating_add(self.0 / 1_024 + 1));
    }

    /// Whether one was interrupted.
    pub fn is_exceeded_by(self, ns: u64) -> bool {
        ns > 2 * (self.0 / 1_024) + 20
    }
}
