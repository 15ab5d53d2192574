//! Residences between layers for people: [`layers_text`] for a terminal, [`layers_page`] for a
//! browser, [`layers_lines`] for a table that refreshes.

mod figures;
mod tables;

use maud::html;

use super::html::{document, facts_of, notice_list};
use super::text::facts;
use super::words::command;
use crate::measuring::qos::layers::schema::{FlowResidences, Residences};
use crate::text::numbers::counted;
use crate::text::table::{Table, indented_within};

/// Columns of a terminal.
const COLUMNS: usize = 80;

/// The times of a flow as lines of a table.
pub fn layers_lines(flow: &FlowResidences) -> Vec<String> {
    let lines = |table: Table| table.lines_within(COLUMNS).into_iter().skip(1);
    tables::times(flow).into_iter().flat_map(lines).collect()
}

/// What was found, in lines of 80 columns: warnings first, then the layers, all packets, and the
/// flows that come first.
pub fn layers_text(of: &Residences) -> String {
    let fold = |text: &str| indented_within(text, "", COLUMNS);
    let mut lines: Vec<String> = notices(of).iter().flat_map(|it| fold(it)).collect();
    lines.extend((!lines.is_empty()).then(String::new));
    lines.extend(facts(&tables::environment(of), COLUMNS));
    lines.push(String::new());
    let layers = tables::layers(of);
    lines.extend(layers.lines_within(COLUMNS).into_iter().skip(1));
    lines.extend(tables::sentences(of).iter().flat_map(|it| fold(it)));
    let (shown, left) = shown(of);
    let others = (of.others.packets > 0).then_some(&of.others);
    for flow in std::iter::once(&of.all).chain(shown).chain(others) {
        lines.push(String::new());
        lines.extend(fold(&tables::name(flow)));
        lines.extend(layers_lines(flow));
    }
    if left > 0 {
        lines.push(String::new());
        lines.push(format!(
            "and {} more: --top shows more, --json all",
            counted(left, "flow")
        ));
    }
    lines.join("\n") + "\n"
}

/// The flows that come first, and how many more there are.
fn shown(of: &Residences) -> (&[FlowResidences], u64) {
    let top = usize::try_from(of.method.top).unwrap_or(usize::MAX);
    let (shown, left) = of.flows.split_at(top.min(of.flows.len()));
    (shown, left.len() as u64)
}

/// What must be known before any figure.
fn notices(of: &Residences) -> Vec<String> {
    let partial = of.about.partial.then(|| {
        let packets = counted(of.all.packets, "packet");
        format!("partial: ended early, after {packets}")
    });
    of.warnings.iter().cloned().chain(partial).collect()
}

/// The same with a picture, as one HTML page that asks for nothing from elsewhere.
pub fn layers_page(of: &Residences) -> String {
    let (shown, _) = shown(of);
    let environment = tables::environment(of);
    let body = html! {
        h1 { "Residence between layers" }
        p {
            (of.about.machine.cpu) ", " (of.about.machine.kernel) "; "
            code { (command(&of.about.command)) }
        }
        (notice_list(&notices(of)))
        div.figures {
            @if let Some(figure) = figures::residences(&of.all) {
                (figure.markup())
            }
        }
        h2 { "Layers" }
        (tables::layers(of).markup())
        ul {
            @for sentence in tables::sentences(of) {
                li { (sentence) }
            }
        }
        @for flow in std::iter::once(&of.all).chain(shown) {
            h2 { (tables::name(flow)) }
            @if let Some(table) = tables::times(flow) {
                (table.markup())
            } @else {
                p { "No packet was seen at two layers." }
            }
        }
        h2 { "Where and how" }
        (facts_of(&environment, &of.about.machine))
    };
    document("Residence between layers", &body)
}

#[cfg(test)]
mod tests;
