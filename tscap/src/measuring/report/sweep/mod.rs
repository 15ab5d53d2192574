//! A sweep of loss for people: [`sweep_text`] for a terminal, [`sweep_page`] for a
//! browser.

mod figures;
mod sessions;
mod tables;

use maud::html;

use super::glossary;
use super::html::{FEW_POINTS, document, notice_list, whereabouts};
use super::text::tabular;
use super::words::{command, number};
use crate::measuring::loss::schema::Sweep;
use crate::text::numbers::counted;
use crate::text::table::indented;

pub(super) use figures::{first_session, last_session, tuning_sessions};
pub(super) use sessions::sessions;
pub(super) use tables::environment;

/// What a sweep found: warnings first, how good the model was last.
pub fn sweep_text(sweep: &Sweep) -> String {
    let tables = [tables::costs(sweep), tables::points(sweep)];
    let tables = tables.into_iter().chain(sessions(sweep));
    let mut lines = tabular(&notices(sweep), &environment(sweep), tables);
    if let Some(accuracy) = accuracy(sweep) {
        lines.extend([String::new(), "Prediction".to_owned()]);
        lines.extend(indented(&accuracy, "  "));
    }
    lines.join("\n") + "\n"
}

/// The same with curves, as one HTML page that asks for nothing from elsewhere.
pub fn sweep_page(sweep: &Sweep) -> String {
    let machine = &sweep.about.machine;
    let body = html! {
        h1 { "Where a capture loses frames" }
        p {
            (machine.cpu) ", " (machine.kernel) "; " code { (command(&sweep.about.command)) }
        }
        (notice_list(&notices(sweep)))
        h2 { "Loss, measured and predicted" }
        @if let Some(accuracy) = accuracy(sweep) {
            p { (accuracy) }
        }
        @let figures = figures::losses(sweep);
        @if figures.is_empty() {
            p.note { (FEW_POINTS) }
        }
        div.figures {
            @for figure in figures {
                (figure.markup())
            }
        }
        @if let Some(sessions) = sessions(sweep) {
            (sessions.markup())
        }
        (tables::points(sweep).markup())
        h2 { "What the stages cost" }
        (tables::costs(sweep).markup())
        (whereabouts(&environment(sweep), machine))
        (glossary::sweep())
    };
    document(
        &format!("Where a capture loses frames: {}", machine.cpu),
        &body,
    )
}

fn notices(sweep: &Sweep) -> Vec<String> {
    let partial = sweep
        .about
        .partial
        .then(|| counted(sweep.points.len() as u64, "point"))
        .map(|points| format!("partial: ended early, after {points}"));
    sweep.warnings.iter().cloned().chain(partial).collect()
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
