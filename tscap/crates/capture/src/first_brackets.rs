//! The first look at the clocks, before the first frame.

use std::time::Duration;

use tscap_base::failure::Failure;
use tscap_clock::{Reference, StampSource, Tracker};

/// Brackets taken before the first frame: they narrow the offset to about the
/// time between two clock reads, in about a millisecond.
const FIRST_BRACKETS: u32 = 5_000;
/// Time between two looks at a raw counter: its rate is then good to 0.5 ppm.
const FIRST_BASELINE: Duration = Duration::from_millis(100);
/// Most looks at a raw counter, which take some 5 s.
const PATIENCE: u32 = 50;

/// Finds the offset of the stamps' clock, and a raw counter's rate: a counter takes from
/// 0.1 to 5 s. Safe to cancel.
///
/// # Errors
/// If the clocks can't be read without being disturbed.
pub async fn first_brackets(
    source: StampSource,
    clocks: &mut impl Reference,
) -> Result<Tracker, Failure> {
    // One reading is torn only if the clock was set in that very moment.
    let mut tracker = (0..3)
        .find_map(|_| Tracker::new(source, &clocks.read()))
        .ok_or_else(|| {
            Failure::new("cannot read the system clock: it is being set all the time")
                .hint("find out what sets it: two time daemons at once?")
        })?;
    observe(&mut tracker, clocks);
    if source != StampSource::Tsc {
        return Ok(tracker);
    }
    // A raw counter's rate needs two looks at it.
    for _ in 0..PATIENCE {
        tokio::time::sleep(FIRST_BASELINE).await;
        observe(&mut tracker, clocks);
        if tracker.is_settled() {
            return Ok(tracker);
        }
        if tracker.has_slow_counter() {
            return Err(Failure::new(
                "the raw counter runs at less than 8 MHz: its stamps are too coarse",
            )
            .hint("take --clock ktime"));
        }
    }
    Err(
        Failure::new("cannot measure the rate of the TSC: every reading was interrupted")
            .hint("try again when the machine is less busy, or take --clock ktime"),
    )
}

fn observe(tracker: &mut Tracker, clocks: &mut impl Reference) {
    for _ in 0..FIRST_BRACKETS {
        tracker.observe(&clocks.read());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tscap_clock::{CrossTimestamp, HostClocks, MonoNs, RealNs, TaiNs, TscCycles};

    /// A machine that interrupts every reading of the clocks for a millisecond.
    struct Interrupted(u64);

    impl Reference for Interrupted {
        fn read(&mut self) -> CrossTimestamp {
            self.0 += 1_000;
            let [before, after] = [self.0, self.0 + 1_000_000];
            CrossTimestamp {
                mono: [MonoNs(before), MonoNs(after)],
                tsc: Some([TscCycles(3 * before), TscCycles(3 * after)]),
                real: [RealNs(before), RealNs(after)],
                tai: TaiNs(before),
                boot: None,
                offset: None,
            }
        }
    }

    /// Of 10 MHz, read in a tenth of a microsecond.
    struct Slow(u64);

    impl Reference for Slow {
        fn read(&mut self) -> CrossTimestamp {
            self.0 += 10_000;
            let [before, after] = [self.0, self.0 + 100];
            CrossTimestamp {
                mono: [MonoNs(before), MonoNs(after)],
                tsc: Some([TscCycles(before / 200), TscCycles(after / 200)]),
                real: [RealNs(before + 50); 2],
                tai: TaiNs(before + 50),
                boot: None,
                offset: None,
            }
        }
    }

    #[tokio::test]
    async fn a_counter_that_is_too_slow_is_refused_for_that() {
        let refused = first_brackets(StampSource::Tsc, &mut Slow(1 << 40)).await;
        let refused = refused.expect_err("it is too slow").to_string();
        assert!(refused.contains("less than 8 MHz"), "{refused}");
    }

    #[tokio::test]
    async fn the_wait_for_a_counters_rate_can_be_given_up() {
        let mut clocks = Interrupted(0);
        let brackets = first_brackets(StampSource::Tsc, &mut clocks);
        let given_up = tokio::time::timeout(Duration::from_millis(1), brackets).await;
        assert!(given_up.is_err());
    }

    #[tokio::test]
    async fn the_hosts_clocks_settle() {
        for source in [StampSource::Ktime, StampSource::Tsc] {
            let tracker = first_brackets(source, &mut HostClocks::new(source)).await;
            let tracker = tracker.unwrap_or_else(|it| panic!("{it}"));
            assert!(tracker.is_settled());
        }
    }
}
