//! The segments of a clock so far, in bounded memory.

use super::{Bounds, CrossTimestamp, Sample, Segment, StepCause};

/// Most segments that are kept, some 200 kB; half of them are forgotten then, the
/// earliest. A host whose clock is set every second gets there in a quarter of an hour.
const MOST_SEGMENTS: usize = 1_000;

/// The latest segments, and what is left of those before.
#[derive(Clone, Debug)]
pub(super) struct Segments {
    latest: Vec<Segment>,
    forgotten: Forgotten,
    /// What each of the latest readings by itself allows.
    readings: [Bounds; STAMPS_WAIT + 1],
    /// Greatest error of what was converted, ns.
    used_bound_ns: u64,
}

/// Stamps wait for so many readings at most until they are converted: for the next one,
/// and for another one where older stamps of other CPUs may come.
pub(super) const STAMPS_WAIT: usize = 2;

/// What is left of segments that are forgotten.
#[derive(Clone, Copy, Debug, Default)]
struct Forgotten {
    segments: u64,
    steps: u64,
}

/// What a new segment begins with.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Start {
    /// How far the clock was set, ns, and why, if it was.
    pub step: Option<(i64, StepCause)>,
    /// How far the clock went ahead of a counter that jumped, ns.
    pub counter_jump_ns: Option<i64>,
}

impl Segments {
    /// Begins with the first cross-timestamp.
    pub fn new(cross: &CrossTimestamp, sample: &Sample, mono_to_real: Bounds) -> Self {
        Self {
            latest: vec![Segment {
                after: None,
                from: cross.mono[0],
                until: cross.mono[0],
                mono_to_real,
                tai_offset_s: sample.tai_offset_s,
                step_ns: 0,
                cause: None,
                counter_jump_ns: None,
                samples: 1,
            }],
            forgotten: Forgotten::default(),
            readings: [mono_to_real; STAMPS_WAIT + 1],
            used_bound_ns: 0,
        }
    }

    /// Begins one with its first cross-timestamp. When in that the clock was read is
    /// not known, so it is this clock for certain from the end of it on only.
    pub fn begin(
        &mut self,
        cross: &CrossTimestamp,
        sample: &Sample,
        mono_to_real: Bounds,
        start: Start,
    ) {
        let after = self.current().until;
        if start.step.is_some() {
            self.used_bound_ns = self.bound_ns();
            self.readings = [mono_to_real; STAMPS_WAIT + 1];
        }
        self.forget();
        self.latest.push(Segment {
            after: Some(after),
            from: cross.mono[1],
            until: cross.mono[1],
            mono_to_real,
            tai_offset_s: sample.tai_offset_s,
            step_ns: start.step.map_or(0, |(ns, _)| ns),
            cause: start.step.map(|(_, cause)| cause),
            counter_jump_ns: start.counter_jump_ns,
            samples: 1,
        });
    }

    /// One more cross-timestamp agrees with the current one: up to its beginning, as the
    /// clock may have been set while it was taken. `None` if it is so wide that a small
    /// step does not show: it says nothing for certain.
    pub fn extend(&mut self, cross: &CrossTimestamp, mono_to_real: Option<Bounds>) {
        let segment = self.latest.last_mut().expect("there is always one");
        segment.samples += 1;
        if let Some(mono_to_real) = mono_to_real {
            segment.mono_to_real = mono_to_real;
            segment.until = cross.mono[0];
        }
    }

    pub fn current(&self) -> &Segment {
        self.latest.last().expect("there is always one")
    }

    /// The one that began when the clock was set last, and the one before it; twice the
    /// first if it was not set, or that is forgotten.
    pub fn around_latest_step(&self) -> (&Segment, &Segment) {
        let set = self.latest.iter().rposition(Segment::is_set).unwrap_or(0);
        (&self.latest[set], &self.latest[set.saturating_sub(1)])
    }

    /// The latest, the current one last.
    pub fn latest(&self) -> &[Segment] {
        &self.latest
    }

    /// How many there were before the earliest of [`Self::latest`].
    pub fn forgotten(&self) -> u64 {
        self.forgotten.segments
    }

    /// Those that are new or have grown since this was asked with the same `settled`,
    /// at first 0; and how many of them are forgotten.
    pub fn unsettled(&self, settled: &mut u64) -> (&[Segment], u64) {
        let forgotten = self.forgotten.segments;
        let known = settled.saturating_sub(forgotten) as usize;
        let lost = forgotten.saturating_sub(*settled);
        // The current one may still grow.
        *settled = forgotten + self.latest.len() as u64 - 1;
        (&self.latest[known..], lost)
    }

    /// How often the clock was set.
    pub fn steps(&self) -> u64 {
        self.forgotten.steps + steps(&self.latest)
    }

    /// What a reading that agrees with the current one allows by itself.
    pub fn saw(&mut self, reading: Bounds) {
        self.readings.rotate_left(1);
        self.readings[STAMPS_WAIT] = reading;
    }

    /// Stamps are converted by the middle of the current one's bounds.
    pub fn convert(&mut self) {
        self.used_bound_ns = self.bound_ns();
    }

    /// Greatest error of the offset by which any stamp was converted, or would be now,
    /// ns. Not by what all readings allow together: the clock may have been set by less
    /// than any of them shows. Whenever that was, the offset was within the readings on
    /// either side of the stamp.
    pub fn bound_ns(&self) -> u64 {
        let middle = self.current().mono_to_real.middle().0;
        let farther = |reading: &Bounds| {
            let above = reading.high.saturating_sub(middle);
            above.max(middle.saturating_sub(reading.low)).max(0)
        };
        let now = self.readings.iter().map(farther).max().unwrap_or(0);
        self.used_bound_ns.max(now.unsigned_abs())
    }

    /// Forgets the earlier half if there are too many; what they say of all time is
    /// kept.
    fn forget(&mut self) {
        if self.latest.len() < MOST_SEGMENTS {
            return;
        }
        let earlier = self.latest.drain(..MOST_SEGMENTS / 2);
        let earlier = earlier.as_slice();
        self.forgotten = Forgotten {
            segments: self.forgotten.segments + earlier.len() as u64,
            steps: self.forgotten.steps + steps(earlier),
        };
    }
}

fn steps(segments: &[Segment]) -> u64 {
    segments.iter().filter(|segment| segment.is_set()).count() as u64
}

#[cfg(test)]
mod tests {
    use super::super::{MonoNs, RealNs, TaiNs};
    use super::*;

    fn cross(mono: u64) -> CrossTimestamp {
        CrossTimestamp {
            mono: [MonoNs(mono), MonoNs(mono + 40)],
            tsc: None,
            real: [RealNs(mono); 2],
            tai: TaiNs(mono),
            boot: None,
            offset: None,
        }
    }

    const WIDE: Bounds = Bounds { low: 0, high: 100 };
    const NARROW: Bounds = Bounds { low: 45, high: 65 };

    /// The middle is 55 at last: 10 ns from the ends of the narrow readings.
    fn narrowed(is_used: bool) -> Segments {
        let mut segments = Segments::new(&cross(100), &Sample::at(100, 100), WIDE);
        assert_eq!(segments.bound_ns(), 50);
        if is_used {
            segments.convert();
        }
        for turn in 1..=3 {
            segments.saw(NARROW);
            segments.extend(&cross(100 + turn), Some(NARROW));
        }
        segments
    }

    #[test]
    fn the_bound_is_that_of_the_stamps_that_were_converted() {
        assert_eq!(narrowed(false).bound_ns(), 10);
        assert_eq!(narrowed(true).bound_ns(), 50);
        // Stamps that wait may still be converted by the reading two before.
        let mut waiting = narrowed(false);
        for (reading, expected) in [(WIDE, 55), (NARROW, 55), (NARROW, 55), (NARROW, 10)] {
            waiting.saw(reading);
            assert_eq!(waiting.bound_ns(), expected);
        }
        let step = Start {
            step: Some((-7, StepCause::Set)),
            ..Start::default()
        };
        let mut stepped = Segments::new(&cross(100), &Sample::at(100, 100), WIDE);
        stepped.begin(&cross(200), &Sample::at(200, 193), NARROW, step);
        assert_eq!(stepped.bound_ns(), 50, "it holds for earlier stamps too");
    }

    #[test]
    fn a_segment_counts_its_readings_and_lasts_until_the_latest_that_agrees() {
        let mut segments = narrowed(false);
        let last = *segments.current();
        assert_eq!((last.samples, last.until), (4, MonoNs(103)));
        assert_eq!(last.mono_to_real, NARROW);
        segments.extend(&cross(110), None);
        let expected = Segment { samples: 5, ..last };
        assert_eq!(*segments.current(), expected);
    }
}
