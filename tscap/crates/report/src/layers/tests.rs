use super::*;
use crate::saved::Saved;
use tscap_document::Layout;
use tscap_flows::layers::fixtures::residences;

#[test]
fn the_text_fits_a_terminal_and_says_what_became_of_packets() {
    let text = document(&residences()).text(Layout::WHOLE);
    for layout in [Layout::WHOLE_THERE, Layout::BRIEF] {
        let text = document(&residences()).text(layout);
        assert!(
            text.lines()
                .all(|line| line.chars().count() <= layout.columns),
            "{text}"
        );
        assert!(text.find("xdp → tcx, µs") < text.find("\nlayer "), "{text}");
    }
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for said in [
        "without the layer app: this kernel lets nobody",
        "xdp 1,010 0 1,000 900 100 512",
        "xdp: 60 ended as parts of aggregates",
        "xdp: 2 like another one",
        "40 packets ended at xdp: dropped by the driver",
        "cgroup: 3 not recorded (ring_full)",
        "xdp → tcx, µs 900 0.45 0.90 1.44 2.85 – 28.5 0.54",
        "10.0.0.1:5004 → 10.0.0.2:5004 udp: 1,000 packets, 100 of them while costs were measured",
        "each ±2 ns, between its two stamps",
        "what its own programs took of it, 1,200 ns at most",
        "and 1 flow more",
    ] {
        assert!(words.contains(said), "{said}\n{text}");
    }
}

#[test]
fn the_page_draws_the_residences() {
    let page = document(&residences()).page();
    assert_eq!(page.matches("<figure>").count(), 1, "{page}");
    assert!(page.contains("xdp → tcx"));
    assert!(!page.contains("<script"));
}

#[test]
fn what_was_written_is_read_back() {
    let written = serde_json::to_string(&residences()).unwrap();
    assert!(written.contains(r#""kind":"layers""#), "{written}");
    let Saved::Residences(read) = Saved::from_json(&written).unwrap() else {
        panic!("{written}");
    };
    assert_eq!(*read, residences());
}
