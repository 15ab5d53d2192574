//! Sequences of known loss, duplication and reordering, against a naive model.

use proptest::prelude::*;

use super::*;

fn report(numbers: impl IntoIterator<Item = u32>, sent: Option<u64>) -> (Loss, Reordering) {
    let mut sequence = Sequence::new();
    for number in numbers {
        sequence.add(number);
    }
    sequence.report(sent)
}

#[test]
fn nothing_came() {
    let (loss, reordering) = report([], None);
    assert_eq!((loss.lost, loss.first, loss.last), (0, None, None));
    assert_eq!(reordering.extent, None);
    let (loss, _) = report([], Some(7));
    assert_eq!((loss.lost, loss.loss_periods, loss.longest_loss), (7, 1, 7));
}

#[test]
fn losses_at_both_ends_count_only_where_the_number_sent_is_known() {
    let (loss, _) = report([3, 4, 6, 9], None);
    assert_eq!((loss.lost, loss.loss_periods, loss.longest_loss), (3, 2, 2));
    assert_eq!((loss.first, loss.last), (Some(3), Some(9)));
    let (loss, _) = report([3, 4, 6, 9], Some(20));
    assert_eq!(
        (loss.lost, loss.loss_periods, loss.longest_loss),
        (16, 4, 10)
    );
}

#[test]
fn numbers_that_were_not_sent_are_told_apart() {
    let (loss, _) = report([0, 1, 5], Some(3));
    assert_eq!((loss.distinct, loss.beyond_sent, loss.lost), (3, 1, 1));
}

/// Orders of arrival such as those of RFC 4737, section 7.
#[test]
fn an_extent_reaches_back_to_the_first_greater_number() {
    for (arrivals, extents) in [
        (&[1, 2, 3, 7, 8, 9, 10, 4, 5, 6, 11][..], &[4, 5, 6][..]),
        (&[1, 2, 3, 5, 6, 7, 8, 4, 9, 10], &[4]),
        (&[1, 3, 2, 5, 4], &[1, 1]),
    ] {
        let (_, reordering) = report(arrivals.iter().copied(), None);
        assert_eq!(reordering.reordered, extents.len() as u64);
        let extent = reordering.extent.unwrap();
        assert_eq!(extent.min, *extents.iter().min().unwrap());
        assert_eq!(extent.max, *extents.iter().max().unwrap());
    }
}

#[test]
fn an_extent_beyond_the_kept_stretches_is_marked() {
    let gaps = 2 * MOST_STRETCHES as u32;
    let numbers = (0..gaps).map(|frame| 2 * frame);
    let (_, reordering) = report(numbers.clone().chain([1]), None);
    assert_eq!((reordering.reordered, reordering.extents_cut), (1, 1));
    assert_eq!(reordering.extent.unwrap().max, MOST_STRETCHES as i64);
    let (_, reordering) = report(numbers.chain([2 * gaps - 3]), None);
    assert_eq!(reordering.extents_cut, 0);
    assert_eq!(reordering.extent.unwrap().max, 1);
}

#[test]
fn wild_numbers_cost_no_more_than_their_count() {
    let wild = (0..10_000u32).map(|turn| turn.wrapping_mul(0x9e37_79b9));
    let (loss, _) = report(wild, None);
    assert_eq!((loss.received, loss.duplicates), (10_000, 0));
    assert_eq!(
        loss.lost + loss.distinct,
        loss.last.unwrap().abs_diff(loss.first.unwrap()) + 1
    );
}

/// What became of `sent` frames: the numbers, unwrapped, in order of arrival.
fn arrivals() -> impl Strategy<Value = (u64, Vec<u64>)> {
    let fate = prop_oneof![
        6 => Just((1, 0)),
        2 => Just((0, 0)),
        1 => (1usize..4, 0u64..12),
    ];
    prop::collection::vec(fate, 1..300).prop_map(|fates| {
        let mut arrivals = Vec::new();
        for (number, (copies, delay)) in (0u64..).zip(&fates) {
            for copy in 0..*copies as u64 {
                arrivals.push((number + delay * (copy + 1), number));
            }
        }
        // Stable: what arrives together keeps the order of sending.
        arrivals.sort_by_key(|(at, _)| *at);
        let numbers = arrivals.into_iter().map(|(_, number)| number).collect();
        (fates.len() as u64, numbers)
    })
}

/// Extents by the definition of RFC 4737, quadratic.
fn extents(arrivals: &[u64]) -> Vec<i64> {
    let mut firsts = Vec::new();
    let mut extents = Vec::new();
    for number in arrivals {
        if firsts.contains(number) {
            continue;
        }
        if let Some(earliest) = firsts.iter().position(|earlier| earlier > number) {
            extents.push((firsts.len() - earliest) as i64);
        }
        firsts.push(*number);
    }
    extents
}

proptest! {
    #[test]
    fn agrees_with_the_naive_model(
        (sent, arrivals) in arrivals(),
        start in prop_oneof![Just(0u32), Just(u32::MAX - 50), any::<u32>()],
    ) {
        let wire = arrivals.iter().map(|number| start.wrapping_add(*number as u32));
        let (loss, reordering) = report(wire, None);
        let mut distinct = arrivals.clone();
        distinct.sort_unstable();
        distinct.dedup();
        prop_assert_eq!(loss.received, arrivals.len() as u64);
        prop_assert_eq!(loss.distinct, distinct.len() as u64);
        prop_assert_eq!(loss.duplicates, loss.received - loss.distinct);
        let gaps: Vec<u64> = distinct.windows(2).map(|pair| pair[1] - pair[0] - 1).collect();
        prop_assert_eq!(loss.lost, gaps.iter().sum::<u64>());
        prop_assert_eq!(loss.loss_periods, gaps.iter().filter(|gap| **gap > 0).count() as u64);
        prop_assert_eq!(loss.longest_loss, gaps.into_iter().max().unwrap_or(0));

        let extents = extents(&arrivals);
        prop_assert_eq!(reordering.reordered, extents.len() as u64);
        prop_assert_eq!(reordering.extents_cut, 0);
        prop_assert_eq!(
            reordering.extent.map(|extent| (extent.min, extent.max)),
            extents.iter().min().copied().zip(extents.iter().max().copied())
        );

        let wire = arrivals.iter().map(|number| *number as u32);
        let (loss, _) = report(wire, Some(sent));
        prop_assert_eq!(sent, loss.distinct + loss.lost);
        prop_assert_eq!(loss.beyond_sent, 0);
    }
}
