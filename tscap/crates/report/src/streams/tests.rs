use pcap_file::DataLink;
use tscap_clock::{StampPath, TscPath};
use tscap_common::stream::StreamHeader;
use tscap_file::pcapng::{Hooks, InterfaceOption, StampOption};
use tscap_streams::fixtures::Headers;
use tscap_streams::fixtures::capture::{Capture, NOW, TAI_OFFSET_S, stream};
use tscap_streams::{Sent, StreamId};

use super::*;
use crate::layout::Layout;

fn sent(frames: &[(u16, u64)]) -> Sent {
    let id = |flow| StreamId { run: 0x1234, flow };
    let frames = frames.iter().map(|(flow, frames)| (id(*flow), *frames));
    frames.collect()
}

#[test]
fn a_whole_run_reads_well() {
    let mut capture = Capture::ours();
    for seq in 0..1_000 {
        capture.stream(
            Headers::V4,
            seq,
            u64::from(seq) * 10_000,
            200 + i64::from(seq % 10),
        );
    }
    capture.stream(Headers::V4, 1_001, 10_010_000, -5);
    capture.statistics(0, StampPath::Ktime, &[TAI_OFFSET_S]);
    let report = capture.read(&sent(&[(0, 1_002)]));
    assert_eq!(
        document(&report).text(Layout::WHOLE),
        "\
vb: 1,001 frames = 1,001 of streams + 0 others + 0 malformed

run 4660 flow 0: 1,002 sent, 1,001 received, 1,001 distinct, 1 lost (0.100 %; loss periods: 1,
longest: 1), 0 reordered
  ns                                n  min  p50  p90  p99  p99.9  max   mean    sd
  path delay                    1,001   −5  204  208  209      –  209  204.3  7.22
  delay variation                 999   −9    1    1    –      –    1   0.01  2.99
  |inter-arrival − inter-send|    999    1    1    1    –      –    9   1.79  2.39
    negative: 1 path delay; the clocks of sender and receiver disagree
    intervals: from the file's stamps and the sender's CLOCK_TAI

path delay: from the sender's reading of CLOCK_TAI, before the frame leaves, to the stamp in XDP;
the clocks' part ±20 ns on one host; from another host also the difference of the hosts' clocks
(this one's is unsynchronised: no bound)
"
    );
    assert_eq!(
        document(&report).text(Layout::BRIEF),
        "\
vb: 1,001 frames = 1,001 of streams + 0 others + 0 malformed

Frames, and path delay, ns
stream           received  lost  reordered  min  median  p99  max
run 4660 flow 0     1,001     1          0   −5     204  209  209

path delay: from the sender's reading of CLOCK_TAI, before the frame leaves, to
the stamp in XDP; the clocks' part ±20 ns on one host; from another host also
the difference of the hosts' clocks (this one's is unsynchronised: no bound)
"
    );
    let json = serde_json::to_string(&report).unwrap();
    let read: StreamReport = serde_json::from_str(&json).unwrap();
    assert_eq!(read, report);
    assert!(json.starts_with(r#"{"v":1,"#), "{json}");
}

/// On a terminal of 24 lines, with a prompt.
#[test]
fn many_streams_fit_a_screen() {
    let mut capture = Capture::ours();
    for seq in 0..100 {
        capture.stream(Headers::V4, seq, u64::from(seq) * 10_000, 200);
    }
    let mut report = capture.read(&Sent::new());
    let stream = report.interfaces[0].streams[0].clone();
    for flow in 1..60 {
        let mut more = stream.clone();
        more.id.flow = flow;
        report.interfaces[0].streams.push(more);
    }
    report.warnings = vec!["some of the file can't be read".into(); 20];
    let brief = document(&report).text(Layout::BRIEF);
    assert!(brief.lines().count() <= 23, "{brief}");
    assert!(brief.lines().all(|it| it.chars().count() <= 79), "{brief}");
    for part in [
        "more warnings: -v",
        "more rows: -v",
        "flow 1 ",
        "-v tells more",
    ] {
        assert!(brief.contains(part), "{part}: {brief}");
    }
    let whole = document(&report).text(Layout::WHOLE_THERE);
    assert!(whole.contains("flow 59: "), "{whole}");
    assert!(whole.lines().all(|it| it.chars().count() <= 79), "{whole}");
    assert_eq!(whole.matches("can't be read").count(), 20);
}

#[test]
fn a_path_delay_has_a_bound_where_the_sender_has_the_receivers_clocks() {
    let module = StampPath::Tsc(TscPath::Module);
    let host = || {
        InterfaceOption::new(
            Hooks::default(),
            StampOption::new(module),
            Default::default(),
        )
    };
    let by_reference = InterfaceOption {
        reference: Some("ntp:time".into()),
        ..host()
    };
    for (option, ahead_ns, clocks_ns, tsc_pairs) in [
        (host(), 0, Some(20), 4),
        // Another host.
        (host(), 5_000_000, None, 0),
        (host(), -5_000_000, None, 0),
        // The server is ahead of the host.
        (by_reference, 0, None, 4),
    ] {
        let is_by_reference = option.reference.is_some();
        let mut capture = Capture::empty();
        capture.described("vb", &option);
        for seq in 0..5u64 {
            let sent_ns = seq * 10_000;
            let sent = StreamHeader {
                tsc: 1_000_000 + 2 * sent_ns,
                ..stream(seq as u32, sent_ns)
            };
            let time = (NOW + sent_ns + 300).wrapping_add_signed(ahead_ns);
            let raw = 1_000_000 + 2 * sent_ns + 600;
            capture.packet(0, time, &Headers::V4.frame(&sent), usize::MAX, Some(raw));
        }
        capture.statistics(0, module, &[TAI_OFFSET_S]);
        let report = capture.read(&Sent::new());
        let delay = &report.interfaces[0].streams[0].delay;
        assert_eq!(delay.path_ns.as_ref().unwrap().min, 300 + ahead_ns);
        assert_eq!(delay.clocks_ns, clocks_ns, "{ahead_ns}");
        assert_eq!(delay.intervals.tsc_pairs, tsc_pairs, "{ahead_ns}");
        let text = document(&report).text(Layout::WHOLE);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let is_known = text.contains("path delay ±20 ns by the clocks");
        assert_eq!(is_known, clocks_ns.is_some(), "{text}");
        let is_refused = text.contains("no bound, on one host either: arrivals are by ntp:time");
        assert_eq!(is_refused, is_by_reference, "{text}");
    }
}

/// Two hosts, whose captures were merged.
#[test]
fn the_file_of_another_program_has_no_path_delay() {
    let mut capture = Capture::empty();
    capture.interface(DataLink::ETHERNET, Vec::new());
    capture.stream(Headers::V4, 0, 0, 5_000);
    capture.stream(Headers::V4, 1, 10_000, 7_000);
    let report = capture.read(&Sent::new());
    let text = document(&report).text(Layout::WHOLE);
    assert!(
        text.contains("path delay: not available (not a file of tscap"),
        "{text}"
    );
    assert!(text.contains("steps of 1,000 ns"), "{text}");
}
