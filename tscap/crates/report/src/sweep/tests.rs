use super::document;
use tscap_document::Layout;
use tscap_lab::loss::fixtures::sweep;
use tscap_lab::loss::schema::Sweep;

fn rate_sweep() -> Sweep {
    let mut sweep = sweep();
    for (index, point) in sweep.points.iter_mut().enumerate() {
        (point.size, point.rate_asked) = (64, Some(1e5 * (index + 1) as f64));
    }
    sweep
}

#[test]
fn every_point_is_told_with_what_was_predicted() {
    let sweep = sweep();
    let text = document(&sweep).text(Layout::WHOLE);
    let (sessions, points) = text.split_once("Every point").unwrap();
    assert!(sessions.starts_with("Smallest frame sizes"), "{text}");
    // Each program with each of both snaplens.
    assert_eq!(sessions.matches("flat out").count(), 4);
    let rows = points.lines().filter(|line| line.contains("flat out"));
    assert_eq!(rows.clone().count(), sweep.points.len());
    let ours = rows
        .clone()
        .find(|row| row.starts_with("tscap ktime"))
        .unwrap();
    let words: Vec<_> = ours.split_whitespace().collect();
    let predicted = sweep.points[0].predicted.unwrap();
    assert!(predicted.lost() > 0.05, "{predicted:?}");
    let percent = format!("{:.2}", 100.0 * predicted.lost());
    // Size, pace (two words), snaplen, ring (two words); measured is predicted here.
    assert_eq!(words[2..8], ["64", "flat", "out", "96", "1", "MiB"]);
    assert_eq!(
        words.iter().filter(|word| **word == percent).count(),
        3,
        "{ours}"
    );
    let theirs = rows.clone().find(|row| row.starts_with("tcpdump")).unwrap();
    assert!(theirs.contains("  –  "), "{theirs}");
    assert!(text.ends_with('\n') && !text.contains("partial"));
    assert!(
        text.contains("off by 0.00 points of loss in the mean of 6 points"),
        "{text}"
    );
}

#[test]
fn what_must_be_known_comes_first() {
    let mut sweep = sweep();
    sweep.about.partial = true;
    sweep.warnings = vec!["busy machine".into()];
    let text = document(&sweep).text(Layout::WHOLE);
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("busy machine"));
    assert_eq!(lines.next(), Some("partial: ended early, after 12 points"));
    assert!(document(&sweep).page().contains("<li>busy machine</li>"));
}

#[test]
fn the_text_fits_a_terminal() {
    for columns in [39, 79, 100, 200] {
        let layout = Layout {
            columns,
            is_whole: false,
        };
        let text = document(&sweep()).text(layout);
        let fits = |line: &str| line.chars().count() <= columns.max(79);
        assert!(text.lines().all(fits), "{columns}: {text}");
        assert!(!text.contains("What the stages cost"), "{text}");
    }
}

#[test]
fn there_is_a_chart_for_each_setting() {
    let page = document(&sweep()).page();
    // For each of both snaplens loss, its places and the load; and both together.
    assert_eq!(page.matches("<svg").count(), 2 * 3 + 1);
    for name in [
        "tscap ktime",
        "ktime predicted",
        "tcpdump",
        "tcpdump kernel",
        "tcpdump application",
        "tscap ktime CPU 0 softirq",
        "tscap ktime CPU 1 user",
        "tcpdump, least tuned",
        "tcpdump, most tuned",
    ] {
        assert!(page.contains(name), "{name}");
    }
    assert!(page.contains("frame size, B"));
    let over_rate = document(&rate_sweep()).page();
    assert!(over_rate.contains("frames a second, million"));
    for (start, _) in page.match_indices("<svg") {
        let end = start + page[start..].find("</svg>").unwrap() + "</svg>".len();
        roxmltree::Document::parse(&page[start..end]).unwrap();
    }
}

#[test]
fn names_are_text_and_nothing_is_fetched() {
    let mut sweep = sweep();
    let name = "<script>alert(1)</script>\"' onload=x\x1b[2J";
    sweep.about.machine.cpu = name.into();
    sweep.method.folder = name.into();
    sweep.method.peers = vec![name.into()];
    sweep.about.command = vec![name.into()];
    sweep.warnings = vec![name.into()];
    let page = document(&sweep).page();
    for part in ["<script", "http:", "https:", "src=", "url("] {
        assert!(!page.contains(part), "{part}");
    }
    assert!(!document(&sweep).text(Layout::WHOLE).contains('\x1b'));
}

#[test]
fn a_sweep_without_points_is_drawn() {
    let mut sweep = sweep();
    sweep.points.clear();
    (sweep.about.partial, sweep.accuracy) = (true, None);
    assert!(
        document(&sweep)
            .text(Layout::WHOLE)
            .contains("partial: ended early, after 0 points")
    );
    assert!(document(&sweep).page().contains("</html>"));
}

/// What was not sent at the rate asked for says nothing of that rate.
#[test]
fn a_point_below_its_rate_is_marked_and_in_no_curve() {
    let mut sweep = rate_sweep();
    let sizes = [64, 256, 1024];
    for (index, point) in sweep.points.iter_mut().enumerate() {
        point.size = sizes[index % 3];
        point.gap = Some(12);
        point.rate_asked = Some(point.rate_sent());
    }
    let drawn = |sweep: &Sweep| document(sweep).page().matches("<svg").count();
    assert!(!document(&sweep).text(Layout::WHOLE).contains("gap 12*"));
    assert!(drawn(&sweep) > 0);
    for point in &mut sweep.points {
        point.rate_asked = Some(point.rate_sent() / 0.98);
    }
    assert!(document(&sweep).text(Layout::WHOLE).contains("gap 12*"));
    assert_eq!(drawn(&sweep), 0);
}
