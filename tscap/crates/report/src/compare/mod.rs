//! A comparison.

pub(super) mod figures;
pub(super) mod paper;
pub(super) mod tables;
pub(super) mod words;

use super::glossary;
use tscap_document::{Document, FEW_POINTS, Importance, Section, Shown};
use tscap_lab::compare::schema::Comparison;
use words::{notices, verdicts};

/// What a comparison found: warnings, then the verdicts and what a stamp costs; further tables
/// with all of it; last where and how.
pub(super) fn document(comparison: &Comparison) -> Document {
    let machine = &comparison.about.machine;
    let title = format!("What a timestamp costs: {}", machine.cpu);
    let notices = notices(comparison);
    let mut document = Document::of(title, "What a timestamp costs", &comparison.about, notices);
    against_ktime(&mut document, comparison);
    cost(&mut document, comparison);
    precision(&mut document, comparison);
    loss(&mut document, comparison);
    document.conditions(tables::environment(comparison), machine);
    document.add(Shown::Page, Section::Words(glossary::comparison()));
    document
}

fn against_ktime(document: &mut Document, comparison: &Comparison) {
    document.page_title("Verdicts");
    if comparison.verdicts.is_empty() {
        let nothing = "Nothing was compared with ktime.";
        document.add(Shown::Page, Section::Paragraph(nothing.into()));
    } else {
        for (shown, is_whole) in [(Shown::Brief, false), (Shown::Whole, true)] {
            let verdicts = verdicts(comparison, is_whole);
            document.add(shown, Section::Verdicts(verdicts));
        }
    }
    let figure = figures::verdicts(comparison).into_iter().collect();
    let verdicts = verdicts(comparison, true);
    document.add(Shown::Page, Section::Figures(verdicts, figure));
}

fn cost(document: &mut Document, comparison: &Comparison) {
    document.page_title("Cost");
    let costs = tables::costs(comparison);
    document.add(Shown::Everywhere, Section::Answer(costs));
    let frames = [
        Some(tables::frame_costs(comparison)),
        tables::outliers(comparison),
    ];
    let frames = frames.into_iter().flatten().map(Section::Table);
    document.add_all(Shown::Further, frames);
    document.importance(Importance::Detail);
    let asked = tables::interrupts_off(comparison).map(Section::Answer);
    document.add_all(Shown::Everywhere, asked);
    let paper = tables::beside_paper(comparison);
    document.add(Shown::Further, Section::Table(paper));
    let figures = [
        figures::costs(comparison),
        figures::tail(comparison),
        figures::interrupts_off(comparison),
    ];
    let figures = figures.into_iter().flatten();
    let figures = figures.chain(figures::pattern_costs(comparison));
    let figures = figures.chain(figures::autocorrelation(comparison));
    document.add(Shown::Page, Section::figures(figures));
}

fn precision(document: &mut Document, comparison: &Comparison) {
    document.page_title("Precision");
    let (delays, errors) = (
        tables::delays(comparison),
        tables::interval_errors(comparison),
    );
    if delays.is_none() {
        let why = "Not measured: live traffic carries no send stamps.";
        document.add(Shown::Page, Section::Paragraph(why.into()));
    }
    let tables = [delays, errors].into_iter().flatten();
    document.add_all(Shown::Further, tables.map(Section::Table));
    let figures = figures::inter_arrivals(comparison);
    document.add(Shown::Page, Section::figures(figures));
}

fn loss(document: &mut Document, comparison: &Comparison) {
    document.page_title("Loss");
    let figures = figures::losses(comparison);
    match tables::losses(comparison) {
        None => {
            let why = "Not measured: nobody knows how many frames of live traffic were sent.";
            document.add(Shown::Page, Section::Paragraph(why.into()));
        }
        Some(losses) => {
            document.add(Shown::Further, Section::Table(losses));
            if figures.is_empty() {
                document.add(Shown::Page, Section::Remark(FEW_POINTS.into()));
            }
        }
    }
    document.add(Shown::Page, Section::figures(figures));
}
