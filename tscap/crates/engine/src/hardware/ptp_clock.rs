//! Readings of a PTP clock on their way from the thread that reads it to the converters.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};

use tscap_references::{NicClock, NicReading};

/// Most readings that are kept: a converter takes them in at each drain, and one that begins
/// has those of some seconds.
const MOST: usize = 256;

/// A PTP clock that interfaces stamp by.
#[derive(Debug, Default)]
pub struct PtpClock {
    readings: Mutex<Readings>,
}

#[derive(Debug, Default)]
struct Readings {
    latest: VecDeque<NicReading>,
    /// Readings so far, also those that are not kept any more.
    count: u64,
}

impl PtpClock {
    /// Gives one more reading to the converters.
    pub fn add(&self, reading: NicReading) {
        let mut readings = self.readings();
        if readings.latest.len() == MOST {
            readings.latest.pop_front();
        }
        readings.latest.push_back(reading);
        readings.count += 1;
    }

    /// Whether there are readings so far apart that the clock's rate is known of them.
    pub fn has_baseline(&self) -> bool {
        let readings = self.readings();
        let [first, last] = [readings.latest.front(), readings.latest.back()];
        first.zip(last).is_some_and(|(first, last)| {
            last.mono[0].0.saturating_sub(first.mono[1].0) > NicClock::SHORTEST_BASELINE_NS
        })
    }

    /// The readings after the first `taken` ones, as far as they are kept.
    pub(super) fn since(&self, taken: &mut u64) -> Vec<NicReading> {
        let readings = self.readings();
        let new = usize::try_from(readings.count - *taken).unwrap_or(usize::MAX);
        *taken = readings.count;
        let skipped = readings.latest.len().saturating_sub(new);
        readings.latest.iter().skip(skipped).copied().collect()
    }

    fn readings(&self) -> MutexGuard<'_, Readings> {
        // A panic elsewhere leaves a list as it was.
        self.readings
            .lock()
            .unwrap_or_else(|broken| broken.into_inner())
    }
}
