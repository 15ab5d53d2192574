//! How fast a converter empties a ring.

use tscap_engine::PIECE_BYTES;

/// A ring with the converter that drains it: it looks, takes out what it finds, and
/// sleeps. Room comes back to the producer in pieces of [`PIECE_BYTES`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Drain {
    /// Frames that the ring holds.
    pub holds: f64,
    /// Frames in a piece.
    pub piece: f64,
    /// Converting and writing a frame, s.
    pub work_s: f64,
    /// From the end of a drain to the start of the next, s.
    pub turn_s: f64,
}

impl Drain {
    pub fn new(ring_bytes: f64, record_bytes: f64, work_s: f64, turn_s: f64) -> Self {
        Self {
            holds: (ring_bytes / record_bytes).max(1.0),
            piece: PIECE_BYTES as f64 / record_bytes,
            work_s,
            turn_s,
        }
    }

    /// Of so many frames a second that come, those that go into the ring in the long
    /// run.
    ///
    /// A turn that finds `found` frames lasts `found · work + turn`, and what comes in
    /// during it is found by the next one. While it drains, there is room for what the
    /// ring held free and what was given back of `found`; while it sleeps, for all
    /// that was given back.
    pub fn accepts(&self, arrival: f64) -> f64 {
        let asleep = arrival * self.turn_s;
        let busy = arrival * self.work_s;
        let steady = asleep / (1.0 - busy);
        if busy < 1.0 && steady <= self.holds && busy * steady <= self.room(steady) {
            return arrival;
        }
        let found = if self.holds > 2.0 * self.piece - asleep {
            self.holds - self.piece + asleep
        } else {
            (self.holds + asleep) / 2.0
        };
        let found = found.min(self.holds);
        (found / (found * self.work_s + self.turn_s)).min(arrival)
    }

    /// Frames that have room while `found` are being taken out.
    fn room(&self, found: f64) -> f64 {
        self.holds - found.min(self.piece)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// 100 ns a frame, 200 µs asleep.
    fn drain(ring_bytes: f64) -> Drain {
        Drain::new(ring_bytes, 100.0, 100e-9, 200e-6)
    }

    #[test]
    fn a_great_ring_is_drained_as_fast_as_the_converter_works() {
        let drain = drain(64e6);
        assert_eq!(drain.accepts(9e6), 9e6);
        let most = drain.accepts(20e6);
        assert!((9.9e6..10e6).contains(&most), "{most}");
    }

    #[test]
    fn a_small_ring_is_full_before_the_converter_wakes_up() {
        // 1000 frames every 200 µs, and the time to take them out.
        let most = drain(1e5).accepts(1e9);
        assert!((most - 1000.0 / 300e-6).abs() < 1.0, "{most}");
        // A frame more than fits into its sleep.
        assert_eq!(drain(1e5).accepts(2e6), 2e6);
    }

    proptest! {
        /// More that comes: never less that goes in, and no smaller share lost.
        #[test]
        fn accepts_grows_and_its_share_falls(
            arrival in 1e3f64..2e7, more in 1.0f64..3.0, ring in 2e5f64..1e8,
            record in 96f64..1600.0, work in 5e-9f64..1e-5, turn in 1e-5f64..5e-3,
        ) {
            let drain = Drain::new(ring, record, work, turn);
            let (less, greater) = (drain.accepts(arrival), drain.accepts(arrival * more));
            prop_assert!(less <= arrival);
            prop_assert!(greater >= less * (1.0 - 1e-9), "{less} {greater}");
            prop_assert!(greater / (arrival * more) <= less / arrival * (1.0 + 1e-9));
            // No faster than it works.
            prop_assert!(greater <= 1.0 / work * (1.0 + 1e-9));
        }

        #[test]
        fn a_greater_ring_accepts_no_less(
            arrival in 1e3f64..2e7, ring in 2e5f64..1e8, more in 1.0f64..8.0,
            record in 96f64..1600.0, work in 5e-9f64..1e-5, turn in 1e-5f64..5e-3,
        ) {
            let small = Drain::new(ring, record, work, turn).accepts(arrival);
            let great = Drain::new(ring * more, record, work, turn).accepts(arrival);
            prop_assert!(great >= small * (1.0 - 1e-9), "{small} {great}");
        }
    }
}
