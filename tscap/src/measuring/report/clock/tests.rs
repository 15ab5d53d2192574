use super::{clock_page, clock_text};
use crate::capturing::clock::log::{Digest, Header, Line, Recorder};
use crate::capturing::clock::scripted::Host;
use crate::capturing::clock::{StampSource, Tracker};

const MS: u64 = 1_000_000;

/// Two processes of a minute each, an hour apart; in the second one the clock is set.
fn digest() -> Digest {
    digest_set(5_000)
}

/// By so many ns.
fn digest_set(step_ns: i64) -> Digest {
    let host = Host {
        hertz: 2_596_130_000,
        slews: vec![(0, 0), (30_000 * MS, 20_000)],
    };
    let mut digest = Digest::default();
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
                digest.take(Line::Entry(Box::new(entry)));
            }
        }
    }
    digest
}

#[test]
fn the_text_tells_all_that_happened() {
    let text = clock_text(&digest());
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

#[test]
fn the_page_has_every_curve() {
    let page = clock_page(&digest());
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
        let digest = digest_set(step_ns);
        let text = clock_text(&digest);
        assert!(text.contains("(3650.1 s; continued 1 time)"), "{text}");
        let page = clock_page(&digest);
        assert_eq!(page.matches("time, minutes").count(), 3, "{step_ns}");
    }
}

#[test]
fn a_log_without_entries_is_drawn_too() {
    let mut digest = Digest::default();
    assert!(clock_page(&digest).contains("too short for curves"));
    digest.take(Line::Header(Header::new("boot-1")));
    assert!(clock_text(&digest).contains("boot-1"));
}
