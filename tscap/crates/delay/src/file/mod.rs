//! Delays from a capture that has packets at both places.
//!
//! The file is read twice: whether stamps can be compared, and what is said of their errors,
//! is known only when all of it was looked at.

mod places;
mod stamps;
mod warnings;

use std::io::{Read, Seek};
use std::time::Duration;

use tscap_common::key::key;

use super::matcher::{Matcher, MatcherOptions, Passed};
use super::recorder::{DelayRecorder, Matched};
use super::schema::{Exit, How, Match, MeasuringPoint, Passage};
use super::sighting::{SeenAt, Sighting};
pub use places::Place;
use places::Places;
use stamps::Stamps;
pub use stamps::{counter, why_not_raw};
use tscap_clock::{FileNs, RawStamp, RealNs};
use tscap_file::pcapng::{Origin, Packet, Record};
use tscap_streams::{CaptureError, ENDS_WITHIN, Survey};

/// What is to be measured in a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePlan {
    /// Where packets are seen.
    pub how: How,
    /// The interface at which they enter, by its name, or by its number in the file; with
    /// [`How::Mirror`] the one that receives the copies.
    pub entry: String,
    /// The interface at which they leave, with [`How::Hooks`]; otherwise it is the same.
    pub exit: String,
    /// What makes two sightings those of one packet.
    pub matched_by: Match,
    /// Longest delay that is looked for.
    pub window: Duration,
    /// Packets that are remembered at a time, at most.
    pub capacity: usize,
}

/// What was found in a capture.
#[derive(Clone, Debug, PartialEq)]
pub struct FileResult {
    /// Which clock the delays are of.
    pub clock: String,
    /// The time of the first packet at a place, CLOCK_REALTIME; `None` if there is none.
    pub started: Option<RealNs>,
    /// From the first packet to the last one, s.
    pub seconds: f64,
    /// Memory of the matcher, bytes.
    pub memory_bytes: u64,
    /// The figures.
    pub passage: Passage,
    /// Where it was captured, as its sections say, each answer once.
    pub captured: Vec<Origin>,
    /// Whether all of the file was read.
    pub is_whole: bool,
    /// What a reader must know.
    pub warnings: Vec<String>,
}

/// Why a capture tells no delays.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It is no capture, or can't be read twice.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// An interface that the file does not have.
    #[error("it has no interface {name}: it has {has}")]
    NoInterface {
        /// As it was asked for.
        name: String,
        /// Those that it has.
        has: String,
    },
    /// Interfaces of one name that are not one.
    #[error(
        "it has several interfaces {name}, of different hosts or network namespaces: {has}. Give \
         the number of one of them"
    )]
    SeveralInterfaces {
        /// As it was asked for.
        name: String,
        /// Those that it has.
        has: String,
    },
    /// Keys are of Ethernet frames.
    #[error("the frames of {0} are not Ethernet")]
    NotEthernet(String),
    /// Frames of a direction that was not captured.
    #[error(
        "what {name} {did} was not captured: `tscap capture --direction inout` records both \
         directions"
    )]
    NotCaptured {
        /// The interface.
        name: String,
        /// "sent" or "received".
        did: &'static str,
    },
    /// A request and its reply can't be told apart.
    #[error(
        "the frames of {0} have no direction (epb_flags), so that requests can't be told from \
         replies: `tscap capture --direction inout` records it"
    )]
    NoDirections(String),
    /// Times of two clocks, of which nothing says how far they are off each other.
    #[error(
        "times at {entry} are of the clock of {of_entry}, those at {exit} of that of {of_exit}, and \
         nothing in the file bounds how far both are off each other: a clock was not synchronised, or \
         its capture was killed in its first 10 s. Capture both places by one `tscap capture`, or \
         where both hosts have synchronised clocks (`tscap doctor`)"
    )]
    OfTwoClocks {
        /// Where packets enter.
        entry: String,
        /// Whose clock the times there are of.
        of_entry: String,
        /// Where they leave.
        exit: String,
        /// Whose clock the times there are of.
        of_exit: String,
    },
    /// Times of another clock.
    #[error(
        "its times are of the clock {0}: `tscap convert --time-base realtime` makes a copy that \
         can be measured"
    )]
    TimeBase(&'static str),
}

/// Measures the delays in a pcapng file, of tscap or of another program. Its raw stamps are
/// used if all packets have them (`tscap capture --keep-raw`), otherwise its times. What
/// can't be read of it is left out, with a warning.
///
/// # Errors
/// If it can't tell delays; the error says why.
pub fn measure_file<R: Read + Seek>(
    file: &mut R,
    plan: &FilePlan,
) -> Result<FileResult, FileError> {
    let survey = Survey::of(file)?;
    let mut warnings = Vec::new();
    let places = Places::find(plan, &survey, &mut warnings)?;
    let stamps = Stamps::of(&survey, &places, &mut warnings)?;
    let mut measured = Measured::new(plan, &places, &stamps);
    survey.again(file, |record| {
        if let Record::Packet(packet) = record {
            measured.take(&packet);
        }
    })?;
    measured.warn(&mut warnings);
    warnings.extend(warnings::warnings(&survey, &places));
    let seconds = stamps.seconds();
    let memory_bytes = measured.matcher.memory_bytes();
    let started = stamps.first_time.map(|FileNs(ns)| RealNs(ns));
    Ok(FileResult {
        clock: stamps.clock.clone(),
        started,
        seconds,
        memory_bytes,
        passage: measured.finish(plan),
        captured: survey.captured,
        is_whole: survey.end.is_whole(),
        warnings,
    })
}

/// What was seen at a place.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    frames: u64,
    unkeyed: u64,
}

/// The file on its second way through.
struct Measured<'a> {
    plan: &'a FilePlan,
    places: &'a Places,
    stamps: &'a Stamps,
    matcher: Matcher,
    recorder: DelayRecorder,
    entry: Seen,
    exit: Seen,
    latest: RawStamp,
    /// How often times went back by more than a window.
    went_back: u64,
}

impl<'a> Measured<'a> {
    fn new(plan: &'a FilePlan, places: &'a Places, stamps: &'a Stamps) -> Self {
        let matcher = Matcher::new(MatcherOptions {
            window: stamps.window(plan.window),
            capacity: plan.capacity,
            exits: 1,
            is_mirrored: plan.how == How::Mirror,
            kept_bytes: KEPT,
            keeps_exits: false,
            start: stamps.first,
        });
        Self {
            plan,
            places,
            stamps,
            matcher,
            recorder: DelayRecorder::new(),
            entry: Seen::default(),
            exit: Seen::default(),
            latest: stamps.first,
            went_back: 0,
        }
    }

    fn take(&mut self, packet: &Packet) {
        for at in self.places.of(packet) {
            let of = self.plan.matched_by.key_of();
            let there = packet.data.len() as u32;
            let key = key(of, &packet.data[..], there, packet.origlen);
            let seen = match at {
                SeenAt::Entry => &mut self.entry,
                SeenAt::Exit(_) => &mut self.exit,
            };
            seen.frames += 1;
            let Some(key) = key else {
                seen.unkeyed += 1;
                continue;
            };
            let stamp = self.stamps.stamp(packet);
            self.watch_time(stamp);
            let sighting = Sighting {
                at,
                key,
                stamp: self.stamps.in_order(stamp, at),
                cpu: 0,
                length: packet.origlen,
            };
            let (recorder, stamps) = (&mut self.recorder, self.stamps);
            let (kept, length) = kept(packet);
            self.matcher.see(&sighting, &kept[..length], &mut |passed| {
                record(recorder, stamps, passed)
            });
        }
    }

    /// Frames stand in the file in order of time, unless the clock was set.
    fn watch_time(&mut self, stamp: RawStamp) {
        let window = self.stamps.span(self.plan.window);
        if stamp.0.saturating_add(window) < self.latest.0 {
            self.went_back += 1;
            self.matcher.distrust();
            self.latest = stamp;
        }
        self.latest = self.latest.max(stamp);
    }

    fn warn(&self, warnings: &mut Vec<String>) {
        if self.went_back > 0 {
            warnings.push(format!(
                "times in the file go back by more than the window, {} times: what was inside then \
                 is counted as ambiguous; the parts of a capture are put in order by `tscap merge`",
                self.went_back
            ));
        }
    }

    fn finish(self, plan: &FilePlan) -> Passage {
        let Self {
            places,
            stamps,
            matcher,
            mut recorder,
            ..
        } = self;
        let passed = &mut |passed: &Passed<'_>| record(&mut recorder, stamps, passed);
        let accounts = matcher.finish(stamps.last, passed);
        let account = accounts.into_iter().next().unwrap_or_default();
        let bound_ns = stamps.bound_ns(recorder.longest_ns());
        let (entry, exit) = match plan.how {
            // Places are told by order.
            How::Mirror => {
                let keyed = |keyed| Seen {
                    frames: keyed,
                    unkeyed: 0,
                };
                let unkeyed = self.entry.unkeyed;
                let entry = Seen {
                    frames: account.entered + unkeyed,
                    unkeyed,
                };
                (entry, keyed(account.left))
            }
            _ => (self.entry, self.exit),
        };
        Passage {
            name: match plan.how {
                How::Hooks => format!("{} → {}", places.entry.name, places.exit.name),
                How::Mirror => format!("{}, mirrored", places.entry.name),
                How::Reflect => format!("{}, request to reply", places.entry.name),
                How::Rtt | How::Sessions => format!("{}, there and back", places.entry.name),
            },
            entry: spot(&places.entry, entry),
            exits: vec![Exit {
                point: places.exit.point().to_owned(),
                spot: spot(&places.exit, exit),
                account,
                delays: recorder.finish(bound_ns),
                variation: None,
            }],
            queueing: None,
        }
    }
}

/// What is kept of a packet until it is judged: its time in the file, and the first bytes.
const KEPT: usize = size_of::<u64>() + ENDS_WITHIN;

/// That of `packet`, and how long it is.
fn kept(packet: &Packet) -> ([u8; KEPT], usize) {
    let mut kept = [0; KEPT];
    let (time, first) = kept.split_at_mut(size_of::<u64>());
    time.copy_from_slice(&packet.time.0.to_ne_bytes());
    let length = packet.data.len().min(ENDS_WITHIN);
    first[..length].copy_from_slice(&packet.data[..length]);
    (kept, size_of::<u64>() + length)
}

fn record(recorder: &mut DelayRecorder, stamps: &Stamps, passed: &Passed<'_>) {
    let Some(left) = passed.left[0] else { return };
    let (time, bytes) = passed
        .bytes_in
        .split_first_chunk()
        .unwrap_or((&[0; 8], &[]));
    let time = u64::from_ne_bytes(*time);
    recorder.add(&Matched {
        at_ns: stamps
            .between(stamps.first, passed.entered)
            .max(0)
            .unsigned_abs(),
        delay_ns: stamps.delay_ns(passed.entered, left),
        entered: RealNs(time),
        cpu_in: None,
        cpu_out: None,
        length: passed.length,
        key: passed.key,
        bytes,
    });
}

fn spot(place: &Place, seen: Seen) -> MeasuringPoint {
    MeasuringPoint {
        interface: place.name.clone(),
        hook: place.hook.clone(),
        seen: seen.frames,
        unkeyed: seen.unkeyed,
        unrecorded: Default::default(),
        keyed: seen.frames - seen.unkeyed,
    }
}

#[cfg(test)]
mod tests;
