//! A sweep of loss for people: [`sweep_text`] for a terminal, [`sweep_page`] for a
//! browser.

mod figures;
mod sessions;
mod tables;

use maud::html;

use super::glossary;
use super::html::{FEW_POINTS, document, notice_list, whereabouts};
use super::layout::{Layout, Told, Worth};
use super::words::{command, number};
use tscap_base::text::numbers::counted;
use tscap_lab::loss::schema::Sweep;

pub(super) use figures::{first_session, last_session, tuning_sessions};
pub(super) use sessions::sessions;
pub(super) use tables::environment;

/// What a sweep found: warnings, from which sizes on nothing was lost, how good the model was,
/// and each point; with all of it what the stages cost; last where and how.
pub fn sweep_text(sweep: &Sweep, layout: Layout) -> String {
    let mut told = Told::new(layout, &notices(sweep));
    if let Some(sessions) = sessions(sweep) {
        told.answer(sessions);
    }
    if let Some(accuracy) = accuracy(sweep) {
        told.section("Prediction", &[accuracy]);
    }
    told.worth(Worth::Detail);
    told.answer(tables::points(sweep));
    if layout.is_whole {
        told.table(tables::costs(sweep));
    }
    told.conditions(&environment(sweep));
    told.finish()
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
            (crate::table::markup(&sessions))
        }
        (crate::table::markup(&tables::points(sweep)))
        h2 { "What the stages cost" }
        (crate::table::markup(&tables::costs(sweep)))
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
