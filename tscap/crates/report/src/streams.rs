//! What came through of the streams of `tscap gen`, on a terminal.

use super::document::{Document, FLUSH, INDENTED, Section, Shown};
use super::layout::Importance;
use super::table::{Table, columns};
use super::words::{maybe, number, whole};
use tscap_base::text::escaped::escaped;
use tscap_base::text::numbers::{counted, grouped};
use tscap_statistics::Summary;
use tscap_streams::{
    Arrivals, DelayReport, InterfaceReport, IntervalSources, StreamReport, StreamSummary,
};

/// What was found: warnings, and for each interface the account and the streams; with all of it
/// the figures of each stream.
pub fn document(report: &StreamReport) -> Document {
    let title = "The streams of tscap gen";
    let mut document = Document::new(title, title);
    document.add(Shown::Everywhere, Section::Notices(report.warnings.clone()));
    for interface in &report.interfaces {
        let name = interface.name.as_deref();
        let name = name.map_or("(unnamed interface)".into(), escaped);
        let account = format!("{name}: {}", interface.counts);
        document.importance(Importance::Answer);
        document.add(Shown::Everywhere, Section::Title(account));
        for stream in &interface.streams {
            figures_of(&mut document, stream);
        }
        let beside = beside(&interface.streams).map(Section::Table);
        document.add_all(Shown::Brief, beside);
        if !interface.streams.is_empty() {
            document.importance(Importance::Account);
            let basis = Section::Sentences(FLUSH, basis(interface));
            document.add_all(Shown::Everywhere, [Section::Gap, basis]);
        }
    }
    document
}

/// What the delays of an interface are worth.
fn basis(interface: &InterfaceReport) -> Vec<String> {
    let steps = (interface.stamp_resolution_ns > 1).then(|| {
        let ns = grouped(interface.stamp_resolution_ns);
        format!("the file's stamps have steps of {ns} ns")
    });
    let basis = std::iter::once(interface.delay_basis.to_string());
    basis.chain(steps).collect()
}

/// The streams beside each other.
fn beside(streams: &[StreamSummary]) -> Option<Table> {
    let row = |stream: &StreamSummary| {
        let path = stream.delay.path_ns.as_ref();
        let name = format!("run {} flow {}", stream.id.run, stream.id.flow);
        vec![
            name,
            grouped(stream.loss.received),
            grouped(stream.loss.lost),
            grouped(stream.reordering.reordered),
            maybe(path.map(|it| it.min), whole),
            maybe(path.and_then(|it| it.p50), whole),
            maybe(path.and_then(|it| it.p99), whole),
            maybe(path.map(|it| it.max), whole),
        ]
    };
    let rows = streams.iter().map(row).collect();
    let head = columns("stream | received | lost | reordered | min | median | p99 | max");
    Table::figures("Frames, and path delay, ns", &head, rows).if_any()
}

/// All figures of a stream.
fn figures_of(document: &mut Document, stream: &StreamSummary) {
    let delay = &stream.delay;
    let row = |(name, summary): (&str, &Option<Summary>)| {
        let of = summary.as_ref()?;
        Some(vec![
            name.to_owned(),
            grouped(of.n),
            whole(of.min),
            maybe(of.p50, whole),
            maybe(of.p90, whole),
            maybe(of.p99, whole),
            maybe(of.p99_9, whole),
            whole(of.max),
            number(of.mean),
            number(of.sd),
        ])
    };
    let rows = [
        ("path delay", &delay.path_ns),
        ("delay variation", &delay.variation_ns),
        ("|inter-arrival − inter-send|", &delay.interval_error_ns),
    ];
    let rows = rows.into_iter().filter_map(row).collect();
    let head = columns("ns | n | min | p50 | p90 | p99 | p99.9 | max | mean | sd");
    let title = Section::Title(Arrivals(stream).to_string());
    document.add(Shown::Further, title);
    let figures = Table::figures("", &head, rows).notes(notes(delay)).if_any();
    let figures = match figures {
        Some(table) => Section::Under(INDENTED, table),
        None => Section::Sentences(INDENTED, notes(delay)),
    };
    document.add(Shown::Further, figures);
}

/// What the delays of a stream are worth, and how its intervals were found.
fn notes(delay: &DelayReport) -> Vec<String> {
    let negative = delay.path_ns.as_ref().map_or(0, |path| path.negative);
    let negative = (negative > 0).then(|| {
        let delays = counted(negative, "path delay");
        format!("negative: {delays}; the clocks of sender and receiver disagree")
    });
    let bound = delay.clocks_ns.map(|bound| {
        format!("path delay ±{bound} ns by the clocks: sender and receiver read the same ones")
    });
    let by_tsc = "p̂·ΔN of the TSC on both sides";
    let by_stamps = "from the file's stamps and the sender's CLOCK_TAI";
    let IntervalSources {
        tsc_pairs,
        stamp_pairs,
    } = delay.intervals;
    let intervals = match (tsc_pairs, stamp_pairs) {
        (0, 0) => None,
        (0, _) => Some(format!("intervals: {by_stamps}")),
        (_, 0) => Some(format!("intervals: {by_tsc}")),
        (tsc, stamps) => Some(format!(
            "intervals: {} {by_tsc}, {} {by_stamps}",
            grouped(tsc),
            grouped(stamps)
        )),
    };
    [negative, bound, intervals].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests;
