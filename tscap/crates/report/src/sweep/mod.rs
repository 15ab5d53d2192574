//! A sweep of loss.

mod figures;
mod sessions;
mod tables;

use super::glossary;
use tscap_base::text::numbers::counted;
use tscap_document::words::number;
use tscap_document::{Document, FEW_POINTS, Importance, Section, Shown, notices};
use tscap_lab::loss::schema::Sweep;

pub(super) use figures::{first_session, last_session, tuning_sessions};
pub(super) use sessions::sessions;
pub(super) use tables::environment;

/// What a sweep found: warnings, from which sizes on nothing was lost, how good the model was,
/// and each point; with all of it what the stages cost; last where and how.
pub(super) fn document(sweep: &Sweep) -> Document {
    let machine = &sweep.about.machine;
    let points = counted(sweep.points.len() as u64, "point");
    let notices = notices(&sweep.about, &sweep.warnings, points);
    let mut document = Document::of(
        format!("Where a capture loses frames: {}", machine.cpu),
        "Where a capture loses frames",
        &sweep.about,
        notices,
    );
    document.page_title("Loss, measured and predicted");
    let accuracy = accuracy(sweep);
    document.add_all(Shown::Page, accuracy.clone().map(Section::Paragraph));
    let figures = figures::losses(sweep);
    if figures.is_empty() {
        document.add(Shown::Page, Section::Remark(FEW_POINTS.into()));
    }
    document.add(Shown::Page, Section::figures(figures));
    let sessions = sessions(sweep).map(Section::Answer);
    document.add_all(Shown::Everywhere, sessions);
    if let Some(accuracy) = accuracy {
        let prediction = Section::Titled("Prediction".into(), vec![accuracy]);
        document.add(Shown::Text, prediction);
    }
    document.importance(Importance::Detail);
    document.add(Shown::Everywhere, Section::Answer(tables::points(sweep)));
    document.page_title("What the stages cost");
    document.add(Shown::Further, Section::Table(tables::costs(sweep)));
    document.conditions(environment(sweep), machine);
    document.add(Shown::Page, Section::Words(glossary::sweep()));
    document
}

/// How good the model was.
fn accuracy(sweep: &Sweep) -> Option<String> {
    let accuracy = sweep.accuracy?;
    Some(format!(
        "off by {} points of loss in the mean of {}, of which {} % lost 5 to 60 %; the best \
         constant guess is off by {}",
        number(accuracy.error),
        counted(accuracy.points.into(), "point"),
        number(100.0 * accuracy.between),
        number(accuracy.error_of_constant)
    ))
}

#[cfg(test)]
mod tests;
