//! From the clock that the capture's times are of to that which the copy's are to be of.

use std::path::Path;

use super::gather::Gathered;
use crate::clock::{BaseClock, FileNs, History, RawStamp, RealNs, TimeBase};
use crate::command::{Failure, Hint};
use crate::pcapng::StatisticsOption;

/// Both clocks.
#[derive(Clone, Debug)]
pub(super) struct Bases {
    from: BaseClock,
    to: BaseClock,
    /// Which one the copy's times are of.
    pub base: TimeBase,
    /// How far the start of the statistics moves: that of the first block.
    start_moved_ns: Option<i64>,
}

impl Bases {
    /// By all that is known of the clock.
    ///
    /// # Errors
    /// If that does not tell every packet's time in both.
    pub fn new(
        history: &History,
        capture: &Gathered,
        to: Option<TimeBase>,
        input: &Path,
    ) -> Result<Self, Failure> {
        let from = capture.time_base;
        let base = to.unwrap_or(from);
        let clock = |base: TimeBase| {
            let clock = BaseClock::new(history, base, capture.all_have_stamps);
            clock
                .trying(format!(
                    "cannot tell the times of {} by {}",
                    input.display(),
                    base.name()
                ))
                .map_err(|failure| {
                    failure.hint("capture with --keep-raw; or convert by a log, see --clock-log")
                })
        };
        Ok(Self {
            from: clock(from)?,
            to: clock(base)?,
            base,
            start_moved_ns: None,
        })
    }

    /// CLOCK_REALTIME at a packet of the capture.
    pub fn real(&self, time: FileNs, stamp: Option<RawStamp>) -> RealNs {
        self.from.to_real(time, stamp)
    }

    /// The time that it is to have in the copy.
    pub fn time(&self, real: RealNs, stamp: Option<RawStamp>) -> FileNs {
        self.to.from_real(real, stamp)
    }

    /// How far a statistics block's start, and the time of its making, move. It was
    /// made in its last segment, and the capture began in the first one of all.
    pub fn moved(&mut self, statistics: &StatisticsOption) -> [i64; 2] {
        let segments = &statistics.clock.segments;
        let moved = |mono| {
            self.to
                .ahead_ns_at(mono)
                .wrapping_sub(self.from.ahead_ns_at(mono))
        };
        let made = segments.last().map_or(0, |segment| moved(segment.from));
        let first = segments.first().map_or(0, |segment| moved(segment.from));
        let start = *self.start_moved_ns.get_or_insert(first);
        [start, made]
    }
}
