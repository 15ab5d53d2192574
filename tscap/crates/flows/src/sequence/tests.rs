use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

fn report(numbers: &[u32]) -> (Loss, Reordering) {
    let mut sequence = Sequence::new();
    for number in numbers {
        sequence.add(*number);
    }
    let (loss, reordering) = sequence.report();
    assert_eq!(sequence.lost(), loss.lost);
    (loss, reordering)
}

/// The same where all numbers are kept.
fn report_of_all(numbers: impl IntoIterator<Item = u32>) -> (Loss, Reordering) {
    let mut sequence = Sequence::of_all();
    for number in numbers {
        sequence.add(number);
    }
    let (loss, reordering) = sequence.report();
    assert_eq!(sequence.lost(), loss.lost);
    (loss, reordering)
}

/// Everything anew from the list of all numbers, with sets and sorting.
fn by_hand(numbers: &[u32]) -> (Loss, Reordering) {
    within(numbers, WINDOW)
}

fn within(numbers: &[u32], window: u64) -> (Loss, Reordering) {
    let mut came: BTreeSet<i64> = BTreeSet::new();
    let mut in_order = Vec::new();
    let (mut duplicates, mut too_late) = (0, 0);
    let mut extents: Vec<u64> = Vec::new();
    for number in numbers {
        let number = i64::from(*number);
        let greatest = came.last().copied().unwrap_or(number);
        if greatest - number >= window as i64 {
            too_late += 1;
        } else if !came.insert(number) {
            duplicates += 1;
        } else {
            let earlier = in_order.iter().position(|earlier| *earlier > number);
            extents.extend(earlier.map(|at| (in_order.len() - at) as u64));
            in_order.push(number);
        }
    }
    let mut gaps = Vec::new();
    for pair in came.iter().collect::<Vec<_>>().windows(2) {
        let missing = (pair[1] - pair[0] - 1) as u64;
        gaps.extend((missing > 0).then_some(missing));
    }
    let loss = Loss {
        received: numbers.len() as u64,
        distinct: came.len() as u64,
        duplicates,
        too_late,
        lost: gaps.iter().sum(),
        loss_periods: gaps.len() as u64,
        longest_loss: gaps.iter().copied().max().unwrap_or(0),
        first: came.first().copied(),
        last: came.last().copied(),
    };
    let extent = extents.iter().copied().max().map(|max| Extent {
        mean: extents.iter().sum::<u64>() as f64 / extents.len() as f64,
        max,
        cut: 0,
        of_all: None,
    });
    let reordering = Reordering {
        reordered: extents.len() as u64,
        extent,
    };
    (loss, reordering)
}

#[test]
fn a_script_of_everything() {
    // 3 is lost, 5 and 6 are swapped, 7 comes twice, 9 to 11 are lost.
    let (loss, reordering) = report(&[0, 1, 2, 4, 6, 5, 7, 7, 8, 12]);
    assert_eq!((loss.received, loss.distinct, loss.duplicates), (10, 9, 1));
    assert_eq!((loss.lost, loss.loss_periods, loss.longest_loss), (4, 2, 3));
    assert_eq!((loss.first, loss.last), (Some(0), Some(12)));
    let extent = reordering.extent.unwrap();
    assert_eq!((reordering.reordered, extent.max, extent.cut), (1, 1, 0));
}

#[test]
fn numbers_wrap() {
    let (loss, reordering) = report(&[u32::MAX - 1, u32::MAX, 1, 0, 2]);
    assert_eq!((loss.lost, loss.duplicates), (0, 0));
    assert_eq!(reordering.reordered, 1);
    let mut short = Sequence::new();
    for number in [65_534, 65_535, 0, 1, 3_u16] {
        assert!(short.add_short(number).is_some());
    }
    assert_eq!(short.report().0.lost, 1);
    assert_eq!(short.greatest_short(), Some(3));
}

#[test]
fn what_is_older_than_the_window_is_too_late() {
    let window = WINDOW as u32;
    let (loss, _) = report(&[0, window, 1, 1]);
    assert_eq!((loss.lost, loss.duplicates), (u64::from(window) - 2, 1));
    let (loss, _) = report(&[0, window + 1, 1, 0]);
    assert_eq!((loss.lost, loss.too_late), (WINDOW, 2));
}

/// Orders of arrival such as those of RFC 4737, section 7.
#[test]
fn an_extent_reaches_back_to_the_first_greater_number() {
    for (arrivals, extents) in [
        (&[1, 2, 3, 7, 8, 9, 10, 4, 5, 6, 11][..], &[4, 5, 6][..]),
        (&[1, 2, 3, 5, 6, 7, 8, 4, 9, 10], &[4]),
        (&[1, 3, 2, 5, 4], &[1, 1]),
    ] {
        let (_, reordering) = report_of_all(arrivals.iter().copied());
        assert_eq!(reordering.reordered, extents.len() as u64);
        let of_all = reordering.extent.unwrap().of_all.unwrap();
        assert_eq!(of_all.min, *extents.iter().min().unwrap());
        assert_eq!(of_all.max, *extents.iter().max().unwrap());
    }
}

#[test]
fn an_extent_beyond_the_kept_stretches_is_marked() {
    let gaps = 2 * MOST_STRETCHES_OF_ALL as u32;
    let numbers = (0..gaps).map(|frame| 2 * frame);
    let (_, reordering) = report_of_all(numbers.clone().chain([1]));
    let extent = reordering.extent.unwrap();
    assert_eq!((reordering.reordered, extent.cut), (1, 1));
    assert_eq!(extent.max, MOST_STRETCHES_OF_ALL as u64);
    let (_, reordering) = report_of_all(numbers.chain([2 * gaps - 3]));
    let extent = reordering.extent.unwrap();
    assert_eq!((extent.max, extent.cut), (1, 0));
}

#[test]
fn wild_numbers_cost_no_more_than_their_count() {
    let wild = (0..10_000u32).map(|turn| turn.wrapping_mul(0x9e37_79b9));
    let (loss, _) = report_of_all(wild);
    assert_eq!((loss.received, loss.duplicates), (10_000, 0));
    assert_eq!(
        loss.lost + loss.distinct,
        loss.last.unwrap().abs_diff(loss.first.unwrap()) + 1
    );
}

#[test]
fn a_long_gap_is_one_period() {
    let (loss, _) = report(&[0, 1_000_000, 1_000_001, 3_000_000]);
    assert_eq!((loss.lost, loss.loss_periods), (2_999_997, 2));
    assert_eq!(loss.longest_loss, 1_999_998);
}

#[test]
fn a_restart_loses_nothing_in_between() {
    let mut sequence = Sequence::new();
    for number in [10, 12] {
        sequence.add(number);
    }
    sequence.restart();
    for number in [50_000, 50_001, 50_003] {
        sequence.add(number);
    }
    let (loss, _) = sequence.report();
    assert_eq!((loss.received, loss.distinct), (5, 5));
    assert_eq!((loss.lost, loss.loss_periods, loss.longest_loss), (2, 2, 1));
}

/// Numbers that advance, with gaps, copies and late ones.
fn arrivals(most_gap: u32, most_late: u32) -> impl Strategy<Value = Vec<u32>> {
    let step = (0..most_gap, 0..most_late, 0..4_u32);
    proptest::collection::vec(step, 1..400).prop_map(|steps| {
        let mut next = 5_000;
        let mut numbers = Vec::new();
        for (gap, late, kind) in steps {
            match kind {
                0 => numbers.push(next - late.min(next)),
                1 => next += gap,
                _ => next += 1,
            }
            numbers.push(next);
        }
        numbers
    })
}

proptest! {
    #[test]
    fn every_figure_is_that_of_a_naive_count(numbers in arrivals(8, 12)) {
        let (loss, mut reordering) = report(&numbers);
        let (expected, expected_reordering) = by_hand(&numbers);
        prop_assert_eq!(loss, expected);
        // Extents are exact unless they reach behind 32 gaps.
        if reordering.extent.is_some_and(|extent| extent.cut > 0) {
            reordering.extent = expected_reordering.extent;
        }
        prop_assert_eq!(reordering, expected_reordering);
    }

    #[test]
    fn loss_is_exact_also_with_gaps_longer_than_the_window(numbers in arrivals(3_000, 2_000)) {
        prop_assert_eq!(report(&numbers).0, by_hand(&numbers).0);
    }

    #[test]
    fn all_numbers_are_told_apart_where_they_are_kept(
        numbers in arrivals(3_000, 2_000),
        start in prop_oneof![Just(0u32), Just(u32::MAX - 50), any::<u32>()],
    ) {
        let wire = numbers.iter().map(|number| start.wrapping_add(*number));
        let (mut loss, mut reordering) = report_of_all(wire);
        let (expected, expected_reordering) = within(&numbers, u64::MAX >> 1);
        // What is unwrapped begins elsewhere.
        prop_assert_eq!(
            loss.last.unwrap() - loss.first.unwrap(),
            expected.last.unwrap() - expected.first.unwrap()
        );
        (loss.first, loss.last) = (expected.first, expected.last);
        prop_assert_eq!(loss, expected);
        if let Some(extent) = &mut reordering.extent {
            let of_all = extent.of_all.take().unwrap();
            prop_assert_eq!((of_all.n, of_all.max), (reordering.reordered, extent.max as i64));
        }
        prop_assert_eq!(reordering, expected_reordering);
    }
}
