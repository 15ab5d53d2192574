//! The lines through a few readings that are known exactly.

use proptest::prelude::*;

use super::*;
use crate::TscCycles;
use crate::scripted::EPOCH;

const S: u64 = 1_000 * MS;

/// A counter of cycles of 1 ns.
fn host() -> Host {
    Host {
        hertz: 1_000_000_000,
        slews: vec![],
    }
}

/// The counter in the middle of the reading at `t`.
fn middle(t: u64) -> RawStamp {
    RawStamp(host().cycles(t + 40).0)
}

/// A reading at `t` of a clock that is ahead by so much.
fn reading(t: u64, ahead: i64) -> Sample {
    let mut sample = Sample::new(&host().cross(t, [20, 40, 20])).unwrap();
    for real in [&mut sample.real].into_iter().chain(&mut sample.real_after) {
        real.0 = real.0.strict_add_signed(ahead);
    }
    sample
}

fn bend(t: u64, ahead: i64) -> Sample {
    Sample {
        bend: true,
        ..reading(t, ahead)
    }
}

/// A segment between these, whose clock is set ahead by so much.
fn segment(from: u64, until: u64, ahead: i64) -> Segment {
    let offset = EPOCH.cast_signed() + ahead;
    Segment {
        after: None,
        from: MonoNs(from),
        until: MonoNs(until),
        mono_to_real: Bounds {
            low: offset,
            high: offset,
        },
        tai_offset_s: 37,
        step_ns: 0,
        cause: None,
        counter_jump_ns: None,
        samples: 9,
    }
}

fn fit_of(segments: Vec<Segment>, samples: impl IntoIterator<Item = Sample>) -> Fit {
    Fit::new(&History {
        left_out: 0,
        source: StampSource::Tsc,
        rate: NsPerCycle::of(1, 1),
        segments,
        samples: samples.into_iter().collect(),
    })
}

fn fit(samples: impl IntoIterator<Item = Sample>) -> Fit {
    fit_of(vec![segment(0, 100 * S, 0)], samples)
}

/// From and until when each line goes.
fn lines(fit: &Fit) -> Vec<[u64; 2]> {
    let pieces = fit.parts.iter().flat_map(|part| match part {
        Part::Straight { pieces, .. } => &pieces[..],
        Part::Constant { .. } => &[],
    });
    pieces.map(|piece| [piece.from, piece.until]).collect()
}

fn is_reported(fit: &Fit, t: u64) -> bool {
    fit.allowed(middle(t)).is_some()
}

proptest! {
    /// As each reading told it.
    #[test]
    fn what_the_lines_allow_lies_within_every_reading(
        ahead in prop::collection::vec(-30i64..30, 3..20),
    ) {
        let seconds = (0..).map(|second| second * S);
        let readings: Vec<_> = seconds.zip(ahead).collect();
        let fit = fit(readings.iter().map(|(t, ahead)| reading(*t, *ahead)));
        for (t, ahead) in readings {
            let Some([low, high]) = fit.allowed(middle(t)) else {
                continue;
            };
            // It read 20 ns more then.
            let least = (EPOCH + t + 20).strict_add_signed(ahead);
            prop_assert!(low.0 + 1 >= least, "{low:?} {least}");
            prop_assert!(high.0 <= least + 42, "{high:?} {least}");
        }
    }
}

/// Of 41 ns at most 15.
#[test]
fn a_stamp_is_moved_to_within_three_eighths_of_a_reading() {
    let fit = fit((0..10).map(|second| reading(second * S, 0)));
    let stamp = middle(5 * S);
    let [low, high] = fit.allowed(stamp).unwrap();
    let moved = |live: u64| fit.refine(stamp, RealNs(live), 10_000).unwrap().real.0;
    assert_eq!(moved(high.0 + 1_000), high.0 + 15);
    assert_eq!(moved(low.0 - 1_000), low.0 - 15);
}

/// Of 41 ns 33 are left if a reading in the middle is off by 8.
#[test]
fn a_line_that_leaves_less_than_13_16ths_of_a_reading_is_given_up() {
    for (ahead, count) in [(7, 1), (-7, 1), (9, 2), (-9, 2)] {
        let off = [0, ahead, 0].into_iter().zip([0, 2 * S, 4 * S]);
        let fit = fit(off.map(|(ahead, t)| reading(t, ahead)));
        assert_eq!(lines(&fit).len(), count, "{ahead}");
    }
}

/// The clock may have left the line before the reading that precedes a bend.
#[test]
fn the_reading_before_a_bend_may_be_off_the_line_by_its_width() {
    let at = |second: u64| middle(second * S).0;
    for ahead in [-35, 35] {
        let before = [0, 1, 2, 3].map(|second| reading(second * S, 0));
        let after = [6, 7, 8].map(|second| reading(second * S, 2 * ahead));
        let bent = [reading(4 * S, ahead), bend(5 * S, 2 * ahead)];
        let fit = fit(before.into_iter().chain(bent).chain(after));
        assert_eq!(lines(&fit), [[at(0), at(3)], [at(5), at(8)]], "{ahead}");
    }
}

/// The narrowest of a second can be a bend too, and is there twice then. Two readings after
/// a bend prove no line.
#[test]
fn a_bend_that_is_there_twice_is_one_reading() {
    for (last, reported) in [(6, false), (7, true)] {
        let before = (0..5).map(|second| reading(second * S, 0));
        let twice = [reading(5 * S, 0), bend(5 * S, 0)];
        let after = (6..=last).map(|second| reading(second * S, 0));
        let fit = fit(before.chain(twice).chain(after));
        assert_eq!(lines(&fit).len(), 2);
        assert_eq!(is_reported(&fit, 5 * S + S / 2), reported, "{last}");
    }
}

/// It may have been on either side.
#[test]
fn a_single_reading_beside_a_bend_proves_no_line() {
    let left_out = Sample {
        bends_left_out: 1,
        ..reading(5 * S, 0)
    };
    let alone = fit([reading(5 * S, 0)]);
    let beside = fit([reading(5 * S, 0), bend(6 * S, 0)]);
    let near = fit([left_out]);
    let reported = [&alone, &beside, &near].map(|fit| is_reported(fit, 5 * S));
    assert_eq!(reported, [true, false, false]);
}

#[test]
fn bends_that_were_left_out_leave_later_stamps_told() {
    let readings = (0..20).map(|second| Sample {
        bends_left_out: if second == 5 { 3 } else { 0 },
        ..reading(second * S, 0)
    });
    let fit = fit(readings);
    for (second, reported) in [(2, true), (5, false), (15, true)] {
        assert_eq!(is_reported(&fit, second * S + S / 2), reported, "{second}");
    }
}

/// The lines do not cross: the counter went back by a microsecond, and twice shows what is
/// as near to the bend as that.
#[test]
fn stamps_of_a_bend_whose_lines_do_not_cross_are_not_told() {
    let before = (0..5).map(|second| reading(second * S, 0));
    let after = (6..10).map(|second| reading(second * S, 1_000));
    let fit = fit(before.chain([bend(5 * S, 1_000)]).chain(after));
    for (t, reported) in [
        (3 * S - 2_000, true),
        (3 * S - 500, false),
        (5 * S + 500, false),
        (5 * S + 2_000, true),
    ] {
        assert_eq!(is_reported(&fit, t), reported, "{t}");
    }
}

/// Half a second on either side of the step each line could go on.
#[test]
fn a_line_does_not_go_on_beyond_a_step() {
    let step_ns = -5 * S.cast_signed();
    let mut after = segment(6 * S + S / 2, 20 * S, step_ns);
    (after.after, after.step_ns) = (Some(MonoNs(6 * S + MS)), step_ns);
    let readings = (0..=6).map(|second| reading(second * S, 0));
    let later = (6..15).map(|second| reading(second * S + S / 2, step_ns));
    let segments = vec![segment(0, 6 * S + MS, 0), after];
    let fit = fit_of(segments, readings.chain(later));
    for (t, ahead) in [(5 * S + S * 8 / 10, 0), (6 * S + S * 8 / 10, step_ns)] {
        let [low, high] = fit.allowed(middle(t)).unwrap();
        let real = (EPOCH + t + 40).strict_add_signed(ahead);
        assert!((low.0..=high.0).contains(&real), "{t}");
    }
}

/// Its stamps come before those that it showed first.
#[test]
fn a_counter_that_goes_back_twice_is_told_on_all_sides() {
    let back = |second: u64| second / 10 * 100 * S;
    let readings = (0..30).map(|second| {
        let sample = reading(second * S, 0);
        let shown = |tsc: TscCycles| TscCycles(tsc.0 - back(second));
        Sample {
            tsc: sample.tsc.map(|tsc| tsc.map(shown)),
            ..sample
        }
    });
    let segments = [0, 10, 20].map(|from| segment(from * S, (from + 9) * S + MS, 0));
    let fit = fit_of(segments.to_vec(), readings);
    for second in [5, 15, 25] {
        let t = second * S;
        let stamp = RawStamp(middle(t).0 - back(second));
        let [low, high] = fit.allowed(stamp).unwrap();
        assert!((low.0..=high.0).contains(&(EPOCH + t + 40)), "{t}");
    }
}
