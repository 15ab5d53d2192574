//! What a report needs of a log, in bounded memory.

use std::collections::VecDeque;
use std::net::SocketAddr;

use super::{Entry, Header, Line, NtpPoints, Phases, ReferencePhases};
use crate::ntp::NtpPoint;
use tscap_clock::{NsPerCycle, RealNs, Segment, Status, TscCycles};
use tscap_statistics::{Allan, allan};

/// 7 days of entries, one in 10 s, and of phases, one in 100 ms: earlier ones are
/// forgotten.
const MOST_POINTS: usize = 7 * 8_640;
const MOST_PHASES: usize = 7 * 864_000;
/// The latest beginnings of segments.
const MOST_SEGMENTS: usize = 1_000;
/// NTP servers; a process follows no more at a time.
const MOST_SERVERS: usize = 16;
/// Between two phases, s.
const EVERY_S: f64 = 0.1;

/// The clock at an entry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// CLOCK_REALTIME.
    pub real: RealNs,
    /// The counter.
    pub tsc: TscCycles,
    /// Since the first of all entries, by the counter, ns: as if the clock had never been
    /// set.
    pub elapsed_ns: u64,
    /// Which process said so, from 0 on.
    pub process: u64,
    /// θ̂, ns.
    pub offset_ns: i64,
    /// Greatest error of a stamp so far, ns.
    pub host_bound_ns: u64,
    /// Local rate against p̂, parts per billion.
    pub skew_ppb: i64,
    /// p̂.
    pub rate: NsPerCycle,
    /// How far the absolute clock has gone from the difference clock since the start of
    /// this process, ns.
    pub absolute_less_difference_ns: i64,
}

/// A log, or a clock being watched.
#[derive(Clone, Debug, Default)]
pub struct Digest {
    /// The first process.
    pub header: Option<Header>,
    /// How many processes after it.
    pub continued: u64,
    /// The clock at each entry, the latest 7 days.
    pub points: VecDeque<Point>,
    /// Latest status of the last process.
    pub latest: Option<Status>,
    /// Of the processes before it.
    before: Totals,
    /// Segments that began because of something, the latest ones.
    pub changes: VecDeque<Segment>,
    /// Offset of TAI in the latest segment, s.
    pub tai_offset_s: i64,
    /// The latest of another reference, without its phases.
    pub reference: Option<ReferencePhases>,
    /// Exchanges with NTP servers.
    pub ntp: Vec<NtpHistory>,
    against_counter: PhaseHistory,
    against_reference: PhaseHistory,
}

/// Exchanges with a server.
#[derive(Clone, Debug)]
pub struct NtpHistory {
    /// The server.
    pub server: SocketAddr,
    /// When, as in [`Point::elapsed_ns`], and what it came to; the latest of 7 days at one in
    /// 10 s.
    pub points: VecDeque<(u64, NtpPoint)>,
}

/// Phases of one kind, the latest 7 days.
#[derive(Clone, Debug, Default)]
struct PhaseHistory {
    series: VecDeque<Series>,
    phases: usize,
}

/// Sums over all processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Readings that were used.
    pub used: u64,
    /// Rejected: interrupted.
    pub wide: u64,
    /// Rejected: counter or clock went backwards or was set in it.
    pub torn: u64,
    /// Rejected: contradicted the clock.
    pub implausible: u64,
    /// How often the system clock was set.
    pub steps: u64,
}

/// Phases without a step between them.
#[derive(Clone, Debug)]
struct Series {
    end: TscCycles,
    every: u64,
    ns: Vec<f64>,
}

impl Digest {
    /// Takes in the next line.
    pub fn take(&mut self, line: Line) {
        match line {
            Line::Header(header) if self.header.is_none() => self.header = Some(header),
            Line::Header(_) => {
                self.continued += 1;
                self.before = self.totals();
                self.latest = None;
            }
            Line::Entry(entry) => self.take_entry(&entry),
        }
    }

    fn take_entry(&mut self, entry: &Entry) {
        let status = &entry.status;
        let rate = status.counter.ns_per_cycle_2_58;
        let last = self.points.back();
        let elapsed_ns = last.map_or(0, |last| {
            let since = rate.duration_ns(status.tsc.0.saturating_sub(last.tsc.0));
            last.elapsed_ns.saturating_add(since)
        });
        let last = last.filter(|last| last.process == self.continued);
        let gone = last.map_or(0, |last| last.absolute_less_difference_ns);
        let point = Point {
            real: status.real,
            tsc: status.tsc,
            elapsed_ns,
            process: self.continued,
            offset_ns: status.offset_ns,
            host_bound_ns: status.host_bound_ns,
            skew_ppb: status.skew_ppb,
            rate,
            absolute_less_difference_ns: gone.wrapping_add(status.absolute_less_difference_ns),
        };
        push(&mut self.points, point, MOST_POINTS);
        self.latest = Some(*status);
        for segment in &entry.segments {
            self.tai_offset_s = segment.tai_offset_s;
            let is_known = |known: &Segment| known.from == segment.from;
            if segment.after.is_some() && !self.changes.iter().rev().take(100).any(is_known) {
                push(&mut self.changes, *segment, MOST_SEGMENTS);
            }
        }
        for phases in &entry.phases {
            self.against_counter.take(phases);
        }
        for exchanges in &entry.ntp {
            self.take_ntp(exchanges, &point);
        }
        if let Some(reference) = &entry.reference {
            for phases in &reference.phases {
                self.against_reference.take(phases);
            }
            self.reference = Some(ReferencePhases {
                phases: Vec::new(),
                ..reference.clone()
            });
        }
    }

    /// Exchanges that an entry has, which itself is at `until`.
    fn take_ntp(&mut self, exchanges: &NtpPoints, until: &Point) {
        let rate = until.rate;
        let known = self.ntp.iter().position(|it| it.server == exchanges.server);
        if known.is_none() && self.ntp.len() == MOST_SERVERS {
            return;
        }
        let place = known.unwrap_or_else(|| {
            self.ntp.push(NtpHistory {
                server: exchanges.server,
                points: VecDeque::new(),
            });
            self.ntp.len() - 1
        });
        for point in &exchanges.points {
            let before = rate.duration_ns(until.tsc.0.saturating_sub(point.at.0));
            let at_ns = until.elapsed_ns.saturating_sub(before);
            push(&mut self.ntp[place].points, (at_ns, *point), MOST_POINTS);
        }
    }

    /// The Allan deviation of CLOCK_REALTIME against the counter, on all scales that there
    /// are enough phases for. Where nothing steers that clock this is one oscillator against
    /// itself.
    pub fn against_counter(&self) -> Vec<Allan> {
        self.against_counter.allan()
    }

    /// The same against the other reference, which is another oscillator; nothing without
    /// one.
    pub fn against_reference(&self) -> Vec<Allan> {
        self.against_reference.allan()
    }

    /// Readings and steps of all processes.
    pub fn totals(&self) -> Totals {
        let mut totals = self.before;
        if let Some(status) = &self.latest {
            totals.used += status.readings.used;
            totals.wide += status.wide;
            totals.torn += status.readings.torn;
            totals.implausible += status.readings.implausible;
            totals.steps += status.steps;
        }
        totals
    }
}

impl PhaseHistory {
    fn take(&mut self, phases: &Phases) {
        let ns = phases
            .ns
            .iter()
            .map(|ns| ns.map_or(f64::NAN, |ns| ns as f64));
        let last = self.series.back_mut();
        match last.filter(|last| last.end == phases.from && last.every == phases.every) {
            Some(series) => {
                series.ns.extend(ns);
                series.end = phases.end();
            }
            None => self.series.push_back(Series {
                end: phases.end(),
                every: phases.every,
                ns: ns.collect(),
            }),
        }
        self.phases += phases.ns.len();
        // A part of the first at a time, so that it is not moved at each entry.
        while self.phases > MOST_PHASES + MOST_PHASES / 8 {
            let Some(first) = self.series.front_mut() else {
                break;
            };
            let forgotten = first.ns.len().min(self.phases - MOST_PHASES);
            first.ns.drain(..forgotten);
            self.phases -= forgotten;
            if first.ns.is_empty() {
                self.series.pop_front();
            }
        }
    }

    fn allan(&self) -> Vec<Allan> {
        allan(self.series.iter().map(|series| &series.ns[..]), EVERY_S)
    }
}

fn push<T>(queue: &mut VecDeque<T>, item: T, most: usize) {
    if queue.len() == most {
        queue.pop_front();
    }
    queue.push_back(item);
}

#[cfg(test)]
mod tests;
