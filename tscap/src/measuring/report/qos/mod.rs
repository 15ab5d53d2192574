//! The quality of flows for people: [`qos_text`] for a terminal, [`qos_page`] for a browser,
//! [`qos_lines`] for a table that refreshes.

mod figures;
mod lines;
mod tables;

use maud::html;

use super::html::{document, facts_of, notice_list};
use super::text::facts;
use super::words::command;
use crate::measuring::qos::schema::{FlowReport, Quality};
use crate::text::numbers::counted;
use crate::text::table::indented_within;

/// Columns of a terminal.
const COLUMNS: usize = 80;
/// Flows whose pictures are drawn.
const DRAWN: usize = 5;

/// Flows as lines of a table: its head, then two lines each.
pub fn qos_lines(flows: &[FlowReport]) -> Vec<String> {
    let flows = flows.iter().flat_map(lines::flow_lines);
    std::iter::once(lines::head()).chain(flows).collect()
}

/// What was found, in lines of 80 columns: warnings first, then the account, and the flows
/// that come first with their figures.
pub fn qos_text(quality: &Quality) -> String {
    let fold = |text: &str, indent: &str| indented_within(text, indent, COLUMNS);
    let notices = notices(quality);
    let mut lines: Vec<String> = notices.iter().flat_map(|it| fold(it, "")).collect();
    lines.extend((!lines.is_empty()).then(String::new));
    lines.extend(facts(&tables::environment(quality), COLUMNS));
    lines.push(String::new());
    let told = tables::account(quality);
    lines.extend(told.iter().flat_map(|it| fold(it, "")));
    let top = usize::try_from(quality.method.top).unwrap_or(usize::MAX);
    let shown = &quality.flows[..top.min(quality.flows.len())];
    if !shown.is_empty() {
        lines.push(String::new());
        lines.extend(qos_lines(shown));
        if shown
            .iter()
            .any(|flow| flow.retransmissions.is_some_and(|it| it.segments > 0))
        {
            lines.push("*: bytes of TCP that were seen again".to_owned());
        }
    }
    for flow in shown {
        lines.push(String::new());
        lines.extend(fold(&lines::name(flow), ""));
        let sentences = lines::sentences(flow);
        lines.extend(sentences.iter().flat_map(|it| fold(it, "  ")));
        if let Some(table) = lines::times(flow, "") {
            let times = table.lines_within(COLUMNS).into_iter().skip(1);
            lines.extend(times.map(|line| format!("  {line}")));
        }
    }
    let left = quality.flows.len() - shown.len();
    if left > 0 {
        lines.push(String::new());
        lines.push(format!(
            "and {} more: --top shows more, --json all",
            counted(left as u64, "flow")
        ));
    }
    lines.join("\n") + "\n"
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
            (quality.about.machine.cpu) ", " (quality.about.machine.kernel) "; "
            code { (command(&quality.about.command)) }
        }
        (notice_list(&notices(quality)))
        h2 { "Flows" }
        @if let Some(table) = tables::flows(quality) {
            (table.markup())
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
                (table.markup())
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
