//! An answer fits a screen, and with all of it nothing is left out.

use super::{both_ways, recorded};
use crate::compare::document;
use crate::{counters, delay, layers, observer, qos, sweep};
use tscap_delay::fixtures::{hooks, mirror, nothing, rtt};
use tscap_document::Layout;
use tscap_flows as flows;
use tscap_lab::loss;
use tscap_lab::{counters as counted, observer as observed};

/// A terminal of 80 columns and 24 lines, with a prompt, and without the last column.
const LINES: usize = 23;
const COLUMNS: usize = 79;

/// So many warnings that they would fill a screen by themselves.
fn warnings() -> Vec<String> {
    let warning = |number: u32| {
        format!(
            "warning {number} of a noisy machine: the clocks of its CPUs do not keep their rate, \
             and another program has taken 23 % of them meanwhile"
        )
    };
    (1..=12).map(warning).collect()
}

/// Without where lines were folded.
fn unfolded(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Holds a brief text to the screen, and a whole one to the warnings. `row` is the name of the
/// last of many rows.
fn check(what: &str, reported: impl Fn(Layout) -> String, row: &str) {
    let brief = reported(Layout::BRIEF);
    assert!(brief.lines().count() <= LINES, "{what}:\n{brief}");
    for line in brief.lines() {
        assert!(line.chars().count() <= COLUMNS, "{what}: {line}\n{brief}");
        assert_eq!(line, line.trim_end(), "{what}");
    }
    let said = unfolded(&brief);
    assert!(said.contains(&warnings()[0]), "{what}:\n{brief}");
    assert!(said.contains("more warnings: -v tells"), "{what}:\n{brief}");
    assert!(said.contains("; -v tells more"), "{what}:\n{brief}");
    assert!(!said.contains(row), "{what}: {row}\n{brief}");
    let whole = unfolded(&reported(Layout::WHOLE_THERE));
    assert!(whole.contains(row), "{what}: {row}\n{whole}");
    for warning in warnings() {
        assert!(whole.contains(&warning), "{what}: {warning}\n{whole}");
    }
}

#[test]
fn a_comparison_fits() {
    let mut comparison = both_ways();
    comparison.warnings = warnings();
    for _ in 0..3 {
        let verdicts = comparison.verdicts.clone();
        comparison.verdicts.extend(verdicts);
    }
    let brief = document(&comparison).text(Layout::BRIEF);
    assert!(
        brief.contains("\nVerdicts\n") && brief.contains("verdicts more: -v"),
        "{brief}"
    );
    assert!(brief.contains("Cost of a stamp"), "{brief}");
    check(
        "compare",
        |layout| document(&comparison).text(layout),
        "governor ",
    );
    // One that is quiet is told with all its verdicts.
    let mut quiet = recorded();
    quiet.warnings.clear();
    let brief = unfolded(&document(&quiet).text(Layout::BRIEF));
    assert!(
        quiet
            .verdicts
            .iter()
            .all(|it| brief.contains(&it.to_string())),
        "{brief}"
    );
}

#[test]
fn a_sweep_fits() {
    let mut sweep = loss::fixtures::sweep();
    sweep.warnings = warnings();
    for size in 1_000..1_060 {
        let mut point = sweep.points[0].clone();
        point.size = size;
        sweep.points.push(point);
    }
    check(
        "loss",
        |layout| sweep::document(&sweep).text(layout),
        "1,058",
    );
}

#[test]
fn delays_fit() {
    let mut one = hooks();
    one.warnings = warnings();
    for number in 1..10 {
        let mut passage = one.passages[0].clone();
        passage.name = format!("in{number} → out{number}");
        one.passages.push(passage);
    }
    check(
        "delay",
        |layout| delay::document(&[&one]).text(layout),
        "in9 → out9",
    );
    // Several beside each other, a row each.
    let several = [hooks(), mirror(), rtt(), nothing()];
    let several: Vec<_> = several.iter().collect();
    let brief = delay::document(&several).text(Layout::BRIEF);
    assert!(brief.lines().count() <= LINES, "{brief}");
    // That of one is whole.
    let one = hooks();
    let brief = unfolded(&delay::document(&[&one]).text(Layout::BRIEF));
    for part in [
        "min mean median p99 max ±",
        "matched + 7 lost inside",
        "The slowest",
    ] {
        assert!(brief.contains(part), "{part}: {brief}");
    }
}

#[test]
fn flows_fit() {
    let mut quality = flows::fixtures::streams();
    check(
        "qos of two flows",
        |layout| {
            let mut quality = quality.clone();
            quality.warnings = warnings();
            qos::document(&quality).text(layout)
        },
        "governor ",
    );
    quality.method.top = 40;
    quality.warnings = warnings();
    for number in 0..40 {
        let mut flow = quality.flows[0].clone();
        flow.packets = 5_000 + number;
        quality.flows.push(flow);
    }
    check(
        "qos",
        |layout| qos::document(&quality).text(layout),
        "5,037",
    );
    let brief = qos::document(&quality).text(Layout::BRIEF);
    assert!(
        brief.contains("flows more: -v and --top show more"),
        "{brief}"
    );
    // Ten of them are on a screen as far as there is room.
    quality.warnings.clear();
    quality.method.top = 10;
    let brief = qos::document(&quality).text(Layout::BRIEF);
    assert!((18..=LINES).contains(&brief.lines().count()), "{brief}");
}

#[test]
fn residences_fit() {
    let mut residences = flows::layers::fixtures::residences();
    residences.warnings = warnings();
    for flow in &mut residences.flows {
        flow.name = "10.9.8.7:6 → 10.9.8.6:5 udp".into();
    }
    residences.method.top = 40;
    let flows = vec![residences.flows[0].clone(); 12];
    residences.flows.extend(flows);
    check(
        "layers",
        |layout| layers::document(&residences).text(layout),
        "10.9.8.7:6",
    );
}

#[test]
fn counters_fit() {
    let mut of = counted::fixtures::characteristics();
    of.warnings = warnings();
    check(
        "counters",
        |layout| counters::document(&of).text(layout),
        "governor ",
    );
}

#[test]
fn an_observation_fits() {
    let mut observation = observed::fixtures::observation();
    observation.warnings = warnings();
    for _ in 0..3 {
        let verdicts = observation.verdicts.clone();
        observation.verdicts.extend(verdicts);
    }
    check(
        "observer",
        |layout| observer::document(&observation).text(layout),
        "governor ",
    );
}
