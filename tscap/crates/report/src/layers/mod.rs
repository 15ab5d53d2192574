//! Residences between layers, and [`lines`] for a table that refreshes.

mod figures;
mod tables;

use tscap_base::text::numbers::counted;
use tscap_base::text::table::Table;
use tscap_document::{Document, FLUSH, Importance, Section, Shown, notices};
use tscap_flows::layers::schema::{FlowResidences, Residences};

/// Of more flows than these the times are told with all of it.
const DETAILED: usize = 2;

/// The times of a flow as lines of a table that fit `columns`.
pub fn lines(flow: &FlowResidences, columns: usize) -> Vec<String> {
    let lines = |table: Table| table.lines_within(columns).into_iter().skip(1);
    tables::times(flow).into_iter().flat_map(lines).collect()
}

/// What was found: warnings, the times of all packets, the layers with what became of packets
/// there, and the flows that come first (two, unless all is told); last where and how.
pub(super) fn document(of: &Residences) -> Document {
    let title = "Residence between layers";
    let notices = notices(&of.about, &of.warnings, counted(of.all.packets, "packet"));
    let mut document = Document::of(title, title, &of.about, notices);
    document.add(Shown::Text, times_of(&of.all));
    let figures = figures::residences(&of.all);
    document.add(Shown::Page, Section::figures(figures));
    document.page_title("Layers");
    document.add(Shown::Text, Section::Gap);
    document.importance(Importance::Account);
    document.add(Shown::Everywhere, Section::Under(FLUSH, tables::layers(of)));
    let sentences = Section::Sentences(FLUSH, tables::sentences(of));
    document.add(Shown::Everywhere, sentences);
    let (shown, left) = shown(of);
    for flow in std::iter::once(&of.all).chain(shown) {
        document.page_title(tables::name(flow));
        let nothing = || Section::Paragraph("No packet was seen at two layers.".into());
        let times = tables::times(flow).map(Section::Table);
        document.add(Shown::Page, times.unwrap_or_else(nothing));
    }
    document.importance(Importance::Detail);
    let (detailed, undetailed) = if shown.len() <= DETAILED {
        (Shown::Text, 0)
    } else {
        (Shown::Whole, shown.len() as u64)
    };
    document.add_all(detailed, shown.iter().map(times_of));
    if of.others.packets > 0 {
        document.add(Shown::Text, times_of(&of.others));
    }
    for (shown, left) in [(Shown::Brief, left + undetailed), (Shown::Whole, left)] {
        if left > 0 {
            let left = counted(left, "flow");
            let more = format!("and {left} more: -v and --top show more, --json all");
            document.add_all(shown, [Section::Gap, Section::Sentences(FLUSH, vec![more])]);
        }
    }
    document.conditions(tables::environment(of), &of.about.machine);
    document
}

/// A flow and its times.
fn times_of(flow: &FlowResidences) -> Section {
    let title = tables::name(flow);
    match tables::times(flow) {
        Some(times) => Section::Table(Table { title, ..times }),
        None => Section::Titled(title, Vec::new()),
    }
}

/// The flows that come first, and how many more there are.
fn shown(of: &Residences) -> (&[FlowResidences], u64) {
    let top = usize::try_from(of.method.top).unwrap_or(usize::MAX);
    let (shown, left) = of.flows.split_at(top.min(of.flows.len()));
    (shown, left.len() as u64)
}

#[cfg(test)]
mod tests;
