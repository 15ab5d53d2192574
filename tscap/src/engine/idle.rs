//! How long the converter sleeps between drains.

use std::time::Duration;

/// While traffic flows: busy-polling would bounce the producer's cache lines
/// (it costs the producer about 30 %, DESIGN section 2).
const BUSY: Duration = Duration::from_micros(200);
/// Never longer than this, so that a stop or a stamp is not kept waiting.
const LONGEST: Duration = Duration::from_millis(10);
/// Fastest fill seen on any bench machine, bytes/s: whole 1500-byte frames flat
/// out over a veth pair (`cargo xtask bench capture`; 64 MiB in about 20 ms).
const FASTEST_FILL: u64 = 3_400_000_000;

/// Adaptive sleep: short while traffic flows, doubling up to a limit when idle.
#[derive(Clone, Copy, Debug)]
pub struct Idle {
    next: Duration,
    longest: Duration,
}

impl Idle {
    /// For rings of `ring_bytes`: the longest sleep lets the fastest traffic
    /// fill at most half a ring, so that the other half is there for the time
    /// that it takes to wake up.
    pub fn new(ring_bytes: usize) -> Self {
        let half_full =
            Duration::from_nanos(ring_bytes as u64 / 2 * 1_000 / (FASTEST_FILL / 1_000_000));
        Self {
            next: BUSY,
            longest: half_full.clamp(BUSY, LONGEST),
        }
    }

    /// How long to sleep after a drain that found something, or nothing.
    pub fn sleep(&mut self, found_frames: bool) -> Duration {
        if found_frames {
            self.next = BUSY;
        } else {
            self.next = (self.next * 2).min(self.longest);
        }
        self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeps_short_under_traffic_and_long_when_idle() {
        let mut idle = Idle::new(64 << 20);
        assert_eq!(idle.sleep(true), BUSY);
        let longest = (0..20).map(|_| idle.sleep(false)).max();
        assert!(longest.unwrap() > Duration::from_millis(9), "{longest:?}");
        assert_eq!(idle.sleep(true), BUSY);
    }

    #[test]
    fn a_small_ring_is_looked_at_more_often() {
        let mut idle = Idle::new(1 << 20);
        let longest = (0..20).map(|_| idle.sleep(false)).max().unwrap();
        assert!(longest < Duration::from_micros(250), "{longest:?}");
    }
}
