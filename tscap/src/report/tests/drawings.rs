use super::{all, recorded};
use crate::report::page;

/// The drawings of a page.
pub(super) fn drawings(page: &str) -> Vec<&str> {
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
