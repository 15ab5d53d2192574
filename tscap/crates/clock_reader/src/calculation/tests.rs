use proptest::prelude::*;

use super::*;
use crate::layout::{COPY_WORDS, PIECES};

const S: u64 = 1_000_000_000;
/// A nanosecond a count.
const ONE: u64 = 1 << RATE_FRACTION;
/// 1,000 ppm.
const GROWTH: u64 = (1 << GROWTH_FRACTION) / 1_000;

/// At counter 100 s, which is 1,100 s by CLOCK_REALTIME and 50 s by CLOCK_MONOTONIC.
fn latest() -> Latest {
    Latest {
        raw: 100 * S,
        real_ns: 1_100 * S,
        rate: ONE,
        host_bound_ns: 50,
        host_growth: GROWTH,
        utc_offset_ns: 7,
        utc_bound_ns: 1_000,
        utc_growth: GROWTH / 2,
        mono_to_real_ns: 1_050 * S.cast_signed(),
        difference_rate: ONE,
        difference_bound_ppb: 100,
        state: state::SYNCHRONISED,
        stale_raw: 101 * S,
        void_raw: 200 * S,
        epoch_raw: 90 * S,
        ..Latest::default()
    }
}

fn piece(from: u64, until: u64, real_ns: u64) -> Piece {
    Piece {
        from: from * S,
        until: until * S,
        real_ns,
        rate: ONE,
        host_bound_ns: 60,
        utc_offset_ns: 0,
        utc_bound_ns: 500,
    }
}

/// The clock was set back by 2 s between counter 96 s and 97 s.
fn page() -> Page {
    Page {
        latest: latest(),
        past: vec![
            piece(92, 94, 1_094 * S),
            piece(94, 96, 1_096 * S),
            piece(97, 98, 1_097 * S),
            piece(98, 100, 1_098 * S),
        ],
    }
}

fn interval(middle: u64, bound: u64) -> Interval {
    Interval {
        earliest_ns: middle - bound,
        latest_ns: middle + bound,
    }
}

#[test]
fn the_present_is_the_line_with_bounds_that_grow() {
    let times = at_or_behind(&latest(), 100 * S).unwrap();
    assert_eq!(times.host, Some(interval(1_100 * S, 51)));
    assert_eq!(times.utc, Some(interval(1_100 * S + 7, 1_051)));
    let times = at_or_behind(&latest(), 100 * S + S / 100).unwrap();
    let middle = 1_100 * S + S / 100;
    assert_eq!(times.host, Some(interval(middle, 50 + 10_000)));
    assert_eq!(times.utc, Some(interval(middle + 7, 1_050 + 5_000)));
    assert_eq!(times.state, State::Synchronised);
}

#[test]
fn an_old_page_is_stale_and_then_void() {
    let stale = at_or_behind(&latest(), 101 * S).unwrap();
    assert_eq!((stale.state, stale.host), (State::Stale, None));
    let utc = stale.utc.unwrap();
    assert!(utc.latest_ns - utc.earliest_ns > 2 * 500_000, "{utc:?}");
    assert_eq!(at_or_behind(&latest(), 200 * S), Err(Refused::Void));
    assert_eq!(of_real(&page(), 101 * S, 1_099 * S), Err(Refused::Void));
}

#[test]
fn each_state_says_whether_there_is_a_time() {
    let with = |state| at_or_behind(&Latest { state, ..latest() }, 100 * S).map(|it| it.state);
    assert_eq!(with(state::UNSYNCHRONISED), Ok(State::Unsynchronised));
    assert_eq!(with(state::HOLDOVER), Ok(State::Holdover));
    assert_eq!(with(state::UNRESOLVED), Err(Refused::Unresolved));
    assert_eq!(with(state::CLOSED), Err(Refused::Closed));
    assert_eq!(with(0), Err(Refused::Garbage));
    assert_eq!(with(6), Err(Refused::Garbage));
}

#[test]
fn a_clock_that_was_set_contradicts_the_page() {
    let witness = |real: i64, mono: [i64; 2]| Witness {
        raw: 100 * S,
        real_ns: (1_100 * S).checked_add_signed(real).unwrap(),
        mono_ns: mono.map(|mono| (50 * S).checked_add_signed(mono).unwrap()),
        lag_ns: 1_000,
    };
    for (real, mono, result) in [
        (0, [0, 0], Ok(())),
        (1, [0, 0], Err(Refused::Set)),
        (-1, [0, 0], Err(Refused::Set)),
        (10, [0, 20], Ok(())),
        (21, [0, 20], Err(Refused::Set)),
        (-1, [0, 20], Err(Refused::Set)),
        // The page's line is 51 ns wide.
        (1_051, [1_051, 1_051], Ok(())),
        (1_052, [1_052, 1_052], Err(Refused::Jumped)),
        (-1_051, [-1_051, -1_051], Ok(())),
        (-1_052, [-1_052, -1_052], Err(Refused::Jumped)),
    ] {
        let found = confirm(&latest(), &witness(real, mono));
        assert_eq!(found, result, "{real} {mono:?}");
    }
    let before = Witness {
        raw: 100 * S - 1,
        ..witness(0, [0, 0])
    };
    assert_eq!(confirm(&latest(), &before), Err(Refused::Jumped));
}

#[test]
fn a_raw_stamp_has_the_bounds_of_its_piece() {
    let times = of_raw(&page(), 100 * S + 9, 93 * S).unwrap();
    assert_eq!(times.host, Some(interval(1_095 * S, 60)));
    assert_eq!(times.utc, Some(interval(1_095 * S, 560)));
    for (raw, result) in [
        (89 * S, Err(Refused::TooOld)),
        (91 * S, Err(Refused::TooOld)),
        (92 * S, Ok(1_094 * S)),
        (96 * S, Ok(1_098 * S)),
        (96 * S + 1, Err(Refused::Ambiguous)),
        (97 * S - 1, Err(Refused::Ambiguous)),
        (97 * S, Ok(1_097 * S)),
        (100 * S + 5, Ok(1_100 * S + 5)),
        (100 * S + 10, Err(Refused::Future)),
    ] {
        let found = of_raw(&page(), 100 * S + 9, raw);
        let middle = found.map(|it| {
            let host = it.host.unwrap();
            host.earliest_ns + (host.latest_ns - host.earliest_ns) / 2
        });
        assert_eq!(middle, result, "{raw}");
    }
}

#[test]
fn a_stamp_of_the_host_has_utc_if_its_side_is_known() {
    let now = 100 * S + 9;
    let times = of_real(&page(), now, 1_095 * S).unwrap();
    assert_eq!(
        (times.raw, times.host),
        (93 * S, Some(interval(1_095 * S, 0)))
    );
    assert_eq!(times.utc, Some(interval(1_095 * S, 500)));
    for (real, result) in [
        (1_093 * S, Err(Refused::TooOld)),
        // The clock may have shown it before it was set, and shows it after.
        (1_097 * S + S / 2, Err(Refused::Ambiguous)),
        (1_098 * S + S / 2, Err(Refused::Ambiguous)),
        (1_095 * S + S / 2, Ok(93 * S + S / 2)),
        (1_099 * S + S / 2, Ok(99 * S + S / 2)),
        (1_100 * S + 5, Ok(100 * S + 5)),
        (1_100 * S + 100, Err(Refused::Future)),
    ] {
        let found = of_real(&page(), now, real).map(|it| it.raw);
        assert_eq!(found, result, "{real}");
    }
    // Growth of both bounds: the clock may have been slewed since the latest reading.
    let recent = of_real(&page(), 100 * S + S / 100, 1_100 * S + S / 100).unwrap();
    let utc = recent.utc.unwrap();
    assert!((15_000..15_010).contains(&(utc.latest_ns - (1_100 * S + S / 100 + 7) - 1_000)));
}

#[test]
fn a_difference_is_of_one_epoch() {
    let with = |from, until| between(&latest(), 100 * S, from, until);
    let found = with(91 * S, 93 * S).unwrap();
    assert_eq!((found.ns, found.bound_ns), (2 * S.cast_signed(), 201));
    assert_eq!(with(93 * S, 91 * S).unwrap().ns, -2 * S.cast_signed());
    assert_eq!(with(89 * S, 93 * S), Err(Refused::TooOld));
    assert_eq!(with(91 * S, 101 * S), Err(Refused::Future));
}

fn words() -> impl Strategy<Value = Vec<u64>> {
    let word = prop_oneof![
        any::<u64>(),
        Just(0),
        Just(1),
        Just(u64::MAX),
        Just(1 << RATE_FRACTION),
        0..10u64,
        90 * S..1_200 * S,
    ];
    proptest::collection::vec(word, COPY_WORDS)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever stands in a page.
    #[test]
    fn no_page_makes_a_reader_panic(
        words in words(),
        now in any::<u64>(),
        stamps in any::<[u64; 2]>(),
        state in 0..7u64,
        is_garbage in any::<bool>(),
    ) {
        let mut words: [u64; COPY_WORDS] = words.try_into().unwrap();
        if !is_garbage {
            let mut latest = latest().to_words();
            latest[11] = state;
            latest[17] = PIECES as u64;
            words[..latest.len()].copy_from_slice(&latest);
        }
        let page = Page::from_words(&words);
        let witness = Witness { raw: now, real_ns: stamps[0], mono_ns: stamps, lag_ns: stamps[1] };
        for now in [now, 100 * S + now % S] {
            let _ = confirm(&page.latest, &Witness { raw: now, ..witness });
            let _ = at_or_behind(&page.latest, now);
            for stamp in stamps {
                let _ = of_raw(&page, now, stamp);
                let _ = of_raw(&page, now, stamp % (110 * S));
                let _ = of_real(&page, now, stamp);
                let _ = of_real(&page, now, stamp % (1_100 * S));
                let _ = between(&page.latest, now, stamp, stamps[0]);
            }
        }
    }
}
