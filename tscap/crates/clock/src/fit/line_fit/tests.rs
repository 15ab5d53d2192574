use super::*;
use crate::TscCycles;

const S: u64 = 1_000_000_000;
/// A cycle is a nanosecond.
const RATE: NsPerCycle = NsPerCycle::ONE;
const START: u64 = 50 * S;
const EPOCH: u64 = 1_700_000_000 * S;

/// 10 ns wide, around what the clock shows.
fn reading(at: u64, clock: impl Fn(u64) -> u64) -> Reading {
    let real = clock(at);
    Reading {
        at: TscCycles(at),
        low: real - 5,
        high: real + 5,
    }
}

/// Of readings half a second apart.
fn piece(seconds: [u64; 2], start: Start, clock: impl Fn(u64) -> u64 + Copy) -> LineFit {
    let times: Vec<u64> = (2 * seconds[0]..=2 * seconds[1])
        .map(|half| START + half * S / 2)
        .collect();
    let mut piece = LineFit::new(&reading(times[0], clock), RATE, start);
    for at in &times[1..] {
        piece.take(&reading(*at, clock), 0).expect("it is straight");
    }
    piece.until = *times.last().expect("there are some");
    piece
}

/// Runs `before` ppb too fast at first, from 4.7 s on `after`, where it is set by so much.
fn bent(before: i64, after: i64, set: i64) -> impl Fn(u64) -> u64 + Copy {
    move |at: u64| {
        let since = (at - START).cast_signed();
        let bend = 4_700_000_000;
        let gained = before * since.min(bend) + after * (since - bend).max(0);
        let set = if since > bend { set } else { 0 };
        (EPOCH + at).wrapping_add_signed(gained / 1_000_000_000 + set)
    }
}

/// Of two pieces with a bend between 4 and 5 s, what is allowed in between: the widest.
fn between(clock: impl Fn(u64) -> u64 + Copy) -> Option<u64> {
    let before = piece([0, 4], Start::First, clock);
    let after = piece([5, 9], Start::Bend, clock);
    let mut widest = 0;
    for at in (START + 4 * S..=START + 5 * S).step_by(10_000_000) {
        let [low, high] = before.between(&after, RawStamp(at))?;
        assert!(
            (low.0..=high.0).contains(&clock(at)),
            "{at}: {low:?} {high:?}"
        );
        widest = widest.max(high.0 - low.0);
    }
    Some(widest)
}

#[test]
fn a_bend_between_two_pieces_is_known_to_their_width() {
    for (before, after) in [(0, 20_000), (20_000, 0), (-3_000, 5_000), (5_000, -3_000)] {
        let widest = between(bent(before, after, 0)).expect("one bend");
        assert!(widest < 30, "{before} {after}: {widest} ns");
    }
}

/// Lines that do not cross: somewhere between them.
#[test]
fn a_clock_that_was_set_as_well_is_between_both_lines() {
    for set in [-20_000, 20_000] {
        for (before, after) in [(0, 1_000), (1_000, 0)] {
            let widest = between(bent(before, after, set)).expect("told");
            assert!((20_000..22_000).contains(&widest), "{set}: {widest} ns");
        }
    }
}

#[test]
fn what_begins_otherwise_than_by_a_bend_tells_nothing_between() {
    let clock = bent(0, 20_000, 0);
    let before = piece([0, 4], Start::First, clock);
    for start in [Start::First, Start::Contradiction, Start::LeftOut] {
        let after = piece([5, 9], start, clock);
        assert_eq!(
            before.between(&after, RawStamp(START + 4_500_000_000)),
            None
        );
    }
    // Two readings are on some line.
    let after = piece([5, 5], Start::Bend, clock);
    assert_eq!(
        before.between(&after, RawStamp(START + 4_500_000_000)),
        None
    );
}

#[test]
fn two_readings_prove_no_line_after_a_bend() {
    for (start, readings, is_before_bend, is_proven) in [
        (Start::First, 1, false, true),
        (Start::First, 1, true, false),
        (Start::First, 2, true, true),
        (Start::Narrow, 2, true, true),
        (Start::Bend, 2, false, false),
        (Start::LeftOut, 2, false, false),
        (Start::Bend, 3, true, true),
    ] {
        let mut piece = piece([0, 0], start, bent(0, 0, 0));
        piece.readings = readings;
        piece.is_before_bend = is_before_bend;
        assert_eq!(piece.is_proven(), is_proven, "{start:?} {readings}");
    }
}

#[test]
fn a_hole_is_longer_than_the_longest_that_is_none() {
    let piece = piece([0, 1], Start::First, bent(0, 0, 0));
    let last = START + S;
    assert!(!piece.is_hole_until(last + LONGEST_HOLE_NS));
    assert!(piece.is_hole_until(last + LONGEST_HOLE_NS + 1));
}

/// Each reading leaves lines less room, on either side.
#[test]
fn a_reading_that_no_line_goes_through_is_not_taken() {
    let clock = bent(1_000, 1_000, 0);
    for off in [-40, 40_i64] {
        let mut piece = piece([0, 4], Start::First, clock);
        let off = reading(START + 6 * S, |at| clock(at).wrapping_add_signed(off));
        assert_eq!(piece.take(&off, 0), Err(Start::Contradiction));
        let on = reading(START + 6 * S, clock);
        assert_eq!(piece.take(&on, 11), Err(Start::Narrow));
        assert_eq!(piece.take(&on, 1), Ok(()));
    }
}

/// Before its first reading as well.
#[test]
fn a_line_goes_on_in_both_directions() {
    let clock = bent(1_000, 1_000, 0);
    let piece = piece([2, 4], Start::First, clock);
    for at in [START + S, START + 3 * S, START + 5 * S] {
        let [low, high] = piece.at(RawStamp(at)).expect("it is its own");
        assert!((low.0..=high.0).contains(&clock(at)), "{at}");
        assert!(high.0 - low.0 < 25, "{} ns", high.0 - low.0);
    }
    let beyond = BEYOND_NS + 1;
    assert_eq!(
        piece.reach(),
        START + 2 * S - beyond..START + 4 * S + beyond
    );
}

/// By 20 µs, in which the counter may have gone back.
#[test]
fn stamps_as_near_as_two_lines_are_apart_are_of_neither() {
    let clock = bent(0, 0, 20_000);
    let mut before = piece([0, 4], Start::First, clock);
    let mut after = piece([5, 9], Start::Contradiction, clock);
    before.part_from(&mut after);
    let [last, first] = [before.own[1], after.own[0]];
    let [last, first] = [START + 4 * S - last, first - START - 5 * S];
    assert!(
        (20_000..20_030).contains(&last) && last == first,
        "{last} {first}"
    );
    // Those that cross are told apart by that.
    let clock = bent(0, 20_000, 0);
    let mut before = piece([0, 4], Start::First, clock);
    let mut after = piece([5, 9], Start::Bend, clock);
    before.part_from(&mut after);
    assert_eq!((before.own[1], after.own[0]), (u64::MAX, 0));
}
