//! A comparison as one HTML page, which asks for nothing from elsewhere.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::table::Table;
use super::words::{command, notices, verdicts};
use super::{figures, glossary, tables};
use tscap_lab::compare::schema::Comparison;
use tscap_results::machine::Machine;

const STYLE: &str = include_str!("style.css");
/// Colours, dashes and letters of the charts.
pub(super) const FIGURE_STYLE: &str = include_str!("figure.css");
/// Where a curve would have one point.
pub(super) const FEW_POINTS: &str = "no curves: one size and one pace were measured, which the table has; without --quick there are \
     more";
/// Should anything ever slip in: nothing is fetched, nothing runs.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

/// The page.
pub fn page(comparison: &Comparison) -> String {
    let title = format!("What a timestamp costs: {}", comparison.about.machine.cpu);
    let body = html! {
        h1 { "What a timestamp costs" }
        p {
            (comparison.about.machine.cpu) ", " (comparison.about.machine.kernel) "; "
            code { (command(&comparison.about.command)) }
        }
        (notice_list(&notices(comparison)))
        (against_ktime(comparison))
        (cost(comparison))
        (precision(comparison))
        (loss(comparison))
        (whereabouts(&tables::environment(comparison), &comparison.about.machine))
        (glossary::comparison())
    };
    document(&title, &body)
}

/// A whole document that asks for nothing from elsewhere.
pub fn document(title: &str, body: &Markup) -> String {
    let document = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                style { (PreEscaped(FIGURE_STYLE)) (PreEscaped(STYLE)) }
            }
            body { (body) }
        }
    };
    document.into_string()
}

/// What must be known before any figure.
pub(super) fn notice_list(notices: &[String]) -> Markup {
    html! {
        @if !notices.is_empty() {
            ul.notices {
                @for notice in notices {
                    li { (notice) }
                }
            }
        }
    }
}

fn against_ktime(comparison: &Comparison) -> Markup {
    html! {
        h2 { "Verdicts" }
        @if comparison.verdicts.is_empty() {
            p { "Nothing was compared with ktime." }
        }
        div.figures {
            ul {
                @for verdict in verdicts(comparison, true) {
                    li { (verdict) }
                }
            }
            @if let Some(figure) = figures::verdicts(comparison) {
                (figure.markup())
            }
        }
    }
}

fn cost(comparison: &Comparison) -> Markup {
    html! {
        h2 { "Cost" }
        (crate::table::markup(&tables::costs(comparison)))
        (crate::table::markup(&tables::frame_costs(comparison)))
        (optional(tables::outliers(comparison)))
        (optional(tables::interrupts_off(comparison)))
        (crate::table::markup(&tables::beside_paper(comparison)))
        div.figures {
            @let figures = [
                figures::costs(comparison),
                figures::tail(comparison),
                figures::interrupts_off(comparison),
            ];
            @for figure in figures.iter().flatten() {
                (figure.markup())
            }
            @for figure in figures::pattern_costs(comparison) {
                (figure.markup())
            }
            @for figure in figures::autocorrelation(comparison) {
                (figure.markup())
            }
        }
    }
}

fn precision(comparison: &Comparison) -> Markup {
    let (delays, errors) = (
        tables::delays(comparison),
        tables::interval_errors(comparison),
    );
    html! {
        h2 { "Precision" }
        @if delays.is_none() {
            p { "Not measured: live traffic carries no send stamps." }
        }
        (optional(delays))
        (optional(errors))
        div.figures {
            @for figure in figures::inter_arrivals(comparison) {
                (figure.markup())
            }
        }
    }
}

fn loss(comparison: &Comparison) -> Markup {
    let losses = tables::losses(comparison);
    let figures = figures::losses(comparison);
    let is_short = losses.is_some() && figures.is_empty();
    html! {
        h2 { "Loss" }
        @if losses.is_none() {
            p { "Not measured: nobody knows how many frames of live traffic were sent." }
        }
        (optional(losses))
        @if is_short {
            p.note { (FEW_POINTS) }
        }
        div.figures {
            @for figure in figures {
                (figure.markup())
            }
        }
    }
}

/// Where and how it was measured.
pub(super) fn whereabouts(environment: &Table, machine: &Machine) -> Markup {
    html! {
        h2 { "Where and how" }
        (facts_of(environment, machine))
    }
}

/// The same without its title.
pub(super) fn facts_of(environment: &Table, machine: &Machine) -> Markup {
    html! {
        div.facts {
            (crate::table::markup(environment))
            @if !machine.mitigations.is_empty() {
                (crate::table::markup(&tables::mitigations(machine)))
            }
        }
    }
}

fn optional(table: Option<Table>) -> Markup {
    html! {
        @if let Some(table) = table {
            (crate::table::markup(&table))
        }
    }
}
