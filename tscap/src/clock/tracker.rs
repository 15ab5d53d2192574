//! Follows the offset between the stamps' clock and CLOCK_REALTIME.

use super::{
    Bounds, CrossTimestamp, MonoNs, OffsetNs, RawStamp, RealNs, Sample, Segment, StampSource,
};

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
    },
}

/// The offset, segment by segment. Each conversion is off from the host's clock
/// by at most [`Tracker::host_bound_ns`].
#[derive(Clone, Debug)]
pub struct Tracker {
    source: StampSource,
    segments: Vec<Segment>,
    /// Best sample of the second that `sample_until` ends.
    best: Option<Sample>,
    sample_until: MonoNs,
    samples: Vec<Sample>,
}

/// Turns stamps into wall-clock time on both sides of the latest step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conversion {
    /// Stamps from here on belong to the current segment.
    from: RawStamp,
    /// Stamps after this one and before `from` may belong to either.
    after: RawStamp,
    earlier: OffsetNs,
    current: OffsetNs,
}

const NS_PER_S: i64 = 1_000_000_000;
const SAMPLE_EVERY_NS: u64 = 1_000_000_000;

impl Tracker {
    /// Begins with one good cross-timestamp; `None` if it is torn.
    pub fn new(source: StampSource, first: &CrossTimestamp) -> Option<Self> {
        let sample = Sample::new(first)?;
        let (low, high) = first.mono_to_real()?;
        Some(Self {
            source,
            segments: vec![Segment {
                after: None,
                from: sample.mono,
                until: sample.mono,
                mono_to_real: Bounds { low, high },
                tai_offset_s: sample.tai_offset_s,
                step_ns: 0,
                samples: 1,
            }],
            best: Some(sample),
            sample_until: MonoNs(sample.mono.0 + SAMPLE_EVERY_NS),
            samples: Vec::new(),
        })
    }

    /// Takes in one more cross-timestamp. They must come in order of time.
    pub fn observe(&mut self, cross: &CrossTimestamp) -> Observation {
        let (Some(sample), Some((low, high))) = (Sample::new(cross), cross.mono_to_real()) else {
            return Observation::Torn;
        };
        self.keep_sample(sample);
        let seen = Bounds { low, high };
        let segment = self.segments.last_mut().expect("there is always one");
        if segment.tai_offset_s == sample.tai_offset_s
            && let Some(both) = segment.mono_to_real.intersect(seen)
        {
            segment.mono_to_real = both;
            segment.until = cross.mono[1];
            segment.samples += 1;
            return Observation::Agrees;
        }
        let step_ns = seen.middle().0 - segment.mono_to_real.middle().0;
        let after = Some(segment.until);
        self.segments.push(Segment {
            after,
            from: cross.mono[0],
            until: cross.mono[1],
            mono_to_real: seen,
            tai_offset_s: sample.tai_offset_s,
            step_ns,
            samples: 1,
        });
        Observation::Stepped { step_ns }
    }

    /// Keeps the narrowest sample of each second for the file.
    fn keep_sample(&mut self, sample: Sample) {
        if sample.mono >= self.sample_until {
            self.samples.extend(self.best.take());
            self.sample_until = MonoNs(sample.mono.0 + SAMPLE_EVERY_NS);
        }
        if self.best.is_none_or(|best| sample.width_ns < best.width_ns) {
            self.best = Some(sample);
        }
    }

    /// The samples kept since the last call, at most one a second.
    pub fn take_samples(&mut self) -> Vec<Sample> {
        let mut samples = std::mem::take(&mut self.samples);
        samples.extend(self.best.take());
        samples
    }

    /// Every segment so far, the current one last.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// The current segment.
    pub fn current(&self) -> &Segment {
        self.segments.last().expect("there is always one")
    }

    /// The source of the stamps.
    pub fn source(&self) -> StampSource {
        self.source
    }

    /// Greatest error of a converted stamp against the host's CLOCK_REALTIME in
    /// any segment, ns. For `tai`, whose offset is a whole number of seconds, it
    /// is what the cross-timestamps have shown. It holds for the clock as user space reads it; the
    /// kernel's fast accessor, which BPF uses, may lag it by a moment while the
    /// timekeeper is being updated (`ktime_get_mono_fast_ns`,
    /// kernel/time/timekeeping.c).
    pub fn host_bound_ns(&self) -> u64 {
        let bounds = self.segments.iter().map(|segment| segment.mono_to_real);
        bounds.map(Bounds::half_width).max().unwrap_or(0)
    }

    /// CLOCK_REALTIME at a CLOCK_MONOTONIC reading of the current segment.
    pub fn real_at(&self, mono: MonoNs) -> RealNs {
        RawStamp(mono.0).to_real(self.current().mono_to_real.middle())
    }

    /// What a frame would have been stamped with `ns` before `cross`, in the
    /// stamps' own clock.
    pub fn stamp_before(&self, cross: &CrossTimestamp, ns: u64) -> RawStamp {
        let at = match self.source {
            StampSource::Ktime => cross.mono[0].0,
            StampSource::Tai => cross.tai.0,
        };
        RawStamp(at.saturating_sub(ns))
    }

    /// The conversion in force.
    pub fn conversion(&self) -> Conversion {
        let current = self.current();
        let earlier = match self.segments.as_slice() {
            [.., earlier, _] => earlier,
            _ => current,
        };
        // TAI is set together with REALTIME, so its stamps order the segments only
        // when the whole seconds between them change; nothing else matters then.
        let stamp = |segment: &Segment, mono: MonoNs| match self.source {
            StampSource::Ktime => RawStamp(mono.0),
            StampSource::Tai => {
                let real = RawStamp(mono.0).to_real(segment.mono_to_real.middle());
                RawStamp(real.0.wrapping_add_signed(segment.tai_offset_s * NS_PER_S))
            }
        };
        Conversion {
            from: match current.after {
                Some(_) => stamp(current, current.from),
                None => RawStamp(0),
            },
            after: stamp(earlier, earlier.until),
            earlier: offset(self.source, earlier),
            current: offset(self.source, current),
        }
    }
}

fn offset(source: StampSource, segment: &Segment) -> OffsetNs {
    match source {
        StampSource::Ktime => segment.mono_to_real.middle(),
        StampSource::Tai => OffsetNs(-segment.tai_offset_s * NS_PER_S),
    }
}

impl Conversion {
    /// The wall-clock time of a stamp.
    #[inline]
    pub fn to_real(&self, stamp: RawStamp) -> RealNs {
        stamp.to_real(if stamp >= self.from {
            self.current
        } else {
            self.earlier
        })
    }

    /// Whether the stamp was taken between the last cross-timestamp before a
    /// step and the first one after it, so that either offset may be its own.
    #[inline]
    pub fn is_ambiguous(&self, stamp: RawStamp) -> bool {
        stamp < self.from && stamp > self.after && self.earlier != self.current
    }
}

#[cfg(test)]
mod tests;
