use super::{both_ways, empty, live, odd, recorded, without_tsc};
use crate::compare::document;
use tscap_document::Layout;
use tscap_lab::compare::fixtures;
use tscap_lab::compare::schema::Comparison;

#[test]
fn the_table_fits_a_terminal() {
    for comparison in [recorded(), both_ways(), live(), without_tsc(), empty()] {
        for layout in [Layout::WHOLE_THERE, Layout::BRIEF] {
            for line in document(&comparison).text(layout).lines() {
                assert!(line.chars().count() <= layout.columns, "{line}");
                assert_eq!(line, line.trim_end());
            }
        }
    }
    let mut odd = odd();
    odd.verdicts.clear();
    let text = document(&odd).text(Layout::WHOLE);
    assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
}

/// It stands before the machine, without the papers and on one screen.
#[test]
fn the_answer_comes_first() {
    let mut comparison = recorded();
    comparison.warnings.clear();
    let brief = document(&comparison).text(Layout::BRIEF);
    assert!(brief.starts_with("Verdicts\n"), "{brief}");
    let machine = brief.find("\nOn AMD EPYC").expect("where it was");
    let costs = brief.find("Cost of a stamp: ").expect("what it costs");
    assert!(costs < machine, "{brief}");
    for part in ["paper's traffic", "governor"] {
        assert!(!brief.contains(part), "{part}: {brief}");
    }
    let said = brief.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.ends_with("; -v tells more"), "{brief}");
    assert!(brief.lines().count() < 24, "{brief}");
}

/// Words of a line, which begins with some.
fn line<'a>(text: &'a str, start: &str) -> Vec<&'a str> {
    let mut lines = text.lines();
    let line = lines.find(|line| line.starts_with(start));
    line.expect(start).split_whitespace().collect()
}

#[test]
fn the_table_tells_what_was_measured() {
    let mut comparison = recorded();
    let ktime = &mut comparison.subjects[1];
    ktime.read_ns = Some(vec![33.0, 31.0, 32.0]);
    ktime.program_ns = vec![54.0];
    ktime.lossless_rate = vec![4e6, 4.5e6];
    let all = &mut ktime.frame.as_mut().unwrap().all;
    (all.n, all.mean, all.sd, all.min, all.max) = (9_000, 35.25, 4.5, -2, 12_345);
    (all.p50, all.p99, all.p99_9) = (Some(35), Some(47), None);
    ktime.frame.as_mut().unwrap().autocorrelation[0] = -0.25;
    ktime.loss_by_size[0].lost = 500;
    let text = document(&comparison).text(Layout::WHOLE);
    assert_eq!(
        line(&text, "ktime     3"),
        [
            "ktime",
            "32.0",
            "(31.0–33.0)",
            "54.0",
            "4.25",
            "(4.00–4.50)"
        ]
    );
    assert_eq!(
        line(&text, "ktime             "),
        [
            "ktime", "9,000", "35.2", "4.50", "−2", "35", "47", "–", "12,345", "−0.25"
        ]
    );
    assert!(text.contains("checkpoint alone"));
    assert_eq!(
        line(&text, "voip, TSC offload")[3..],
        ["–", "73.5", "3.79", "–", "–", "–", "–", "–", "paper"]
    );
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("Core i7 2.93 GHz, e1000e, Linux 2.6.39"));
    assert_eq!(
        line(&text, "ktime     size")[4..],
        ["760", "2.50", "64", "B,", "flat", "out"]
    );
    for verdict in &comparison.verdicts {
        assert!(words.contains(&verdict.to_string()), "{verdict}");
    }
    assert!(text.contains("command         tscap compare --json --report out.html"));
}

/// What an earlier tscap recorded has none of it.
#[test]
fn interrupts_on_and_off_stand_side_by_side() {
    assert!(
        !document(&recorded())
            .text(Layout::WHOLE)
            .contains("nterrupts")
    );
    let text = document(&both_ways()).text(Layout::WHOLE);
    assert_eq!(
        line(&text, "ktime, on"),
        [
            "ktime,", "on", "32.0", "6,012", "80.8", "891.1", "40", "41", "42", "–", "20,011", "12"
        ]
    );
    let off = line(&text, "ktime, off");
    assert_eq!((off[2], off[11]), ("40.0", "0"));
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("ktime is more expensive than with them on by 1.25×"));
    assert!(words.contains("that of ktime is within 3 % of that with them on"));
}

/// What an earlier tscap recorded has none of it.
#[test]
fn outliers_are_told_with_their_causes() {
    let mut comparison = fixtures::comparison();
    let shown = |comparison: &Comparison| {
        let text = document(comparison).text(Layout::WHOLE);
        let start = text.find("Frames whose stamp cost").expect("a table");
        text[start..].to_owned()
    };
    assert!(
        !document(&recorded())
            .text(Layout::WHOLE)
            .contains("Frames whose stamp cost")
    );
    let reported = shown(&comparison);
    assert_eq!(
        line(&reported, "ktime"),
        [
            "ktime", "410", "40", "2.50", "(0.00)", "90.0", "(0.20)", "5.00", "(5.03)", "2.50",
            "(94.8)"
        ]
    );
    assert!(document(&comparison).page().contains("interrupt, %"));
    let why = "this kernel does not export kstat to programs";
    comparison.method.causes_unknown = Some(why.into());
    let reported = shown(&comparison);
    assert_eq!(line(&reported, "ktime"), ["ktime", "410", "40"]);
    assert!(
        reported.contains(&format!("causes are unknown: {why}")),
        "{reported}"
    );
    assert!(document(&comparison).page().contains(why));
}
