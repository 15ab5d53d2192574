//! Measurements of delays for people: [`delay_text`] for a terminal, [`delay_page`] for a
//! browser; one, or several beside each other.

mod figures;
mod histogram;
mod paper;
mod sentences;
mod tables;
mod view;

use maud::{Markup, html};

use super::figures::Figure;
use super::glossary;
use super::html::{document, facts_of, notice_list};
use super::table::Table;
use super::text::facts;
use super::words::command;
use crate::measuring::delay::schema::{Exit, Measurement, Passage};
use crate::text::numbers::counted;
use crate::text::table::indented_within;
use sentences::{account, certificate, names, spot};
use tables::COLUMNS;
use view::{View, passage_names, views};

/// What was measured, in lines of 80 columns: warnings first, then for each passage its
/// account, the statistics, what is known of the maximum, and the slowest packets.
pub fn delay_text(measurements: &[&Measurement]) -> String {
    let fold = |text: &str, indent: &str| indented_within(text, indent, COLUMNS);
    let notices = notices(measurements);
    let mut lines: Vec<String> = notices.iter().flat_map(|it| fold(it, "")).collect();
    for (measurement, name) in measurements.iter().zip(names(measurements)) {
        lines.extend((!lines.is_empty()).then(String::new));
        if measurements.len() > 1 {
            lines.extend(fold(&format!("== {name}"), ""));
        }
        lines.extend(facts(&tables::environment(measurement), COLUMNS));
        for passage in &measurement.passages {
            lines.push(String::new());
            lines.extend(fold(&passage.name, ""));
            lines.extend(fold(&spot(&passage.entry), "  "));
            for exit in &passage.exits {
                lines.extend(told(exit).iter().flat_map(|it| fold(it, "  ")));
            }
            lines.extend(figures_of(measurement, passage));
        }
    }
    if let Some(table) = tables::beside_paper(measurements) {
        lines.extend([String::new(), table.title]);
        for row in table.rows {
            let row = format!("{}: {}; paper: {}", row[0], row[1], row[2]);
            lines.extend(fold(&row, "  "));
        }
        lines.extend(table.notes.iter().flat_map(|note| fold(note, "  ")));
    }
    lines.join("\n") + "\n"
}

/// The account of an exit.
fn told(exit: &Exit) -> Vec<String> {
    let mut lines = vec![format!("{}: {}", exit.point, spot(&exit.spot))];
    lines.extend(account(&exit.account));
    lines
}

/// Statistics, certificates and the slowest packets of a passage.
fn figures_of(measurement: &Measurement, passage: &Passage) -> Vec<String> {
    let mut lines = Vec::new();
    let mut add = |table: &Table| {
        lines.push(String::new());
        lines.extend(table.lines_within(COLUMNS));
    };
    let upright = tables::upright(measurement, passage);
    upright.iter().for_each(&mut add);
    if let Some(delays) = passage.exits.first().and_then(|exit| exit.delays.as_ref()) {
        let slowest = tables::slowest("The slowest".to_owned(), delays);
        slowest.iter().for_each(&mut add);
    }
    for exit in &passage.exits {
        if let Some(delays) = &exit.delays {
            let sentence = format!("{}: {}", exit.point, certificate(&delays.certificate));
            lines.push(String::new());
            lines.extend(indented_within(&sentence, "", COLUMNS));
        }
    }
    lines
}

/// What must be known before any figure.
fn notices(measurements: &[&Measurement]) -> Vec<String> {
    let each = measurements.iter().zip(names(measurements));
    let notices = each.flat_map(|(measurement, name)| {
        let name = match measurements.len() {
            1 => String::new(),
            _ => format!("{name}: "),
        };
        let partial = measurement.about.partial.then(|| {
            let firsts = measurement.passages.iter();
            let firsts = firsts.filter_map(|passage| passage.exits.first());
            let matched = firsts.map(|exit| exit.account.matched).sum();
            let matched = counted(matched, "packet");
            format!("partial: ended early, after {matched}")
        });
        let warnings = measurement.warnings.iter().cloned().chain(partial);
        let warnings = warnings.map(move |warning| format!("{name}{warning}"));
        warnings.collect::<Vec<_>>()
    });
    notices.collect()
}

/// The same with pictures, as one HTML page that asks for nothing from elsewhere.
pub fn delay_page(measurements: &[&Measurement]) -> String {
    let passages: Vec<String> = passage_names(measurements).concat();
    let title = format!("Delay, packet by packet: {}", passages.join(", "));
    let views = views(measurements);
    let body = html! {
        h1 { "Delay, packet by packet" }
        @for (measurement, name) in measurements.iter().zip(names(measurements)) {
            p {
                @if measurements.len() > 1 {
                    b { (name) } ": "
                }
                (measurement.about.machine.cpu) ", " (measurement.about.machine.kernel) "; "
                code { (command(&measurement.about.command)) }
            }
        }
        (notice_list(&notices(measurements)))
        (statistics(measurements, &views))
        (over_time(&views))
        (maximum(measurements, &views))
        h2 { "What became of every packet" }
        div.facts {
            @if let Some(table) = tables::accounts(measurements) {
                (table.markup())
            }
        }
        h2 { "Where and how" }
        @for (measurement, name) in measurements.iter().zip(names(measurements)) {
            @let environment = tables::environment(measurement);
            @let title = if measurements.len() > 1 { name } else { String::new() };
            (facts_of(&Table { title, ..environment }, &measurement.about.machine))
        }
        (glossary::delay())
    };
    document(&title, &body)
}

fn statistics(measurements: &[&Measurement], views: &[View<'_>]) -> Markup {
    html! {
        h2 { "How long it takes" }
        @if views.is_empty() {
            p { "No packet was matched." }
        }
        @let tables = [
            tables::delays(measurements),
            tables::rfc8219(measurements),
            tables::corrected(measurements),
            tables::beside_paper(measurements),
        ];
        @for table in tables.iter().flatten() {
            (table.markup())
        }
        @let ranges = figures::ranges(views).into_iter();
        (pictures(ranges.chain(figures::histograms(views))))
    }
}

fn over_time(views: &[View<'_>]) -> Markup {
    html! {
        h2 { "Over time" }
        (pictures(figures::first(views).into_iter().chain(figures::over_time(views))))
    }
}

/// What is known of it, and the packets that are nearest to it.
fn maximum(measurements: &[&Measurement], views: &[View<'_>]) -> Markup {
    html! {
        h2 { "The maximum" }
        ul {
            @for view in views {
                li { (view.name()) ": " (certificate(&view.delays.certificate)) }
            }
        }
        @if let Some(table) = tables::certificates(measurements) {
            (table.markup())
        }
        @for view in views.iter().filter(|view| view.is_first) {
            @let title = format!("The slowest: {}", view.name());
            @if let Some(table) = tables::slowest(title, view.delays) {
                (table.markup())
            }
        }
    }
}

fn pictures(figures: impl Iterator<Item = Figure>) -> Markup {
    html! {
        div.figures {
            @for figure in figures {
                (figure.markup())
            }
        }
    }
}

#[cfg(test)]
mod tests;
