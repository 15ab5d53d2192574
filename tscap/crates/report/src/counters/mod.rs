//! What counters are like, for people: [`counters_text`] for a terminal, [`counters_page`] for a
//! browser.

mod figures;
mod paper;
mod tables;

use maud::html;

use super::glossary;
use super::html::{document, notice_list, whereabouts};
use super::layout::{Layout, Told, Worth};
use super::words::command;
use tscap_base::text::table::Table;
use tscap_lab::counters::Characteristics;
use tscap_lab::counters::schema::Reference;

/// What was found: warnings, the counters, what reading them takes and their rates, then what is
/// missing; further tables and the reasons with all of it; last where and how.
pub fn counters_text(of: &Characteristics, layout: Layout) -> String {
    let mut told = Told::new(layout, &of.warnings);
    if layout.is_whole {
        shown(of).into_iter().for_each(|table| told.table(table));
    } else {
        let answers = std::iter::once(tables::counters(of));
        let answers = answers.chain(tables::access(of)).chain(tables::rates(of));
        answers.for_each(|table| told.answer(table));
    }
    told.gap();
    told.worth(Worth::Account);
    let missing = no_oscillator(&of.reference).into_iter();
    let missing: Vec<_> = match layout.is_whole {
        true => missing.chain(tables::absent(of)).collect(),
        false => missing.chain(tables::absent_briefly(of)).collect(),
    };
    missing.iter().for_each(|it| told.say(it, ""));
    told.conditions(&tables::environment(of));
    told.finish()
}

/// The same with figures, as one HTML page that asks for nothing from elsewhere.
pub fn counters_page(of: &Characteristics) -> String {
    let machine = &of.about.machine;
    let body = html! {
        h1 { "The counters of this machine" }
        p {
            (machine.cpu) ", " (machine.kernel) "; " code { (command(&of.about.command)) }
        }
        (notice_list(&notices(of)))
        div.figures {
            @for figure in figures::all(of) {
                (figure.markup())
            }
        }
        h2 { "Figures" }
        (crate::table::markup(&tables::ways(of)))
        @for table in shown(of) {
            (crate::table::markup(&table))
        }
        (whereabouts(&tables::environment(of), machine))
        (glossary::counters())
    };
    document(&format!("Counters: {}", machine.cpu), &body)
}

/// Tables of both, in the order of the paper.
fn shown(of: &Characteristics) -> Vec<Table> {
    let mut tables = vec![tables::counters(of), tables::phases(of)];
    tables.extend(tables::access(of));
    let others = [tables::interface(of), tables::rates(of), tables::scales(of)];
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
