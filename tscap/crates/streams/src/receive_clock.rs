//! What a capture says of the clock that stamped it.

use serde::{Deserialize, Serialize};

use super::sender_clock::HostMoment;
use tscap_clock::{CounterReport, FileNs, RawStamp, RealNs, Segment, StampSource, TaiNs, TimeBase};
use tscap_file::pcapng::{
    ClockOption, ClockRelation, InterfaceOption, StatisticsOption, TimesClock,
};
use tscap_time::NS_PER_S;

/// The clock of an interface, gathered from all of its statistics blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReceiveClock {
    /// Which clock the times are of.
    time_base: TimeBase,
    /// TAI − REALTIME, s, and from which CLOCK_REALTIME on; only changes.
    tai_offsets: Vec<(RealNs, i64)>,
    /// The raw counter, where one stamps; the last report is the best.
    counter: Option<CounterReport>,
    host_bound_ns: u64,
    utc_bound_ns: u64,
    is_unsynchronised: bool,
    times: TimesClock,
}

/// How far path delays can be trusted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DelayBasis {
    /// Receive stamp less the sender's reading of CLOCK_TAI, which it takes
    /// before the frame leaves: the delay of the path from there to the stamp in
    /// XDP.
    Clocks {
        /// TAI − REALTIME of the receiving host, s; several if it was changed.
        tai_offsets_s: Vec<i64>,
        /// Greatest error of a stamp against the clock of its times, ns: the receiving
        /// host's, or one that follows `reference`. Where a sender reads the receiving host's
        /// clock, it bounds the clocks' part of the delay's error.
        host_bound_ns: u64,
        /// From another clock the difference of both adds to it, of
        /// which this is the receiving one's part, ns: the kernel's bound to UTC, or that of
        /// the reference; null if it was ever unknown.
        utc_bound_ns: Option<u64>,
        /// The reference whose time takes the place of the receiving host's clock. No sender
        /// reads that.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reference: Option<String>,
    },
    /// There are none.
    Unavailable {
        /// The reason.
        why: String,
    },
}

impl ReceiveClock {
    /// That of an interface, which has this number in its file.
    pub fn of(interface: usize, option: Option<&InterfaceOption>) -> Self {
        Self {
            time_base: option.map_or(TimeBase::default(), |it| it.time_base),
            times: TimesClock::new(interface, option),
            ..Self::default()
        }
    }

    /// The clock of the times.
    pub fn times(&self) -> &TimesClock {
        &self.times
    }

    /// What the host's clocks showed when a frame was stamped; `None` if the file does not say
    /// it, as where its times are not the host's.
    pub fn moment(&self, time: FileNs, raw: Option<RawStamp>) -> Option<HostMoment> {
        self.is_the_hosts().then_some(())?;
        Some(HostMoment {
            tsc: raw?,
            tai: self.to_tai(time)?,
            rate: self.counter?.ns_per_cycle_2_58,
        })
    }

    /// Whether times are by the clock of one host.
    fn is_the_hosts(&self) -> bool {
        let is_one = self.times.kinship(&self.times) == ClockRelation::Same;
        is_one && self.times.reference().is_none()
    }

    /// Takes in a statistics block; they must come in the file's order.
    pub fn take(&mut self, statistics: &StatisticsOption) {
        self.times.take(statistics);
        let clock: &ClockOption = &statistics.clock;
        for Segment {
            from,
            mono_to_real,
            tai_offset_s,
            ..
        } in &clock.segments
        {
            // The latest segment is written again when it has grown.
            if self.tai_offsets.last().map(|(_, offset)| offset) != Some(tai_offset_s) {
                let from = RawStamp(from.0).to_real(mono_to_real.middle());
                self.tai_offsets.push((from, *tai_offset_s));
            }
        }
        if clock.stamp.source == StampSource::Tsc {
            self.counter = clock.counter.or(self.counter);
        }
        self.host_bound_ns = self.host_bound_ns.max(clock.host_bound_ns);
        self.utc_bound_ns = self.utc_bound_ns.max(clock.utc_bound_ns.unwrap_or(0));
        self.is_unsynchronised |= clock.utc_bound_ns.is_none();
    }

    /// CLOCK_TAI at a time of the file, if that is of CLOCK_REALTIME: exact but within a
    /// second of a change of the offset; `None` if the file doesn't say it.
    pub fn to_tai(&self, time: FileNs) -> Option<TaiNs> {
        let real = self.time_base.real(time)?;
        let mut latest_first = self.tai_offsets.iter().rev();
        let in_force = latest_first.find(|(from, _)| *from <= real);
        let (_, offset_s) = in_force.or(self.tai_offsets.first())?;
        let offset_ns = offset_s.wrapping_mul(NS_PER_S);
        Some(TaiNs(real.0.wrapping_add_signed(offset_ns)))
    }

    /// How far path delays can be trusted; `is_ours` if tscap wrote the file.
    pub fn delay_basis(&self, is_ours: bool) -> DelayBasis {
        if !self.time_base.is_realtime() {
            let why = format!(
                "its times are of the clock {}: `tscap convert --time-base realtime` makes a copy \
                 that delays can be told from",
                self.time_base.name()
            );
            return DelayBasis::Unavailable { why };
        }
        if self.tai_offsets.is_empty() {
            let why = if is_ours {
                "the file has no statistics block with the clock (the capture was killed in its \
                 first 10 s), so that the offset of its stamps to CLOCK_TAI is unknown"
            } else {
                "not a file of tscap: the offset of its stamps to the sender's CLOCK_TAI is unknown"
            };
            return DelayBasis::Unavailable { why: why.into() };
        }
        let mut tai_offsets_s: Vec<i64> = self.tai_offsets.iter().map(|(_, s)| *s).collect();
        tai_offsets_s.dedup();
        DelayBasis::Clocks {
            tai_offsets_s,
            host_bound_ns: self.host_bound_ns,
            utc_bound_ns: (!self.is_unsynchronised).then_some(self.utc_bound_ns),
            reference: self.times.reference().map(str::to_owned),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tscap_clock::StampPath;
    use tscap_clock::{Bounds, MonoNs};
    use tscap_file::accounting::{Outcomes, StampOrder};
    use tscap_file::pcapng::StampOption;

    /// As `tscap convert --time-base monotonic` makes them.
    #[test]
    fn times_of_another_clock_tell_no_delays() {
        let clock = ReceiveClock {
            tai_offsets: vec![(RealNs(0), 37)],
            time_base: TimeBase::Monotonic,
            ..ReceiveClock::default()
        };
        assert_eq!(clock.to_tai(FileNs(5)), None);
        let DelayBasis::Unavailable { why } = clock.delay_basis(true) else {
            panic!("delays by another clock");
        };
        assert!(why.contains("of the clock monotonic"), "{why}");
    }

    fn segment(from_ns: u64, offset_s: i64) -> Segment {
        Segment {
            after: None,
            from: MonoNs(from_ns),
            until: MonoNs(from_ns),
            mono_to_real: Bounds {
                low: 990,
                high: 1_010,
            },
            tai_offset_s: offset_s,
            step_ns: 0,
            cause: None,
            counter_jump_ns: None,
            samples: 1,
        }
    }

    fn statistics(segments: Vec<Segment>, utc_bound_ns: Option<u64>) -> StatisticsOption {
        let clock = ClockOption {
            stamp: StampOption::new(StampPath::Ktime),
            counter: None,
            host_bound_ns: 20,
            stamp_error_ns: 0,
            utc_bound_ns,
            utc: None,
            reference: None,
            references: Vec::new(),
            order: StampOrder::default(),
            segments_left_out: 0,
            segments,
            samples: Vec::new(),
        };
        StatisticsOption::new(Outcomes::default(), clock, None)
    }

    #[test]
    fn a_change_of_the_offset_to_tai_holds_from_its_segment_on() {
        let mut clock = ReceiveClock::default();
        clock.take(&statistics(vec![segment(0, 0), segment(50, 0)], Some(7)));
        clock.take(&statistics(
            vec![segment(50, 0), segment(5_000, 37)],
            Some(5),
        ));
        assert_eq!(clock.to_tai(FileNs(10)), Some(TaiNs(10)));
        assert_eq!(clock.to_tai(FileNs(5_999)), Some(TaiNs(5_999)));
        assert_eq!(clock.to_tai(FileNs(6_000)), Some(TaiNs(37_000_006_000)));
        let basis = |utc_bound_ns| DelayBasis::Clocks {
            tai_offsets_s: vec![0, 37],
            host_bound_ns: 20,
            utc_bound_ns,
            reference: None,
        };
        assert_eq!(clock.delay_basis(true), basis(Some(7)));
        clock.take(&statistics(Vec::new(), None));
        assert_eq!(clock.delay_basis(true), basis(None));
    }

    #[test]
    fn without_statistics_there_is_a_reason() {
        let clock = ReceiveClock::default();
        assert_eq!(clock.to_tai(FileNs(10)), None);
        for (is_ours, reason) in [(true, "killed"), (false, "not a file of tscap")] {
            let DelayBasis::Unavailable { why } = clock.delay_basis(is_ours) else {
                panic!("nothing to base it on");
            };
            assert!(why.contains(reason), "{why}");
        }
    }
}
