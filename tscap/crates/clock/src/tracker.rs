//! Follows the offset between the stamps' clock and CLOCK_REALTIME.

mod ambiguity;
mod observing;
mod reference;

use self::ambiguity::{Ambiguity, Seen};
use super::sample_thinning::SampleThinning;
use super::segments::Segments;
use super::typical_width::TypicalWidth;
use super::{
    BootNs, Bounds, Bracket, Conversion, CounterClock, CounterReport, CrossTimestamp,
    FollowedBounds, MonoNs, OffsetConversion, RawClock, RawStamp, RealNs, Reference, Sample,
    Segment, StampSource, StepCause, TscCycles,
};

/// Looks at the end for one that was not interrupted: each has four readings.
const LAST_LOOKS: usize = 8;
/// CLOCK_MONOTONIC_RAW is read this often, ns. Intervals of a counter go by its rate, which is good to
/// 0.1 ppm after the second reading.
const RAW_EVERY_NS: u64 = 1_000_000_000;

/// What a cross-timestamp said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observation {
    /// It agrees with the current segment (or began the first one).
    Agrees,
    /// The clock was set while it was being read: of no use.
    Torn,
    /// The clock has been set since the one before: a new segment begins.
    Stepped {
        /// By how much, ns.
        step_ns: i64,
        /// Why.
        cause: StepCause,
        /// The counter has jumped as well: by how much CLOCK_MONOTONIC went ahead of it, ns.
        counter_jump_ns: Option<i64>,
    },
    /// The counter has jumped since the one before, as when a virtual machine moves
    /// to another host: a new segment begins.
    CounterJumped {
        /// By how much the clock went ahead of the counter, ns.
        jump_ns: i64,
    },
}

impl Observation {
    /// By how much the clocks went ahead of a counter that jumped, whatever else happened, ns.
    pub fn counter_jump_ns(self) -> Option<i64> {
        match self {
            Self::Stepped {
                counter_jump_ns, ..
            } => counter_jump_ns,
            Self::CounterJumped { jump_ns } => Some(jump_ns),
            Self::Agrees | Self::Torn => None,
        }
    }
}

/// The offset, segment by segment. A stamp that is converted is off from the host's clock
/// by at most [`Tracker::host_bound_ns`].
#[derive(Clone, Debug)]
pub struct Tracker {
    source: StampSource,
    segments: Segments,
    usual: TypicalWidth,
    /// Cross-timestamps during which the clock was set.
    torn: u64,
    /// For how long the machine had been suspended when that was last read, ns.
    suspended_ns: Option<u64>,
    kept: SampleThinning,
    /// The sample before this one.
    previous: Option<Sample>,
    /// For TSC stamps: the counter's clock, once there are two cross-timestamps
    /// far enough apart.
    counter: Option<CounterClock>,
    first: CrossTimestamp,
    ambiguity: Ambiguity,
    /// The clock was set, which the counter's clock could not be told of yet; and whether the
    /// counter jumped then.
    untold_step: Option<bool>,
    /// The kernel said so before the reading that is to be observed next.
    was_set: bool,
    /// Greatest error of the stamps themselves, ns.
    stamp_error_ns: u64,
    /// Greatest error of converted stamps since that was asked for last, ns.
    recent_bound_ns: u64,
    /// CLOCK_MONOTONIC_RAW by the counter, for intervals.
    raw: RawClock,
    /// CLOCK_MONOTONIC_RAW is read from then on.
    next_raw: MonoNs,
    /// Where the clock follows a reference: how far it was off that.
    reference: Option<FollowedBounds>,
}

impl Tracker {
    /// Begins with one good cross-timestamp; `None` if it is torn.
    pub fn new(source: StampSource, first: &CrossTimestamp) -> Option<Self> {
        let sample = Sample::new(first)?;
        let (low, high) = first.mono_to_real()?;
        Some(Self {
            source,
            segments: Segments::new(first, &sample, Bounds { low, high }),
            usual: TypicalWidth::new(sample.width_ns),
            torn: 0,
            suspended_ns: first.suspended_ns(),
            kept: SampleThinning::new(sample),
            previous: Some(sample),
            counter: None,
            first: *first,
            ambiguity: Ambiguity::new(Seen::of(source, first)),
            untold_step: None,
            was_set: false,
            stamp_error_ns: 0,
            recent_bound_ns: 0,
            raw: RawClock::default(),
            next_raw: MonoNs(0),
            reference: None,
        })
    }

    /// Reads the clocks, and judges the reading: gives both.
    pub fn look(&mut self, reference: &mut impl Reference) -> (CrossTimestamp, Observation) {
        let cross = self.read(reference);
        let seen = self.observe(&cross);
        (cross, seen)
    }

    /// Reads a cross-timestamp; again, up to three times, if the reading was
    /// interrupted. Stamps are ambiguous since the reading before if somebody has set the clock
    /// since then, even if it was set back so that no reading shows it.
    pub fn read(&mut self, reference: &mut impl Reference) -> CrossTimestamp {
        self.was_set |= reference.was_set();
        let mut cross = reference.read();
        for _ in 0..3 {
            let counter = self.counter.as_ref().zip(cross.bracket());
            let is_wide = counter.is_some_and(|(counter, bracket)| counter.is_wide(&bracket));
            if !is_wide && !self.is_wide(cross.width_ns()) {
                break;
            }
            let earlier = cross;
            cross = reference.read();
            // It is read once, wherever the clocks moved first, and went on as long as
            // CLOCK_MONOTONIC since.
            let since = cross.mono[1].0.saturating_sub(earlier.mono[1].0);
            let carried = earlier.boot.map(|boot| BootNs(boot.0 + since));
            cross.boot = cross.boot.or(carried);
        }
        cross
    }

    /// Whether a cross-timestamp was interrupted. It may seem to be longer or shorter by a value
    /// of a coarse counter.
    fn is_wide(&self, width_ns: u64) -> bool {
        let count_ns = self.counter.as_ref().map_or(0, |it| it.rate().count_ns());
        self.usual
            .is_exceeded_by(width_ns.saturating_sub(2 * count_ns))
    }

    /// Whether it is known how the stamps' clock goes on after the latest reading: not where that
    /// was torn, or of no use after a step.
    pub fn is_resolved(&self) -> bool {
        !self.ambiguity.has_unresolved()
    }

    /// Whether stamps can be converted: a counter needs two cross-timestamps at
    /// least 10 ms apart.
    pub fn is_settled(&self) -> bool {
        self.source != StampSource::Tsc || self.counter.is_some()
    }

    /// The counter's clock, for TSC stamps.
    pub fn counter(&self) -> Option<&CounterClock> {
        self.counter.as_ref()
    }

    /// Reads CLOCK_MONOTONIC_RAW, by which intervals are measured, if a second has passed since it
    /// was read last. To be called after each look, with the time of that.
    pub fn look_at_raw(&mut self, now: MonoNs, reference: &mut impl Reference) {
        if now >= self.next_raw
            && let Some(raw) = reference.raw()
        {
            self.observe_raw(&raw);
            self.next_raw = MonoNs(now.0 + RAW_EVERY_NS);
        }
    }

    pub(super) fn observe_raw(&mut self, bracket: &Bracket) {
        self.raw.observe(bracket);
    }

    /// What the file says of the counter, for TSC stamps.
    pub fn counter_report(&self) -> Option<CounterReport> {
        let report = self.counter.as_ref()?.report();
        Some(CounterReport {
            raw: self.raw.rate(),
            ..report
        })
    }

    /// Length of a span of stamps, ns.
    pub fn span_ns(&self, units: u64) -> u64 {
        let counter = self.counter.as_ref();
        counter.map_or(units, |counter| counter.rate().duration_ns(units))
    }

    /// Sets the greatest error of the stamps themselves, which adds to the host
    /// bound, ns: how well the offset of a CPU's counter is known.
    pub fn set_stamp_error_ns(&mut self, error: u64) {
        self.stamp_error_ns = error;
    }

    /// What was set by that, ns; 0 otherwise.
    pub fn stamp_error_ns(&self) -> u64 {
        self.stamp_error_ns
    }

    /// The samples kept since the last call: the narrowest of each second, and those
    /// on either side of a bend, a step or a jump.
    pub fn take_samples(&mut self) -> Vec<Sample> {
        self.kept.take()
    }

    /// The latest segments, the current one last: all, unless there were more than
    /// 1,000 of them.
    pub fn segments(&self) -> &[Segment] {
        self.segments.latest()
    }

    /// The segments that are new or have grown since this was asked with the same
    /// `settled`, at first 0; and how many of them are forgotten.
    pub fn unsettled_segments(&self, settled: &mut u64) -> (&[Segment], u64) {
        self.segments.unsettled(settled)
    }

    /// How many segments there were before the earliest of [`Self::segments`].
    pub fn segments_forgotten(&self) -> u64 {
        self.segments.forgotten()
    }

    /// How often the clock was set.
    pub fn steps(&self) -> u64 {
        self.segments.steps()
    }

    /// How often the bound was raised for what interrupted readings may hide; 0 for stamps
    /// that are no counter's.
    pub fn bound_raised(&self) -> u64 {
        self.counter.as_ref().map_or(0, CounterClock::raised)
    }

    /// Cross-timestamps of no use because the clock was set meanwhile.
    pub fn torn(&self) -> u64 {
        self.torn
    }

    /// The current segment.
    pub fn current(&self) -> &Segment {
        self.segments.current()
    }

    /// The source of the stamps.
    pub fn source(&self) -> StampSource {
        self.source
    }

    /// Greatest error of a converted stamp against the host's CLOCK_REALTIME in
    /// any segment, ns: 1 at least, for rounding. For `tai`, whose offset is a whole number of seconds, it
    /// is what the cross-timestamps have shown. It holds for the clock as user space reads it; the
    /// kernel's fast accessor, which BPF uses, may lag it by a moment while the
    /// timekeeper is being updated (`ktime_get_mono_fast_ns`,
    /// kernel/time/timekeeping.c).
    pub fn host_bound_ns(&self) -> u64 {
        if let Some(counter) = &self.counter {
            return counter.stamp_bound_ns() + self.stamp_error_ns;
        }
        self.segments.bound_ns().max(1)
    }

    /// Greatest error of TSC stamps between two readings since the last call, ns. What happened
    /// in a time shows in the first reading of use after it.
    pub fn take_recent_bound_ns(&mut self) -> u64 {
        std::mem::take(&mut self.recent_bound_ns) + self.stamp_error_ns
    }

    /// Whether one more look is worth it before [`Self::host_bound_ns`] is stated for the last time:
    /// the latest reading was interrupted, so that the clock may have bent before it, and there
    /// were not many `looks` for that yet.
    pub fn wants_last_look(&self, looks: &mut usize) -> bool {
        *looks += 1;
        let counter = self.counter.as_ref().filter(|_| *looks <= LAST_LOOKS);
        counter.is_some_and(|counter| counter.open_bound_ns() > 0)
    }

    /// CLOCK_REALTIME at a CLOCK_MONOTONIC reading of the current segment.
    pub fn real_at(&self, mono: MonoNs) -> RealNs {
        RawStamp(mono.0).to_real(self.current().mono_to_real.middle())
    }

    /// CLOCK_MONOTONIC at a time of the current segment.
    pub fn mono_at(&self, real: RealNs) -> MonoNs {
        let offset = self.current().mono_to_real.middle();
        MonoNs(real.0.wrapping_sub_signed(offset.0))
    }

    /// What a frame would have been stamped with at `mono`, which is near
    /// `cross`, in the stamps' own clock.
    pub fn stamp_at(&self, cross: &CrossTimestamp, mono: MonoNs) -> RawStamp {
        let near = match self.source {
            StampSource::Ktime => cross.mono[0].0,
            StampSource::Tai => cross.tai.0,
            StampSource::Tsc => cross.tsc.map_or(0, |[before, _]| before.0),
        };
        let ns = mono.0.wrapping_sub(cross.mono[0].0).cast_signed();
        let units = match &self.counter {
            Some(counter) => counter.rate().cycles_in(ns),
            None => ns,
        };
        RawStamp(near.saturating_add_signed(units))
    }

    /// The conversion in force, to convert stamps by: [`Tracker::host_bound_ns`] holds
    /// for them too, however much closer the offset is known later.
    ///
    /// # Panics
    /// As [`Tracker::conversion`].
    pub fn convert(&mut self) -> Conversion {
        self.segments.convert();
        self.conversion()
    }

    /// The conversion in force.
    ///
    /// # Panics
    /// Before the tracker [is settled](Self::is_settled).
    pub fn conversion(&self) -> Conversion {
        if self.source == StampSource::Tsc {
            let counter = self.counter.as_ref().expect("settled before the start");
            return Conversion::Counter {
                clock: counter.conversion(),
                since: self.ambiguity.since().map(TscCycles),
                ambiguous: self.ambiguity.ambiguous(),
            };
        }
        let ambiguous = self.ambiguity.ambiguous();
        Conversion::Offset(OffsetConversion::new(
            self.source,
            &self.segments,
            ambiguous,
        ))
    }
}

#[cfg(test)]
mod tests;
