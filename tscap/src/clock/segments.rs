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
    /// Least and greatest offset that stamps of the current one were converted by, ns.
    used: Option<(i64, i64)>,
    /// Greatest error of those before it, ns.
    ended_bound_ns: u64,
}

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
            used: None,
            ended_bound_ns: 0,
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
        self.ended_bound_ns = self.bound_ns();
        self.used = None;
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

    /// The current one.
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

    /// Stamps are converted by the middle of the current one's bounds.
    pub fn convert(&mut self) {
        let middle = self.current().mono_to_real.middle().0;
        let (least, greatest) = self.used.unwrap_or((middle, middle));
        self.used = Some((least.min(middle), greatest.max(middle)));
    }

    /// Greatest error of the offset by which any stamp was converted, or would be now,
    /// ns. What is known by now of the offset holds for those before too.
    pub fn bound_ns(&self) -> u64 {
        let bounds = self.current().mono_to_real;
        let middle = bounds.middle().0;
        let (least, greatest) = self.used.unwrap_or((middle, middle));
        let now = bounds.high.abs_diff(least.min(middle));
        let now = now.max(greatest.max(middle).abs_diff(bounds.low));
        self.ended_bound_ns.max(now)
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
