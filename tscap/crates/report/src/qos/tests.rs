use std::io::Cursor;

use super::*;
use crate::saved::Saved;
use tscap_clock::StampPath;
use tscap_document::Layout;
use tscap_flows::FlowOptions;
use tscap_flows::file::{FilePlan, measure_file};
use tscap_flows::fixtures::{nothing, streams, with_quic};
use tscap_flows::schema::{FlowBy, SortOrder, SpinBit};
use tscap_streams::fixtures::Headers;
use tscap_streams::fixtures::capture::{Capture, NOW, TAI_OFFSET_S, stream};

#[test]
fn the_text_fits_a_terminal_and_says_each_figure() {
    let text = document(&streams()).text(Layout::WHOLE);
    for layout in [Layout::WHOLE_THERE, Layout::BRIEF] {
        let text = document(&streams()).text(layout);
        assert!(
            text.lines()
                .all(|line| line.chars().count() <= layout.columns),
            "{text}"
        );
        let first = text
            .lines()
            .find(|line| line.trim_start().starts_with("packets "));
        assert!(first.is_some(), "{text}");
        assert!(text.find("105 packets = ") < text.find("6.18"), "{text}");
        assert!(
            text.find("udp ssrc") < text.find("105 packets = "),
            "{text}"
        );
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
fn voice_and_round_trips_are_told_with_what_they_are_based_on() {
    let quality = with_quic();
    let text = document(&quality).text(Layout::WHOLE_THERE);
    assert!(
        text.lines().all(|line| line.chars().count() <= 79),
        "{text}"
    );
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for said in [
        "voice: R ",
        "(ITU-T G.107), G.729A; lost 4.00 %, late 0.00 %, burst ratio 1.92; mouth to ear 45.0 ms = \
         packet 20.0 + codec 5.00 + path 0.00 (not known: --voice-delay) + buffer 20.0",
        "round trip n min median p90 p99 max ±",
        "data to ACK, ms 97 0.001 20.0 – – 80.0 80.0 µs",
        "timestamps, ms 97",
        "time n min median p90 p99 max ±",
        "variation, ms 97",
        "QUIC by its port, or another protocol; its spin bit spins; 2 changes left out",
        "spin bit, ms 97",
    ] {
        assert!(words.contains(said), "{said}\n{text}");
    }
    let page = document(&quality).page();
    for column in ["round trip", "R", "MOS"] {
        let head = format!("<th scope=\"col\">{column}</th>");
        assert!(page.contains(&head), "{column}");
    }
    for (spin, said) in [
        (SpinBit::Constant, "has one value"),
        (SpinBit::Random, "can't be told from a random one"),
        (SpinBit::Undecided, "too few packets"),
        (SpinBit::Unseen, "no packet with a short header"),
    ] {
        let mut quality = quality.clone();
        let quic = &mut quality.flows[2];
        quic.round_trips.clear();
        quic.quic.as_mut().expect("QUIC").spin = spin;
        let text = document(&quality).text(Layout::WHOLE);
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            words.contains("no round trip: ") && words.contains(said),
            "{text}"
        );
    }
}

/// Gaps of 2 µs beside one of a second, and a bound of nanoseconds.
#[test]
fn each_row_has_the_unit_that_fits_it() {
    let mut quality = streams();
    let gaps = quality.flows[0].inter_arrival.as_mut().expect("gaps");
    (gaps.min_ns, gaps.p50_ns, gaps.mean_ns) = (1_980, Some(2_130), 3_400.0);
    (gaps.max_ns, gaps.bound_ns) = (1_000_000_000, Some(2));
    let text = document(&quality).text(Layout::BRIEF);
    let row = text
        .lines()
        .find(|line| line.trim_start().starts_with("gap, "));
    let words: Vec<_> = row.expect("a row").split_whitespace().collect();
    assert_eq!(
        (words[1], words[3], words[4], words[6]),
        ("µs", "1.98", "3.40", "2.13")
    );
    assert_eq!(words[words.len() - 3..], ["1,000,000", "2", "ns"]);
    let page = document(&quality).page();
    assert!(page.contains("gap, µs") && page.contains(">2 ns<") && page.contains(">3.40 µs<"));
}

#[test]
fn the_page_draws_the_first_flows() {
    let page = document(&streams()).page();
    assert_eq!(page.matches("<figure>").count(), 3, "{page}");
    assert!(page.contains("seen again, B"));
    // A column that says nothing of any flow.
    assert!(!page.contains("<th scope=\"col\">delay</th>"));
    assert!(!page.contains("<script"));
}

#[test]
fn of_nothing_there_are_a_text_and_a_page() {
    let text = document(&nothing()).text(Layout::WHOLE);
    assert!(text.contains("0 packets = 0 in 0 flows"), "{text}");
    assert!(
        document(&nothing())
            .page()
            .contains("No packet was of a flow")
    );
}

#[test]
fn what_was_written_is_read_back() {
    let written = serde_json::to_string(&streams()).unwrap();
    let Saved::Quality(read) = Saved::from_json(&written).unwrap() else {
        panic!("{written}");
    };
    assert_eq!(*read, streams());
    let written = serde_json::to_string(&with_quic()).unwrap();
    let Saved::Quality(read) = Saved::from_json(&written).unwrap() else {
        panic!("{written}");
    };
    assert_eq!(*read, with_quic());
    for name in [
        "\"by\":\"spin_bit\"",
        "\"codec\":\"g729a\"",
        "\"known_by\":\"port_443\"",
    ] {
        assert!(written.contains(name), "{name}: {written}");
    }
}

/// What became of the streams of `tscap gen` in a file.
#[test]
fn what_a_stream_says_is_told() {
    let mut capture = Capture::ours();
    for seq in (0..1_000u32).filter(|seq| *seq != 500) {
        let delay = if seq == 999 {
            -5
        } else {
            200 + i64::from(seq % 10)
        };
        capture.stream(Headers::V4, seq, u64::from(seq) * 10_000, delay);
    }
    capture.packet(0, NOW, &[0; 60], 60, None);
    let mut wrong = Headers::V4.frame(&stream(0, 0));
    wrong[60] ^= 1;
    capture.packet(0, NOW, &wrong, usize::MAX, None);
    capture.statistics(0, StampPath::Ktime, &[TAI_OFFSET_S]);
    let plan = FilePlan {
        options: FlowOptions {
            by: FlowBy::Gen,
            looks_inside: false,
            max_flows: 10,
            rates: Default::default(),
            voice: Default::default(),
        },
        sort: SortOrder::Packets,
        top: 10,
        filter: None,
    };
    let found = measure_file(&mut Cursor::new(capture.bytes()), &plan).unwrap();
    let mut quality = nothing();
    quality.method.flow = FlowBy::Gen;
    (quality.account, quality.places) = (found.account, found.places);
    (quality.flows, quality.warnings) = (found.flows, found.warnings);
    let text = document(&quality).text(Layout::WHOLE);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for said in [
        "1,001 packets = 999 in 1 flow + 1 not IP + 1 malformed",
        "received on vb: 1,001 frames = 999 of streams + 1 other + 1 malformed (1 with a wrong UDP \
         checksum)",
        "lost 1 of 1,000 (0.10 %) in 1 period, the longest of 1",
        "negative: 1 delay: the clocks of sender and receiver disagree",
        "IPDV by the stamps here and the sender's CLOCK_TAI",
        "delay, µs 999 −0.005 0.20 0.00722 0.20 0.21",
        "|IPDV|, ns 997 1 2 7",
        "delays received on vb: ±20 ns where one host sends and receives",
    ] {
        assert!(words.contains(said), "{said}\n{text}");
    }
}
