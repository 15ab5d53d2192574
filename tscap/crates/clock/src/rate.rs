//! The TSC's rate, measured once, for what needs no more than that.

use std::thread;
use std::time::Duration;

use super::{
    Bracket, CounterClock, CrossTimestamp, HostClocks, NsPerCycle, Reference, StampSource,
};

/// Between the two cross-timestamps: with brackets of 50 ns each the rate is then
/// good to 1 ppm. Twice as long at each attempt, for machines whose brackets are
/// wider, up to 64 times.
const BASELINE: Duration = Duration::from_millis(50);
/// Cross-timestamps of which the narrowest is taken.
const READINGS: u32 = 50;
/// Attempts, should the clock be set or everything be interrupted.
const ATTEMPTS: u32 = 10;

/// Measures the TSC's rate against CLOCK_REALTIME, in about 50 ms on most machines,
/// to 10 ppm or better; `None` if every reading was interrupted, or the counter is
/// slower than any that can be converted.
pub fn measure_tsc_rate() -> Option<NsPerCycle> {
    (0..ATTEMPTS).find_map(|attempt| {
        let first = narrowest()?;
        thread::sleep(BASELINE * (1 << attempt.min(6)));
        Some(CounterClock::new(&first, &narrowest()?)?.rate())
    })
}

fn narrowest() -> Option<Bracket> {
    let mut clocks = HostClocks::new(StampSource::Tsc);
    let readings = (0..READINGS).filter_map(|_| {
        let cross: CrossTimestamp = clocks.read();
        cross.bracket()
    });
    readings.min_by_key(|bracket| bracket.tsc[1].0.wrapping_sub(bracket.tsc[0].0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MonoNs;
    use tscap_time::tsc;

    #[test]
    fn it_agrees_with_the_kernels_clock() {
        let rate = measure_tsc_rate().expect("not every reading is interrupted");
        let (mono, counter) = (MonoNs::now(), tsc::read());
        thread::sleep(Duration::from_millis(100));
        let (mono_later, counter_later) = (MonoNs::now(), tsc::read());
        let by_counter = rate.duration_ns(counter_later.0 - counter.0);
        let by_clock = mono_later.0 - mono.0;
        // The two clocks are read one after the other.
        assert!(
            by_counter.abs_diff(by_clock) < 5_000_000,
            "{by_counter} {by_clock}"
        );
    }
}
