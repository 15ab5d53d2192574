//! From the clock that the capture's times are of to that which the copy's are to be of.

use std::fs;
use std::path::Path;

use super::gather::Gathered;
use crate::command::{Context, Failure, Hint as _};
use tscap_cli::ConvertPlan;
use tscap_clock::{
    BaseClock, FileClock, FileNs, History, LEAP_SECONDS, LeapSeconds, RawStamp, RealNs,
    TableOffset, TimeBase,
};
use tscap_file::pcapng::StatisticsOption;

/// A packet may be so much before the first reading of the clock or after the last one.
const AROUND_NS: u64 = 60_000_000_000;

#[derive(Clone, Debug)]
pub(super) struct Bases {
    from: BaseClock,
    to: BaseClock,
    /// Which one the copy's times are of.
    pub clock: FileClock,
    /// How far the start of the statistics moves: that of the first block.
    start_moved_ns: Option<i64>,
}

impl Bases {
    /// By all that is known of the clock.
    ///
    /// # Errors
    /// If that does not tell every packet's time in both.
    pub fn new(history: &History, capture: &Gathered, plan: &ConvertPlan) -> Result<Self, Failure> {
        let input = plan.input.display();
        let from = capture.clock;
        let to = match plan.time_base {
            Some(base) if base != from.base => FileClock {
                base,
                table: table(history, base, plan)?,
                ..FileClock::default()
            },
            _ => from,
        };
        let clock = |clock: FileClock| {
            let base = clock.base.name();
            BaseClock::new(history, clock, capture.all_have_stamps)
                .context(format!("cannot tell the times of {input} by {base}"))
                .hint("capture with --keep-raw; or convert by a log, see --clock-log")
        };
        Ok(Self {
            from: clock(from)?,
            to: clock(to)?,
            clock: to,
            start_moved_ns: None,
        })
    }

    /// CLOCK_REALTIME at a packet of the capture.
    pub fn real(&self, time: FileNs, stamp: Option<RawStamp>) -> Option<RealNs> {
        self.from.to_real(time, stamp)
    }

    /// The time that it is to have in the copy.
    pub fn time(&self, real: RealNs, stamp: Option<RawStamp>) -> Option<FileNs> {
        self.to.from_real(real, stamp)
    }

    /// How far a statistics block's start, and the time of its making, move. It was
    /// made in its last segment, and the capture began in the first one of all.
    pub fn moved(&mut self, statistics: &StatisticsOption) -> [i64; 2] {
        let segments = &statistics.clock.segments;
        let moved = |mono| {
            self.to
                .ahead_ns_at(mono)
                .wrapping_sub(self.from.ahead_ns_at(mono))
        };
        let made = segments.last().map_or(0, |segment| moved(segment.from));
        let first = segments.first().map_or(0, |segment| moved(segment.from));
        let start = *self.start_moved_ns.get_or_insert(first);
        [start, made]
    }
}

/// TAI − UTC by the table of leap seconds, if there are times that need it.
fn table(
    history: &History,
    base: TimeBase,
    plan: &ConvertPlan,
) -> Result<Option<TableOffset>, Failure> {
    let segments = history.segments.iter();
    let without = segments.filter(|segment| !segment.has_tai_offset());
    let times = without.map(|segment| segment.real());
    let whole = times.reduce(|[a, b], [c, d]| [a.min(c), b.max(d)]);
    let Some([from, until]) = whole.filter(|_| base == TimeBase::Tai) else {
        return Ok(None);
    };
    let path = plan.leap_seconds.as_deref();
    let path = path.unwrap_or(Path::new(LEAP_SECONDS));
    let trying = format!(
        "cannot tell the times of {} by tai: the kernel had no TAI offset, and {} does not give it",
        plan.input.display(),
        path.display()
    );
    let hint = "give the newest table by --leap-seconds, from \
                https://data.iana.org/time-zones/tzdb/leap-seconds.list; for later captures let \
                the time daemon set the offset (chrony: leapsectz right/UTC)";
    let bytes = fs::read(path).context(trying.clone());
    let bytes = bytes.hint(hint)?;
    let around = [
        RealNs(from.0.saturating_sub(AROUND_NS)),
        RealNs(until.0.saturating_add(AROUND_NS)),
    ];
    // A line that is no text is none of a table.
    let text = String::from_utf8_lossy(&bytes);
    let offset = LeapSeconds::parse(&text).and_then(|table| table.offset(around));
    let offset = offset.context(trying).hint(hint)?;
    Ok(Some(offset))
}
