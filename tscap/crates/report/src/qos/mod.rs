//! The quality of flows, and [`lines`] for a table that refreshes.

mod figures;
mod lines;
mod tables;

use tscap_base::text::numbers::counted;
use tscap_document::{Document, FLUSH, INDENTED, Importance, List, Section, Shown, notices};
use tscap_flows::schema::{FlowReport, Quality};

/// Of more flows than these the figures are told with all of it.
const DETAILED: usize = 2;
/// Flows whose pictures are drawn.
const DRAWN: usize = 5;

/// Flows as lines of a table: its head, then two lines each.
pub fn flow_lines(flows: &[FlowReport]) -> Vec<String> {
    let flows = flows.iter().flat_map(lines::flow_lines);
    std::iter::once(lines::head()).chain(flows).collect()
}

/// What was found: warnings, the flows that come first, the account, and the figures of each of
/// these flows (of two, unless all is told); last where and how.
pub(super) fn document(quality: &Quality) -> Document {
    let title = "Quality of flows";
    let packets = counted(quality.account.seen, "packet");
    let notices = notices(&quality.about, &quality.warnings, packets);
    let mut document = Document::of(title, title, &quality.about, notices);
    add_text(&mut document, quality);
    drawn(&mut document, quality);
    document.conditions(tables::environment(quality), &quality.about.machine);
    document
}

fn add_text(document: &mut Document, quality: &Quality) {
    let top = usize::try_from(quality.method.top).unwrap_or(usize::MAX);
    let shown = &quality.flows[..top.min(quality.flows.len())];
    if !shown.is_empty() {
        let entries = shown.iter().map(|it| lines::flow_lines(it).to_vec());
        let list = List {
            head: lines::head(),
            entries: entries.collect(),
            left_out: quality.flows.len() - shown.len(),
            name: "flow",
            advice: "-v and --top show more, --json all",
        };
        document.add(Shown::Text, Section::List(list));
        let mut all = shown.iter();
        if all.any(|flow| flow.retransmissions.is_some_and(|it| it.segments > 0)) {
            let star = vec!["*: bytes of TCP that were seen again".to_owned()];
            document.add(Shown::Text, Section::Sentences(FLUSH, star));
        }
    }
    document.add(Shown::Text, Section::Gap);
    document.importance(Importance::Account);
    let account = tables::account(quality);
    document.add(Shown::Text, Section::Sentences(FLUSH, account));
    document.importance(Importance::Detail);
    let detailed = if shown.len() <= DETAILED {
        Shown::Text
    } else {
        Shown::Whole
    };
    shown.iter().for_each(|it| flow(document, detailed, it));
}

fn drawn(document: &mut Document, quality: &Quality) {
    let drawn = &quality.flows[..DRAWN.min(quality.flows.len())];
    document.page_title("Flows");
    let flows = match tables::flows(quality) {
        Some(table) => Section::Table(table),
        None => Section::Paragraph("No packet was of a flow.".into()),
    };
    document.add(Shown::Page, flows);
    drawn.iter().for_each(|it| flow(document, Shown::Page, it));
    document.page_title("Over time");
    document.add(Shown::Page, Section::figures(figures::all(drawn)));
    document.page_title("What became of every packet");
    let account = tables::account(quality);
    document.add(Shown::Page, Section::Sentences(FLUSH, account));
}

/// What is told of a flow, and its times.
fn flow(document: &mut Document, shown: Shown, flow: &FlowReport) {
    let sentences = lines::sentences(flow);
    document.add(shown, Section::Titled(lines::name(flow), sentences));
    let times = lines::times(flow, "").map(|times| Section::Under(INDENTED, times));
    document.add_all(shown, times);
    let quantiles = lines::quantiles(flow, "").map(|table| Section::Under(INDENTED, table));
    document.add_all(shown, quantiles);
    if let Some(figures) = &flow.voice {
        let voice = vec![lines::voice(figures)];
        document.add(shown, Section::Sentences(INDENTED, voice));
    }
}

#[cfg(test)]
mod tests;
