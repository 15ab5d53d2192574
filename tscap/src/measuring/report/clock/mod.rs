//! A clock's log for people: [`clock_text`] for a terminal, [`clock_page`] for a browser.

mod figures;
mod tables;

use maud::html;

use super::glossary;
use super::html::document;
use super::text::tabular;
use crate::capturing::clock::log::Digest;

/// What a log says of its clock.
pub fn clock_text(digest: &Digest) -> String {
    let stability = tables::stability(&digest.stability());
    let shown = tables::changes(digest).into_iter().chain(stability);
    tabular(&[], &tables::facts(digest), shown).join("\n") + "\n"
}

/// The same with curves, as one HTML page that asks for nothing from elsewhere.
pub fn clock_page(digest: &Digest) -> String {
    let stability = digest.stability();
    let over_time = [
        figures::offset(digest),
        figures::skew(digest),
        figures::difference(digest),
    ];
    let figures = over_time
        .into_iter()
        .chain([figures::stability(&stability)]);
    let body = html! {
        h1 { "The clock of a raw counter" }
        p { "The host's CLOCK_REALTIME against its time-stamp counter, by the feed-forward clock." }
        div.facts { (tables::facts(digest).markup()) }
        h2 { "Over time, and on each scale" }
        @if digest.points.len() < 2 {
            p { "The log is too short for curves." }
        }
        div.figures {
            @for figure in figures.flatten() {
                (figure.markup())
            }
        }
        @if let Some(scales) = tables::stability(&stability) {
            (scales.markup())
        }
        @if let Some(changes) = tables::changes(digest) {
            h2 { "Steps and jumps" }
            (changes.markup())
        }
        (glossary::clock())
    };
    document("The clock of a raw counter", &body)
}

#[cfg(test)]
mod tests;
