//! A capture of simulated frames, as the converter thread (`tscap-engine`) makes one.

use tscap_clock::{
    CounterReport, History, LiveBounds, MonoNs, RawStamp, RealNs, Reference, StampSource, Tracker,
};

use super::host::Host;
use super::noise::log_uniform;
use super::reader::Reader;
use super::scenario::{MS, S, SETTLED, Scenario};

/// A frame's stamp, and what became of it.
#[derive(Clone, Copy, Debug)]
pub struct Stamp {
    /// When it was taken, ns since the start.
    pub at_ns: u64,
    pub raw: RawStamp,
    pub truth: RealNs,
    /// CLOCK_MONOTONIC_RAW then, ns.
    pub raw_ns: u64,
    pub live: RealNs,
    pub is_ambiguous: bool,
    /// Stated right after it was converted, ns.
    pub bound_ns: u64,
}

/// What a capture wrote.
#[derive(Debug)]
pub struct Captured {
    pub stamps: Vec<Stamp>,
    /// Of the last statistics, ns.
    pub bound_ns: u64,
    pub history: History,
    pub counter: Option<CounterReport>,
    pub live_bounds: LiveBounds,
}

/// Readings of the first look, of which a capture takes 5,000.
const FIRST_READINGS: usize = 100;
const FIRST_BASELINE: u64 = 100 * MS;
const PATIENCE: usize = 50;
const STATISTICS_EVERY: u64 = 10 * S;

/// The first look at the clocks; `None` if they were disturbed for too long.
pub fn first_brackets(source: StampSource, reader: &mut Reader<'_>) -> Option<Tracker> {
    let mut tracker = (0..3).find_map(|_| Tracker::new(source, &reader.read()))?;
    for _ in 0..PATIENCE {
        for _ in 0..FIRST_READINGS {
            tracker.observe(&reader.read());
        }
        if tracker.is_settled() {
            return Some(tracker);
        }
        reader.sleep_until(reader.now_ns + FIRST_BASELINE);
    }
    None
}

pub fn capture(scenario: &Scenario, host: &Host) -> Option<Captured> {
    let mut random = scenario.random.clone();
    let Scenario { source, noise, .. } = *scenario;
    let mut reader = Reader::new(
        host,
        source,
        noise,
        random.u64(..),
        &scenario.storms,
        scenario.reads_offset,
    );
    reader.sleep_until(50 * MS);
    let mut tracker = first_brackets(source, &mut reader)?;
    let mut history = History::new(source);
    let mut settled = 0;
    let mut waiting = stamps(scenario, host, reader.now_ns).into_iter().peekable();
    let mut stamps: Vec<Stamp> = Vec::new();
    let mut statistics_at = reader.now_ns + STATISTICS_EVERY;
    let (mut drain, mut read_before) = (reader.now_ns, 0);
    while drain < scenario.end() {
        drain = next_drain(scenario, reader.now_ns);
        reader.sleep_until(drain);
        let _before: MonoNs = reader.read();
        let look = reader.now_ns;
        let cross = tracker.read(&mut reader);
        tracker.observe(&cross);
        tracker.look_at_raw(cross.mono[1], &mut reader);
        let conversion = tracker.convert();
        let until = if drain >= scenario.end() {
            look
        } else if scenario.holds_a_drain {
            read_before
        } else {
            look.saturating_sub(scenario.held_back_ns)
        };
        read_before = reader.now_ns;
        let converted = stamps.len();
        while let Some(stamp) = waiting.next_if(|stamp| stamp.at_ns <= until) {
            stamps.push(Stamp {
                live: conversion.to_real(stamp.raw),
                is_ambiguous: conversion.is_ambiguous(stamp.raw),
                ..stamp
            });
        }
        let bound_ns = tracker.host_bound_ns();
        for stamp in &mut stamps[converted..] {
            stamp.bound_ns = bound_ns;
        }
        if reader.now_ns >= statistics_at {
            statistics_at = reader.now_ns + STATISTICS_EVERY;
            take(&mut history, &mut tracker, &mut settled);
        }
    }
    let mut looks = 0;
    while tracker.wants_last_look(&mut looks) {
        tracker.look(&mut reader);
    }
    take(&mut history, &mut tracker, &mut settled);
    Some(Captured {
        stamps,
        bound_ns: tracker.host_bound_ns(),
        live_bounds: LiveBounds::new(&history),
        counter: tracker.counter_report(),
        history,
    })
}

/// What goes into the file every 10 s.
fn take(history: &mut History, tracker: &mut Tracker, settled: &mut u64) {
    let rate = tracker.counter().map(|counter| counter.rate());
    let samples = tracker.take_samples();
    let (segments, left_out) = tracker.unsettled_segments(settled);
    history.left_out += left_out;
    let taken = history.take(rate, segments, samples);
    taken.expect("a capture writes no impossible history");
}

/// When the process wakes up next.
fn next_drain(scenario: &Scenario, now_ns: u64) -> u64 {
    let next = (now_ns / scenario.drain_ns + 1) * scenario.drain_ns;
    let is_in = |(from, length): &&(u64, u64)| (*from..from + length).contains(&next);
    let stalls = scenario.stalls.iter().filter(is_in);
    stalls
        .map(|(from, length)| from + length)
        .fold(next, u64::max)
}

/// Stamps of frames from `from` on, not yet converted: at random, and more around what
/// happens.
fn stamps(scenario: &Scenario, host: &Host, from: u64) -> Vec<Stamp> {
    let mut random = scenario.random.clone();
    let until = scenario.end();
    let mut times: Vec<u64> = (0..8_000).map(|_| random.u64(from..until)).collect();
    let near = 2_000 / scenario.events.len() + 4;
    for (at, _) in &scenario.events {
        for _ in 0..near {
            let off = log_uniform(&mut random, 1, 30 * MS).cast_signed();
            let off = if random.bool() { off } else { -off };
            times.push(
                at.saturating_add_signed(off)
                    .clamp(from.max(SETTLED), until),
            );
        }
    }
    times.sort_unstable();
    let stamps = times.into_iter().map(|at_ns| {
        let now = host.at(host.cycles(at_ns));
        let raw = match scenario.source {
            StampSource::Ktime => now.mono(),
            StampSource::Tai => now.tai(),
            StampSource::Tsc => now.tsc(),
        };
        Stamp {
            at_ns,
            raw: RawStamp(raw),
            truth: RealNs(now.real()),
            raw_ns: now.raw(),
            live: RealNs(0),
            is_ambiguous: false,
            bound_ns: 0,
        }
    });
    stamps.collect()
}
