//! Measurements taken apart into what tables and figures show a row or a picture of.

use super::sentences::names;
use super::sessions;
use tscap_delay::schema::{Delays, Measurement};

/// Delays with their name.
pub(super) struct View<'a> {
    /// Where they are of.
    pub measurement: &'a Measurement,
    /// The measurement, if there are several, and the passage.
    pub passage: String,
    /// "tap", "egress", …, or "queueing".
    pub point: &'a str,
    pub delays: &'a Delays,
    /// Whether they are those that count first: of the first exit.
    pub is_first: bool,
}

impl View<'_> {
    /// All of its name.
    pub fn name(&self) -> String {
        format!("{}, {}", self.passage, self.point)
    }
}

/// Name of the delays from the exit before the queueing discipline to the one behind it.
pub(super) const QUEUEING: &str = "queueing";

/// A passage with its name: that of the measurement before it, if there are several.
pub(super) fn passage_names(measurements: &[&Measurement]) -> Vec<Vec<String>> {
    let names = names(measurements);
    let of = |(measurement, name): (&&Measurement, &String)| {
        let passages = measurement.passages.iter();
        let names = passages.map(|passage| match measurements.len() {
            1 => passage.name.clone(),
            _ => format!("{name}: {}", passage.name),
        });
        names.collect()
    };
    measurements.iter().zip(&names).map(of).collect()
}

/// All delays: of each passage those of its exits, then the queueing.
pub(super) fn views<'a>(measurements: &[&'a Measurement]) -> Vec<View<'a>> {
    let mut views = Vec::new();
    let called = names(measurements);
    let each = measurements
        .iter()
        .zip(passage_names(measurements))
        .zip(&called);
    for ((measurement, names), called) in each {
        for (passage, name) in measurement.passages.iter().zip(names) {
            let exits = passage.exits.iter().enumerate();
            let exits = exits.filter_map(|(index, exit)| {
                Some((exit.point.as_str(), exit.delays.as_ref()?, index == 0))
            });
            let queueing = passage.queueing.iter();
            let queueing = queueing.map(|delays| (QUEUEING, delays, false));
            views.extend(exits.chain(queueing).map(|(point, delays, is_first)| View {
                measurement,
                passage: name.clone(),
                point,
                delays,
                is_first,
            }));
        }
        for session in &measurement.sessions {
            let name = match measurements.len() {
                1 => sessions::name(session),
                _ => format!("{called}: {}", sessions::name(session)),
            };
            views.extend(sessions::delays(session).map(|(point, delays)| View {
                measurement,
                passage: name.clone(),
                point,
                delays,
                is_first: point == "round trip",
            }));
        }
    }
    views
}
