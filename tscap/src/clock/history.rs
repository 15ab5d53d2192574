//! All that is known of a clock: what a fit is made of.

use super::{NsPerCycle, Sample, Segment, StampSource};

/// A clock's history, gathered from a capture or a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct History {
    /// The stamps' source.
    pub source: StampSource,
    /// p̂ of a raw counter.
    pub rate: Option<NsPerCycle>,
    /// Every segment, in order, each as it was known last.
    pub segments: Vec<Segment>,
    /// Segments that it has left out, having had too many.
    pub left_out: u64,
    /// Samples, in any order.
    pub samples: Vec<Sample>,
}

/// What no clock can have been.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the history of its clock is damaged: it has {0}")]
pub struct Impossible(&'static str);

impl History {
    /// Of stamps of this source; nothing is known yet.
    pub fn new(source: StampSource) -> Self {
        Self {
            source,
            rate: None,
            segments: Vec::new(),
            left_out: 0,
            samples: Vec::new(),
        }
    }

    /// Takes in what became known since the last time. The latest segment is told
    /// again when it has grown.
    ///
    /// # Errors
    /// What no clock can have been: then nothing is taken in.
    pub fn take(
        &mut self,
        rate: Option<NsPerCycle>,
        segments: &[Segment],
        samples: impl IntoIterator<Item = Sample>,
    ) -> Result<(), Impossible> {
        if rate.is_some_and(|rate| !rate.is_possible()) {
            return Err(Impossible("a counter of an impossible rate"));
        }
        let mut bounds = segments.iter().map(|segment| segment.mono_to_real);
        if bounds.any(|bounds| bounds.low > bounds.high) {
            return Err(Impossible("an offset above its upper bound"));
        }
        if self.source == StampSource::Tsc {
            self.rate = rate.or(self.rate);
        }
        for segment in segments {
            // It is among the latest.
            let mut known = self.segments.iter_mut().rev().take(segments.len());
            match known.find(|known| known.from == segment.from) {
                Some(known) => *known = *segment,
                None => self.segments.push(*segment),
            }
        }
        self.samples.extend(samples);
        Ok(())
    }
}
