use super::*;
use tscap_clock::scripted::{EPOCH, Host, Random};

const S: u64 = 1_000_000_000;
const HALF_RTT_NS: u64 = 200_000;

fn host() -> Host {
    Host {
        hertz: 2_596_130_000,
        slews: vec![(0, 31_000)],
    }
}

fn rate() -> NsPerCycle {
    NsPerCycle::of(S, host().cycles(S).0 - host().cycles(0).0).unwrap()
}

fn point(t: u64, off_ns: i64, verdict: PeerVerdict) -> NtpPoint {
    NtpPoint {
        at: host().cycles(t),
        alone_ns: 0,
        ntp: RealNs((EPOCH + t).wrapping_add_signed(off_ns)),
        ntp_bound_ns: HALF_RTT_NS,
        root_distance_ns: 22_889,
        ahead_ns: 0,
        bound_ns: HALF_RTT_NS,
        rtt_ns: 2 * HALF_RTT_NS,
        point_error_ns: 0,
        off_ns: None,
        verdict,
    }
}

/// How far a time is off the truth `t`.
fn off(lines: &NtpLines, t: u64) -> (i64, ServerTime) {
    let time = lines.at(host().cycles(t));
    (time.real.0.wrapping_sub(EPOCH + t).cast_signed(), time)
}

#[test]
fn a_time_is_within_the_bound_wherever_it_is() {
    let mut random = Random(7);
    let points: Vec<_> = (1..40)
        .map(|turn| {
            let off_ns = (random.uniform() - 0.5) * 2.0 * HALF_RTT_NS as f64;
            point(turn * 16 * S, off_ns as i64, PeerVerdict::Used)
        })
        .collect();
    let lines = NtpLines::new(&points, rate()).unwrap();
    let (mut greatest, mut root) = (0, 0);
    for second in 10..660 {
        let (off_ns, time) = off(&lines, second * S);
        assert!(off_ns.unsigned_abs() <= time.bound_ns, "{second}: {time:?}");
        assert!(!time.is_ambiguous);
        greatest = greatest.max(time.bound_ns);
        root = root.max(time.root_distance_ns);
    }
    let ends = [10, 659].map(|second| host().cycles(second * S));
    let stated = lines.greatest(ends[0], ends[1]);
    assert!(stated.0 >= greatest && stated.1 >= root, "{stated:?}");
    // 8 s from an exchange.
    assert_eq!(stated.1, lines.at(ends[1]).root_distance_ns);
}

/// The server is slewed at some time between two exchanges.
#[test]
fn a_bend_is_within_the_bound() {
    let slewed = |t: u64| t.saturating_sub(70 * S) / 20_000;
    let points = (1..8).map(|turn| {
        let t = turn * 16 * S;
        point(t, slewed(t).cast_signed(), PeerVerdict::Used)
    });
    let points: Vec<_> = points.collect();
    let lines = NtpLines::new(&points, rate()).unwrap();
    for second in 16..112 {
        let (off_ns, time) = off(&lines, second * S);
        let off_ns = off_ns - slewed(second * S).cast_signed();
        let spare = time.bound_ns - HALF_RTT_NS;
        assert!(off_ns.unsigned_abs() <= spare, "{second}: {off_ns} {spare}");
    }
}

#[test]
fn outside_of_the_exchanges_the_bound_grows() {
    let points = [(16, 0), (32, 0), (48, 0)];
    let points = points.map(|(second, off_ns)| point(second * S, off_ns, PeerVerdict::Used));
    let lines = NtpLines::new(&points, rate()).unwrap();
    let bounds = [50, 60, 600].map(|second| off(&lines, second * S).1);
    assert!(bounds.is_sorted_by(|one, other| one.bound_ns < other.bound_ns));
    assert!(bounds.is_sorted_by(|one, other| one.root_distance_ns < other.root_distance_ns));
    assert!(bounds[2].away_ns.abs_diff(552 * S) < S / 1_000);
    let before = off(&lines, S).1;
    assert!(before.bound_ns > HALF_RTT_NS && before.away_ns > 14 * S);
    // One alone goes by the host's rate.
    let lines = NtpLines::new(&points[..1], rate()).unwrap();
    let alone = off(&lines, 26 * S).1;
    assert!(
        alone.bound_ns.abs_diff(HALF_RTT_NS + 10_000_000) < 1_000,
        "{alone:?}"
    );
}

#[test]
fn a_server_that_was_set_is_ambiguous_between_its_exchanges() {
    let points = [
        point(16 * S, 0, PeerVerdict::First),
        point(32 * S, 0, PeerVerdict::Used),
        point(40 * S, 2_000_000_000, PeerVerdict::Implausible),
        point(48 * S, 2_000_000_000, PeerVerdict::Jumped),
        point(64 * S, 2_000_000_000, PeerVerdict::Used),
    ];
    let lines = NtpLines::new(&points, rate()).unwrap();
    assert_eq!(lines.exchanges(), 4);
    for (second, expected_ns, is_ambiguous) in [
        (20, 0, false),
        (40, 0, true),
        (50, 2_000_000_000, false),
        (70, 2_000_000_000, false),
    ] {
        let (off_ns, time) = off(&lines, second * S);
        assert!(off_ns.abs_diff(expected_ns) <= 2_000, "{second}: {off_ns}");
        assert_eq!(time.is_ambiguous, is_ambiguous, "{second}");
    }
}

#[test]
fn what_makes_no_lines_is_told() {
    let none = NtpLines::new(&[] as &[NtpPoint], rate());
    assert_eq!(none, Err(NoLines::NoExchange));
    let torn = [point(S, 0, PeerVerdict::Torn)];
    assert_eq!(NtpLines::new(&torn, rate()), Err(NoLines::NoExchange));
    let back = [2, 1].map(|second| point(second * S, 0, PeerVerdict::Used));
    assert_eq!(NtpLines::new(&back, rate()), Err(NoLines::CounterWentBack));
}

/// Three exchanges with nothing wrong, by a host whose own rate is 0.05 % off.
fn three() -> NtpLines {
    let points = [16, 32, 48].map(|second| point(second * S, 0, PeerVerdict::Used));
    let rate = NsPerCycle(rate().0 + rate().0 / 2_000);
    NtpLines::new(&points, rate).unwrap()
}

#[test]
fn between_two_exchanges_the_nearer_one_counts() {
    let lines = three();
    let wander_ppb = 2 * Scale::NETWORK.wander_ppb(rate());
    for (second, away_s) in [(17, 1), (24, 8), (28, 4), (40, 8), (47, 1)] {
        let (off_ns, time) = off(&lines, second * S);
        assert!(off_ns.abs() <= 2, "{second}: {off_ns}");
        assert!(time.away_ns.abs_diff(away_s * S) < S / 1_000, "{time:?}");
        let more = time.bound_ns - HALF_RTT_NS;
        let expected = share_up(away_s * S, wander_ppb);
        assert!(more.abs_diff(expected) < 20, "{second}: {more} {expected}");
    }
}

#[test]
fn the_greatest_bound_is_in_the_middle() {
    let lines = three();
    let [from, middle, until] = [16, 24, 32].map(|second| host().cycles(second * S));
    let stated = lines.greatest(from, until);
    let time = lines.at(middle);
    assert!(stated.0.abs_diff(time.bound_ns) <= 1, "{stated:?} {time:?}");
    assert!(stated.0 > lines.at(from).bound_ns && stated.0 > lines.at(until).bound_ns);
    assert!(stated.1.abs_diff(time.root_distance_ns) <= 1);
    // Where there is no other middle.
    let points = [16, 32].map(|second| point(second * S, 0, PeerVerdict::Used));
    let two = NtpLines::new(&points, rate()).unwrap();
    assert!(two.at(middle).bound_ns > two.at(until).bound_ns);
    assert_eq!(two.greatest(from, until).0, two.at(middle).bound_ns);
}

#[test]
fn outside_it_grows_by_what_both_ends_allow_and_the_wander() {
    let time = off(&three(), 648 * S).1;
    // Both ends of a line of 16 s are off by 200 µs.
    let ppb = 25_000 + 2 * Scale::NETWORK.wander_ppb(rate());
    let expected = HALF_RTT_NS + share_up(600 * S, ppb);
    assert!(
        time.bound_ns.abs_diff(expected) < 1_000,
        "{time:?} {expected}"
    );
}

/// The host's rate says nothing of how the server went on after that.
#[test]
fn a_line_that_begins_anew_has_missed_nothing() {
    let points = [
        point(16 * S, 0, PeerVerdict::Used),
        point(32 * S, 0, PeerVerdict::Used),
        point(48 * S, 2_000_000_000, PeerVerdict::Jumped),
        point(64 * S, 2_000_000_000, PeerVerdict::Used),
    ];
    let rate = NsPerCycle(rate().0 + rate().0 / 2_000);
    let lines = NtpLines::new(&points, rate).unwrap();
    let bound_ns = off(&lines, 56 * S).1.bound_ns;
    assert!(bound_ns < HALF_RTT_NS + 10_000, "{bound_ns}");
}
