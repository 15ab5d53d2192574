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
use super::layout::{Layout, Told, Worth};
use super::table::Table;
use super::words::command;
use sentences::{account, certificate, certified_briefly, names, spot};
use tscap_base::text::numbers::counted;
use tscap_delay::schema::{Exit, Measurement, Passage};
use view::{View, passage_names, views};

/// What was measured: warnings, the delays, the account, what is known of the maximum and the
/// slowest packets; last where and how. With all of it each passage by itself, and the papers'
/// figures.
pub fn delay_text(measurements: &[&Measurement], layout: Layout) -> String {
    match layout.is_whole {
        true => whole_text(measurements, layout),
        false => brief_text(measurements, layout),
    }
}

fn brief_text(measurements: &[&Measurement], layout: Layout) -> String {
    let mut told = Told::new(layout, &notices(measurements));
    if let Some(table) = tables::briefly(measurements) {
        told.table(table);
    }
    let views = views(measurements);
    told.worth(Worth::Account);
    for (measurement, names) in measurements.iter().zip(passage_names(measurements)) {
        for (passage, name) in measurement.passages.iter().zip(names) {
            let Some(exit) = passage.exits.first() else {
                continue;
            };
            let account = account(&exit.account);
            match measurements {
                [only] if only.passages.len() == 1 => {
                    told.gap();
                    account.iter().for_each(|it| told.say(it, ""));
                }
                _ => told.section(&name, &account),
            }
        }
    }
    told.worth(Worth::Detail);
    for view in views.iter().filter(|view| view.is_first) {
        let certificate = certified_briefly(&view.delays.certificate);
        told.gap();
        told.say(&format!("{}: {certificate}", view.name()), "");
    }
    for view in views.iter().filter(|view| view.is_first) {
        let title = match views.len() {
            1 => "The slowest".to_owned(),
            _ => format!("The slowest: {}", view.passage),
        };
        if let Some(table) = tables::slowest_briefly(title, view.delays) {
            told.table(table);
        }
    }
    for measurement in measurements {
        told.conditions(&tables::environment(measurement));
    }
    told.finish()
}

fn whole_text(measurements: &[&Measurement], layout: Layout) -> String {
    let mut told = Told::new(layout, &notices(measurements));
    for (measurement, name) in measurements.iter().zip(names(measurements)) {
        if measurements.len() > 1 {
            told.gap();
            told.say(&format!("== {name}"), "");
        }
        for passage in &measurement.passages {
            told.gap();
            told.say(&passage.name, "");
            figures_of(measurement, passage, &mut told);
            told.gap();
            told.say(&spot(&passage.entry), "  ");
            for exit in &passage.exits {
                account_of(exit).iter().for_each(|it| told.say(it, "  "));
            }
        }
        told.conditions(&tables::environment(measurement));
    }
    if let Some(table) = tables::beside_paper(measurements) {
        told.gap();
        told.say(&table.title, "");
        for row in table.rows {
            told.say(&format!("{}: {}; paper: {}", row[0], row[1], row[2]), "  ");
        }
        table.notes.iter().for_each(|note| told.say(note, "  "));
    }
    told.finish()
}

/// The account of an exit.
fn account_of(exit: &Exit) -> Vec<String> {
    let mut lines = vec![format!("{}: {}", exit.point, spot(&exit.spot))];
    lines.extend(account(&exit.account));
    lines
}

/// Statistics, certificates and the slowest packets of a passage.
fn figures_of(measurement: &Measurement, passage: &Passage, told: &mut Told) {
    if let Some(table) = tables::upright(measurement, passage) {
        told.table(table);
    }
    for exit in &passage.exits {
        if let Some(delays) = &exit.delays {
            let certificate = certificate(&delays.certificate);
            told.gap();
            told.say(&format!("{}: {certificate}", exit.point), "");
        }
    }
    let delays = passage.exits.first().and_then(|exit| exit.delays.as_ref());
    let slowest = delays.and_then(|it| tables::slowest("The slowest".to_owned(), it));
    if let Some(table) = slowest {
        told.table(table);
    }
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
                (measurement.about.measured_machine()) "; "
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
                (crate::table::markup(&table))
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
            (crate::table::markup(table))
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
            (crate::table::markup(&table))
        }
        @for view in views.iter().filter(|view| view.is_first) {
            @let title = format!("The slowest: {}", view.name());
            @if let Some(table) = tables::slowest(title, view.delays) {
                (crate::table::markup(&table))
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
