//! A clock's log.

mod figures;
mod ntp;
mod stability;
mod tables;

use super::glossary;
use tscap_document::{Document, Importance, Section, Shown};
use tscap_references::log::Digest;
use tscap_statistics::Allan;

/// What a log says of its clock: the facts, then tables.
pub fn document(digest: &Digest) -> Document {
    let title = "The clock of a raw counter";
    let mut document = Document::new(title, title);
    let intro =
        "The host's CLOCK_REALTIME against its time-stamp counter, by the feed-forward clock.";
    document.add(Shown::Page, Section::Paragraph(intro.into()));
    document.add(Shown::Everywhere, Section::Facts(tables::facts(digest)));
    document.importance(Importance::Detail);
    let changes = tables::changes(digest).map(Section::Answer);
    document.add_all(Shown::Text, changes);
    let percentiles = || ntp::percentiles(digest).map(Section::Answer);
    document.add_all(Shown::Text, percentiles());
    document.page_title("Over time, and on each scale");
    if digest.points.len() < 2 {
        let short = "The log is too short for curves.";
        document.add(Shown::Page, Section::Paragraph(short.into()));
    }
    let against = against(digest);
    let over_time = [
        figures::offset(digest),
        figures::skew(digest),
        figures::difference(digest),
    ];
    let deviations = against.iter().map(figures::deviations);
    let figures = over_time.into_iter().chain(deviations);
    let of_servers = ntp::figures(digest);
    let of_servers = of_servers.into_iter().chain(stability::figures(digest));
    let figures = figures.flatten().chain(of_servers);
    document.add(Shown::Page, Section::figures(figures));
    let scales = against.iter().filter_map(tables::deviations);
    document.add_all(Shown::Everywhere, scales.map(Section::Answer));
    document.add_all(Shown::Page, percentiles());
    if let Some(changes) = tables::changes(digest) {
        document.page_title("Steps and jumps");
        document.add(Shown::Page, Section::Table(changes));
    }
    document.add(Shown::Page, Section::Words(glossary::clock()));
    document
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

#[cfg(test)]
mod tests;
