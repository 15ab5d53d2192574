//! Other times for the packets: stamped again, or turned into another clock's.

use std::fs::File;
use std::path::Path;

use serde::Serialize;

use super::base::Bases;
use super::gather::{Gathered, gather};
use super::log::{self, Logged};
use super::unconverted::{Span, Unconverted};
use crate::command::Failure;
use tscap_base::text::numbers::counted;
use tscap_cli::ConvertPlan;
use tscap_clock::{Fit, LiveBounds, NotRefined, StampSource, TableOffset, TimeBase};
use tscap_file::pcapng::{
    Copied, InterfaceOption, Packet, RewriteError, StatisticsOption, Times, pcap_name,
};
use tscap_statistics::{Distribution, Summary};

/// What became of the times.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Stamped {
    pub source: StampSource,
    /// The reference that the times keep to, as in the capture.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// Which clock the copy's times are of.
    pub time_base: TimeBase,
    /// TAI − UTC that was taken from a table of leap seconds, as the kernel had none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leap_table: Option<TableOffset>,
    /// Whether they were to be stamped again, rather than only turned into another clock's.
    pub stamps_again: bool,
    /// Whether they are of another clock than the capture's.
    #[serde(skip)]
    pub is_rebased: bool,
    /// Packets that have a time.
    #[serde(skip)]
    pub timed: u64,
    /// Of these, not stamped again though they were to be: not told by the history, as
    /// when the clock was being set, or without a raw stamp.
    pub left: u64,
    /// When these were taken: those in a row, at most 100 rows.
    pub left_spans: Vec<Span>,
    /// Of those left: the history contradicts them by more than the bound that the capture
    /// states for its times.
    pub beyond_bound: u64,
    /// How far the others moved, later being positive, ns; null if there were none.
    pub moved_ns: Option<Summary>,
    /// Greatest error of each of these against the host's clock, with that of the offsets
    /// of the CPUs' counters, ns: wide before the first reading and after the last one.
    pub bound_ns: Option<Summary>,
    /// Samples of the clock, in the file or around it in the log.
    pub samples: usize,
    /// Segments of the clock.
    pub segments: usize,
    /// Whether the last line of the log was torn, and passed over.
    pub is_log_torn: bool,
}

/// How the times are to be told.
#[derive(Debug)]
pub(super) struct Stamping {
    logged: Logged,
    bounds: Bounds,
    bases: Bases,
    /// Whose time takes the place of CLOCK_REALTIME.
    reference: Option<String>,
    stamps_again: bool,
    is_rebased: bool,
}

/// What is known of the capture's times, ns.
#[derive(Debug)]
struct Bounds {
    /// Greatest error of the raw stamps as such.
    stamp_error_ns: u64,
    /// Greatest error of the live times, with that.
    live_ns: u64,
    /// The same second by second, without that.
    by_second: LiveBounds,
}

/// Why the times can't be changed, or the copy not made.
#[derive(Debug, thiserror::Error)]
pub(super) enum StampError {
    #[error(transparent)]
    Rewrite(#[from] RewriteError),
    /// A time that no file can hold.
    #[error(
        "by the history of its clock a packet would be before the start of its clock or after 2554"
    )]
    OutOfRange,
}

impl Stamping {
    /// By a look at all of the capture.
    ///
    /// # Errors
    /// If what is known of the clock does not suffice for what is asked for.
    pub fn prepare(file: &File, plan: &ConvertPlan) -> Result<Self, Failure> {
        let capture = gather(file, &plan.input)?;
        capture.is_of_this_machine(&plan.input)?;
        if let Some(reference) = &capture.reference {
            keeps_to(reference, plan)?;
        }
        let is_rebased = plan
            .time_base
            .is_some_and(|base| base != capture.clock.base);
        // Another clock's times alone change nothing that could not be changed back.
        let stamps_again = plan.clock_log.is_some() || !is_rebased;
        if capture.packets > 0 && capture.stamps.is_none() && stamps_again {
            return Err(Failure::new(format!(
                "cannot convert {}: of its {} none kept its raw stamp",
                plan.input.display(),
                counted(capture.packets, "packet")
            ))
            .hint(match pcap_name(&plan.output) {
                Some(_) => {
                    "convert stamps a capture again, and writes pcapng: `editcap -F nsecpcap IN OUT` \
                     makes a pcap of a pcapng"
                }
                None => "capture with --keep-raw; to copy packets give an expression, such as tcp",
            }));
        }
        let logged = match &plan.clock_log {
            Some(log) => log::history(log, &capture, &plan.input)?,
            None => own(&capture, &plan.input)?,
        };
        // When the capture's own clock was set it knows best: a log may have had a hole then.
        let reported = capture.history.as_ref().unwrap_or(&logged.history);
        let bases = Bases::new(reported, &capture, plan)?;
        let live_bounds = capture.history.as_ref().map(LiveBounds::new);
        Ok(Self {
            bounds: Bounds {
                stamp_error_ns: capture.stamp_error_ns,
                // A capture that was killed early states none: then that of the log's own
                // stamps.
                live_ns: capture.live_bound_ns.unwrap_or(logged.bound_ns),
                by_second: live_bounds.unwrap_or_default(),
            },
            reference: capture.reference,
            logged,
            bases,
            stamps_again,
            is_rebased,
        })
    }

    /// Makes a copy by `rewrite`, with these times.
    pub fn stamp(
        self,
        rewrite: impl FnOnce(Times<'_>) -> Result<Copied, RewriteError>,
    ) -> Result<(Copied, Stamped), StampError> {
        let Self {
            logged,
            bounds: known,
            mut bases,
            reference,
            stamps_again,
            is_rebased,
        } = self;
        let history = &logged.history;
        let fit = stamps_again.then(|| Fit::new(history));
        let (mut timed, mut left, mut beyond_bound) = (0, Unconverted::default(), 0);
        let live_bound_ns = known.live_ns.saturating_sub(known.stamp_error_ns);
        let (mut moves, mut bounds) = (Distribution::new(), Distribution::new());
        let clock = bases.clock;
        let clocks = bases.clone();
        let mut is_out_of_range = false;
        let time = |packet: &Packet, of: Option<&InterfaceOption>| {
            timed += 1;
            let Some(live) = clocks.real(packet.time, packet.raw) else {
                is_out_of_range |= of.is_some();
                return None;
            };
            let reported = fit.as_ref().zip(packet.raw);
            let again = reported.and_then(|(fit, raw)| {
                let live_bound_ns = known.by_second.at(raw).unwrap_or(live_bound_ns);
                let again = fit.refine(raw, live, live_bound_ns);
                beyond_bound += u64::from(again == Err(NotRefined::BeyondBound));
                again.ok()
            });
            match again {
                Some(again) => {
                    left.end_span();
                    moves.add(again.real.0.wrapping_sub(live.0).cast_signed());
                    let bound_ns = again.bound_ns.saturating_add(known.stamp_error_ns);
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
        let copied = rewrite(Times {
            clock,
            time: Box::new(time),
            moved: Box::new(moved),
        })?;
        if is_out_of_range {
            return Err(StampError::OutOfRange);
        }
        let stamped = Stamped {
            source: history.source,
            reference,
            time_base: clock.base,
            leap_table: clock.table,
            stamps_again,
            is_rebased,
            timed,
            left: left.packets,
            left_spans: left.spans,
            beyond_bound,
            moved_ns: moves.summary(),
            bound_ns: bounds.summary(),
            samples: history.samples.len(),
            segments: history.segments.len(),
            is_log_torn: logged.is_torn,
        };
        Ok((copied, stamped))
    }
}

/// Fails if a capture with this reference can't be converted so.
fn keeps_to(reference: &str, plan: &ConvertPlan) -> Result<(), Failure> {
    let (why, hint) = if plan.clock_log.is_some() {
        (
            "the log tells of the host's clock",
            "convert it without --clock-log, which keeps to that reference",
        )
    } else if plan.time_base == Some(TimeBase::Monotonic) {
        (
            "nothing in it tells CLOCK_MONOTONIC",
            "realtime and tai can be told",
        )
    } else {
        return Ok(());
    };
    let what = format!(
        "cannot convert {}: its times are by {reference}, and {why}",
        plan.input.display()
    );
    Err(Failure::new(what).hint(hint))
}

/// The clock by what the capture itself says of it.
fn own(capture: &Gathered, path: &Path) -> Result<Logged, Failure> {
    let history = capture.history.clone().ok_or_else(|| {
        Failure::new(format!(
            "cannot convert {}: it has no statistics with the clock",
            path.display()
        ))
        .hint(
            "none has a capture that was killed in its first 10 s, and a file that another \
             program has written anew, as editcap and mergecap do: convert the capture's own \
             file; or see --clock-log",
        )
    })?;
    Ok(Logged {
        history,
        bound_ns: capture.live_bound_ns.unwrap_or(0),
        is_torn: false,
    })
}
