//! How long cross-timestamps take that are not interrupted.

/// The least recent width, in units of 1/1024 ns. It grows by a thousandth with each reading,
/// so that a machine whose readings are all slow is not treated as interrupted for good.
#[derive(Clone, Copy, Debug)]
pub(super) struct TypicalWidth(u64);

impl TypicalWidth {
    /// Of the first one.
    pub fn new(ns: u64) -> Self {
        Self(ns.saturating_mul(1_024))
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn limit_is(width: TypicalWidth, ns: u64) {
        assert!(!width.is_exceeded_by(ns), "{width:?}");
        assert!(width.is_exceeded_by(ns + 1), "{width:?}");
    }

    #[test]
    fn twice_the_least_and_20_ns_are_usual() {
        let mut width = TypicalWidth::new(100);
        limit_is(width, 220);
        width.take(60);
        limit_is(width, 140);
        width.take(80);
        limit_is(width, 140);
    }

    /// 1 000 · (1 + 1/1024)^100 = 1 102.6.
    #[test]
    fn the_least_is_forgotten_by_a_thousandth_at_a_time() {
        let mut width = TypicalWidth::new(1_000);
        for _ in 0..100 {
            width.take(10_000);
        }
        limit_is(width, 2 * 1_102 + 20);
        for _ in 0..10_000 {
            width.take(10_000);
        }
        limit_is(width, 20_020);
        // From 0 too.
        let mut width = TypicalWidth::new(0);
        for _ in 0..10_000 {
            width.take(10);
        }
        limit_is(width, 40);
    }
}
