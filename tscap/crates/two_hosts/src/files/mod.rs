//! Delays between two hosts from a capture of each, or from one that has both.
//!
//! Packets that both captures have, there and back, are exchanges: they align the clocks of both
//! ([`Alignment`](crate::Alignment)), whatever these show. Where both files say how far their
//! times are from UTC, that bounds each delay too.
//!
//! Each file is read three times, or once more for the way back: what it says of its clock stands
//! behind the packets, and the alignment must be known before the first delay is.

mod common;
mod host;
mod other_host;
mod passage;
mod peer_time;
mod timeline;

use std::io::{Read, Seek};
use std::time::Duration;

use tscap_base::text::numbers::{counted, span};
use tscap_clock::RealNs;
use tscap_delay::file::FileError;
use tscap_delay::schema::{AlignmentReport, Match, Passage};
use tscap_file::accounting::Direction;
use tscap_file::pcapng::{ClockRelation, Origin, Record};
use tscap_statistics::Distribution;
use tscap_streams::{CaptureError, Survey};

pub use other_host::{OtherHost, OtherHostPlan, OtherTimes};

use crate::AlignBy;
use crate::sender::{FREE_PPB, STEERED_PPB};
use common::{Common, CommonPackets};
use host::{Host, SeenTimes};
use peer_time::{ByExchanges, PeerTime};
use timeline::Line;

/// A place at one of both hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePlace {
    /// The name of the file, for people.
    pub file: String,
    /// The interface, by its name or its number in the file; `None` for the only one.
    pub interface: Option<String>,
    /// Which of its frames.
    pub direction: Direction,
}

/// What is to be measured in two captures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilesPlan {
    /// Where packets enter, at the first host, and where they leave, at the second one.
    pub places: [FilePlace; 2],
    /// Also measure the other way: what the second host's place has of the other direction, to
    /// that of the first one's.
    pub is_both: bool,
    /// What makes two sightings those of one packet; no [`Match::Reply`].
    pub matched_by: Match,
    /// Longest delay that is looked for.
    pub window: Duration,
    /// Packets that are remembered at a time, at most.
    pub capacity: usize,
    /// What aligns the clocks; `None` for both, unless they are one clock.
    pub align: Option<AlignBy>,
    /// Greatest difference of the clocks' rates, parts per billion; `None` for [`FREE_PPB`], and
    /// [`STEERED_PPB`] where a time daemon may slew one of them.
    pub max_drift_ppb: Option<u64>,
    /// Greatest difference of the least delays there and back that somebody vouches for, ns.
    pub max_asymmetry_ns: Option<u64>,
}

/// What was found in two captures.
#[derive(Clone, Debug, PartialEq)]
pub struct FilesResult {
    /// Which clocks the delays are of.
    pub clock: String,
    /// The time of the first packet of the first host; `None` if there is none.
    pub started: Option<RealNs>,
    /// From its first packet to its last one, s.
    pub seconds: f64,
    /// Memory of the matcher, bytes.
    pub memory_bytes: u64,
    /// The figures there, and of the way back if it was asked for.
    pub passages: Vec<Passage>,
    /// How far the clocks are apart; `None` of one clock.
    pub alignment: Option<AlignmentReport>,
    /// Where they were captured, each answer once.
    pub captured: Vec<Origin>,
    /// Whether all of both files was read.
    pub is_whole: bool,
    /// What a reader must know.
    pub warnings: Vec<String>,
}

/// Why two captures tell no delays.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// A file is no capture.
    #[error("{file}")]
    Capture {
        /// The file.
        file: String,
        /// Why.
        #[source]
        error: CaptureError,
    },
    /// A file does not have the place.
    #[error("{file}: {error}")]
    Of {
        /// The file.
        file: String,
        /// What it lacks.
        error: FileError,
    },
    /// It has several interfaces.
    #[error(
        "{file} has not one interface with packets: name the one that is meant by --in or --out"
    )]
    WhichInterface {
        /// The file.
        file: String,
    },
    /// Its times jump.
    #[error(
        "the clock of {file} was set during the capture, and not all of its packets have raw stamps: \
         one-way delays by its times would be wrong by as much. `tscap capture --keep-raw` keeps stamps that \
         nobody sets"
    )]
    WasSet {
        /// The file.
        file: String,
    },
    /// Its times are to be given to others, and nothing names its clock.
    #[error("{file} does not name its host by a boot, as captures of tscap do")]
    NoBoot {
        /// The file.
        file: String,
    },
    /// It was merged of captures of several hosts.
    #[error("the packets of {file} are stamped by several clocks")]
    SeveralClocks {
        /// The file.
        file: String,
    },
    /// Both are of one host.
    #[error("both captures are of one clock already")]
    OneClock,
    /// There is no time of some packets.
    #[error("the time of {packets} packets of {file} is not known: a clock was set near to them")]
    NotAllAligned {
        /// So many.
        packets: u64,
        /// Their file.
        file: String,
    },
    /// Nothing says how far the clocks are apart.
    #[error(
        "times are of the clocks of {} and of {}, and nothing tells how far both are apart, so that \
         no delay from one to the other is known: {why}. Capture both directions on both hosts (`tscap capture \
         --direction inout`) while packets go there and back, or where both hosts have \
         synchronised clocks (`tscap doctor`)", whose[0], whose[1]
    )]
    NotAligned {
        /// Whose clocks they are.
        whose: [String; 2],
        /// What is missing.
        why: String,
    },
}

impl FilesError {
    /// No exchange aligns the clocks.
    fn not_aligned(hosts: &[Host; 2], common: &Common) -> Self {
        Self::NotAligned {
            whose: hosts.each_ref().map(Host::whose),
            why: no_exchange(common),
        }
    }
}

/// How far the clocks of both hosts are apart.
#[derive(Debug)]
struct Clocks {
    peer_time: PeerTime,
    /// Greatest error of the difference of two times of the files against UTC, ns, where it counts.
    utc_bound_ns: Option<u64>,
    /// By so much a packet may seem to leave before it enters, ns.
    slack_ns: u64,
    /// The first and the last packet of each host, by the first one's clock.
    ends: [[u64; 2]; 2],
}

/// Measures the delays between a place in the first file and one in the second; both may be one
/// file, opened twice.
///
/// # Errors
/// If they can't tell delays; the error says why.
pub fn measure_files<R: Read + Seek>(
    files: [&mut R; 2],
    plan: &FilesPlan,
) -> Result<FilesResult, FilesError> {
    let mut warnings = Vec::new();
    let [first, second] = files;
    let mut host = |file: &mut R, index: usize, numbers| {
        let place = &plan.places[index];
        let survey = Survey::beside(file, numbers).map_err(|error| of_capture(error, place))?;
        Host::find(place, survey, &mut warnings)
    };
    let one = host(first, 0, 0)?;
    let numbers = one.survey.interfaces.len();
    let mut hosts = [one, host(second, 1, numbers)?];
    let relation = hosts[0].clock().kinship(hosts[1].clock());
    let is_one_clock = plan.align.is_none() && relation != ClockRelation::Utc;
    let drift_ppb = drift_ppb(&hosts, plan.max_drift_ppb);
    if is_one_clock {
        one_clock(&mut hosts);
    }
    let has_directions = hosts.iter().all(|it| it.has_directions);
    let mut packets = CommonPackets::new(plan.matched_by.key_of(), has_directions);
    for (index, file) in [&mut *first, &mut *second].into_iter().enumerate() {
        see_all(file, &mut hosts[index], |packet, at, order| {
            packets.see(index, packet, at, order);
        })
        .map_err(|error| of_capture(error, &plan.places[index]))?;
    }
    let common = packets.meet(&hosts, drift_ppb);
    let found = if is_one_clock {
        let apart_ns = hosts[0].timeline.rate_ppb;
        Ok((
            PeerTime::Apart {
                bound_ns: 0,
                drift_ppb: apart_ns,
            },
            None,
        ))
    } else {
        align(&mut hosts, &common, plan, drift_ppb, &mut warnings)
    };
    let (peer_time, utc_bound_ns) = found?;
    let clocks = clocks(&hosts, peer_time, utc_bound_ns);
    let mut measured = Vec::new();
    let both = [(0, true), (1, plan.is_both)];
    for (entry, _) in both.into_iter().filter(|(_, is_asked)| *is_asked) {
        if entry == 1 {
            turn(&mut hosts, plan)?;
        }
        let files = [&mut *first, &mut *second];
        let way = passage::measure(files, &hosts, &clocks, &common, plan, entry);
        measured.push(way.map_err(|error| of_capture(error, &plan.places[0]))?);
    }
    said(
        &hosts,
        &clocks.peer_time,
        &common,
        is_one_clock,
        &mut warnings,
    );
    let [began, ended] = clocks.ends[0];
    let mut alignment_ns = Distribution::new();
    measured
        .iter()
        .for_each(|it| alignment_ns.merge(&it.alignment_ns));
    let unaligned = measured.iter().map(|it| it.unaligned).sum();
    let contradictions: u64 = measured.iter().map(|it| it.contradictions).sum();
    let backwards: u64 = measured.iter().map(|it| it.backwards).sum();
    if backwards > 0 {
        warnings.push(format!(
            "{} left before they entered, whatever the clocks are: --in and --out may be the wrong way \
             round",
            counted(backwards, "packet")
        ));
    }
    if contradictions > 0 {
        warnings.push(format!(
            "the packets and UTC exclude each other at {}: one of the clocks is not where it says",
            counted(contradictions, "packet")
        ));
    }
    let report = (!is_one_clock).then(|| {
        let bounds = alignment_ns.summary();
        let by_exchanges = match &clocks.peer_time {
            PeerTime::Exchanges(it) => Some(it),
            PeerTime::Apart { .. } => None,
        };
        let by = match (by_exchanges.is_some(), clocks.utc_bound_ns.is_some()) {
            (true, true) => AlignBy::Both,
            (true, false) => AlignBy::Exchange,
            _ => AlignBy::Utc,
        };
        let skew = by_exchanges.and_then(|it| it.skew_ppb);
        AlignmentReport {
            by: by.name().to_owned(),
            max_drift_ppb: drift_ppb,
            max_asymmetry_ns: plan.max_asymmetry_ns,
            bound_ns: bounds.as_ref().map(|it| it.max.unsigned_abs()),
            median_bound_ns: bounds.and_then(|it| it.p50).map(i64::unsigned_abs),
            peer_ahead_ns: by_exchanges
                .filter(|_| hosts.iter().all(|it| !it.has_jumped))
                .and_then(ByExchanges::ahead_ns),
            skew_ppb: skew.map(|it| it.0),
            skew_bound_ppb: skew.map(|it| it.1),
            utc_bound_ns: hosts[0]
                .utc_bound_ns()
                .zip(hosts[1].utc_bound_ns())
                .map(|(a, b)| a + b),
            changes: by_exchanges.map_or(0, |it| it.changes),
            contradictions,
            unaligned,
            packets: Some(common.packets),
        }
    });
    let mut captured = Vec::new();
    for origin in hosts.iter().flat_map(|it| &it.survey.captured) {
        if !captured.contains(origin) {
            captured.push(origin.clone());
        }
    }
    let mut names: Vec<_> = hosts.iter().map(|it| it.timeline.name.clone()).collect();
    names.dedup();
    Ok(FilesResult {
        clock: names.join(", "),
        started: first_time(&hosts[0]),
        seconds: ended.saturating_sub(began) as f64 / 1e9,
        memory_bytes: measured.iter().map(|it| it.memory_bytes).max().unwrap_or(0),
        passages: measured.into_iter().map(|it| it.passage).collect(),
        alignment: report,
        captured,
        is_whole: hosts.iter().all(|it| it.survey.end.is_whole()),
        warnings,
    })
}

fn of_capture(error: CaptureError, place: &FilePlace) -> FilesError {
    FilesError::Capture {
        file: place.file.clone(),
        error,
    }
}

/// Hands over the packets of a host, each with its time and the number of those before it.
fn see_all<R: Read + Seek>(
    file: &mut R,
    host: &mut Host,
    mut then: impl FnMut(&tscap_file::pcapng::Packet, u64, u64),
) -> Result<(), CaptureError> {
    let records = host.survey.one_by_one(file)?;
    let mut line = Line::new(&host.timeline);
    let mut order = 0;
    let mut seen: Option<SeenTimes> = None;
    for record in records {
        let Record::Packet(packet) = record else {
            continue;
        };
        if !host.has(&packet) {
            continue;
        }
        let at = line.at(&packet);
        seen = Some(SeenTimes {
            first: seen.map_or(at, |it| it.first),
            last: at,
            least: seen.map_or(at, |it| it.least.min(at)),
            greatest: seen.map_or(at, |it| it.greatest.max(at)),
        });
        then(&packet, at, order);
        order += 1;
    }
    host.has_jumped = line.has_jumped();
    host.seen = seen;
    Ok(())
}

/// By how much the rates of both clocks may differ, parts per billion.
fn drift_ppb(hosts: &[Host; 2], given_ppb: Option<u64>) -> u64 {
    let lines = hosts.each_ref().map(|it| &it.timeline);
    let assumed = given_ppb.unwrap_or_else(|| {
        if lines.iter().any(|it| it.is_steered) {
            STEERED_PPB
        } else {
            FREE_PPB
        }
    });
    lines
        .iter()
        .fold(assumed, |sum, it| sum.saturating_add(it.rate_ppb))
}

/// Both hosts are one: their stamps compare as they are.
fn one_clock(hosts: &mut [Host; 2]) {
    let [first, second] = hosts;
    let have_one = first.clock().has_raw_stamps_of(second.clock());
    let are_raw = first.why_not_raw.is_none() && second.why_not_raw.is_none();
    if have_one && are_raw {
        second.timeline = second.timeline.clone().with_the_start_of(&first.timeline);
    } else {
        first.use_times();
        second.use_times();
        if let Some(apart_ns) = apart_ns(first, second) {
            let own_ns = first
                .timeline
                .error_ns
                .saturating_add(second.timeline.error_ns);
            second.timeline.error_ns += apart_ns.saturating_sub(own_ns);
        }
    }
}

/// Greatest error of the difference of a time of each host by the file, ns.
fn apart_ns(one: &Host, other: &Host) -> Option<u64> {
    let all = one
        .interfaces()
        .flat_map(|it| other.interfaces().map(move |other| it.apart_ns(other)));
    all.flatten().max()
}

/// What aligns both clocks, and what UTC says beside.
fn align(
    hosts: &mut [Host; 2],
    common: &Common,
    plan: &FilesPlan,
    drift_ppb: u64,
    warnings: &mut Vec<String>,
) -> Result<(PeerTime, Option<u64>), FilesError> {
    let by = plan.align.unwrap_or_default();
    let utc = hosts[0].utc_bound_ns().zip(hosts[1].utc_bound_ns());
    let utc_ns = utc.map(|(one, other)| one.saturating_add(other));
    let utc_ns = utc_ns.filter(|_| by != AlignBy::Exchange);
    let may_be_set = hosts.iter().any(|it| it.timeline.may_be_set);
    let found = (by != AlignBy::Utc).then(|| {
        let most = plan.max_asymmetry_ns;
        ByExchanges::of(&common.pairs, drift_ppb, most, may_be_set)
    });
    if let Some(found) = found.flatten() {
        return Ok((PeerTime::Exchanges(found), utc_ns));
    }
    let no_exchange = no_exchange(common);
    let Some(bound_ns) = utc_ns else {
        let no_utc = "not both files say how far their times are from UTC";
        let why = match by {
            AlignBy::Both => format!("{no_exchange}; {no_utc}"),
            AlignBy::Exchange => no_exchange,
            AlignBy::Utc => no_utc.to_owned(),
        };
        return Err(FilesError::NotAligned {
            whose: hosts.each_ref().map(Host::whose),
            why,
        });
    };
    if by != AlignBy::Utc {
        warnings.push(format!(
            "{no_exchange}: delays are bounded by how far each clock may be off UTC, {} together",
            span(bound_ns)
        ));
    }
    hosts.iter_mut().for_each(Host::use_times);
    hosts.iter_mut().for_each(Host::see_times);
    let peer_time = PeerTime::Apart {
        bound_ns,
        drift_ppb,
    };
    Ok((peer_time, Some(bound_ns)))
}

/// Why no exchange aligns the clocks.
fn no_exchange(common: &Common) -> String {
    let [there, back] = common.packets;
    format!(
        "{} there and {} back are in both captures, and no packet back follows one there",
        counted(there, "packet"),
        counted(back, "packet")
    )
}

/// The clocks with the ends of both captures.
fn clocks(hosts: &[Host; 2], peer_time: PeerTime, utc_bound_ns: Option<u64>) -> Clocks {
    let [first, second] = hosts.each_ref().map(|it| it.seen.unwrap_or_default());
    let (second, slack_ns) = match &peer_time {
        PeerTime::Apart { bound_ns, .. } => ([second.least, second.greatest], *bound_ns),
        PeerTime::Exchanges(exchanges) => {
            let ends = [second.first, second.last];
            (exchanges.ends(ends), exchanges.greatest_bound_ns(ends))
        }
    };
    let stamps_ns: u64 = hosts.iter().map(|it| it.timeline.error_ns).sum();
    Clocks {
        peer_time,
        utc_bound_ns,
        slack_ns: slack_ns.saturating_add(stamps_ns),
        ends: [[first.least, first.greatest], second],
    }
}

/// The places of the way back.
fn turn(hosts: &mut [Host; 2], plan: &FilesPlan) -> Result<(), FilesError> {
    for (host, place) in hosts.iter_mut().zip(&plan.places) {
        let direction = match place.direction {
            Direction::In => Direction::Out,
            Direction::Out => Direction::In,
        };
        host.turn(direction)?;
    }
    Ok(())
}

/// The time of the first packet of a host in its file.
fn first_time(host: &Host) -> Option<RealNs> {
    let times = host.interfaces().filter_map(|it| it.times);
    times.map(|[first, _]| RealNs(first.0)).min()
}

/// What a reader must know of both files.
fn said(
    hosts: &[Host; 2],
    peer_time: &PeerTime,
    common: &Common,
    is_one_clock: bool,
    warnings: &mut Vec<String>,
) {
    for host in hosts {
        let file = &host.file;
        if host.timeline.is_assumed {
            warnings.push(format!(
                "{file} does not say how far its stamps are off its clock: bounds take them to be right \
                 to their last digit"
            ));
        }
        if let Some(why) = host.why_not_raw.as_ref().filter(|_| !is_one_clock) {
            warnings.push(format!("{file}: delays are told by its times: {why}"));
        }
        for described in host
            .place
            .indices
            .iter()
            .map(|it| &host.survey.interfaces[*it])
        {
            let name = &host.place.name;
            warnings.extend(
                described
                    .without_times(name)
                    .map(|it| format!("{file}: {it}")),
            );
            let taken_for = "packets that seem to be lost between both or to originate there";
            warnings.extend(
                described
                    .lost(name, taken_for)
                    .map(|it| format!("{file}: {it}")),
            );
        }
        let ends = host.survey.end.warnings(host.survey.is_tscaps());
        warnings.extend(ends.into_iter().map(|it| format!("{file}: {it}")));
    }
    if common.headings.is_some() {
        warnings.push(
            "frames have no direction (epb_flags): which way packets go is told by their addresses and \
             by round trips being longer than nothing"
                .into(),
        );
    }
    let changes = match peer_time {
        PeerTime::Exchanges(it) => it.changes,
        PeerTime::Apart { .. } => 0,
    };
    if changes > 0 {
        warnings.push(format!(
            "a clock was set, or slewed faster than the greatest drift, {}: what was on its way then has no \
             delay",
            counted(changes, "time")
        ));
    }
}

#[cfg(test)]
mod tests;
