use super::document;
use crate::tests::drawings::drawings;
use tscap_delay::fixtures::{hooks, mirror, nothing, odd, rtt};
use tscap_delay::schema::{Account, AlignmentReport, Certificate, Measurement, Variation};
use tscap_document::Layout;

fn both_ways() -> Measurement {
    let mut both = hooks();
    let mut back = both.passages[0].clone();
    back.name = "out0 → in0".into();
    both.passages.push(back);
    both
}

/// Of each sort that there is.
fn all() -> [Vec<Measurement>; 7] {
    [
        vec![hooks()],
        vec![mirror()],
        vec![rtt()],
        vec![both_ways()],
        vec![nothing()],
        vec![odd()],
        vec![hooks(), mirror(), rtt(), nothing(), odd()],
    ]
}

fn text(measurements: &[Measurement]) -> String {
    document(&measurements.iter().collect::<Vec<_>>()).text(Layout::WHOLE)
}

fn page(measurements: &[Measurement]) -> String {
    document(&measurements.iter().collect::<Vec<_>>()).page()
}

/// Words of the line of a table that begins with some.
fn line<'a>(text: &'a str, start: &str) -> Vec<&'a str> {
    let line = text.lines().find(|line| line.starts_with(start));
    line.expect(start).split_whitespace().collect()
}

/// One line, whatever was folded.
fn unfolded(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_text_fits_a_terminal() {
    for measurements in all() {
        let measurements: Vec<_> = measurements.iter().collect();
        for layout in [Layout::WHOLE_THERE, Layout::BRIEF] {
            for line in document(&measurements).text(layout).lines() {
                // No number that can be measured is as long as those of `odd`.
                let is_odd = line.contains("9,223,372") || line.contains("9.2e18");
                assert!(line.chars().count() <= layout.columns || is_odd, "{line}");
                assert_eq!(line, line.trim_end());
            }
        }
    }
}

/// The machine, and what papers measured, are no answer.
#[test]
fn the_answer_comes_first_and_the_paper_only_if_it_is_asked_for() {
    let measurement = hooks();
    let brief = document(&[&measurement]).text(Layout::BRIEF);
    let name = &measurement.passages[0].name;
    assert!(
        brief.starts_with(&format!("{name}: delay, ns\nexit ")),
        "{brief}"
    );
    assert!(unfolded(&brief).ends_with("; -v tells more"), "{brief}");
    let place = |part: &str| {
        brief
            .find(part)
            .unwrap_or_else(|| panic!("{part}: {brief}"))
    };
    assert!(place("\ntap ") < place("20,007 entered") && place("20,007 entered") < place("\nOn "));
    let whole = document(&[&measurement]).text(Layout::WHOLE);
    for part in ["Beside the paper", "PDV", "governor"] {
        assert!(
            whole.contains(part) && !brief.contains(part),
            "{part}: {brief}"
        );
    }
    // Three of the slowest, by their addresses where these are known.
    let slowest = brief.lines().filter(|line| line.starts_with("08:00:0"));
    let slowest: Vec<_> = slowest.collect();
    let delays = measurement.passages[0].exits[0].delays.as_ref().unwrap();
    assert_eq!(slowest.len(), 3, "{brief}");
    for (row, slow) in slowest.iter().zip(&delays.slowest) {
        let packet = slow.flow.as_deref().unwrap_or(&slow.key);
        assert!(row.ends_with(packet), "{packet}: {row}");
    }
}

#[test]
fn accounts_are_equations() {
    let mut measurement = hooks();
    measurement.passages[0].exits[1].account = Account {
        entered: 1_010,
        left: 1_015,
        matched: 1_000,
        lost_inside: 1,
        pending: 2,
        ambiguous_in: 3,
        untracked_in: 4,
        originated: 0,
        early: 4,
        ambiguous_out: 5,
        untracked_out: 6,
    };
    let text = unfolded(&text(&[measurement]));
    for equation in [
        "20,007 entered = 20,000 matched + 7 lost inside 20,003 left = 20,000 matched + 3 originated",
        "1,010 entered = 1,000 matched + 1 lost inside + 2 pending + 3 ambiguous + 4 untracked",
        "1,015 left = 1,000 matched + 4 early + 5 ambiguous + 6 untracked",
        "in0 (native XDP): 20,019 seen = 20,007 to the matcher + 10 without a key + 2 filtered",
    ] {
        assert!(text.contains(equation), "{equation}:\n{text}");
    }
}

#[test]
fn each_figure_has_its_bound() {
    let measurement = hooks();
    let text = text(std::slice::from_ref(&measurement));
    let passage = &measurement.passages[0];
    let exits = passage.exits.iter().map(|exit| exit.delays.as_ref());
    let of: Vec<_> = exits.chain([passage.queueing.as_ref()]).flatten().collect();
    assert_eq!(line(&text, "exit ")[1..], ["tap", "egress", "queueing"]);
    let max = line(&text, "max ");
    for (index, delays) in of.iter().enumerate() {
        let max = [max[1 + 2 * index], max[2 + 2 * index]].join(" ");
        let known = tscap_base::text::numbers::grouped(delays.summary.max.unsigned_abs());
        assert_eq!(max, format!("{known} ±41"));
    }
    // Two delays are off by as much, each the other way.
    assert_eq!(line(&text, "PDV ")[2], "±82");
    assert_eq!(line(&text, "n   ")[1..], ["20,000"; 3]);
}

#[test]
fn a_correction_is_taken_off() {
    let measurement = mirror();
    let delays = measurement.passages[0].exits[0].delays.as_ref().unwrap();
    let less = delays.summary.min as f64 - 812.5;
    let text = text(std::slice::from_ref(&measurement));
    assert_eq!(line(&text, "exit ")[1..], ["mirror", "corrected"]);
    let min = tscap_base::text::numbers::grouped(less.round() as u64);
    assert_eq!(line(&text, "min ")[3], min);
    assert!(text.contains("812.5 ns, the mean of cable.json"), "{text}");
    let page = page(&[measurement]);
    assert!(page.contains("Corrected delay, ns") && page.contains("corrected mean"));
    assert!(!document(&[&hooks()]).page().contains("Corrected delay"));
}

#[test]
fn the_certificate_is_a_sentence() {
    let mut measurement = hooks();
    let delays = measurement.passages[0].exits[0].delays.as_mut().unwrap();
    delays.certificate = Certificate::Holds {
        n: 10_000,
        max_ns: 12_345,
        bound_ns: 41,
        exceeding: 0.000_460_517,
        blocks: 10_000,
        block_packets: 1,
        correlation: 0.012,
    };
    let reported = unfolded(&text(std::slice::from_ref(&measurement)));
    let sentence = "tap: at 99 % confidence at most 0.046 % of the packets are slower than 12,386 \
                    ns, the greatest of 10,000 delays with its bound: the packets make 10,000 \
                    independent blocks of 1 packet, whose neighbours correlate by 0.01;";
    assert!(reported.contains(sentence), "{reported}");
    let delays = measurement.passages[0].exits[0].delays.as_mut().unwrap();
    delays.certificate = Certificate::None {
        why: "98 delays, 100 at least".into(),
    };
    let reported = unfolded(&text(&[measurement]));
    let sentence = "no certificate for the maximum: 98 delays, 100 at least";
    assert!(reported.contains(sentence), "{reported}");
}

#[test]
fn the_slowest_have_their_time_and_cpus() {
    let measurement = hooks();
    let delays = measurement.passages[0].exits[0].delays.as_ref().unwrap();
    let text = text(std::slice::from_ref(&measurement));
    let rows = text
        .lines()
        .filter(|line| line.starts_with("2027-01-15T08:00:0"));
    let rows: Vec<_> = rows.collect();
    assert_eq!(rows.len(), 10);
    let words: Vec<_> = rows[0].split_whitespace().collect();
    let max = tscap_base::text::numbers::grouped(delays.summary.max.unsigned_abs());
    assert_eq!(words[1..6], [&max, "0", "→", "1", "192"]);
    for (row, slow) in rows.iter().zip(&delays.slowest) {
        let packet = match &slow.flow {
            Some(flow) => flow.clone(),
            None => format!("key {}", slow.key),
        };
        assert!(row.ends_with(&packet), "{packet}: {row}");
    }
}

#[test]
fn what_must_be_known_comes_first() {
    let measurement = rtt();
    let reported = text(std::slice::from_ref(&measurement));
    assert!(reported.starts_with("noisy machine: "), "{reported}");
    assert!(page(&[measurement]).contains("<li>noisy machine: "));
    let reported = text(&[nothing()]);
    assert!(reported.starts_with("partial: ended early, after 0 packets"));
    let beside = text(&[hooks(), nothing()]);
    assert!(beside.starts_with("hooks 2: partial: "), "{beside}");
}

#[test]
fn conditions_are_told() {
    let text = text(&[rtt()]);
    for fact in [
        "CPU load        paper on CPU 1",
        "parallel        25 Mbit/s of 192-byte frames on p0",
        "stamps          bpf_ktime_get_ns",
    ] {
        assert!(text.contains(fact), "{fact}:\n{text}");
    }
}

#[test]
fn the_papers_numbers_stand_beside() {
    let page = page(&[hooks(), rtt()]);
    for numbers in [
        "52.952 / 2.056 on 1 core",
        "160.681 / 72.006 at 9.98 Mbit/s",
    ] {
        assert!(page.contains(numbers), "{numbers}");
    }
    let mut loaded = hooks();
    loaded.method.parallel = Some("50 Mbit/s of 192-byte frames on p0".into());
    assert!(document(&[&loaded]).page().contains(">45.695 / 5.420<"));
    loaded.method.load = Some("paper on CPU 1".into());
    assert!(
        document(&[&loaded])
            .page()
            .contains("71.563 / 10.368 on 1 core")
    );
}

#[test]
fn every_picture_of_the_paper_is_drawn() {
    let one = page(&[hooks()]);
    // Histograms of tap, egress and queueing; the first 200 ms; over time.
    assert_eq!(drawings(&one).len(), 5);
    assert!(!one.contains("Methods beside each other"));
    let page = page(&[hooks(), mirror(), rtt()]);
    // One histogram more for each; one chart of all methods, one of all first packets, and
    // one over time for each.
    assert_eq!(drawings(&page).len(), 5 + 1 + 1 + 3);
    for part in [
        "Methods beside each other",
        "The first 200 ms",
        "Over time: mirror: in0 → out0, mirror",
        "mean 1.",
        "the slowest packets",
    ] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn every_drawing_is_sound() {
    for measurements in all() {
        let page = page(&measurements);
        let mut ids = Vec::new();
        for drawing in drawings(&page) {
            let document = roxmltree::Document::parse(drawing).unwrap();
            for node in document.descendants() {
                ids.extend(node.attribute("id").map(str::to_owned));
                for attribute in node.attributes() {
                    let value = attribute.value();
                    assert!(!value.contains("NaN") && !value.contains("inf"), "{value}");
                }
            }
        }
        let count = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), count, "the same id twice");
        assert!(page.ends_with("</html>"));
    }
}

#[test]
fn names_are_text_and_nothing_is_fetched() {
    let mut hostile = rtt();
    let name = "<script>alert(1)</script>\"' onload=x\x1b[2J";
    hostile.about.machine.cpu = name.into();
    hostile.method.label = Some(name.into());
    hostile.method.load = Some(name.into());
    hostile.warnings = vec![name.into()];
    let passage = &mut hostile.passages[0];
    passage.name = name.into();
    passage.entry.interface = name.into();
    passage.exits[0].point = name.into();
    passage.exits[0].delays.as_mut().unwrap().slowest[0].key = name.into();
    let measurements = [hostile, hooks()];
    let page = page(&measurements);
    for part in ["<script", "http:", "https:", "src=", "url(", "\"' onload"] {
        assert!(!page.contains(part), "{part}");
    }
    assert!(!text(&measurements).contains('\x1b'));
}

/// Captures of two hosts tell what their clocks were aligned by, and variation without that.
#[test]
fn clocks_of_two_hosts_are_told() {
    let mut measurement = both_ways();
    let summary = measurement.passages[0].exits[0]
        .delays
        .as_ref()
        .expect("delays");
    measurement.passages[0].exits[0].variation = Some(Variation {
        ipdv: summary.summary,
        jitter_ns: 1_234,
        bound_ns: 77,
    });
    measurement.alignment = Some(AlignmentReport {
        by: "exchange".into(),
        max_drift_ppb: 100_000,
        max_asymmetry_ns: None,
        bound_ns: Some(98_765),
        median_bound_ns: Some(88_000),
        peer_ahead_ns: Some(3_700_000_000),
        skew_ppb: Some(90_000),
        skew_bound_ppb: Some(1_000),
        utc_bound_ns: None,
        changes: 0,
        contradictions: 0,
        unaligned: 3,
        packets: Some([812, 790]),
    });
    let measurements = [measurement];
    let (text, page) = (unfolded(&text(&measurements)), page(&measurements));
    for part in [
        "the second host's clock is 3.7",
        "s ahead of the first one's; aligned by the packets themselves to ±98",
        "both captures have 812 packets there and 790 back",
        "jitter 1.2",
        "3 packets have no delays each way",
        "that of the alignment of both clocks",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(page.contains("both captures have 812"), "{page}");
}
