//! Charts of an observation.

use crate::compare::figures::{of_intervals, tails_of};
use tscap_document::Figure;
use tscap_document::chart::Interval;
use tscap_lab::observer::Observation;

/// Ratios to no capture, and the tail of the round trips.
pub(super) fn all(observation: &Observation) -> Vec<Figure> {
    let position = |watcher| {
        let mut subjects = observation.subjects.iter();
        subjects
            .position(|subject| subject.watcher == watcher)
            .unwrap_or(0)
    };
    let rows = observation.verdicts.iter().filter_map(|verdict| {
        Some(Interval {
            name: format!("{}, {}", verdict.watcher.name(), verdict.metric.name()),
            style: position(verdict.watcher),
            value: verdict.over_nobody.ratio?,
            interval: verdict.over_nobody.interval?,
            bar: None,
            shaded: Some((1.0, verdict.over_nobody.margin)),
        })
    });
    let ratios = of_intervals(
        "observer",
        "Over that with no capture".to_owned(),
        "For each capture and figure the ratio to that with no capture with its interval; the table \
         below has each.",
        rows.collect(),
    );
    let trips = observation
        .subjects
        .iter()
        .enumerate()
        .filter_map(|(style, subject)| {
            let all = subject.round_trip_ns.as_ref()?;
            Some((subject.watcher.name(), style, all))
        });
    let trips = tails_of(
        "round-trips",
        [
            "Tail of the round trip",
            "For each capture",
            "round trip, ns",
            "share of round trips that took more",
        ],
        trips.collect(),
    );
    ratios.into_iter().chain(trips).collect()
}
