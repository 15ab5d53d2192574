//! `tscap convert`: a capture stamped again.

mod base;
mod gather;
mod log;
mod summary;
mod unconverted;

use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use serde::Serialize;

use base::Bases;
use gather::{Gathered, gather};
use log::Logged;
use unconverted::{Span, Unconverted};

use super::print::{json_line, print, say};
use super::whole_file::{is_one, write_whole_by};
use super::{Context, Exit, Failure};
use crate::capturing::clock::{self, Fit, LiveBounds, StampSource, TableOffset, TimeBase};
use crate::capturing::pcapng::{
    InterfaceOption, Packet, ReadError, RewriteError, StatisticsOption, rewrite,
};
use crate::cli::ConvertPlan;
use crate::measuring::statistics::{Distribution, Summary};
use crate::text::numbers::counted;

/// Version of the JSON object.
const VERSION: u32 = 1;

/// What was done.
#[derive(Debug, PartialEq, Serialize)]
struct Converted {
    event: &'static str,
    v: u32,
    /// Which clock stamped.
    source: StampSource,
    /// Packets in the copy.
    packets: u64,
    /// Which clock the copy's times are of.
    time_base: TimeBase,
    /// TAI − UTC that was taken from a table of leap seconds, as the kernel had none.
    #[serde(skip_serializing_if = "Option::is_none")]
    leap_table: Option<TableOffset>,
    /// Whether they were to be stamped again, rather than only turned into another clock's.
    stamps_again: bool,
    /// Of these, not stamped again though they were to be: not told by the history, as
    /// when the clock was being set, or without a raw stamp.
    left: u64,
    /// When these were taken: those in a row, at most 100 rows.
    left_spans: Vec<Span>,
    /// Of those left: the history contradicts them by more than the bound that the capture
    /// states for its times.
    beyond_bound: u64,
    /// How far the others moved, later being positive, ns; null if there were none.
    moved_ns: Option<Summary>,
    /// Greatest error of each of these against the host's clock, with that of the offsets
    /// of the CPUs' counters, ns: wide before the first reading and after the last one.
    bound_ns: Option<Summary>,
    /// Samples of the clock, in the file or around it in the log.
    samples: usize,
    /// Segments of the clock.
    segments: usize,
    /// Whether the last line of the log was torn, and passed over.
    is_log_torn: bool,
    /// Whether the capture was read to its end.
    is_whole: bool,
}

/// Converts.
pub(super) fn run(plan: &ConvertPlan) -> Result<Exit, Failure> {
    let input = plan.input.display();
    let trying = || format!("cannot read {input}");
    let file = File::open(&plan.input).context(format!("cannot open {input}"))?;
    let about = file.metadata().context(trying())?;
    if !about.is_file() {
        return Err(Failure::new(format!("cannot convert {input}"))
            .hint("give a regular file, not a pipe: it is read twice"));
    }
    let mut stdout = io::stdout()
        .as_fd()
        .try_clone_to_owned()
        .map(File::from)
        .context("cannot use standard output")?;
    let is_dash = plan.output.as_os_str() == "-";
    let target = match is_dash {
        true => stdout.metadata(),
        false => fs::metadata(&plan.output),
    };
    if target.as_ref().is_ok_and(|target| is_one(target, &about)) {
        return Err(Failure::new(format!(
            "cannot convert {input} into itself: its live stamps would be lost"
        ))
        .hint("give -w another file"));
    }
    let log = plan.clock_log.as_deref().map(fs::metadata);
    if let (Ok(target), Some(Ok(log))) = (&target, &log)
        && is_one(target, log)
    {
        return Err(Failure::new(format!(
            "cannot write the copy of {input} over the log of the clock"
        ))
        .hint("give -w another file"));
    }
    let capture = gather(&file, &plan.input)?;
    let is_rebased = plan
        .time_base
        .is_some_and(|base| base != capture.clock.base);
    // Another clock's times alone change nothing that could not be changed back.
    let stamps_again = plan.clock_log.is_some() || !is_rebased;
    if capture.packets > 0 && capture.stamps.is_none() && stamps_again {
        return Err(Failure::new(format!(
            "cannot convert {input}: of its {} none kept its raw stamp",
            counted(capture.packets, "packet")
        ))
        .hint("capture with --keep-raw"));
    }
    let clock = match &plan.clock_log {
        Some(log) => log::history(log, &capture, &plan.input)?,
        None => own(&capture, &plan.input)?,
    };
    // When the capture's own clock was set it knows best: a log may have had a hole then.
    let told = capture.history.as_ref().unwrap_or(&clock.history);
    let mut bases = Bases::new(told, &capture, plan)?;
    // One more look at this very file, whatever its path leads to by now.
    let again = File::open(format!("/proc/self/fd/{}", file.as_raw_fd())).context(trying())?;
    let output = plan.output.display();
    let bounds = Bounds {
        stamp_error_ns: capture.stamp_error_ns,
        // A capture that was killed early states none: then that of the log's own stamps.
        live_ns: capture.live_bound_ns.unwrap_or(clock.bound_ns),
        by_second: capture
            .history
            .as_ref()
            .map(LiveBounds::new)
            .unwrap_or_default(),
    };
    let write = |to: &mut File| {
        let converted = copy(again, &clock, bounds, stamps_again, &mut bases, to)?;
        match file.metadata() {
            Ok(now) if now.len() == about.len() => Ok(converted),
            Ok(_) => Err(CopyError::Grown),
            Err(error) => Err(CopyError::Read(ReadError::Io(error).into())),
        }
    };
    // /dev/stdout that leads to a file would be another file than standard output.
    let is_stdout = is_dash
        || target
            .as_ref()
            .is_ok_and(|target| stdout.metadata().is_ok_and(|out| is_one(target, &out)));
    let converted = match is_stdout {
        true => write(&mut stdout),
        false => write_whole_by(&plan.output, about.mode(), write),
    };
    let converted = converted.map_err(|error| match error {
        CopyError::Read(error) => Failure::from_error(error, trying()),
        CopyError::Output(error) => Failure::from_error(error, format!("cannot write {output}")),
        CopyError::Grown => Failure::new(format!(
            "cannot convert {input}: its length has changed meanwhile"
        ))
        .hint("wait until the capture has ended"),
        CopyError::OutOfRange => Failure::new(format!(
            "cannot convert {input}: by the history of its clock a packet would be before the \
             start of its clock or after 2554"
        ))
        .hint("the file is damaged: the history of its clock contradicts its packets"),
    })?;
    let said = if plan.json {
        json_line(&converted)
    } else {
        summary::text(&converted, plan, is_rebased)
    };
    if is_stdout || target.is_ok_and(|target| !target.is_file()) {
        // The copy may be where the summary would be.
        say(&said);
    } else {
        print(&said)?;
    }
    Ok(match converted.is_whole {
        true => Exit::Success,
        false => Exit::Fault,
    })
}

/// What is known of the capture's times, ns.
#[derive(Clone, Debug)]
struct Bounds {
    /// Greatest error of the raw stamps as such.
    stamp_error_ns: u64,
    /// Greatest error of the live times, with that.
    live_ns: u64,
    /// The same second by second, without that.
    by_second: LiveBounds,
}

#[derive(Debug)]
enum CopyError {
    Read(RewriteError),
    Output(io::Error),
    /// The input is longer or shorter than it was.
    Grown,
    /// A time that no file can hold.
    OutOfRange,
}

impl From<io::Error> for CopyError {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

/// The clock by what the capture itself says of it.
fn own(capture: &Gathered, path: &Path) -> Result<Logged, Failure> {
    let history = capture.history.clone().ok_or_else(|| {
        Failure::new(format!(
            "cannot convert {}: it has no statistics with the clock",
            path.display()
        ))
        .hint("a capture that is killed in its first 10 s has none; a log of the clock has, see --clock-log")
    })?;
    Ok(Logged {
        history,
        bound_ns: capture.live_bound_ns.unwrap_or(0),
        is_torn: false,
    })
}

fn copy(
    from: File,
    logged: &Logged,
    Bounds {
        stamp_error_ns,
        live_ns,
        by_second,
    }: Bounds,
    stamps_again: bool,
    bases: &mut Bases,
    to: &mut File,
) -> Result<Converted, CopyError> {
    let history = &logged.history;
    let fit = stamps_again.then(|| Fit::new(history));
    let (mut packets, mut left, mut beyond_bound) = (0, Unconverted::default(), 0);
    let live_bound_ns = live_ns.saturating_sub(stamp_error_ns);
    let (mut moves, mut bounds) = (Distribution::new(), Distribution::new());
    let mut to = BufWriter::new(to);
    let clock = bases.clock;
    let clocks = bases.clone();
    let mut is_out_of_range = false;
    let time = |packet: &Packet, of: Option<&InterfaceOption>| {
        packets += 1;
        let Some(live) = clocks.real(packet.time, packet.raw) else {
            is_out_of_range |= of.is_some();
            return None;
        };
        let told = fit.as_ref().zip(packet.raw);
        let again = told.and_then(|(fit, raw)| {
            let live_bound_ns = by_second.at(raw).unwrap_or(live_bound_ns);
            let again = fit.refine(raw, live, live_bound_ns);
            beyond_bound += u64::from(again == Err(clock::NotRefined::BeyondBound));
            again.ok()
        });
        match again {
            Some(again) => {
                left.end_span();
                moves.add(again.real.0.wrapping_sub(live.0).cast_signed());
                let bound_ns = again.bound_ns.saturating_add(stamp_error_ns);
                bounds.add(i64::try_from(bound_ns).unwrap_or(i64::MAX));
            }
            None if stamps_again => left.add(live),
            None => {}
        }
        of?;
        let time = clocks.time(again.map_or(live, |again| again.real), packet.raw);
        is_out_of_range |= time.is_none();
        time.filter(|time| *time != packet.time)
    };
    let moved = |statistics: &StatisticsOption| bases.moved(statistics);
    let done = rewrite(from, &mut to, clock, time, moved);
    let is_whole = match done {
        Ok(()) => true,
        Err(RewriteError::Read(error)) if error.is_torn_end() => false,
        Err(RewriteError::Copy(error)) => return Err(CopyError::Output(error)),
        Err(error) => return Err(CopyError::Read(error)),
    };
    if is_out_of_range {
        return Err(CopyError::OutOfRange);
    }
    to.flush()?;
    Ok(Converted {
        event: "convert",
        v: VERSION,
        source: history.source,
        packets,
        time_base: clock.base,
        leap_table: clock.table,
        stamps_again,
        left: left.packets,
        left_spans: left.spans,
        beyond_bound,
        moved_ns: moves.summary(),
        bound_ns: bounds.summary(),
        samples: history.samples.len(),
        segments: history.segments.len(),
        is_log_torn: logged.is_torn,
        is_whole,
    })
}
