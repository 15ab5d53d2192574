//! What captures do to passing traffic.

mod figures;
mod tables;

use super::glossary;
use tscap_base::text::numbers::counted;
use tscap_document::{Document, Section, Shown, notices};
use tscap_lab::compare::statistics::against;
use tscap_lab::observer::Observation;
use tscap_lab::observer::schema::Verdict;

/// What was found: warnings, the verdicts, the figures; last where and how.
pub(super) fn document(observation: &Observation) -> Document {
    let machine = &observation.about.machine;
    let rounds = counted(observation.method.rounds.into(), "whole round");
    let notices = notices(&observation.about, &observation.warnings, rounds);
    let mut document = Document::of(
        format!("What a capture does to traffic: {}", machine.cpu),
        "What a capture does to the traffic it watches",
        &observation.about,
        notices,
    );
    document.page_title("Against no capture");
    let verdicts = observation.verdicts.iter().map(sentence).collect();
    document.add(Shown::Everywhere, Section::Verdicts(verdicts));
    document.add(Shown::Page, Section::figures(figures::all(observation)));
    document.page_title("Figures");
    let tables = [
        tables::round_trips(observation),
        tables::streams(observation),
    ];
    document.add_all(Shown::Everywhere, tables.map(Section::Answer));
    document.add(Shown::Page, Section::Table(tables::verdicts(observation)));
    document.conditions(tables::environment(observation), machine);
    document.add(Shown::Page, Section::Words(glossary::comparison()));
    document
}

/// One sentence, without a full stop.
fn sentence(verdict: &Verdict) -> String {
    let words = [
        "less than with no capture",
        "more than with no capture",
        "that with no capture",
    ];
    format!(
        "{}: with {} it is {}",
        verdict.metric.name(),
        verdict.watcher.name(),
        against(&verdict.over_nobody, words)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use tscap_document::Layout;
    use tscap_lab::observer::fixtures::observation;

    #[test]
    fn every_watcher_is_told_with_its_verdicts() {
        let text = document(&observation()).text(Layout::WHOLE);
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in [
            "round trip, median: with tcpdump it is more than with no capture by 1.50×",
            "time of the stream: with tscap, ktime it is within 3 % of that with no capture",
            "CPU time of the stream: with tcpdump it is more than",
            "500 round trips and 0.10 s of a TCP stream",
        ] {
            assert!(words.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("partial"));
    }

    #[test]
    fn the_page_draws_every_metric_and_fetches_nothing() {
        let mut observation = observation();
        let name = "<script>alert(1)</script>\"' onload=x";
        observation.about.machine.cpu = name.into();
        observation.method.programs = vec![name.into()];
        observation.warnings = vec![name.into()];
        let page = document(&observation).page();
        // The ratios, and the tail of the round trips.
        assert_eq!(page.matches("<svg").count(), 2);
        for part in ["<script", "http:", "https:", "src=", "url("] {
            assert!(!page.contains(part), "{part}");
        }
        for (start, _) in page.match_indices("<svg") {
            let end = start + page[start..].find("</svg>").unwrap() + "</svg>".len();
            roxmltree::Document::parse(&page[start..end]).unwrap();
        }
    }

    #[test]
    fn an_observation_without_rounds_is_told_too() {
        let mut observation = observation();
        observation.about.partial = true;
        observation.method.rounds = 0;
        observation.verdicts.clear();
        for subject in &mut observation.subjects {
            subject.round_trip_ns = None;
            subject.median_ns.clear();
            subject.p99_ns.clear();
            subject.stream_ns_per_kib.clear();
            subject.cpu_ns_per_kib.clear();
        }
        assert!(
            document(&observation)
                .text(Layout::WHOLE)
                .contains("partial: ended early, after 0 whole rounds")
        );
        assert!(document(&observation).page().contains("</html>"));
    }
}
