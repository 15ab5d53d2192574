//! How long the converter sleeps between drains.

use std::time::Duration;

/// Shortest: busy-polling would bounce the producer's cache lines (it costs the
/// producer about 30 %), and a cross-timestamp, of which each drain
/// has one, takes 260 to 320 ns: less than 0.1 % of this.
const SHORTEST: Duration = Duration::from_micros(400);
/// Where the ring is so small that even this is half of it.
const SHORTEST_OF_SMALL: Duration = Duration::from_micros(200);
/// Never longer than this, so that a stop or a stamp is not kept waiting.
const LONGEST: Duration = Duration::from_millis(10);
/// What a drain should find, bytes: to wake up costs as much as hundreds of short
/// frames, and what lies in the ring for a while has left the producer's cache.
/// Against 200 µs always, CPU of the converter a frame, ns, output discarded: 18
/// and 35 with 64-byte frames flat out, 36 and 103 with 300,000 a second, 34 and 59
/// with 128 bytes of 1500 (medians of 5 rounds in turns on a busy EPYC with 2 CPUs);
/// with 2 MiB no less.
const WORTHWHILE: u64 = 512 * 1024;
/// Fastest fill seen on any bench machine, bytes/s: whole 1500-byte frames flat
/// out over a veth pair (`cargo xtask bench capture`; 64 MiB in about 20 ms).
const FASTEST_FILL: u64 = 3_400_000_000;

/// Adaptive sleep: until a drain is worth it at the rate that the last one found,
/// but never more than twice as long as the last time.
#[derive(Clone, Copy, Debug)]
pub struct Idle {
    next: Duration,
    shortest: Duration,
    longest: Duration,
}

impl Idle {
    /// For rings of `ring_bytes`: the longest sleep lets the fastest traffic
    /// fill at most half a ring, so that the other half is there for the time
    /// that it takes to wake up.
    pub fn new(ring_bytes: usize) -> Self {
        let half_full =
            Duration::from_nanos(ring_bytes as u64 / 2 * 1_000 / (FASTEST_FILL / 1_000_000));
        let shortest = half_full.clamp(SHORTEST_OF_SMALL, SHORTEST);
        Self {
            next: shortest,
            shortest,
            longest: half_full.clamp(shortest, LONGEST),
        }
    }

    /// How long to sleep after a drain that found so many bytes in the fullest ring.
    pub fn sleep(&mut self, found: u64) -> Duration {
        let worthwhile = self.next.mul_f64(WORTHWHILE as f64 / found.max(1) as f64);
        let most = (self.next * 2).min(self.longest);
        self.next = worthwhile.clamp(self.shortest, most);
        self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sleep that settles with traffic of so many bytes a second.
    fn settled(idle: &mut Idle, bytes_per_s: u64) -> Duration {
        let mut slept = SHORTEST;
        for _ in 0..20 {
            let found = u128::from(bytes_per_s) * slept.as_nanos() / 1_000_000_000;
            slept = idle.sleep(u64::try_from(found).unwrap());
        }
        slept
    }

    #[test]
    fn sleeps_until_a_drain_is_worth_it() {
        let mut idle = Idle::new(64 << 20);
        let slept = settled(&mut idle, 400_000_000);
        assert!((1_200..1_400).contains(&slept.as_micros()), "{slept:?}");
        assert!(settled(&mut idle, 0) > Duration::from_millis(9));
        assert!(settled(&mut idle, 1_000_000) > Duration::from_millis(9));
        assert_eq!(settled(&mut idle, FASTEST_FILL), SHORTEST);
    }

    #[test]
    fn a_burst_after_silence_ends_the_long_sleeps_at_once() {
        let mut idle = Idle::new(64 << 20);
        settled(&mut idle, 0);
        assert_eq!(idle.sleep(32 << 20), SHORTEST);
    }

    #[test]
    fn a_small_ring_is_looked_at_more_often() {
        let mut idle = Idle::new(1 << 20);
        let longest = settled(&mut idle, 0);
        assert!(longest < Duration::from_micros(250), "{longest:?}");
    }
}
