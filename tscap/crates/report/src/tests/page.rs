use super::drawings::drawings;
use super::{all, both_ways, live, recorded};
use crate::compare::document;
use crate::{clock, delay, sweep};
use tscap_delay::fixtures as delays;
use tscap_document::Layout;
use tscap_lab::loss::fixtures;
use tscap_references::log::{Digest, Header, Line};

#[test]
fn the_page_asks_for_nothing_from_elsewhere() {
    for comparison in all() {
        let page = document(&comparison).page();
        for part in ["http:", "https:", "src=", "url(", "@import", "<script"] {
            assert!(!page.contains(part), "{part}");
        }
        // Links are to what is in the page.
        assert_eq!(
            page.matches("href=").count(),
            page.matches("href=\"data:").count()
        );
        assert!(page.contains("default-src 'none'"));
    }
}

#[test]
fn names_are_text_and_nothing_else() {
    let mut hostile = recorded();
    let name = "<script>alert(1)</script>\"' onload=x &amp;\x1b[2J";
    hostile.about.machine.interface = name.into();
    hostile.about.machine.cpu = name.into();
    hostile.about.machine.mitigations = [(name.to_owned(), name.to_owned())].into();
    hostile.about.command = vec![name.into()];
    hostile.warnings = vec![name.into()];
    hostile.method.checkpoint.path = name.into();
    for subject in &mut hostile.subjects {
        subject.path = name.into();
        for precision in &mut subject.precision {
            precision.pattern = name.into();
            precision.intervals_from = name.into();
        }
    }
    let html = document(&hostile).page();
    assert!(!html.contains("<script") && !html.contains("\"' onload"));
    assert!(html.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    for drawing in drawings(&html) {
        roxmltree::Document::parse(&drawing.replace('\x1b', "")).unwrap();
    }
    assert!(!document(&hostile).text(Layout::WHOLE).contains('\x1b'));
}

#[test]
fn what_must_be_known_comes_first() {
    let mut comparison = recorded();
    assert!(
        document(&comparison)
            .text(Layout::WHOLE)
            .starts_with("noisy machine: a hypervisor took 3.1 %")
    );
    comparison.warnings.clear();
    comparison.about.partial = true;
    assert!(
        document(&comparison)
            .text(Layout::WHOLE)
            .starts_with("partial: ended early, after 5 whole rounds\n")
    );
    let html = document(&comparison).page();
    let (partial, verdicts) = (html.find("partial: ended"), html.find("Verdicts"));
    assert!(partial.is_some() && partial < verdicts);
    comparison.about.partial = false;
    assert!(
        document(&comparison)
            .text(Layout::WHOLE)
            .starts_with("Verdicts\n")
    );
    assert!(!document(&comparison).page().contains("class=\"notices\""));
}

#[test]
fn live_traffic_says_what_is_not_known() {
    let page = document(&live()).page();
    assert!(page.contains("live traffic carries no send stamps"));
    assert!(page.contains("how many frames of live traffic were sent"));
    assert_eq!(drawings(&page).len(), 4);
    assert!(
        document(&live())
            .text(Layout::WHOLE)
            .contains("2,000 frames of live traffic of each stamp")
    );
}

#[test]
fn interrupts_off_have_their_table_and_figure() {
    let titles = ["Interrupts off around", "interrupts on and off"];
    for title in titles {
        assert!(!document(&recorded()).page().contains(title), "{title}");
        assert!(document(&both_ways()).page().contains(title), "{title}");
    }
}

fn pages() -> Vec<String> {
    let mut clock = Digest::default();
    clock.take(Line::Header(Header::new("boot-1")));
    let comparisons = all()
        .into_iter()
        .map(|comparison| document(&comparison).page());
    comparisons
        .chain([
            sweep::document(&fixtures::sweep()).page(),
            clock::document(&clock).page(),
        ])
        .chain([delay::document(&[&delays::hooks(), &delays::mirror(), &delays::rtt()]).page()])
        .collect()
}

/// The text between the tags `name` of some HTML, in which nothing is nested.
fn texts<'a>(html: &'a str, start: &str, end: &str) -> Vec<&'a str> {
    let parts = html.split(start).skip(1);
    let inner = parts.filter_map(|part| part.split_once(end).map(|(inner, _)| inner));
    inner.collect()
}

#[test]
fn no_two_columns_have_one_name() {
    for page in pages() {
        for head in texts(&page, "<thead>", "</thead>") {
            let mut names: Vec<_> = texts(head, "<th scope=\"col\"", "</th>")
                .into_iter()
                .map(|name| name.split_once('>').unwrap().1)
                .collect();
            let count = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), count, "{head}");
        }
    }
}

/// Where a row does not fit, each cell stands on a line of its own with its column's name.
#[test]
fn a_narrow_page_names_the_column_of_each_cell() {
    let page = document(&recorded()).page();
    assert!(page.contains("attr(data-column)"));
    for body in texts(&page, "<table class=\"rows\">", "</table>") {
        let cells = body.matches("<td").count();
        assert_eq!(cells, body.matches(" data-column=\"").count(), "{body}");
    }
}

/// Letters of a chart that is as narrow as a phone would be of 7 px: it keeps its width there and
/// is moved in its own frame, as a table is that has a column too wide.
#[test]
fn a_narrow_page_is_not_wider_for_a_chart_or_a_table() {
    for page in pages() {
        let charts = page.matches("<figure>").count();
        let framed = page.matches("<div class=\"chart\"><svg").count();
        assert_eq!(framed, charts);
        assert_eq!(
            page.matches("<table").count(),
            page.matches("<div class=\"table\"><table").count()
        );
        assert!(page.contains(".chart { overflow-x: auto; }"));
        assert!(page.contains(".table { overflow-x: auto;"));
        let narrow = page.split_once("(max-width: 40rem)").unwrap().1;
        let narrow = narrow.split_once("@media print").unwrap().0;
        assert!(narrow.contains(".chart svg { min-width: 37rem; }"));
        assert!(!narrow.contains(".table {"), "{narrow}");
    }
}

#[test]
fn each_figure_can_be_saved_as_a_drawing_and_as_points() {
    for page in pages() {
        for figure in texts(&page, "<figure>", "</figure>") {
            let links = texts(figure, "href=\"data:", "\"");
            assert_eq!(links.len(), 2, "{figure}");
            let [drawing, points] = [links[0], links[1]].map(decoded);
            let drawing = drawing
                .strip_prefix("image/svg+xml;charset=utf-8,")
                .unwrap();
            let document = roxmltree::Document::parse(drawing).unwrap();
            let root = document.root_element();
            assert_eq!(
                root.tag_name().namespace(),
                Some("http://www.w3.org/2000/svg")
            );
            assert!(drawing.contains("--c0: #000"), "it has its colours");
            let points = points.strip_prefix("text/csv;charset=utf-8,").unwrap();
            assert!(points.lines().count() > 1, "{points}");
        }
    }
}

/// What a link holds: percent encoding undone.
fn decoded(uri: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = uri.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digits = [rest.next().unwrap(), rest.next().unwrap()];
                u8::from_str_radix(str::from_utf8(&digits).unwrap(), 16).unwrap()
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).unwrap()
}

/// One size and one gap, as with --quick.
#[test]
fn a_curve_of_one_point_is_left_out_and_that_is_said() {
    let mut quick = recorded();
    for subject in &mut quick.subjects {
        subject.loss_by_size.truncate(1);
        subject.loss_by_gap.truncate(1);
    }
    let page = document(&quick).page();
    assert!(!page.contains("Loss against the gap between frames"));
    assert!(page.contains("no curves: one size and one pace"));
    assert!(!document(&recorded()).page().contains("no curves"));
}
