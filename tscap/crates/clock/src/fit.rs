//! What the whole history of a capture's clock allows for a stamp, from both sides.
//!
//! The kernel's clock runs straight against its counter from one change of its rate
//! to the next. So the readings of a raw counter are cut into pieces, each as long as
//! one straight line fits between the bounds of all of its readings; what any such
//! line allows is all that the clock can have been. A stamp that was converted live,
//! by what was known then, is moved to there.

mod line_fit;
mod stretches;

use line_fit::{LineFit, Start};
use stretches::stretches;

use super::reading::Reading;
use super::sample_thinning::SAMPLE_EVERY_NS;
use super::{
    Bounds, Bracket, Estimate, History, MonoNs, NsPerCycle, RawStamp, RealNs, Sample, Segment,
    StampSource,
};

/// What the history allows, by segment.
#[derive(Clone, Debug)]
pub struct Fit {
    /// In order of their first stamps.
    parts: Vec<Part>,
    /// The last stamp of each part and those before.
    last_stamps: Vec<u64>,
    /// Live stamps this near to where the clock can have been are left alone, ns: they
    /// rest on far more readings than the history keeps. 3/8 of a raw counter's
    /// narrowest reading: beyond it is the error of few live stamps.
    tolerance_ns: u64,
}

/// Why the time of a stamp is left as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotRefined {
    /// The history does not tell: the clock may have been set just then, or changed its
    /// rate more than once.
    Untold,
    /// The history contradicts the time by more than the bound that was stated with it.
    BeyondBound,
}

#[derive(Clone, Debug)]
enum Part {
    /// Stamps of CLOCK_MONOTONIC between these two: a constant offset.
    Constant {
        from: MonoNs,
        until: MonoNs,
        offset: Bounds,
    },
    /// Of a raw counter.
    Straight {
        /// From and until when the segment lasted at least...
        known: [RealNs; 2],
        possible: [RealNs; 2],
        pieces: Vec<LineFit>,
    },
}

/// Stamps so far outside of a segment's readings are still on their lines, as far as
/// the segment is known: a second has a reading, and a bend would have been written
/// down.
const BEYOND_NS: u64 = 1_000_000_000;
/// Between readings farther apart than this nobody knows what the clock did: a clock that is
/// read at all has one in each second, a process that was stopped has none.
const LONGEST_HOLE_NS: u64 = 3_000_000_000;

impl Fit {
    /// Of a whole history. TAI stamps are off CLOCK_REALTIME by whole seconds:
    /// nothing is to be fitted there.
    pub fn new(history: &History) -> Self {
        let (mut parts, mut least) = (Vec::new(), 0);
        match (history.source, history.rate) {
            (StampSource::Ktime, _) => {
                let mut samples = history.samples.clone();
                samples.sort_by_key(|sample| sample.mono);
                let of = |segment| constant(segment, &samples);
                parts.extend(history.segments.iter().flat_map(of));
            }
            (StampSource::Tsc, Some(rate)) => {
                let readings: Vec<_> = readings(&history.samples, rate);
                let widths = readings.iter().map(|(_, reading)| reading.width());
                least = widths.min().unwrap_or(0);
                // A line that leaves less room than this is given up: it hides a bend,
                // too small to show in one reading. A clock under NTP has one in each
                // second.
                let room_ns = least * 13 / 16;
                let segments = history.segments.iter();
                let nexts = segments.clone().skip(1).map(Some).chain([None]);
                let of = by_segment(&history.segments, &readings);
                let all = segments.zip(nexts).zip(of);
                parts.extend(all.map(|((segment, next), within)| {
                    straight(segment, next, &within, rate, room_ns)
                }));
            }
            _ => {}
        }
        // A counter that jumped back passes the same values again.
        parts.sort_by_key(|part| part.stamps()[0]);
        let last_stamps = parts.iter().scan(0, |last, part| {
            *last = part.stamps()[1].max(*last);
            Some(*last)
        });
        Self {
            last_stamps: last_stamps.collect(),
            parts,
            tolerance_ns: least * 3 / 8,
        }
    }

    /// How much of the time between two stamps it tells of, from 0 to 1: of so many looks
    /// at even distances.
    pub fn coverage(&self, from: RawStamp, until: RawStamp) -> f64 {
        const LOOKS: u64 = 1_000;
        let step = until.0.saturating_sub(from.0) as f64 / (LOOKS - 1) as f64;
        let stamps = (0..LOOKS).map(|look| from.0.saturating_add((step * look as f64) as u64));
        let reported = stamps.filter(|stamp| self.allowed(RawStamp(*stamp)).is_some());
        reported.count() as f64 / LOOKS as f64
    }

    /// Where CLOCK_REALTIME can have been at a stamp, ns; `None` if the history does
    /// not tell: the clock may have been set just then.
    pub fn allowed(&self, stamp: RawStamp) -> Option<[RealNs; 2]> {
        let after = self
            .parts
            .partition_point(|part| part.stamps()[0] <= stamp.0);
        let before = self.last_stamps[..after].partition_point(|last| *last < stamp.0);
        let parts = self.parts[before..after].iter();
        let mut possible = parts.filter_map(|part| Some((part, part.allowed(stamp)?)));
        let (part, allowed) = possible.next()?;
        // A counter that went back passes the same values again.
        let is_reported = possible.next().is_none() && part.is_known(allowed);
        is_reported.then_some(allowed)
    }

    /// The time of a stamp that was converted to `live`, with the greatest error that
    /// was stated for it, that of the stamp itself apart: moved to where the clock can
    /// have been, if it is not there, and never farther than that. Its greatest error against
    /// the host's clock is the live one and that distance: however the clock ran between
    /// two samples, it was no farther from the live time.
    ///
    /// # Errors
    /// Why it is left where it is.
    pub fn refine(
        &self,
        stamp: RawStamp,
        live: RealNs,
        live_bound_ns: u64,
    ) -> Result<Estimate, NotRefined> {
        let [first, last] = self.allowed(stamp).ok_or(NotRefined::Untold)?;
        let low = RealNs(first.0.saturating_sub(self.tolerance_ns));
        let high = RealNs(last.0.saturating_add(self.tolerance_ns));
        let real = live.clamp(low, high);
        let moved_ns = real.0.abs_diff(live.0);
        if moved_ns > live_bound_ns {
            return Err(NotRefined::BeyondBound);
        }
        Ok(Estimate {
            real,
            bound_ns: live_bound_ns.saturating_add(moved_ns),
        })
    }
}

fn constant(segment: &Segment, samples: &[Sample]) -> impl Iterator<Item = Part> {
    let offset = segment.mono_to_real;
    let stretches = stretches(segment, samples).into_iter();
    stretches.map(move |[from, until]| Part::Constant {
        from,
        until,
        offset,
    })
}

/// In order of the counter, each with its sample.
fn readings(samples: &[Sample], rate: NsPerCycle) -> Vec<(Sample, Reading)> {
    let readings = samples.iter().filter_map(|sample| {
        let bracket = Bracket {
            tsc: sample.tsc?,
            real: [sample.real, sample.real_after.unwrap_or(sample.real)],
        };
        Some((*sample, Reading::new(&bracket, rate)?))
    });
    let mut readings: Vec<_> = readings.collect();
    // The narrowest of a second may be a bend too, and is there twice then.
    readings.sort_by_key(|(sample, reading)| (reading.at, !sample.bend));
    readings.dedup_by_key(|(_, reading)| reading.at);
    readings
}

/// The readings of each segment.
fn by_segment<'a>(
    segments: &[Segment],
    readings: &'a [(Sample, Reading)],
) -> Vec<Vec<&'a (Sample, Reading)>> {
    let mut all = vec![Vec::new(); segments.len()];
    for reading in readings {
        let (sample, _) = reading;
        let first = segments.partition_point(|segment| segment.until < sample.mono);
        let of = segments[first..].iter();
        let of = of.take_while(|segment| segment.from <= sample.end());
        for (within, _) in all[first..].iter_mut().zip(of) {
            within.push(reading);
        }
    }
    all
}

/// When bends were left out of a history: within a second of these.
struct LeftOut(Vec<MonoNs>);

impl LeftOut {
    fn new(readings: &[&(Sample, Reading)]) -> Self {
        let samples = readings.iter().map(|(sample, _)| sample);
        let counted = samples.filter(|sample| sample.bends_left_out > 0);
        Self(counted.map(|sample| sample.mono).collect())
    }

    /// Whether one may have been between two times.
    fn is_between(&self, from: MonoNs, until: MonoNs) -> bool {
        let earliest = MonoNs(from.0.saturating_sub(SAMPLE_EVERY_NS));
        let latest = MonoNs(until.0.saturating_add(SAMPLE_EVERY_NS));
        let first = self.0.partition_point(|at| *at < earliest);
        self.0.get(first).is_some_and(|at| *at <= latest)
    }
}

fn straight(
    segment: &Segment,
    next: Option<&Segment>,
    within: &[&(Sample, Reading)],
    rate: NsPerCycle,
    least_room_ns: u64,
) -> Part {
    let left_out = LeftOut::new(within);
    let mut pieces: Vec<LineFit> = Vec::new();
    for (index, (sample, reading)) in within.iter().enumerate() {
        let mut reading = *reading;
        let is_before_bend = within.get(index + 1).is_some_and(|(next, _)| next.bend);
        if is_before_bend {
            // The clock may have left the line before this: by no more than what
            // would have shown.
            let width = reading.width();
            reading.low = reading.low.saturating_sub(width);
            reading.high = reading.high.saturating_add(width);
        }
        let before = index.checked_sub(1).map(|index| within[index].0.mono);
        let is_lost = before.is_some_and(|before| left_out.is_between(before, sample.mono));
        let start = match pieces.last_mut() {
            None => Some(Start::First),
            Some(_) if is_lost => Some(Start::LeftOut),
            Some(piece) if piece.is_hole_until(reading.at.0) => Some(if sample.bend {
                Start::LeftOut
            } else {
                Start::First
            }),
            Some(_) if sample.bend => Some(Start::Bend),
            Some(piece) => piece.take(&reading, least_room_ns).err(),
        };
        if let Some(start) = start {
            pieces.push(LineFit::new(&reading, rate, start));
        }
        let piece = pieces.last_mut().expect("it was begun at the latest now");
        piece.is_before_bend = is_before_bend || left_out.is_between(sample.mono, sample.mono);
        if start.is_none() && !is_before_bend {
            piece.until = reading.at.0;
        }
    }
    for index in 1..pieces.len() {
        if let [before, next] = &mut pieces[index - 1..=index]
            && next.start == Start::Bend
        {
            before.part_from(next);
        }
    }
    let Bounds { low, high } = segment.mono_to_real;
    let real = |mono: MonoNs, offset: i64| RealNs(mono.0.saturating_add_signed(offset));
    let after = segment.after.map(|after| real(after, low));
    let before = next.map(|next| real(next.from, high));
    Part::Straight {
        known: [real(segment.from, high), real(segment.until, low)],
        possible: [
            after.unwrap_or(RealNs(0)),
            before.unwrap_or(RealNs(u64::MAX)),
        ],
        pieces,
    }
}

impl Part {
    /// The first and the last stamp that can be of this part.
    fn stamps(&self) -> [u64; 2] {
        match self {
            Self::Constant { from, until, .. } => [from.0, until.0],
            Self::Straight { pieces, .. } => match &pieces[..] {
                [] => [u64::MAX, 0],
                [first, ..] => {
                    let last = &pieces[pieces.len() - 1];
                    [first.reach().start, last.reach().end]
                }
            },
        }
    }

    /// Where the clock can have been if the stamp is of this part; `None` if it can't be.
    fn allowed(&self, stamp: RawStamp) -> Option<[RealNs; 2]> {
        match self {
            Self::Constant {
                from,
                until,
                offset,
            } => {
                let is_within = (from.0..=until.0).contains(&stamp.0);
                let at = |ns: i64| RealNs(stamp.0.saturating_add_signed(ns));
                is_within.then(|| [at(offset.low), at(offset.high)])
            }
            Self::Straight {
                possible, pieces, ..
            } => {
                let after = pieces.partition_point(|piece| piece.from <= stamp.0);
                let before = after.checked_sub(1).map(|index| &pieces[index]);
                let next = pieces.get(after);
                let allowed = match (before, next) {
                    (Some(piece), _) if stamp.0 <= piece.until => {
                        piece.at(stamp).filter(|_| piece.is_proven())
                    }
                    (Some(piece), Some(next)) if next.start != Start::First => {
                        piece.between(next, stamp)
                    }
                    (Some(piece), Some(next)) => {
                        let after = piece.at_most_beyond(stamp.0 - piece.until, stamp);
                        after.or_else(|| next.at_most_beyond(next.from - stamp.0, stamp))
                    }
                    (Some(piece), None) => piece.at_most_beyond(stamp.0 - piece.until, stamp),
                    (None, Some(next)) => next.at_most_beyond(next.from - stamp.0, stamp),
                    (None, None) => None,
                };
                allowed.filter(|[low, high]| *high >= possible[0] && *low <= possible[1])
            }
        }
    }

    /// Whether it lasted so long for certain.
    fn is_known(&self, [low, high]: [RealNs; 2]) -> bool {
        match self {
            Self::Constant { .. } => true,
            Self::Straight { known, .. } => low >= known[0] && high <= known[1],
        }
    }
}

#[cfg(test)]
mod tests;
