use super::document;
use tscap_clock::scripted::{Host, Random};
use tscap_clock::{StampSource, Tracker, TscCycles};
use tscap_document::Layout;
use tscap_references::PeerVerdict;
use tscap_references::log::{
    Digest, Entry, Header, Line, NtpPoints, Phases, Recorder, ReferencePhases,
};
use tscap_references::ntp::NtpPoint;

const MS: u64 = 1_000_000;

/// Two processes of a minute each, an hour apart; in the second one the clock is set.
fn digest() -> Digest {
    digest_set(5_000).0
}

/// By so many ns; with the last entry.
fn digest_set(step_ns: i64) -> (Digest, Entry) {
    let host = Host {
        hertz: 2_596_130_000,
        slews: vec![(0, 0), (30_000 * MS, 20_000)],
    };
    let (mut digest, mut last) = (Digest::default(), None);
    for (process, start) in [0, 3_600_000 * MS].into_iter().enumerate() {
        digest.take(Line::Header(Header::new("boot-1")));
        let gaps = [15, 35, 15];
        let mut tracker = Tracker::new(StampSource::Tsc, &host.cross(start, gaps)).unwrap();
        let mut recorder = Recorder::default();
        for turn in 1..=6_000 {
            let t = start + turn * 10 * MS;
            let mut cross = host.cross(t, gaps);
            if process == 1 && turn > 3_000 {
                cross.real.iter_mut().for_each(|real| {
                    real.0 = real.0.wrapping_add_signed(step_ns);
                });
                cross.tai.0 = cross.tai.0.wrapping_add_signed(step_ns);
            }
            let seen = tracker.observe(&cross);
            recorder.observe(&cross, seen, &tracker);
            if turn % 1_000 == 0 {
                let entry = recorder.entry(&mut tracker, host.cycles(t), None).unwrap();
                last = Some(entry.clone());
                digest.take(Line::Entry(Box::new(entry)));
            }
        }
    }
    (digest, last.unwrap())
}

/// On a terminal of 24 lines, with a prompt.
#[test]
fn the_answer_fits_a_screen() {
    let mut digest = digest();
    let changes = digest.changes.clone();
    (0..20).for_each(|_| digest.changes.extend(changes.clone()));
    let brief = document(&digest).text(Layout::BRIEF);
    assert!(brief.lines().count() <= 23, "{brief}");
    assert!(brief.lines().all(|it| it.chars().count() <= 79), "{brief}");
    assert!(brief.starts_with("boot "), "{brief}");
    assert!(brief.ends_with("\n-v tells more\n"), "{brief}");
    assert!(document(&digest).text(Layout::WHOLE_THERE).lines().count() > 40);
}

#[test]
fn the_text_tells_all_that_happened() {
    let text = document(&digest()).text(Layout::WHOLE);
    for part in [
        "boot            boot-1",
        "(3650.1 s; continued 1 time)",
        // The clock is slewed by 20 ppm.
        "2,596,078,07",
        "TAI − UTC       37 s",
        "rejected: 0 wide, 0 torn, 0 implausible",
        "clock set       1 time",
        "5,0",
        "averaging factor",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    // One minute without a step, and two halves: 12 s are less than a seventh of both together.
    let scales = text.lines().filter(|line| line.contains("e-"));
    assert_eq!(scales.count(), 7, "{text}");
}

/// Against itself an oscillator has no stability to show.
#[test]
fn without_another_reference_nothing_is_called_stable() {
    let (mut digest, mut entry) = digest_set(5_000);
    // Notes are folded on a terminal.
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let reported = |digest: &Digest| {
        (
            words(&document(digest).text(Layout::WHOLE)),
            document(digest).page(),
        )
    };
    let (text, page) = reported(&digest);
    for shown in [&text, &page] {
        assert!(!shown.to_lowercase().contains("stability"), "{shown}");
        assert!(shown.contains("one oscillator against itself"), "{shown}");
        assert!(shown.contains("none but the counter"), "{shown}");
    }
    // A device that is off by a white noise of 100 ns.
    let mut random = Random(7);
    entry.reference = Some(ReferencePhases {
        device: "/dev/ptp0".into(),
        ahead_ns: -1_234,
        bound_ns: 800,
        phases: vec![Phases {
            from: TscCycles(1),
            every: 259_613_000,
            ns: (0..600)
                .map(|_| Some((200.0 * random.uniform()) as i64))
                .collect(),
        }],
    });
    digest.take(Line::Entry(Box::new(entry)));
    let (text, page) = reported(&digest);
    assert!(page.contains("Stability against /dev/ptp0"), "{page}");
    for shown in [text, page] {
        assert!(shown.contains("/dev/ptp0: the host"), "{shown}");
        assert!(
            shown.contains("−1,234 ns ahead at last, ± 800 ns"),
            "{shown}"
        );
        assert!(
            shown.contains("the host's clock against /dev/ptp0"),
            "{shown}"
        );
    }
}

/// Exchanges of a minute, each with a longer way than the one before.
#[test]
fn exchanges_with_a_server_are_drawn_and_counted() {
    let (mut digest, mut entry) = digest_set(0);
    let point = |number: u64| NtpPoint {
        at: TscCycles(entry.status.tsc.0 - (60 - number) * 2_596_000_000),
        alone_ns: 2_000 + 500 * number.cast_signed(),
        ntp: entry.status.real,
        ntp_bound_ns: 50_000,
        root_distance_ns: 22_889,
        ahead_ns: 2_000,
        bound_ns: 51_000,
        rtt_ns: 100_000 + 1_000 * number,
        point_error_ns: 1_000 * number,
        off_ns: (number > 1).then_some(5),
        verdict: PeerVerdict::Used,
    };
    entry.ntp = vec![NtpPoints {
        server: "10.9.0.2:123".parse().unwrap(),
        points: (0..60).map(point).collect(),
    }];
    digest.take(Line::Entry(Box::new(entry)));
    let (text, page) = (
        document(&digest).text(Layout::WHOLE),
        document(&digest).page(),
    );
    // Without the first two, which had no clock beside them.
    for part in [
        "10.9.0.2  exchange off         58",
        "+2,000",
        "+159,000",
        "±",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    for part in [
        "ahead of 10.9.0.2",
        "Round trips to",
        "off the clock",
        "single exchange",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert_eq!(page.matches("<svg").count(), 7);
}

#[test]
fn the_page_has_every_curve() {
    let page = document(&digest()).page();
    assert_eq!(page.matches("<svg").count(), 4);
    for name in [
        "offset θ̂",
        "skew",
        "absolute − difference",
        "Allan deviation",
    ] {
        assert!(page.contains(name), "{name}");
    }
    for (start, _) in page.match_indices("<svg") {
        let end = start + page[start..].find("</svg>").unwrap() + "</svg>".len();
        let svg = &page[start..end];
        roxmltree::Document::parse(svg).unwrap();
        // A line of each process, with nothing between them.
        let line = svg.split("class=\"line\" d=\"").nth(1).unwrap();
        let moves = line[..line.find('"').unwrap()].matches('M').count();
        assert_eq!(moves, if svg.contains("τ") { 1 } else { 2 }, "{svg}");
    }
    // Nothing is fetched.
    for word in ["http://", "https://", "src=", "url("] {
        assert!(!page.contains(word), "{word}");
    }
}

/// Time goes on by the counter, however far the clock was set.
#[test]
fn a_clock_set_by_a_day_squeezes_no_curve() {
    let day = 86_400_000_000_000;
    for step_ns in [day, -day] {
        let (digest, _) = digest_set(step_ns);
        let text = document(&digest).text(Layout::WHOLE);
        assert!(text.contains("(3650.1 s; continued 1 time)"), "{text}");
        let page = document(&digest).page();
        assert_eq!(page.matches("time, minutes").count(), 3, "{step_ns}");
    }
}

#[test]
fn a_log_without_entries_is_drawn_too() {
    let mut digest = Digest::default();
    assert!(document(&digest).page().contains("too short for curves"));
    digest.take(Line::Header(Header::new("boot-1")));
    assert!(document(&digest).text(Layout::WHOLE).contains("boot-1"));
}
