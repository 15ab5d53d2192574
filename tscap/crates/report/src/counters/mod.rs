//! What counters are like.

mod figures;
mod paper;
mod tables;

use super::glossary;
use tscap_base::text::table::Table;
use tscap_document::{Document, FLUSH, Importance, Section, Shown};
use tscap_lab::counters::Characteristics;
use tscap_lab::counters::schema::Reference;

/// What was found: warnings, the counters, what reading them takes and their rates, then what is
/// missing; further tables and the reasons with all of it; last where and how.
pub(super) fn document(of: &Characteristics) -> Document {
    let machine = &of.about.machine;
    let title = format!("Counters: {}", machine.cpu);
    let mut document = Document::new(title, "The counters of this machine");
    document.add(Shown::Page, Section::ran(None, &of.about));
    document.add(Shown::Text, Section::Notices(of.warnings.clone()));
    document.add(Shown::Page, Section::Notices(notices(of)));
    document.add(Shown::Page, Section::figures(figures::all(of)));
    document.page_title("Figures");
    document.add(Shown::Page, Section::Table(tables::ways(of)));
    let answers = std::iter::once(tables::counters(of));
    let answers = answers.chain(tables::access(of)).chain(tables::rates(of));
    document.add_all(Shown::Brief, answers.map(Section::Answer));
    document.add_all(Shown::Further, shown(of).into_iter().map(Section::Table));
    document.add(Shown::Text, Section::Gap);
    document.importance(Importance::Account);
    let missing = no_oscillator(&of.reference).into_iter().collect();
    document.add(Shown::Text, Section::Sentences(FLUSH, missing));
    let absent = tables::absent_briefly(of).into_iter().collect();
    document.add(Shown::Brief, Section::Sentences(FLUSH, absent));
    document.add(Shown::Whole, Section::Sentences(FLUSH, tables::absent(of)));
    document.conditions(tables::environment(of), machine);
    document.add(Shown::Page, Section::Words(glossary::counters()));
    document
}

/// Tables of the whole text and of the page, in the order of the paper.
fn shown(of: &Characteristics) -> Vec<Table> {
    let mut tables = vec![tables::counters(of), tables::phases(of)];
    tables.extend(tables::access(of));
    let others = [
        tables::interface(of),
        tables::rates(of),
        tables::scales(of),
        tables::clocks(of),
    ];
    tables.extend(others.into_iter().flatten());
    tables.push(paper::beside(of));
    tables
}

/// What must be known before any figure.
fn notices(of: &Characteristics) -> Vec<String> {
    let mut notices = of.warnings.clone();
    notices.extend(no_oscillator(&of.reference));
    notices.extend(tables::absent(of));
    notices
}

/// Why nothing is said of how well a counter keeps its rate.
fn no_oscillator(reference: &Reference) -> Option<String> {
    let why = match reference {
        Reference::Ptp {
            dependent: None, ..
        } => return None,
        Reference::Tsc => {
            "no reference was given (--reference /dev/ptp0), so rates are beside the TSC".to_owned()
        }
        Reference::Ptp {
            device,
            name,
            dependent: Some(what),
        } => format!("{device} ({name}) is {what}"),
    };
    Some(format!(
        "nothing here says how well a counter keeps its rate, which takes a reference with an \
         oscillator of its own: {why}"
    ))
}

#[cfg(test)]
mod tests;
