//! A sweep of loss for people: [`sweep_text`] for a terminal, [`sweep_page`] for a
//! browser.

mod figures;
mod tables;

use maud::html;

use super::html::{document, notice_list, whereabouts};
use super::text::{tabular, wrapped};
use super::words::{command, number};
use crate::loss::schema::Sweep;

/// What a sweep found: warnings first, how good the model was last.
pub fn sweep_text(sweep: &Sweep) -> String {
    let tables = [tables::costs(sweep), tables::points(sweep)];
    let mut lines = tabular(&notices(sweep), &tables::environment(sweep), tables);
    if let Some(accuracy) = accuracy(sweep) {
        lines.extend([String::new(), "Foretold".to_owned()]);
        lines.extend(wrapped(&accuracy, "  "));
    }
    lines.join("\n") + "\n"
}

/// The same with curves, as one HTML page that asks for nothing from elsewhere.
pub fn sweep_page(sweep: &Sweep) -> String {
    let machine = &sweep.machine;
    let body = html! {
        h1 { "Where a capture loses frames" }
        p {
            (machine.cpu) ", " (machine.kernel) "; " code { (command(&sweep.command)) }
        }
        (notice_list(&notices(sweep)))
        h2 { "Loss, measured and foretold" }
        @if let Some(accuracy) = accuracy(sweep) {
            p { (accuracy) }
        }
        div.figures {
            @for figure in figures::losses(sweep) {
                (figure.markup())
            }
        }
        (tables::points(sweep).markup())
        h2 { "What the stages cost" }
        (tables::costs(sweep).markup())
        (whereabouts(&tables::environment(sweep), machine))
    };
    document(
        &format!("Where a capture loses frames: {}", machine.cpu),
        &body,
    )
}

fn notices(sweep: &Sweep) -> Vec<String> {
    let partial = sweep
        .partial
        .then(|| format!("partial: ended early, after {} points", sweep.points.len()));
    sweep.warnings.iter().cloned().chain(partial).collect()
}

/// How good the model was.
fn accuracy(sweep: &Sweep) -> Option<String> {
    let accuracy = sweep.accuracy?;
    Some(format!(
        "off by {} points of loss in the mean of {} points, of which {} % lost 5 to 60 %; the best \
         constant guess is off by {}",
        number(accuracy.error),
        accuracy.points,
        number(100.0 * accuracy.between),
        number(accuracy.error_of_constant)
    ))
}

#[cfg(test)]
mod tests;
