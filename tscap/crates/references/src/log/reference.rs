//! The host's clock against a device that does not follow the counter.

use serde::{Deserialize, Serialize};

use super::Phases;
use crate::PhcSighting;
use tscap_clock::{NsPerCycle, TscCycles};

/// Of a bin, as of [`Phases`].
const BIN_NS: i64 = 100_000_000;
/// Bins without a look after which a series ends.
const LONGEST_HOLE: u64 = 600;

/// What a device showed since the entry before. Without such a reference the phases of a log
/// are those of one oscillator against itself, unless a daemon steers the host's clock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReferencePhases {
    /// The device, such as `/dev/ptp0`.
    pub device: String,
    /// How far CLOCK_REALTIME is ahead of it (CLOCK_TAI, if it counts TAI) at the latest
    /// look, ns.
    pub ahead_ns: i64,
    /// Greatest error of a look, ns.
    pub bound_ns: u64,
    /// The same in the middle of each bin of 100 ms, by its narrowest look, ns; null where
    /// there was none.
    pub phases: Vec<Phases>,
}

/// Makes them of looks.
#[derive(Clone, Debug, Default)]
pub(super) struct ReferenceBins {
    /// The bin under way: where it begins, its length, and its best look.
    bin: Option<(TscCycles, u64, Option<PhcSighting>)>,
    rate_ppb: i64,
    rate: Option<NsPerCycle>,
    taken: Vec<Phases>,
    /// The next bin begins a series.
    begins: bool,
    latest: Option<PhcSighting>,
    bound_ns: u64,
}

impl ReferenceBins {
    /// Takes in a look, with p̂ of the counter and how much faster than the device the host's
    /// clock runs.
    pub fn take(&mut self, seen: PhcSighting, rate: NsPerCycle, rate_ppb: i64) {
        (self.rate, self.rate_ppb) = (Some(rate), rate_ppb);
        self.latest = Some(seen);
        self.bound_ns = self.bound_ns.max(seen.bound_ns);
        let is_within = self.bin.is_some_and(|(from, every, _)| {
            let since = seen.at.0.checked_sub(from.0);
            since.is_some_and(|cycles| cycles / every <= LONGEST_HOLE)
        });
        if !is_within {
            self.restart();
        }
        let every = rate.cycles_in(BIN_NS).unsigned_abs().max(2);
        let mut bin = self.bin.unwrap_or((seen.at, every, None));
        while seen.at.0 - bin.0.0 >= bin.1 {
            self.close(bin);
            bin = (TscCycles(bin.0.0 + bin.1), bin.1, None);
        }
        if bin.2.is_none_or(|best| seen.bound_ns < best.bound_ns) {
            bin.2 = Some(seen);
        }
        self.bin = Some(bin);
    }

    fn close(&mut self, (from, every, best): (TscCycles, u64, Option<PhcSighting>)) {
        let phase = best.map(|seen| {
            let middle = from.0 + every / 2;
            let way = self
                .rate
                .map_or(0, |rate| rate.duration_ns(middle.abs_diff(seen.at.0)));
            let carried = i128::from(way) * i128::from(self.rate_ppb) / 1_000_000_000;
            let carried = i64::try_from(carried).unwrap_or(0);
            if middle >= seen.at.0 {
                seen.ahead_ns.saturating_add(carried)
            } else {
                seen.ahead_ns.saturating_sub(carried)
            }
        });
        let begins = std::mem::take(&mut self.begins);
        let goes_on = |series: &&mut Phases| !begins && series.end() == from;
        match self.taken.last_mut().filter(goes_on) {
            Some(series) => series.ns.push(phase),
            None => self.taken.push(Phases {
                from,
                every,
                ns: vec![phase],
            }),
        }
    }

    /// The device or a clock was set, or the counter jumped: the next look begins a series.
    pub fn restart(&mut self) {
        if let Some(bin) = self.bin.take() {
            self.close(bin);
        }
        self.begins = true;
    }

    /// What became whole since the last call; `None` without a look.
    pub fn take_whole(&mut self, device: &str) -> Option<ReferencePhases> {
        let latest = self.latest.take()?;
        Some(ReferencePhases {
            device: device.to_owned(),
            ahead_ns: latest.ahead_ns,
            bound_ns: std::mem::take(&mut self.bound_ns),
            phases: std::mem::take(&mut self.taken),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: NsPerCycle = NsPerCycle::ONE;
    const MS: u64 = 1_000_000;

    fn look(ms: u64, ahead_ns: i64, bound_ns: u64) -> PhcSighting {
        PhcSighting {
            at: TscCycles(ms * MS),
            ahead_ns,
            bound_ns,
        }
    }

    /// The host's clock is faster by 20 ppm: 2 µs a bin.
    #[test]
    fn looks_are_carried_to_the_middle_of_their_bin() {
        let mut bins = ReferenceBins::default();
        for ms in [0, 100, 230, 290, 301, 420] {
            bins.take(look(ms, ms.cast_signed() * 20, 50), RATE, 20_000);
        }
        let got = bins.take_whole("/dev/ptp0").unwrap();
        assert_eq!((got.ahead_ns, got.bound_ns), (8_400, 50));
        let [series] = &got.phases[..] else {
            panic!("one series: {got:?}");
        };
        assert_eq!((series.from, series.every), (TscCycles(0), 100 * MS));
        let expected = [1_000, 3_000, 5_000, 7_000].map(Some);
        assert_eq!(series.ns, expected);
        assert_eq!(bins.take_whole("/dev/ptp0"), None);
    }

    /// After a minute without a look.
    #[test]
    fn a_long_hole_ends_a_series() {
        for (ms, expected) in [(60_000, vec![601]), (60_200, vec![1, 1])] {
            let mut bins = ReferenceBins::default();
            bins.take(look(0, 10, 50), RATE, 0);
            bins.take(look(ms, 10, 50), RATE, 0);
            bins.restart();
            let got = bins.take_whole("/dev/ptp0").unwrap().phases;
            let lengths = got.iter().map(|series| series.ns.len());
            assert_eq!(lengths.collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn the_narrowest_look_of_a_bin_counts_and_a_step_ends_the_series() {
        let mut bins = ReferenceBins::default();
        bins.take(look(0, 10, 90), RATE, 0);
        bins.take(look(50, 20, 30), RATE, 0);
        bins.take(look(80, 99, 60), RATE, 0);
        bins.restart();
        bins.take(look(100, 5_000, 30), RATE, 0);
        bins.take(look(200, 5_001, 30), RATE, 0);
        let got = bins.take_whole("/dev/ptp0").unwrap();
        let ns: Vec<_> = got.phases.iter().map(|series| &series.ns[..]).collect();
        assert_eq!(ns, [&[Some(20)][..], &[Some(5_000)]]);
        assert_eq!(got.bound_ns, 90);
    }
}
