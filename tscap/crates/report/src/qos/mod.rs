//! The quality of flows for people: [`qos_text`] for a terminal, [`qos_page`] for a browser,
//! [`qos_lines`] for a table that refreshes.

mod figures;
mod lines;
mod tables;

use maud::html;

use super::html::{document, facts_of, notice_list};
use super::layout::{Layout, List, Told, Worth};
use super::words::command;
use tscap_base::text::numbers::counted;
use tscap_flows::schema::{FlowReport, Quality};

/// Of more flows than these the figures are told with all of it.
const DETAILED: usize = 2;
/// Flows whose pictures are drawn.
const DRAWN: usize = 5;

/// Flows as lines of a table: its head, then two lines each.
pub fn qos_lines(flows: &[FlowReport]) -> Vec<String> {
    let flows = flows.iter().flat_map(lines::flow_lines);
    std::iter::once(lines::head()).chain(flows).collect()
}

/// What was found: warnings, the flows that come first, the account, and the figures of each of
/// these flows (of two, unless all is told); last where and how.
pub fn qos_text(quality: &Quality, layout: Layout) -> String {
    let mut told = Told::new(layout, &notices(quality));
    let top = usize::try_from(quality.method.top).unwrap_or(usize::MAX);
    let shown = &quality.flows[..top.min(quality.flows.len())];
    if !shown.is_empty() {
        told.list(List {
            head: lines::head(),
            entries: shown
                .iter()
                .map(|it| lines::flow_lines(it).to_vec())
                .collect(),
            left_out: quality.flows.len() - shown.len(),
            name: "flow",
            advice: "-v and --top show more, --json all",
        });
        let mut all = shown.iter();
        if all.any(|flow| flow.retransmissions.is_some_and(|it| it.segments > 0)) {
            told.say("*: bytes of TCP that were seen again", "");
        }
    }
    told.gap();
    told.worth(Worth::Account);
    tables::account(quality)
        .iter()
        .for_each(|it| told.say(it, ""));
    if layout.is_whole || shown.len() <= DETAILED {
        told.worth(Worth::Detail);
        for flow in shown {
            told.section(&lines::name(flow), &lines::sentences(flow));
            if let Some(table) = lines::times(flow, "") {
                told.under(table, "  ");
            }
        }
    }
    told.conditions(&tables::environment(quality));
    told.finish()
}

/// What must be known before any figure.
fn notices(quality: &Quality) -> Vec<String> {
    let partial = quality.about.partial.then(|| {
        let packets = counted(quality.account.seen, "packet");
        format!("partial: ended early, after {packets}")
    });
    quality.warnings.iter().cloned().chain(partial).collect()
}

/// The same with pictures, as one HTML page that asks for nothing from elsewhere.
pub fn qos_page(quality: &Quality) -> String {
    let drawn = &quality.flows[..DRAWN.min(quality.flows.len())];
    let environment = tables::environment(quality);
    let body = html! {
        h1 { "Quality of flows" }
        p {
            (quality.about.measured_machine()) "; "
            code { (command(&quality.about.command)) }
        }
        (notice_list(&notices(quality)))
        h2 { "Flows" }
        @if let Some(table) = tables::flows(quality) {
            (crate::table::markup(&table))
        } @else {
            p { "No packet was of a flow." }
        }
        @for flow in drawn {
            h2 { (lines::name(flow)) }
            ul {
                @for sentence in lines::sentences(flow) {
                    li { (sentence) }
                }
            }
            @if let Some(table) = lines::times(flow, "") {
                (crate::table::markup(&table))
            }
        }
        h2 { "Over time" }
        div.figures {
            @for figure in figures::all(drawn) {
                (figure.markup())
            }
        }
        h2 { "What became of every packet" }
        ul {
            @for sentence in tables::account(quality) {
                li { (sentence) }
            }
        }
        h2 { "Where and how" }
        (facts_of(&environment, &quality.about.machine))
    };
    document("Quality of flows", &body)
}

#[cfg(test)]
mod tests;
