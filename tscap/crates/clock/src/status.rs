//! What is known of a raw counter's clock at a moment.

use serde::{Deserialize, Serialize};

use super::{CounterReport, Counts, RealNs, Tracker, TscCycles};

/// The state of the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// The counter when it was looked at.
    pub tsc: TscCycles,
    /// CLOCK_REALTIME then, by the absolute clock, ns.
    pub real: RealNs,
    /// p̂ with its error.
    pub counter: CounterReport,
    /// How much longer the counter's period is now than p̂, parts per billion: not 0
    /// while the host's clock is slewed.
    pub skew_ppb: i64,
    /// θ̂: how far the uncorrected clock C is ahead of the host's clock, ns.
    pub offset_ns: i64,
    /// How much further the absolute clock went than the difference clock p̂·ΔN since
    /// the status before, ns.
    pub absolute_less_difference_ns: i64,
    /// Greatest error of a stamp so far against the host's clock, ns.
    pub host_bound_ns: u64,
    /// Most that the host's clock is off UTC, ns, by the source that is used; null while nothing
    /// bounds it. Not part of `host_bound_ns`.
    pub utc_bound_ns: Option<u64>,
    /// Least width of a reading, ns.
    pub least_width_ns: u64,
    /// Readings passed over because they were interrupted.
    pub wide: u64,
    /// What became of the other readings.
    pub readings: Counts,
    /// How often the system clock was set.
    pub steps: u64,
}

impl Status {
    /// At a counter value; `before` is the status that came before. `None` before the
    /// tracker has settled.
    pub fn of(
        tracker: &Tracker,
        tsc: TscCycles,
        utc_bound_ns: Option<u64>,
        before: Option<&Self>,
    ) -> Option<Self> {
        let counter = tracker.counter()?;
        let model = counter.model();
        let counts = model.counts();
        let rate = model.rate();
        let real = model.estimate(tsc).real;
        let difference = |before: &Self| {
            let absolute = real.0.wrapping_sub(before.real.0).cast_signed();
            let cycles = tsc.0.saturating_sub(before.tsc.0);
            absolute.wrapping_sub_unsigned(rate.duration_ns(cycles))
        };
        Some(Self {
            tsc,
            real,
            counter: counter.report(),
            skew_ppb: model.local_rate().ppb_from(rate),
            offset_ns: model.offset_ns(),
            absolute_less_difference_ns: before.map_or(0, difference),
            host_bound_ns: tracker.host_bound_ns(),
            utc_bound_ns,
            least_width_ns: model.least_width_ns(),
            wide: counter.wide(),
            readings: Counts {
                torn: counts.torn + tracker.torn(),
                ..counts
            },
            steps: tracker.steps(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StampSource;
    use crate::scripted::Host;

    const MS: u64 = 1_000_000;

    /// A host whose clock is slewed from the third second on.
    #[test]
    fn a_slew_shows_as_skew_and_not_in_the_difference_clock() {
        let host = Host {
            hertz: 2_596_130_000,
            slews: vec![(0, 0), (3_000 * MS, 100_000)],
        };
        let gaps = [20, 40, 20];
        let mut tracker = Tracker::new(StampSource::Tsc, &host.cross(0, gaps)).unwrap();
        assert_eq!(Status::of(&tracker, host.cycles(0), None, None), None);
        let mut statuses: Vec<Status> = Vec::new();
        for turn in 1..=500u64 {
            let t = turn * 10 * MS;
            tracker.observe(&host.cross(t, gaps));
            if turn % 100 == 0 {
                let before = statuses.last();
                let status = Status::of(&tracker, host.cycles(t), Some(7), before);
                statuses.push(status.unwrap());
            }
        }
        let skews: Vec<_> = statuses.iter().map(|status| status.skew_ppb).collect();
        assert!(skews[..3].iter().all(|ppb| ppb.abs() < 200), "{skews:?}");
        // p̂, an average, has come 40 % of the way.
        assert!((59_000..61_000).contains(&skews[4]), "{skews:?}");
        let ahead = statuses[3].absolute_less_difference_ns;
        assert!((70_000..80_000).contains(&ahead), "{ahead}");
        let last = &statuses[4];
        assert!((last.offset_ns + 200_000).abs() < 90_000, "{last:?}");
        assert_eq!((last.readings.bends, last.steps), (1, 0));
        assert_eq!(last.utc_bound_ns, Some(7));
        // Torn for the host's clock and, of another one, for the counter's.
        let mut torn = host.cross(5_010 * MS, gaps);
        torn.mono.reverse();
        tracker.observe(&torn);
        let torn = Status::of(&tracker, host.cycles(5_010 * MS), None, None);
        let counted = torn.unwrap().readings.torn - last.readings.torn;
        assert_eq!(counted, 1);
    }
}
