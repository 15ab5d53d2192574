use super::{all, recorded};
use crate::compare::document;
use crate::{delay, sweep};
use tscap_delay::fixtures as delays;
use tscap_document::chart::{Axis, Chart, Scale, Series, Shape, width};
use tscap_lab::loss::fixtures;

/// The drawings of a page.
pub(crate) fn drawings(page: &str) -> Vec<&str> {
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
        let page = document(&comparison).page();
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
    let page = document(&recorded()).page();
    let drawings = drawings(&page);
    // Intervals; density, tail and autocorrelation of the cost; inter-arrival
    // times of two patterns; loss by size and by gap.
    assert_eq!(drawings.len(), 8);
    let stamps = ["ktime", "tai", "tsc-perf"];
    let with_floor = ["none", "ktime", "tai", "tsc-perf"];
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
    assert_eq!(intervals[1].0, "tsc-perf, read");
    assert!(intervals.iter().all(|(_, path)| path.len() > 50));
}

/// Without colour: each stamp has a marker of its own.
#[test]
fn stamps_differ_by_more_than_colour() {
    let page = document(&recorded()).page();
    let loss = drawings(&page)[7];
    let mut markers: Vec<_> = roxmltree::Document::parse(loss)
        .unwrap()
        .descendants()
        .filter(|node| node.attribute("class") == Some("marker"))
        .filter(|node| {
            let class = node.parent().unwrap().attribute("class");
            class.unwrap().starts_with("entry")
        })
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

/// By the widths of DejaVu Sans, Debian's default, which is wider than most fonts.
#[test]
fn no_two_names_of_a_legend_overlap() {
    let series = DEJAVU.iter().map(|(name, _)| Series {
        name: (*name).to_owned(),
        style: 0,
        shape: Shape::Line,
        points: vec![(1.0, 1.0), (2.0, 2.0)],
    });
    let many = Chart {
        id: "many".to_owned(),
        title: "Many".to_owned(),
        description: "Many names".to_owned(),
        x: Axis::over("x", Scale::Linear, [1.0, 2.0]),
        y: Axis::over("y", Scale::Linear, [1.0, 2.0]),
        series: series.collect(),
        band: None,
    };
    let many = many.markup().into_string();
    let pages = [
        many,
        document(&recorded()).page(),
        document(&super::both_ways()).page(),
        sweep::document(&fixtures::sweep()).page(),
        delay::document(&[&delays::hooks(), &delays::mirror(), &delays::rtt()]).page(),
    ];
    let mut rows = 0;
    for page in &pages {
        for drawing in drawings(page) {
            let document = roxmltree::Document::parse(drawing).unwrap();
            let view = document.root_element().attribute("viewBox").unwrap();
            let wide: f64 = view.split(' ').nth(2).unwrap().parse().unwrap();
            let entries = document.descendants().filter(|node| {
                let class = node.attribute("class").unwrap_or_default();
                class.starts_with("entry")
            });
            let boxes: Vec<[f64; 3]> = entries
                .map(|entry| {
                    let text = entry.children().find(|node| node.has_tag_name("text"));
                    let text = text.unwrap();
                    let at = |name| text.attribute(name).unwrap().parse::<f64>().unwrap();
                    let width = width(text.text().unwrap());
                    [at("x") - 40.0, at("x") + width, at("y")]
                })
                .collect();
            for [_, right, _] in &boxes {
                assert!(*right <= wide, "{boxes:?}");
            }
            for pair in boxes.windows(2) {
                let [[_, right, y], [left, _, next]] = [pair[0], pair[1]];
                assert!(right < left || next > y, "{boxes:?}");
            }
            let mut ys: Vec<_> = boxes.iter().map(|[.., y]| y.to_string()).collect();
            ys.dedup();
            rows = rows.max(ys.len());
        }
    }
    assert!(rows > 1, "none was long enough to need a second row");
}

/// DejaVu Sans at 13 px, as Chromium measures it.
const DEJAVU: [(&str, f64); 8] = [
    ("tsc-module-ordered", 128.0),
    ("ktime predicted", 102.7),
    ("tcpdump", 57.9),
    ("netsniff-ng", 70.1),
    ("tscap ktime", 76.3),
    ("Allan deviation", 96.9),
    ("absolute − difference", 140.3),
    ("tsc-perf, off", 75.1),
];

#[test]
fn letters_are_no_wider_than_taken_for() {
    for (text, pixels) in DEJAVU {
        assert!(
            (pixels..1.25 * pixels).contains(&width(text)),
            "{text}: {}",
            width(text)
        );
    }
}
