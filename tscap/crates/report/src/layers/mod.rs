//! Residences between layers for people: [`layers_text`] for a terminal, [`layers_page`] for a
//! browser, [`layers_lines`] for a table that refreshes.

mod figures;
mod tables;

use maud::html;

use super::html::{document, facts_of, notice_list};
use super::layout::{Layout, Told, Worth};
use super::words::command;
use tscap_base::text::numbers::counted;
use tscap_base::text::table::Table;
use tscap_flows::layers::schema::{FlowResidences, Residences};

/// Of more flows than these the times are told with all of it.
const DETAILED: usize = 2;

/// The times of a flow as lines of a table that fit `columns`.
pub fn layers_lines(flow: &FlowResidences, columns: usize) -> Vec<String> {
    let lines = |table: Table| table.lines_within(columns).into_iter().skip(1);
    tables::times(flow).into_iter().flat_map(lines).collect()
}

/// What was found: warnings, the times of all packets, the layers with what became of packets
/// there, and the flows that come first (two, unless all is told); last where and how.
pub fn layers_text(of: &Residences, layout: Layout) -> String {
    let mut told = Told::new(layout, &notices(of));
    times_of(&of.all, &mut told);
    told.gap();
    told.worth(Worth::Account);
    told.under(tables::layers(of), "");
    tables::sentences(of).iter().for_each(|it| told.say(it, ""));
    let (shown, left) = shown(of);
    let others = (of.others.packets > 0).then_some(&of.others);
    let is_told = layout.is_whole || shown.len() <= DETAILED;
    let flows = if is_told { shown } else { &[] };
    told.worth(Worth::Detail);
    for flow in flows.iter().chain(others) {
        times_of(flow, &mut told);
    }
    let left = left + (shown.len() - flows.len()) as u64;
    if left > 0 {
        told.gap();
        let left = counted(left, "flow");
        told.say(
            &format!("and {left} more: -v and --top show more, --json all"),
            "",
        );
    }
    told.conditions(&tables::environment(of));
    told.finish()
}

/// A flow and its times.
fn times_of(flow: &FlowResidences, told: &mut Told) {
    let title = tables::name(flow);
    match tables::times(flow) {
        Some(times) => told.table(Table { title, ..times }),
        None => told.section(&title, &[]),
    }
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
        (crate::table::markup(&tables::layers(of)))
        ul {
            @for sentence in tables::sentences(of) {
                li { (sentence) }
            }
        }
        @for flow in std::iter::once(&of.all).chain(shown) {
            h2 { (tables::name(flow)) }
            @if let Some(table) = tables::times(flow) {
                (crate::table::markup(&table))
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
