//! What a measurement makes of records.

use tscap_clock::{Conversion, CounterReport, NsPerCycle, RawStamp, RealNs, TaiNs, Tracker};
use tscap_time::NS_PER_S;

use super::records::Records;

/// What is particular to a measurement: it is in the thread that takes records out of the
/// rings, which calls it.
///
/// All programs are attached before the first call, and stay so until the last records have
/// been taken, unless their interface goes.
pub trait Sink: Send + 'static {
    /// Name of the thread.
    const THREAD: &'static str;
    /// Whether packets are waited for: then [`Self::settled`] is called after each drain.
    const WAITS: bool;
    /// What is recorded, and the order in which it comes.
    type Records: Records;
    /// What is told of each second.
    type Latest: Send + 'static;

    /// Called in each drain, behind the look at the rings and the reading of the clock, and
    /// before its records.
    fn begin(&mut self, tracker: &Tracker);

    /// Takes in a record of that ring.
    fn take(&mut self, ring: usize, record: <Self::Records as Records>::Record<'_>, times: &Times);

    /// What was stamped before `until` has come, unless its CPU is held up for long.
    fn settled(&mut self, until: RawStamp, times: &Times);

    /// Something has become of the clock of the stamps. Gives what a reader must know of that.
    fn clock_changed(&mut self, change: ClockChange) -> Option<String>;

    /// How far it is.
    fn progress(&self) -> Progress;

    /// What is told now.
    fn latest(&mut self, tracker: &Tracker) -> Self::Latest;
}

/// How far a measurement is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Packets that count for a limit to them.
    pub counted: u64,
    /// Packets that are waited for.
    pub open: u64,
}

/// What may become of the clock of the stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockChange {
    /// The counter jumped by so much, ns: stamps from before it don't compare with later ones.
    CounterJumped(i64),
    /// The system clock was set by so much, ns.
    Stepped(i64),
    /// The counters of CPUs have other offsets than before.
    Recalibrated,
}

/// How stamps become times, for one drain.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    conversion: Conversion,
    tai_offset_ns: i64,
    /// The rate of a counter.
    rate: Option<NsPerCycle>,
}

impl Times {
    /// By the clock as it is known now.
    pub fn of(tracker: &mut Tracker) -> Self {
        let rate = tracker.counter_report();
        Self {
            conversion: tracker.convert(),
            tai_offset_ns: tracker.current().tai_offset_s * NS_PER_S,
            rate: rate.as_ref().map(CounterReport::interval_rate),
        }
    }

    /// From one stamp to another, by the difference clock, ns.
    #[inline]
    pub fn between(&self, from: RawStamp, to: RawStamp) -> i64 {
        let span = to.0.wrapping_sub(from.0).cast_signed();
        let Some(rate) = self.rate else {
            return span;
        };
        let ns = i64::try_from(rate.duration_ns(span.unsigned_abs())).unwrap_or(i64::MAX);
        if span < 0 { -ns } else { ns }
    }

    /// The rate of the stamps by the difference clock; those of clocks count ns.
    pub fn rate(&self) -> NsPerCycle {
        self.rate.unwrap_or(NsPerCycle::ONE)
    }

    /// The time of a stamp.
    #[inline]
    pub fn real(&self, stamp: RawStamp) -> RealNs {
        self.conversion.to_real(stamp)
    }

    /// The time of a stamp, by CLOCK_TAI.
    #[inline]
    pub fn tai(&self, stamp: RawStamp) -> TaiNs {
        let real = self.real(stamp);
        TaiNs(real.0.wrapping_add_signed(self.tai_offset_ns))
    }
}
