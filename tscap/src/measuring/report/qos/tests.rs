use super::*;
use crate::measuring::qos::fixtures::{nothing, streams};
use crate::measuring::saved::Saved;

#[test]
fn the_text_fits_a_terminal_and_says_each_figure() {
    let text = qos_text(&streams());
    for line in text.lines() {
        assert!(line.chars().count() <= COLUMNS, "{line}");
    }
    for said in [
        "lost 4 of 100 (4.00 %) in 2 periods, the longest of 3; 2 copies",
        "reordered 1 packet: extent mean 1.00, greatest 1",
        "10.0.0.1:5004 → 10.0.0.2:5004 udp ssrc 0x00001234 vlan 7",
        "payload type 18, clock 8,000 Hz",
        "105 packets = 98 in 2 flows + 3 fragments + 4 filtered",
        "±2 ns, and 1,000 parts per billion",
        "seen again: 1,448 bytes in 1 segment",
        "1,448 B*",
    ] {
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(said), "{said}\n{text}");
    }
}

#[test]
fn the_page_draws_the_first_flows() {
    let page = qos_page(&streams());
    assert_eq!(page.matches("<figure>").count(), 3, "{page}");
    assert!(page.contains("seen again, B"));
    // A column that says nothing of any flow.
    assert!(!page.contains("delay, µs"));
    assert!(!page.contains("<script"));
}

#[test]
fn of_nothing_there_are_a_text_and_a_page() {
    let text = qos_text(&nothing());
    assert!(text.contains("0 packets = 0 in 0 flows"), "{text}");
    assert!(qos_page(&nothing()).contains("No packet was of a flow"));
}

#[test]
fn what_was_written_is_read_back() {
    let written = serde_json::to_string(&streams()).unwrap();
    let Saved::Quality(read) = Saved::from_json(&written).unwrap() else {
        panic!("{written}");
    };
    assert_eq!(*read, streams());
}
