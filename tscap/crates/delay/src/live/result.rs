//! What a live measurement has found.

use std::collections::BTreeMap;

use super::points::{AttachedPoints, Point};
use super::sink::MatcherSink;
use super::way::{Ended, Seen};
use super::{LivePlan, MeasuredPath};
use crate::schema::{Exit, How, Match, MeasuringPoint, Passage};
use crate::{Packet, SeenAt};
use tscap_base::failure::{Context as _, Failure};
use tscap_base::text::numbers::counted;
use tscap_clock::Tracker;
use tscap_file::accounting::Outcomes;
use tscap_references::ReferenceSummary;
use tscap_session::{Ended as EndedSession, Times};

/// A slow packet, and between which interfaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlowPacket {
    /// Where it entered.
    pub entry: String,
    /// Where it left.
    pub exit: String,
    /// It.
    pub packet: Packet,
}

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Result {
    /// Where packets were seen.
    pub how: How,
    /// What they were matched by.
    pub matched_by: Match,
    /// The function that reads the clock of the stamps.
    pub clock: String,
    /// How long packets entered, s.
    pub seconds: f64,
    /// Memory of the matcher, bytes.
    pub memory_bytes: u64,
    /// The ways.
    pub passages: Vec<Passage>,
    /// The slowest packets, where they were kept.
    pub slowest: Vec<SlowPacket>,
    /// Whether each frame that the programs saw has an outcome.
    pub adds_up: bool,
    /// The reference of the times, if they are not the host's.
    pub reference: Option<ReferenceSummary>,
    /// What a reader must know.
    pub warnings: Vec<String>,
}

/// What became of a measurement that has ended.
pub(super) fn of(
    (plan, matched_by): (LivePlan, Match),
    ended: EndedSession<MatcherSink, AttachedPoints>,
    (seconds, mut warnings): (f64, Vec<String>),
) -> std::result::Result<Result, Failure> {
    let (losses, seen) = ended.losses(&ended.points.programs.slots())?;
    let EndedSession {
        sink: MatcherSink {
            ways, memory_bytes, ..
        },
        mut tracker,
        end,
        points,
        loaded,
        path,
        reference,
        warnings: of_clock,
    } = ended;
    let times = Times::of(&mut tracker);
    let bound_ns = |longest: i64| bound_ns(&tracker, longest);
    let ends = ways.into_iter().map(|way| way.end(end, &times, bound_ns));
    let ends: Vec<_> = ends.collect();
    let accounted: u64 = losses.iter().map(Outcomes::total).sum::<u64>()
        + ends
            .iter()
            .flat_map(|it| it.seen)
            .map(|it| it.keyed + it.unkeyed)
            .sum::<u64>();
    warnings.extend(of_clock);
    let is_mirrored = matches!(plan.course, MeasuredPath::Mirrored { .. });
    if is_mirrored {
        let lost = loaded.mirror_losses();
        let lost = lost.context("cannot account for the frames")?;
        warnings.extend(without_copy(lost));
    }
    let mut passages = Vec::new();
    let mut slowest = Vec::new();
    for (way, ended) in ends.into_iter().enumerate() {
        let spots = points.programs.all.iter().zip(&losses);
        let spots = spots.filter(|(point, _)| point.role.way == way);
        let spots: Vec<_> = spots
            .map(|(point, lost)| (point, spot(point, lost, &ended)))
            .collect();
        let (passage, kept) = passage(&points.ways[way], spots, ended, is_mirrored);
        slowest.extend(kept);
        passages.push(passage);
    }
    Ok(Result {
        how: plan.course.how(),
        matched_by,
        clock: path.function().to_owned(),
        seconds,
        memory_bytes,
        passages,
        slowest,
        adds_up: seen == accounted,
        reference,
        warnings,
    })
}

fn without_copy(lost: u64) -> Option<String> {
    let says = format!(
        "{} not sent to the mirrored port: a packet with one copy is lost inside or originated, one \
         with none is in no account",
        counted(lost, "mirrored frame")
    );
    (lost > 0).then_some(says)
}

/// Greatest error of a delay up to `longest_ns`: that of both stamps, each with its rounding,
/// and for a counter that of its rate.
fn bound_ns(tracker: &Tracker, longest_ns: i64) -> u64 {
    let ends = 2 * (tracker.stamp_error_ns() + 1);
    let rate_ppb = tracker
        .counter_report()
        .map_or(0, |report| report.rate_bound_ppb);
    let by_rate = u128::from(longest_ns.unsigned_abs()) * u128::from(rate_ppb) / 1_000_000_000;
    ends + u64::try_from(by_rate)
        .unwrap_or(u64::MAX - ends)
        .min(u64::MAX - ends)
}

fn spot(point: &Point, lost: &Outcomes, ended: &Ended) -> MeasuringPoint {
    let Seen { keyed, unkeyed } = match point.role.at {
        SeenAt::Entry => ended.seen[0],
        SeenAt::Exit(exit) => ended.seen[1 + exit],
    };
    let counts = lost.entries().filter(|(_, count)| *count > 0);
    let unrecorded: BTreeMap<_, _> = counts
        .map(|(entry, count)| (entry.name.to_owned(), count))
        .collect();
    MeasuringPoint {
        interface: point.interface.clone(),
        hook: point.attachment.hook(),
        seen: keyed + unkeyed + lost.total(),
        unkeyed,
        unrecorded,
        keyed,
    }
}

fn passage(
    name: &str,
    spots: Vec<(&Point, MeasuringPoint)>,
    ended: Ended,
    is_mirrored: bool,
) -> (Passage, Vec<SlowPacket>) {
    let of = |at: SeenAt| spots.iter().find(|(point, _)| point.role.at == at);
    let (_, entry) = of(SeenAt::Entry).expect("each way has an entry");
    let figures = ended.accounts.into_iter().zip(ended.delays).enumerate();
    let exits = figures.map(|(exit, (account, delays))| {
        let (point, spot) = match of(SeenAt::Exit(exit)) {
            Some((point, spot)) => (point.role.name, spot.clone()),
            // Both sightings are at one place.
            None => ("mirror", entry.clone()),
        };
        Exit {
            point: if is_mirrored {
                "mirror".into()
            } else {
                point.into()
            },
            spot,
            account,
            delays,
            variation: None,
        }
    });
    let exits: Vec<_> = exits.collect();
    let slow = ended.worst.into_iter().map(|packet| SlowPacket {
        entry: entry.interface.clone(),
        exit: exits[0].spot.interface.clone(),
        packet,
    });
    let slow = slow.collect();
    let passage = Passage {
        name: name.to_owned(),
        entry: entry.clone(),
        exits,
        queueing: ended.queueing,
    };
    (passage, slow)
}
