//! The clock by a log, as far as a capture needs it.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use super::gather::Gathered;
use crate::command::{Context, Failure, Hint as _};
use tscap_clock::{Fit, History, Impossible, MonoNs, RawStamp, Sample, Segment, StampSource};
use tscap_references::log::{Entry, Line, LogReader, ReadLogError};

/// Samples are kept of this long before and after the capture, for lines that reach
/// into it.
const AROUND_NS: i64 = 60_000_000_000;
/// A log must tell of this share of a capture's time.
const LEAST_COVERAGE: f64 = 0.5;

/// What a log says.
#[derive(Debug)]
pub(super) struct Logged {
    pub history: History,
    /// Greatest error against the host's clock that it states for the stamps of its own
    /// clock, ns.
    pub bound_ns: u64,
    /// Its last line was torn, and passed over.
    pub is_torn: bool,
}

#[derive(Debug, thiserror::Error)]
enum LogError {
    #[error(transparent)]
    Read(#[from] ReadLogError),
    #[error(transparent)]
    Impossible(#[from] Impossible),
}

/// Reads of a log what a capture needs, in memory bounded by the capture's length.
///
/// # Errors
/// If it is no log, of another boot, or does not tell of the capture's time.
pub(super) fn history(path: &Path, capture: &Gathered, input: &Path) -> Result<Logged, Failure> {
    let mut reader = open(path, capture, input)?;
    let (name, input) = (path.display(), input.display());
    let logged = gather(&mut reader, capture).context(format!("cannot read {name}"));
    let logged = logged.hint("convert without --clock-log, or by a log that is whole")?;
    let reported = match (capture.source, capture.stamps) {
        // Off CLOCK_REALTIME by whole seconds: nothing is to be told.
        (StampSource::Tai, _) | (_, None) => 1.0,
        (_, Some([from, until])) => Fit::new(&logged.history).coverage(from, until),
    };
    if reported < LEAST_COVERAGE {
        return Err(Failure::new(format!(
            "cannot convert {input} by {name}: the log tells of {:.0} % of the capture's time",
            100.0 * reported
        ))
        .hint("give a log that was kept while the capture ran, or convert without --clock-log"));
    }
    Ok(logged)
}

/// Opens a log of the boot of a capture.
///
/// # Errors
/// If it is no log, or of another boot.
pub(super) fn open(
    path: &Path,
    capture: &Gathered,
    input: &Path,
) -> Result<LogReader<BufReader<File>>, Failure> {
    let (name, input) = (path.display(), input.display());
    let what = || format!("cannot convert {input} by {name}");
    let file = File::open(path).context(format!("cannot open {name}"))?;
    let reader = LogReader::new(BufReader::new(file)).context(format!("cannot read {name}"));
    let reader = reader.hint("give what `tscap clock --log` wrote")?;
    let Some(boot_id) = &capture.boot_id else {
        return Err(Failure::new(format!(
            "{}: the capture does not say of which boot of the machine it is",
            what()
        ))
        .hint("convert it by its own history, without --clock-log"));
    };
    let of = &reader.header().boot_id;
    if of != boot_id {
        return Err(Failure::new(format!(
            "{}: the log is of another boot of the machine ({of}) than the capture ({boot_id})",
            what()
        ))
        .hint("give a log that was kept while the capture ran"));
    }
    Ok(reader)
}

fn gather(reader: &mut LogReader<BufReader<File>>, capture: &Gathered) -> Result<Logged, LogError> {
    let mut history = History::new(capture.source);
    // What follows it may follow a hole.
    let (mut earlier, mut bound_ns) = (None, 0);
    while let Some(line) = reader.next_line()? {
        let Line::Entry(entry) = line else { continue };
        let Entry {
            status,
            segments,
            segments_left_out,
            samples,
            ..
        } = *entry;
        let rate = status.counter.ns_per_cycle_2_58;
        bound_ns = status.host_bound_ns.max(bound_ns);
        history.left_out += segments_left_out;
        history.take(Some(rate), &segments, [])?;
        let around = match capture.source {
            StampSource::Tsc => rate.cycles_in(AROUND_NS),
            StampSource::Ktime | StampSource::Tai => AROUND_NS,
        };
        for sample in samples {
            let Some((stamp, stamps)) = stamp(&sample, capture.source).zip(capture.stamps) else {
                continue;
            };
            if is_near(stamp, stamps, around.unsigned_abs()) {
                history.take(None, &[], [sample])?;
            } else if stamp < stamps[0] {
                earlier = Some(sample);
            }
        }
    }
    history.samples.splice(..0, earlier);
    let around = around(&history, capture);
    let is_around = |segment: &Segment| {
        around.is_none_or(|[first, last]| segment.until >= first && segment.from <= last)
    };
    history.segments.retain(is_around);
    Ok(Logged {
        history: history.checked()?,
        bound_ns,
        is_torn: reader.is_torn(),
    })
}

/// Readings of CLOCK_MONOTONIC between which the capture needs segments, as far as its
/// stamps, or the samples beside them, tell.
fn around(history: &History, capture: &Gathered) -> Option<[MonoNs; 2]> {
    let ns = AROUND_NS.unsigned_abs();
    match capture.source {
        StampSource::Ktime => capture.stamps.map(|[first, last]| {
            let [first, last] = [first.0.saturating_sub(ns), last.0.saturating_add(ns)];
            [MonoNs(first), MonoNs(last)]
        }),
        StampSource::Tsc => {
            let samples = history.samples.iter();
            let first = samples.clone().map(|sample| sample.mono).min()?;
            Some([first, samples.map(Sample::end).max()?])
        }
        StampSource::Tai => None,
    }
}

/// What the stamps' clock was at a sample, if that is needed of it.
fn stamp(sample: &Sample, source: StampSource) -> Option<RawStamp> {
    match source {
        StampSource::Ktime => Some(RawStamp(sample.mono.0)),
        StampSource::Tsc => sample.tsc.map(|[before, _]| RawStamp(before.0)),
        StampSource::Tai => None,
    }
}

fn is_near(stamp: RawStamp, [first, last]: [RawStamp; 2], around: u64) -> bool {
    (first.0.saturating_sub(around)..=last.0.saturating_add(around)).contains(&stamp.0)
}
