use super::*;
use crate::clock::StampSource;
use crate::compare::schema::Comparison;

/// In the shape of a recording: four stamps, both patterns, loss, warnings.
fn recorded() -> Comparison {
    Comparison::from_json(include_str!("../../tests/data/comparison.json")).unwrap()
}

/// As recorded on live traffic.
fn live() -> Comparison {
    let mut live = recorded();
    live.method.frame_bytes = None;
    for subject in &mut live.subjects {
        subject.precision.clear();
        subject.lossless_rate.clear();
        subject.loss_by_size.clear();
        subject.loss_by_gap.clear();
    }
    live
}

/// Where there is no way to the TSC.
fn without_tsc() -> Comparison {
    let mut comparison = recorded();
    let is_tsc = |source| source == Some(StampSource::Tsc);
    comparison
        .subjects
        .retain(|subject| !is_tsc(subject.source));
    comparison
        .verdicts
        .retain(|verdict| !is_tsc(verdict.source));
    comparison
}

/// Ended before anything was measured.
fn empty() -> Comparison {
    let mut empty = live();
    empty.partial = true;
    empty.method.rounds = 0;
    empty.verdicts.clear();
    empty.warnings.clear();
    for subject in &mut empty.subjects {
        subject.read_ns = None;
        subject.frame = None;
        subject.program_ns.clear();
    }
    empty
}

/// Numbers that nothing should measure.
fn odd() -> Comparison {
    let mut odd = recorded();
    odd.seconds = f64::NAN;
    odd.started_ns = u64::MAX;
    odd.machine.load = [f64::INFINITY; 3];
    let numbers = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, 1e300, 0.0];
    for subject in &mut odd.subjects {
        subject.program_ns = numbers.to_vec();
        subject.lossless_rate = numbers.to_vec();
        for point in &mut subject.loss_by_gap {
            (point.gap, point.sent, point.lost) = (Some(u64::MAX), u64::MAX, u64::MAX);
        }
        for point in &mut subject.loss_by_size {
            point.sent = 0;
        }
        for precision in &mut subject.precision {
            precision.inter_arrival = vec![(1e15, 0.5), (f64::NAN, 0.5), (-1e300, 1.0)];
            precision.bucket_ns = 0.0;
        }
        if let Some(frame) = &mut subject.frame {
            frame.all.n = 0;
            (frame.all.min, frame.all.max) = (i64::MIN, i64::MAX);
            frame.histogram = numbers.iter().map(|number| (*number, *number)).collect();
            frame.bucket_ns = f64::MIN_POSITIVE;
            frame.autocorrelation = numbers.to_vec();
        }
    }
    for verdict in &mut odd.verdicts {
        verdict.ratio = Some(f64::NAN);
        verdict.interval = Some([f64::NEG_INFINITY, f64::INFINITY]);
        verdict.margin = f64::NAN;
    }
    odd
}

fn all() -> [Comparison; 5] {
    [recorded(), live(), without_tsc(), empty(), odd()]
}

/// The drawings of a page.
fn drawings(page: &str) -> Vec<&str> {
    let parts = page.split("<svg").skip(1);
    parts
        .map(|part| {
            let end = part.find("</svg>").expect("a drawing ends");
            let start = part.as_ptr() as usize - page.as_ptr() as usize - "<svg".len();
            &page[start..start + "<svg".len() + end + "</svg>".len()]
        })
        .collect()
}

/// The series drawn in a chart: name and path data.
fn series(drawing: &str) -> Vec<(String, String)> {
    let document = roxmltree::Document::parse(drawing).unwrap();
    let class = |node: &roxmltree::Node, name: &str| {
        let classes = node.attribute("class").unwrap_or_default();
        classes.split(' ').any(|class| class == name)
    };
    let groups = document.descendants().filter(|node| class(node, "series"));
    groups
        .map(|group| {
            let title = group.children().find(|node| node.has_tag_name("title"));
            let paths = group.children().filter_map(|node| node.attribute("d"));
            let name = title.and_then(|title| title.text()).unwrap();
            (name.to_owned(), paths.collect())
        })
        .collect()
}

#[test]
fn every_drawing_is_sound_and_told() {
    for comparison in all() {
        let page = page(&comparison);
        let mut ids: Vec<String> = Vec::new();
        for drawing in drawings(&page) {
            let document = roxmltree::Document::parse(drawing).unwrap();
            let root = document.root_element();
            for id in root.attribute("aria-labelledby").unwrap().split(' ') {
                let node = document
                    .descendants()
                    .find(|node| node.attribute("id") == Some(id));
                assert!(
                    node.unwrap().text().is_some_and(|text| text.len() > 5),
                    "{id}"
                );
                ids.push(id.to_owned());
            }
            for node in document.descendants() {
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
    }
}

#[test]
fn every_stamp_is_drawn_in_every_chart() {
    let page = page(&recorded());
    let drawings = drawings(&page);
    // Intervals; density, tail and autocorrelation of the cost; inter-arrival
    // times of two patterns; loss by size and by gap.
    assert_eq!(drawings.len(), 8);
    let stamps = ["ktime", "tai", "tsc"];
    let with_floor = ["none", "ktime", "tai", "tsc"];
    for (index, drawing) in drawings.iter().enumerate().skip(1) {
        let series = series(drawing);
        let names: Vec<_> = series.iter().map(|(name, _)| name.as_str()).collect();
        match index {
            6.. => assert_eq!(names, with_floor),
            _ => assert_eq!(names, stamps),
        }
        for (name, path) in &series {
            assert!(path.len() > 50, "{name} is not drawn in {drawing}");
        }
    }
    let intervals = series(drawings[0]);
    assert_eq!(intervals.len(), recorded().verdicts.len());
    assert_eq!(intervals[1].0, "tsc, read");
    assert!(intervals.iter().all(|(_, path)| path.len() > 50));
}

/// Without colour: each stamp has a marker of its own.
#[test]
fn stamps_differ_by_more_than_colour() {
    let page = page(&recorded());
    let loss = drawings(&page)[7];
    let mut markers: Vec<_> = roxmltree::Document::parse(loss)
        .unwrap()
        .descendants()
        .filter(|node| node.attribute("class") == Some("marker"))
        .filter(|node| node.parent().unwrap().attribute("class").unwrap().len() == 2)
        .map(|node| {
            let path = node.attribute("d").unwrap();
            let shape = path.find(|c: char| c.is_lowercase()).unwrap();
            path[shape..].to_owned()
        })
        .collect();
    assert_eq!(markers.len(), 4, "the legend has each stamp's marker");
    markers.sort_unstable();
    markers.dedup();
    assert_eq!(markers.len(), 4);
    for dash in [".s0", ".s1", ".s2", ".s3", ".s4", ".s5"] {
        assert!(page.contains(&format!("{dash} {{ --c: var(--c")), "{dash}");
    }
}

#[test]
fn the_page_asks_for_nothing_from_elsewhere() {
    for comparison in all() {
        let page = page(&comparison);
        for part in [
            "http:", "https:", "src=", "href=", "url(", "@import", "<script",
        ] {
            assert!(!page.contains(part), "{part}");
        }
        assert!(page.contains("default-src 'none'"));
    }
}

#[test]
fn names_are_text_and_nothing_else() {
    let mut hostile = recorded();
    let name = "<script>alert(1)</script>\"' onload=x &amp;\x1b[2J";
    hostile.machine.interface = name.into();
    hostile.machine.cpu = name.into();
    hostile.machine.mitigations = [(name.to_owned(), name.to_owned())].into();
    hostile.command = vec![name.into()];
    hostile.warnings = vec![name.into()];
    hostile.method.checkpoint.path = name.into();
    for subject in &mut hostile.subjects {
        subject.path = name.into();
        for precision in &mut subject.precision {
            precision.pattern = name.into();
            precision.intervals_from = name.into();
        }
    }
    let html = page(&hostile);
    assert!(!html.contains("<script") && !html.contains("\"' onload"));
    assert!(html.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    for drawing in drawings(&html) {
        roxmltree::Document::parse(&drawing.replace('\x1b', "")).unwrap();
    }
    assert!(!text(&hostile).contains('\x1b'));
}

#[test]
fn the_table_fits_a_terminal() {
    for comparison in [recorded(), live(), without_tsc(), empty()] {
        for line in text(&comparison).lines() {
            assert!(line.chars().count() <= 100, "{line}");
            assert_eq!(line, line.trim_end());
        }
    }
    let mut odd = odd();
    odd.verdicts.clear();
    let text = text(&odd);
    assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
}

#[test]
fn what_must_be_known_comes_first() {
    let mut comparison = recorded();
    assert!(text(&comparison).starts_with("noisy machine: a hypervisor took 3.1 %"));
    comparison.warnings.clear();
    comparison.partial = true;
    assert!(text(&comparison).starts_with("partial: ended by a signal after 5 whole rounds\n"));
    let html = page(&comparison);
    let (partial, verdicts) = (html.find("partial: ended"), html.find("Verdicts"));
    assert!(partial.is_some() && partial < verdicts);
    comparison.partial = false;
    assert!(text(&comparison).starts_with("kernel "));
    assert!(!page(&comparison).contains("class=\"notices\""));
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
    let text = text(&comparison);
    assert_eq!(
        line(&text, "ktime  3"),
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
        line(&text, "ktime  size")[4..],
        ["760", "2.50", "64", "B,", "flat", "out"]
    );
    for verdict in &comparison.verdicts {
        assert!(text.contains(&verdict.to_string()), "{verdict}");
    }
    assert!(text.contains("command         tscap compare --json --report out.html"));
}

#[test]
fn live_traffic_says_what_is_not_known() {
    let page = page(&live());
    assert!(page.contains("live traffic carries no send stamps"));
    assert!(page.contains("how many frames of live traffic were sent"));
    assert_eq!(drawings(&page).len(), 4);
    assert!(text(&live()).contains("2,000 frames of live traffic of each stamp"));
}
