//! The samples of a clock that the file keeps.

use super::{MonoNs, Sample};

const SAMPLE_EVERY_NS: u64 = 1_000_000_000;
/// Of at most so many bends and steps a second the samples are kept...
const KEPT_EVERY_SECOND: usize = 8;
/// ...and no more at once: with 200 bytes each they and the segments fit an option.
const MOST_KEPT: usize = 180;

/// The narrowest of each second, and those on either side of a bend, a step or a jump.
#[derive(Clone, Debug)]
pub(super) struct KeptSamples {
    /// Best sample of the second that `until` ends.
    best: Option<Sample>,
    until: MonoNs,
    samples: Vec<Sample>,
    /// How often in this second the samples on either side of something were kept.
    sides: usize,
}

impl KeptSamples {
    /// Begins with the first one.
    pub fn new(first: Sample) -> Self {
        Self {
            best: Some(first),
            until: MonoNs(first.mono.0 + SAMPLE_EVERY_NS),
            samples: Vec::new(),
            sides: 0,
        }
    }

    /// One more, which is kept if it is the narrowest of its second.
    pub fn offer(&mut self, sample: Sample) {
        if sample.mono >= self.until {
            self.samples.extend(self.best.take());
            self.until = MonoNs(sample.mono.0 + SAMPLE_EVERY_NS);
            self.sides = 0;
        }
        if self.best.is_none_or(|best| sample.width_ns < best.width_ns) {
            self.best = Some(sample);
        }
    }

    /// Keeps those on either side of a bend, a step or a jump of a counter too: there its
    /// clock is no straight line from one second to the next.
    pub fn both_sides(&mut self, before: Option<Sample>, sample: Sample) {
        if self.sides < KEPT_EVERY_SECOND && self.samples.len() < MOST_KEPT {
            self.sides += 1;
            self.samples.extend(before);
            self.samples.push(sample);
        }
    }

    /// Those kept since the last call.
    pub fn take(&mut self) -> Vec<Sample> {
        let mut samples = std::mem::take(&mut self.samples);
        samples.extend(self.best.take());
        samples
    }
}
