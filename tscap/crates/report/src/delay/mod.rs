//! Measurements of delays: one, or several beside each other.

mod figures;
mod histogram;
mod paper;
mod sentences;
mod sessions;
mod tables;
mod view;

use super::glossary;
use sentences::{account, certificate, certified_briefly, names, spot};
use tscap_base::text::numbers::counted;
use tscap_delay::schema::{Exit, Measurement, Passage, PeerSession};
use tscap_document::{Document, FLUSH, INDENTED, Importance, Section, Shown, Table};
use view::{View, passage_names, views};

/// What was measured: warnings, the delays, the account, what is known of the maximum and the
/// slowest packets; last where and how. With all of it each passage by itself, and the papers'
/// figures.
pub fn document(measurements: &[&Measurement]) -> Document {
    let passages = passage_names(measurements).concat().into_iter();
    let sessions = measurements.iter().flat_map(|it| &it.sessions);
    let ways: Vec<String> = passages.chain(sessions.map(sessions::name)).collect();
    let title = format!("Delay, packet by packet: {}", ways.join(", "));
    let mut document = Document::new(title, "Delay, packet by packet");
    let is_one = measurements.len() == 1;
    for (measurement, name) in measurements.iter().zip(names(measurements)) {
        let name = (!is_one).then_some(name);
        document.add(Shown::Page, Section::ran(name, &measurement.about));
    }
    document.add(Shown::Everywhere, Section::Notices(notices(measurements)));
    add_brief_text(&mut document, measurements);
    add_text(&mut document, measurements);
    drawn(&mut document, measurements);
    document
}

/// As the brief text.
fn add_brief_text(document: &mut Document, measurements: &[&Measurement]) {
    let table = tables::briefly(measurements).map(Section::Table);
    document.add_all(Shown::Brief, table);
    let views = views(measurements);
    document.importance(Importance::Account);
    for (measurement, names) in measurements.iter().zip(passage_names(measurements)) {
        for (passage, name) in measurement.passages.iter().zip(names) {
            let Some(exit) = passage.exits.first() else {
                continue;
            };
            let account = account(&exit.account).to_vec();
            match measurements {
                [only] if only.passages.len() == 1 => {
                    let account = Section::Sentences(FLUSH, account);
                    document.add_all(Shown::Brief, [Section::Gap, account]);
                }
                _ => document.add(Shown::Brief, Section::Titled(name, account)),
            }
        }
    }
    for measurement in measurements.iter().filter(|it| it.alignment.is_some()) {
        let mut said = sessions::variation_of(measurement);
        said.extend(sessions::clocks_of(measurement).into_iter().take(1));
        let said = Section::Sentences(FLUSH, said);
        document.add_all(Shown::Brief, [Section::Gap, said]);
    }
    for session in measurements.iter().flat_map(|it| &it.sessions) {
        let mut said = sessions::account(session);
        said.extend(sessions::variation(session));
        said.extend(sessions::clocks(session).into_iter().take(1));
        said.extend(sessions::voice(session));
        document.add_all(
            Shown::Brief,
            [Section::Gap, Section::Sentences(FLUSH, said)],
        );
    }
    document.importance(Importance::Detail);
    let first = || views.iter().filter(|view| view.is_first);
    for view in first() {
        let certificate = certified_briefly(&view.delays.certificate);
        let said = vec![format!("{}: {certificate}", view.name())];
        document.add_all(
            Shown::Brief,
            [Section::Gap, Section::Sentences(FLUSH, said)],
        );
    }
    for view in first() {
        let title = match views.len() {
            1 => "The slowest".to_owned(),
            _ => format!("The slowest: {}", view.passage),
        };
        let slowest = tables::slowest_briefly(title, view.delays);
        document.add_all(Shown::Brief, slowest.map(Section::Table));
    }
    for measurement in measurements {
        let conditions = conditions(measurement);
        document.add(Shown::Brief, conditions);
    }
}

/// As the whole text.
fn add_text(document: &mut Document, measurements: &[&Measurement]) {
    for (measurement, name) in measurements.iter().zip(names(measurements)) {
        if measurements.len() > 1 {
            document.add(Shown::Whole, Section::Title(format!("== {name}")));
        }
        for passage in &measurement.passages {
            document.add(Shown::Whole, Section::Title(passage.name.clone()));
            figures_of(document, measurement, passage);
            let mut accounts = vec![spot(&passage.entry)];
            accounts.extend(passage.exits.iter().flat_map(account_of));
            let accounts = Section::Sentences(INDENTED, accounts);
            document.add_all(Shown::Whole, [Section::Gap, accounts]);
        }
        for (title, said) in host_parts(measurement) {
            document.add(Shown::Whole, Section::Titled(title, said));
        }
        for session in &measurement.sessions {
            document.add(Shown::Whole, Section::Title(sessions::name(session)));
            let delays = tables::session(session).map(Section::Table);
            document.add_all(Shown::Whole, delays);
            for (title, said) in session_parts(session) {
                document.add(Shown::Whole, Section::Titled(title, said));
            }
        }
        document.add(Shown::Whole, conditions(measurement));
    }
    if let Some(table) = tables::beside_paper(measurements) {
        let rows = table.rows.iter();
        let rows = rows.map(|row| format!("{}: {}; paper: {}", row[0], row[1], row[2]));
        let sentences = rows.chain(table.notes).collect();
        document.add(Shown::Whole, Section::Titled(table.title, sentences));
    }
}

/// What is told of captures of two hosts beside the delays, each with its title.
fn host_parts(measurement: &Measurement) -> impl Iterator<Item = (String, Vec<String>)> {
    let parts = [
        ("Variation".to_owned(), sessions::variation_of(measurement)),
        ("Clocks".to_owned(), sessions::clocks_of(measurement)),
    ];
    parts.into_iter().filter(|(_, said)| !said.is_empty())
}

/// What is told of a session beside its delays, each with its title.
fn session_parts(session: &PeerSession) -> impl Iterator<Item = (String, Vec<String>)> {
    let parts = [
        ("Packets".to_owned(), sessions::account(session)),
        ("Variation".to_owned(), sessions::variation(session)),
        ("Voice".to_owned(), sessions::voice(session)),
        ("Clocks".to_owned(), sessions::clocks(session)),
    ];
    parts.into_iter().filter(|(_, said)| !said.is_empty())
}

fn conditions(measurement: &Measurement) -> Section {
    Section::conditions(tables::environment(measurement), &measurement.about.machine)
}

/// The account of an exit.
fn account_of(exit: &Exit) -> Vec<String> {
    let mut lines = vec![format!("{}: {}", exit.point, spot(&exit.spot))];
    lines.extend(account(&exit.account));
    lines
}

/// Statistics, certificates and the slowest packets of a passage.
fn figures_of(document: &mut Document, measurement: &Measurement, passage: &Passage) {
    let upright = tables::upright(measurement, passage).map(Section::Table);
    document.add_all(Shown::Whole, upright);
    for exit in &passage.exits {
        if let Some(delays) = &exit.delays {
            let certificate = certificate(&delays.certificate);
            let said = vec![format!("{}: {certificate}", exit.point)];
            document.add_all(
                Shown::Whole,
                [Section::Gap, Section::Sentences(FLUSH, said)],
            );
        }
    }
    let delays = passage.exits.first().and_then(|exit| exit.delays.as_ref());
    let slowest = delays.and_then(|it| tables::slowest("The slowest".to_owned(), it));
    document.add_all(Shown::Whole, slowest.map(Section::Table));
}

/// What must be known before any figure.
fn notices(measurements: &[&Measurement]) -> Vec<String> {
    let each = measurements.iter().zip(names(measurements));
    let notices = each.flat_map(|(measurement, name)| {
        let name = match measurements.len() {
            1 => String::new(),
            _ => format!("{name}: "),
        };
        let firsts = measurement.passages.iter();
        let firsts = firsts.filter_map(|passage| passage.exits.first());
        let matched: u64 = firsts.map(|exit| exit.account.matched).sum();
        let answered: u64 = measurement
            .sessions
            .iter()
            .map(|it| it.account.answered)
            .sum();
        let matched = counted(matched + answered, "packet");
        let warnings = tscap_document::notices(&measurement.about, &measurement.warnings, matched);
        let warnings = warnings.into_iter();
        let warnings = warnings.map(move |warning| format!("{name}{warning}"));
        warnings.collect::<Vec<_>>()
    });
    notices.collect()
}

fn drawn(document: &mut Document, measurements: &[&Measurement]) {
    let views = views(measurements);
    statistics(document, measurements, &views);
    document.page_title("Over time");
    let figures = figures::first(&views).into_iter();
    let figures = figures.chain(figures::over_time(&views));
    document.add(Shown::Page, Section::figures(figures));
    maximum(document, measurements, &views);
    document.page_title("What became of every packet");
    let accounts = tables::accounts(measurements).map(Section::Facts);
    document.add_all(Shown::Page, accounts);
    for (title, said) in measurements.iter().flat_map(|it| host_parts(it)) {
        document.add(Shown::Page, Section::Titled(title, said));
    }
    for session in measurements.iter().flat_map(|it| &it.sessions) {
        for (title, said) in session_parts(session) {
            let title = format!("{}: {}", sessions::name(session), title.to_lowercase());
            document.add(Shown::Page, Section::Titled(title, said));
        }
    }
    document.page_title("Where and how");
    for (measurement, name) in measurements.iter().zip(names(measurements)) {
        let environment = tables::environment(measurement);
        let title = if measurements.len() > 1 {
            name
        } else {
            String::new()
        };
        let facts = Table {
            title,
            ..environment
        };
        let conditions = Section::conditions(facts, &measurement.about.machine);
        document.add(Shown::Page, conditions);
    }
    document.add(Shown::Page, Section::Words(glossary::delay()));
}

fn statistics(document: &mut Document, measurements: &[&Measurement], views: &[View<'_>]) {
    document.page_title("How long it takes");
    if views.is_empty() {
        let nothing = "No packet was matched.".to_owned();
        document.add(Shown::Page, Section::Paragraph(nothing));
    }
    let tables = [
        tables::delays(measurements),
        tables::rfc8219(measurements),
        tables::corrected(measurements),
        tables::beside_paper(measurements),
    ];
    let tables = tables.into_iter().flatten();
    document.add_all(Shown::Page, tables.map(Section::Table));
    let ranges = figures::ranges(views).into_iter();
    let figures = ranges.chain(figures::histograms(views));
    document.add(Shown::Page, Section::figures(figures));
}

/// What is known of it, and the packets that are nearest to it.
fn maximum(document: &mut Document, measurements: &[&Measurement], views: &[View<'_>]) {
    document.page_title("The maximum");
    let certificates = views.iter();
    let certificates = certificates
        .map(|view| format!("{}: {}", view.name(), certificate(&view.delays.certificate)));
    let certificates = Section::Sentences(FLUSH, certificates.collect());
    document.add(Shown::Page, certificates);
    let first = views.iter().filter(|view| view.is_first);
    let slowest = first
        .filter_map(|view| tables::slowest(format!("The slowest: {}", view.name()), view.delays));
    let tables = tables::certificates(measurements).into_iter();
    document.add_all(Shown::Page, tables.chain(slowest).map(Section::Table));
}

#[cfg(test)]
mod tests;
