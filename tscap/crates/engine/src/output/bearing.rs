//! Whether the rings bear the disk's pauses: while a direct write lasts, frames wait in them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a disk of which nothing is known may pause. It is believed to pause for half as long
/// after each second of writing in which it did not.
const ASSUMED: Duration = Duration::from_secs(1);
/// The same pause again is expected for so long, then one of half its length.
const HALF_LIFE: Duration = Duration::from_secs(600);
/// A pause is expected to be longer than those before it by this factor.
const LONGER: u32 = 2;
/// Writes farther apart than this tell nothing of the time between.
const GAP: Duration = Duration::from_secs(1);
/// What frames may fill of a ring until the disk goes on, in quarters.
const QUARTERS: u64 = 3;
/// The rate is that of so long a time.
const WINDOW: Duration = Duration::from_millis(100);
/// The rate until one is known, bytes/s.
const UNKNOWN_RATE: u64 = 1 << 30;

/// What is known of the disk, by the thread that writes direct and by the one that writes out.
#[derive(Debug, Default)]
pub(super) struct Pauses(Mutex<Known>);

#[derive(Clone, Copy, Debug, Default)]
struct Known {
    /// The longest write, and when it ended.
    longest: Option<(Duration, Instant)>,
    /// The longest of all time.
    greatest: Duration,
    /// For so long the disk was seen to write.
    observed: Duration,
    latest: Option<Instant>,
}

impl Pauses {
    /// A write of up to a piece took so long, and ended `now`.
    pub fn took(&self, time: Duration, now: Instant) {
        let mut known = self.known();
        known.greatest = known.greatest.max(time);
        if known.seen(now) <= time {
            known.longest = Some((time, now));
        }
        let since = known
            .latest
            .map_or(time, |at| now.saturating_duration_since(at));
        known.observed += since.min(GAP.max(time));
        known.latest = Some(now);
    }

    /// The disk has written for so long without a pause.
    #[cfg(test)]
    pub fn observed(&self, time: Duration) {
        self.known().observed += time;
    }

    /// How long a write may take.
    fn expected(&self, now: Instant) -> Duration {
        let known = *self.known();
        let assumed = halved(ASSUMED, known.observed.as_secs());
        assumed.max(known.seen(now).saturating_mul(LONGER))
    }

    /// The longest write of all.
    pub fn greatest(&self) -> Duration {
        self.known().greatest
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // No value is left half changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    /// The longest write, as far as it still counts.
    fn seen(&self, now: Instant) -> Duration {
        self.longest.map_or(Duration::ZERO, |(time, at)| {
            let since = now.saturating_duration_since(at);
            halved(time, since.as_secs() / HALF_LIFE.as_secs())
        })
    }
}

fn halved(time: Duration, times: u64) -> Duration {
    let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    Duration::from_nanos(ns.checked_shr(times.min(64) as u32).unwrap_or(0))
}

/// The rings in front of the disk.
#[derive(Debug)]
pub(super) struct Bearing {
    pub pauses: Arc<Pauses>,
    /// Length of one ring, bytes.
    pub ring_bytes: u64,
    /// What the fullest one held at the latest look, bytes.
    pub fill: u64,
    /// Bytes that went by way of the page cache for that.
    pub spilled: u64,
    /// The output's length at the beginning of the window, and when that was.
    window: Option<(u64, Instant)>,
    rate: u64,
}

impl Bearing {
    pub fn new(pauses: Arc<Pauses>) -> Self {
        Self {
            pauses,
            ring_bytes: 64 << 20,
            fill: 0,
            spilled: 0,
            window: None,
            rate: UNKNOWN_RATE,
        }
    }

    /// The output has this length by `now`. Gives the rate, bytes/s: that of all rings, since one
    /// may get it all.
    pub fn take_up_to(&mut self, length: u64, now: Instant) -> u64 {
        let (from, since) = *self.window.get_or_insert((length, now));
        let time = now.saturating_duration_since(since);
        if length < from {
            // Another file.
            self.window = Some((length, now));
        } else if time >= WINDOW {
            let rate = u128::from(length - from) * 1_000_000_000 / time.as_nanos();
            self.rate = u64::try_from(rate).unwrap_or(u64::MAX);
            self.window = Some((length, now));
        }
        self.rate
    }

    /// Whether the rings have room for what comes while the disk pauses.
    pub fn bears(&self, now: Instant) -> bool {
        let pause = self.pauses.expected(now).as_nanos();
        let comes = u128::from(self.rate) * pause / 1_000_000_000;
        u128::from(self.fill) + comes <= u128::from(self.ring_bytes / 4 * QUARTERS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const MB: u64 = 1_000_000;

    /// At so many MB/s, known after a window; the disk has written for so long, each write in
    /// a millisecond.
    fn bearing(rate: u64, seconds: u32) -> (Bearing, Instant) {
        let (mut bearing, mut now) = (Bearing::new(Arc::default()), Instant::now());
        bearing.take_up_to(0, now);
        for second in 1..=seconds {
            now += Duration::from_secs(1);
            bearing.take_up_to(u64::from(second) * rate * MB, now);
            bearing.pauses.took(MS, now);
        }
        (bearing, now)
    }

    #[test]
    fn a_disk_has_to_show_that_it_does_not_pause() {
        // Of 64 MiB three quarters are 50 MB.
        for (rate, seconds, bears) in [
            (40, 0, true),
            (60, 0, false),
            (90, 1, true),
            (216, 2, false),
            (216, 3, true),
            (1_000, 4, false),
            (1_000, 5, true),
        ] {
            let (bearing, now) = bearing(rate, seconds + 1);
            assert_eq!(bearing.bears(now), bears, "{rate} MB/s after {seconds} s");
        }
    }

    #[test]
    fn nothing_is_borne_before_a_rate_is_known() {
        let (mut bearing, now) = (Bearing::new(Arc::default()), Instant::now());
        assert!(!bearing.bears(now));
        assert_eq!(bearing.take_up_to(MB, now), UNKNOWN_RATE);
        assert_eq!(bearing.take_up_to(2 * MB, now + 99 * MS), UNKNOWN_RATE);
        assert_eq!(bearing.take_up_to(3 * MB, now + 200 * MS), 10_000_000);
        // The next file.
        assert_eq!(bearing.take_up_to(MB, now + 400 * MS), 10_000_000);
        assert_eq!(bearing.take_up_to(2 * MB, now + 500 * MS), 10_000_000);
        assert!(bearing.bears(now));
    }

    #[test]
    fn a_pause_is_expected_again_for_minutes() {
        let (bearing, now) = bearing(216, 10);
        assert!(bearing.bears(now));
        // 0.1 s, twice as long: 43 MB.
        bearing.pauses.took(100 * MS, now);
        assert!(bearing.bears(now));
        bearing.pauses.took(130 * MS, now);
        assert!(!bearing.bears(now));
        // A shorter one does not take its place, nor renew it.
        bearing.pauses.took(120 * MS, now + HALF_LIFE / 2);
        assert!(!bearing.bears(now + HALF_LIFE - MS));
        assert!(bearing.bears(now + HALF_LIFE));
        assert_eq!(bearing.pauses.greatest(), 130 * MS);
    }

    #[test]
    fn what_is_in_the_ring_takes_room() {
        let (mut bearing, now) = bearing(216, 10);
        bearing.fill = 49 << 20;
        assert!(!bearing.bears(now));
        bearing.ring_bytes = 256 << 20;
        assert!(bearing.bears(now));
    }
}
