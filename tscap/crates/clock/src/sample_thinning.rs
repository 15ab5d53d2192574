//! The samples of a clock that the file keeps.

use super::{MonoNs, Sample};

/// A second of the clock has its narrowest sample.
pub(super) const SAMPLE_EVERY_NS: u64 = 1_000_000_000;
/// Of at most so many bends and steps a second the samples are kept...
const KEPT_EVERY_SECOND: usize = 8;
/// ...and no more at once: with 200 bytes each they and the segments fit an option.
const MOST_KEPT: usize = 180;

/// The narrowest of each second, and those on either side of a bend, a step or a jump.
#[derive(Clone, Debug)]
pub(super) struct SampleThinning {
    /// Best sample of the second that `until` ends.
    best: Option<Sample>,
    until: MonoNs,
    samples: Vec<Sample>,
    /// How often in this second the samples on either side of something were kept.
    sides: usize,
    /// Greatest error of stamps of this second, ns, once it is known.
    bound_ns: Option<u64>,
    /// What that may turn out to be at the next sample, ns.
    open_bound_ns: u64,
    /// And of the clock against its reference, ns.
    reference_bound_ns: Option<u64>,
    /// How often they were not.
    left_out: u64,
    /// The sample before was the first after a bend, a step or a jump, and is kept.
    is_second: bool,
}

impl SampleThinning {
    /// Begins with the first one.
    pub fn new(first: Sample) -> Self {
        Self {
            best: Some(first),
            until: MonoNs(first.mono.0 + SAMPLE_EVERY_NS),
            samples: Vec::new(),
            sides: 0,
            bound_ns: None,
            open_bound_ns: 0,
            reference_bound_ns: None,
            left_out: 0,
            is_second: false,
        }
    }

    /// One more, which is kept if it is the narrowest of its second, or the second one
    /// after a bend: any two are on a straight line, so that only a third one proves it.
    pub fn offer(&mut self, sample: Sample) {
        if sample.mono >= self.until {
            self.end_second();
            self.until = MonoNs(sample.mono.0 + SAMPLE_EVERY_NS);
            self.sides = 0;
        }
        if std::mem::take(&mut self.is_second) {
            self.samples.push(sample);
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
            // Also kept as the second one after the bend before.
            let is_there = before.is_some() && self.samples.last() == before.as_ref();
            self.samples.extend(before.filter(|_| !is_there));
            self.samples.push(sample);
            self.is_second = true;
        } else {
            self.left_out += 1;
        }
    }

    /// Stamps since the sample before are off by at most so much, ns. If the second ends before
    /// the next call, it may be `open_bound_ns`.
    pub fn bound(&mut self, bound_ns: u64, open_bound_ns: u64) {
        self.bound_ns = self.bound_ns.max(Some(bound_ns));
        self.open_bound_ns = open_bound_ns;
    }

    /// The clock was off its reference by at most so much, ns.
    pub fn reference_bound(&mut self, bound_ns: u64) {
        self.reference_bound_ns = self.reference_bound_ns.max(Some(bound_ns));
    }

    /// Those kept since the last call.
    pub fn take(&mut self) -> Vec<Sample> {
        self.end_second();
        std::mem::take(&mut self.samples)
    }

    fn end_second(&mut self) {
        let bends_left_out = std::mem::take(&mut self.left_out);
        let live_bound_ns = self.bound_ns.take();
        let live_bound_ns = live_bound_ns.map(|bound_ns| bound_ns.max(self.open_bound_ns));
        let reference_bound_ns = self.reference_bound_ns.take();
        let best = self.best.take();
        self.samples.extend(best.map(|best| Sample {
            bends_left_out,
            live_bound_ns,
            reference_bound_ns,
            ..best
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(mono: u64, width_ns: u64) -> Sample {
        Sample {
            width_ns,
            ..Sample::at(mono, mono + 1_000)
        }
    }

    #[test]
    fn each_second_keeps_the_first_of_its_narrowest() {
        let mut kept = SampleThinning::new(sample(0, 50));
        for (mono, width_ns) in [
            (10, 60),
            (20, 40),
            (30, 40),
            (SAMPLE_EVERY_NS - 1, 45),
            (SAMPLE_EVERY_NS, 70),
            (2 * SAMPLE_EVERY_NS - 1, 80),
        ] {
            kept.offer(sample(mono, width_ns));
        }
        assert_eq!(kept.take(), [sample(20, 40), sample(SAMPLE_EVERY_NS, 70)]);
        assert_eq!(kept.take(), []);
    }

    #[test]
    fn a_second_has_eight_bends_and_counts_the_others() {
        let mut kept = SampleThinning::new(sample(0, 10));
        kept.bound(30, 0);
        kept.bound(20, 0);
        for bend in 1..=11 {
            kept.both_sides(Some(sample(100 * bend - 50, 40)), sample(100 * bend, 40));
        }
        let samples = kept.take();
        let best = samples.iter().find(|sample| sample.width_ns == 10).unwrap();
        assert_eq!((best.bends_left_out, best.live_bound_ns), (3, Some(30)));
        assert_eq!(samples.len(), 2 * 8 + 1);
        // The next second has as many again.
        let (first, bend) = (sample(SAMPLE_EVERY_NS, 10), sample(SAMPLE_EVERY_NS + 1, 40));
        kept.offer(first);
        kept.both_sides(None, bend);
        assert!(kept.take().contains(&bend));
    }

    #[test]
    fn a_second_that_ends_before_its_bound_is_known_has_what_it_may_be() {
        let mut kept = SampleThinning::new(sample(0, 10));
        let mut bound_of = |second: u64, bounds: [(u64, u64); 2]| {
            for (bound_ns, open_bound_ns) in bounds {
                kept.bound(bound_ns, open_bound_ns);
            }
            kept.offer(sample(second * SAMPLE_EVERY_NS, 10));
            kept.samples.pop().and_then(|sample| sample.live_bound_ns)
        };
        assert_eq!(bound_of(1, [(30, 900), (20, 0)]), Some(30));
        assert_eq!(bound_of(2, [(20, 0), (20, 900)]), Some(900));
        assert_eq!(bound_of(3, [(20, 0), (20, 0)]), Some(20));
    }

    #[test]
    fn the_second_one_after_a_bend_is_kept() {
        let mut kept = SampleThinning::new(sample(0, 10));
        let bend = sample(100, 40);
        kept.both_sides(Some(sample(50, 40)), bend);
        kept.offer(sample(150, 40));
        kept.offer(sample(200, 40));
        let samples = [sample(50, 40), bend, sample(150, 40), sample(0, 10)];
        assert_eq!(kept.take(), samples);
    }
}
