//! The stamps of a capture on one line of time.

use tscap_clock::{CounterReport, FileNs, RawStamp, StampSource, interval_ns};
use tscap_delay::file::{counter, why_not_raw};
use tscap_file::pcapng::Packet;
use tscap_streams::Described;

/// When the packets of one host were seen, ns, by one clock that is never set: that of their raw
/// stamps, or else of the file's times.
#[derive(Clone, Debug)]
pub struct Timeline {
    raw: Option<Raw>,
    /// What the stamps are called in the result.
    pub name: String,
    /// Greatest error of one against its clock, ns.
    pub error_ns: u64,
    /// Nothing in the file says how far they are off: they are taken to be right to their last
    /// digit.
    pub is_assumed: bool,
    /// Nothing says whether the clock was set meanwhile.
    pub may_be_set: bool,
    /// The clock is one that a time daemon slews, or may be.
    pub is_steered: bool,
    /// Greatest relative error of the rate by which a counter's stamps are read, parts per
    /// billion.
    pub rate_ppb: u64,
}

/// Raw stamps, and the time that they begin at.
#[derive(Clone, Copy, Debug)]
struct Raw {
    first: RawStamp,
    at: FileNs,
    counter: Option<CounterReport>,
}

impl Timeline {
    /// By the raw stamps of these interfaces, which are of one clock, if they can be used; `Err`
    /// says why not.
    pub fn raw(all: &[&Described]) -> Result<Self, String> {
        if let Some(why) = why_not_raw(all) {
            return Err(why);
        }
        let first = all.iter().filter_map(|it| it.stamps.zip(it.times));
        let first = first.min_by_key(|(stamps, _)| stamps[0]);
        let counter = counter(all);
        let statistics = all.iter().filter_map(|it| it.statistics.as_ref());
        let error_ns = statistics.clone().map(|it| it.clock.stamp_error_ns).max();
        let options = all.iter().find_map(|it| it.interface.tscap.as_ref());
        let is_nominal = counter.is_some_and(|it| it.raw.is_some());
        Ok(Self {
            raw: first.map(|([first, _], [at, _])| Raw { first, at, counter }),
            name: options.map_or(String::new(), |it| it.stamp.path.clone()),
            // Each is rounded.
            error_ns: error_ns.unwrap_or(0) + 1,
            is_assumed: false,
            may_be_set: false,
            is_steered: !is_nominal && all.iter().any(|it| is_synchronised(it)),
            rate_ppb: counter.map_or(0, |it| it.interval_bound_ppb()),
        })
    }

    /// By the times of the file.
    pub fn times(all: &[&Described]) -> Self {
        let bounds = || all.iter().map(|it| error_of_times(it));
        let resolution_ns = all.iter().map(|it| it.interface.resolution_ns).max();
        let error_ns = bounds().flatten().max().unwrap_or(0);
        Self {
            raw: None,
            name: "the file's times".into(),
            error_ns: error_ns + resolution_ns.unwrap_or(1),
            is_assumed: bounds().any(|it| it.is_none()),
            may_be_set: all.iter().any(|it| it.statistics.is_none()),
            is_steered: all.iter().any(|it| is_synchronised(it)),
            rate_ppb: 0,
        }
    }

    /// The same line for stamps of the same clock, which another capture took.
    #[must_use]
    pub fn with_the_start_of(self, other: &Self) -> Self {
        let raw = self.raw.zip(other.raw);
        Self {
            raw: raw.map(|(_, other)| other),
            ..self
        }
    }

    /// When a packet was seen, as its stamp says it.
    fn stamp(&self, packet: &Packet) -> u64 {
        let stamp = self.raw.zip(packet.raw);
        match stamp {
            Some((raw, stamp)) => {
                let since_ns = interval_ns(raw.first, stamp, raw.counter.as_ref());
                raw.at.0.saturating_add_signed(since_ns)
            }
            None => packet.time.0,
        }
    }
}

/// Packets of a host in the order of its file, on a line of time that does not go back.
#[derive(Debug)]
pub struct Line<'a> {
    timeline: &'a Timeline,
    latest: Option<u64>,
    /// By how much it is ahead of the stamps, ns.
    ahead_ns: u64,
}

/// Frames of one file are no farther out of order, ns.
const DISORDER_NS: u64 = 10_000_000;
/// Where a clock was set back the line goes on so much later, ns: farther than any alignment leaves
/// open, so that it shows.
const JUMP_NS: u64 = 10_000_000_000;

impl<'a> Line<'a> {
    /// From the start of the file on.
    pub fn new(timeline: &'a Timeline) -> Self {
        Self {
            timeline,
            latest: None,
            ahead_ns: 0,
        }
    }

    /// When the next packet was seen.
    pub fn at(&mut self, packet: &Packet) -> u64 {
        let stamp = self.timeline.stamp(packet);
        let at = stamp.saturating_add(self.ahead_ns);
        let latest = self.latest.unwrap_or(at);
        if at.saturating_add(DISORDER_NS) >= latest {
            self.latest = Some(latest.max(at));
            return at;
        }
        let at = latest.saturating_add(JUMP_NS);
        self.ahead_ns = at - stamp;
        self.latest = Some(at);
        at
    }

    /// Whether the clock was set back so far.
    pub fn has_jumped(&self) -> bool {
        self.ahead_ns > 0
    }
}

/// Greatest error of a time against its clock, ns, if the file states one.
fn error_of_times(it: &Described) -> Option<u64> {
    let bound_ns = it.clock.times().bound_ns()?;
    // `tscap convert` may have moved a time that kept its raw stamp by as much.
    Some(if it.raw > 0 { 2 * bound_ns } else { bound_ns })
}

/// Whether a time daemon slews the clock, as far as the file says it. CLOCK_MONOTONIC is slewed as
/// CLOCK_REALTIME is; another program says nothing.
fn is_synchronised(it: &Described) -> bool {
    let Some(statistics) = &it.statistics else {
        return true;
    };
    let is_followed = statistics.clock.reference.is_some();
    is_followed
        || statistics.clock.utc_bound_ns.is_some()
        || statistics.clock.stamp.source == StampSource::Tai
}
