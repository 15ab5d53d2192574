//! A clock's log for people: [`clock_text`] for a terminal, [`clock_page`] for a browser.

mod figures;
mod ntp;
mod tables;

use maud::html;

use super::glossary;
use super::html::document;
use super::layout::{Layout, Told, Worth};
use tscap_clock::Allan;
use tscap_references::log::Digest;

/// What a log says of its clock: the facts, then tables.
pub fn clock_text(digest: &Digest, layout: Layout) -> String {
    let deviations = against(digest).map(|against| tables::deviations(&against));
    let shown = tables::changes(digest);
    let shown = shown.into_iter().chain(ntp::percentiles(digest));
    let shown = shown.chain(deviations.into_iter().flatten());
    let mut told = Told::new(layout, &[]);
    told.facts(&tables::facts(digest));
    told.worth(Worth::Detail);
    shown.for_each(|table| told.answer(table));
    told.finish()
}

/// The clock against one other oscillator, or against itself.
struct Against {
    /// What it is held against.
    what: Reference,
    scales: Vec<Allan>,
}

/// What the clock is held against.
enum Reference {
    /// The counter that the kernel makes the clock of.
    Counter,
    /// A device with an oscillator of its own.
    Device(String),
}

/// Against the counter, and against the device if there was one.
fn against(digest: &Digest) -> [Against; 2] {
    let device = digest.reference.as_ref();
    let device = device.map_or_else(String::new, |reference| reference.device.clone());
    [
        Against {
            what: Reference::Counter,
            scales: digest.against_counter(),
        },
        Against {
            what: Reference::Device(device),
            scales: digest.against_reference(),
        },
    ]
}

/// The same with curves, as one HTML page that asks for nothing from elsewhere.
pub fn clock_page(digest: &Digest) -> String {
    let against = against(digest);
    let over_time = [
        figures::offset(digest),
        figures::skew(digest),
        figures::difference(digest),
    ];
    let deviations = against.iter().map(figures::deviations);
    let figures = over_time.into_iter().chain(deviations);
    let figures = figures.flatten().chain(ntp::figures(digest));
    let body = html! {
        h1 { "The clock of a raw counter" }
        p { "The host's CLOCK_REALTIME against its time-stamp counter, by the feed-forward clock." }
        div.facts { (crate::table::markup(&tables::facts(digest))) }
        h2 { "Over time, and on each scale" }
        @if digest.points.len() < 2 {
            p { "The log is too short for curves." }
        }
        div.figures {
            @for figure in figures {
                (figure.markup())
            }
        }
        @for scales in against.iter().filter_map(tables::deviations) {
            (crate::table::markup(&scales))
        }
        @if let Some(percentiles) = ntp::percentiles(digest) {
            (crate::table::markup(&percentiles))
        }
        @if let Some(changes) = tables::changes(digest) {
            h2 { "Steps and jumps" }
            (crate::table::markup(&changes))
        }
        (glossary::clock())
    };
    document("The clock of a raw counter", &body)
}

#[cfg(test)]
mod tests;
