//! When the constant offset of a segment is known.

use std::iter;

use super::{BEYOND_NS, LONGEST_HOLE_NS};
use crate::{MonoNs, Sample, Segment};

/// First and last times at which the offset of a segment is known: in it, but for holes
/// between the readings. `samples` are those of the whole history, in order.
pub(super) fn stretches(segment: &Segment, samples: &[Sample]) -> Vec<[MonoNs; 2]> {
    // Where only the offset to TAI is another, the clock went on.
    let went_on = segment.after.filter(|_| segment.step_ns == 0);
    let first = went_on.map_or(segment.from, |after| MonoNs(after.0 + 1));
    let mut stretches = vec![[first; 2]];
    let after = samples.partition_point(|sample| sample.mono <= segment.until);
    let before = samples[..after].partition_point(|sample| sample.end() < segment.from);
    let within = samples[before..after].iter();
    let readings = within.map(|sample| [begin(sample, samples), sample.mono]);
    let [from, until] = [segment.from, segment.until].map(|at| iter::once([at; 2]));
    for [begin, reading] in from.chain(readings).chain(until) {
        let [_, last] = stretches.last_mut().expect("there is always one");
        if reading.0.saturating_sub(last.0) > LONGEST_HOLE_NS {
            stretches.push([begin, reading]);
        } else {
            *last = reading.max(*last);
        }
    }
    stretches
}

/// From when a sample after a hole tells the offset: from its end on. The first of all
/// comes after no hole, but where the history begins: a second has one.
fn begin(sample: &Sample, samples: &[Sample]) -> MonoNs {
    match samples.first() {
        Some(first) if first == sample => MonoNs(sample.mono.0.saturating_sub(BEYOND_NS)),
        _ => sample.end(),
    }
}
