//! Whatever the sightings are, and in whatever order they come.

use super::*;

/// Most that two sightings lie apart.
const GAP: u64 = 400;

/// Sightings in order, with few keys: losses, duplicates, packets that were never seen at the
/// entry, exits before entries, and equal keys within and beyond a window.
fn sightings() -> impl Strategy<Value = Vec<Sighting>> {
    let one = (0u64..24, 0usize..=MOST_EXITS, 0..GAP);
    prop::collection::vec(one, 0..250).prop_map(|all| {
        let mut after = 0;
        let sightings = all.into_iter().map(|(key, place, gap)| {
            after += gap;
            let at = place.checked_sub(1).map_or(SeenAt::Entry, SeenAt::Exit);
            sighting(at, key.wrapping_mul(0x1234_5678_9abc_def1), after)
        });
        sightings.collect()
    })
}

fn end(sightings: &[Sighting]) -> u64 {
    let last = sightings.iter().map(|sighting| sighting.stamp.0).max();
    last.map_or(0, |last| last - START)
}

fn two_exits() -> MatcherOptions {
    MatcherOptions {
        exits: 2,
        ..options()
    }
}

/// As they come when each is delayed by less than `disorder`; those known to be complete are
/// judged in between.
fn matched_late(
    options: MatcherOptions,
    sightings: &[Sighting],
    disorder: u64,
    seed: u64,
    end: u64,
) -> Known {
    let mut random = fastrand::Rng::with_seed(seed);
    let late = |sighting: &Sighting| (sighting.stamp.0 + random.u64(..disorder), *sighting);
    let mut late: Vec<_> = sightings.iter().map(late).collect();
    late.sort_by_key(|(came, _)| *came);
    let mut matcher = Matcher::new(options);
    let mut known = Known::default();
    let mut passed = |packet: &Passed<'_>| known.passed.push(packet.into());
    for (came, sighting) in &late {
        if random.u8(..) < 40 {
            let horizon = came.saturating_sub(disorder);
            matcher.close_until(RawStamp(horizon), &mut passed);
        }
        matcher.see(sighting, &[], &mut passed);
        matcher.accounts().iter().for_each(adds_up);
    }
    known.accounts = matcher.finish(RawStamp(START + end), &mut passed);
    known
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn it_finds_what_grouping_all_of_them_finds(
        sightings in sightings(), window in 0u64..3_000, more in 0u64..4_000
    ) {
        let options = MatcherOptions { window, ..two_exits() };
        let end = end(&sightings) + more;
        let found = matched(options, &sightings, end);
        prop_assert_eq!(found.sorted(), reference(&options, &sightings, Span::whole(&options, end)).sorted());
    }

    #[test]
    fn packets_come_in_order(sightings in sightings(), window in 0u64..3_000) {
        let options = MatcherOptions { window, ..options() };
        let one_exit: Vec<_> = sightings.into_iter().filter(|it| it.at != SeenAt::Exit(1)).collect();
        let found = matched(options, &one_exit, end(&one_exit));
        prop_assert!(found.passed.is_sorted_by_key(|packet| packet.entered));
    }

    #[test]
    fn mirrored_too(sightings in sightings(), window in 0u64..3_000) {
        let options = MatcherOptions { window, is_mirrored: true, ..options() };
        let all: Vec<_> = sightings.iter().map(|it| Sighting { at: SeenAt::Entry, ..*it }).collect();
        let end = end(&all);
        let found = matched(options, &all, end);
        prop_assert_eq!(found.sorted(), reference(&options, &all, Span::whole(&options, end)).sorted());
    }

    /// Which ring was emptied first makes no difference.
    #[test]
    fn the_order_of_arrival_does_not_matter(
        sightings in sightings(), seed: u64, disorder in 1..WINDOW
    ) {
        let end = end(&sightings);
        let found = matched_late(two_exits(), &sightings, disorder, seed, end);
        let expected = reference(&two_exits(), &sightings, Span::whole(&two_exits(), end));
        prop_assert_eq!(found.sorted(), expected.sorted());
    }

    /// Rings that are emptied one after the other, each in order.
    #[test]
    fn nor_does_that_of_the_rings(
        sightings in sightings(), rings in 1usize..100, drain in 1usize..90
    ) {
        let mut by_drain = Vec::new();
        for chunk in sightings.chunks(drain) {
            for ring in 0..rings {
                by_drain.extend(chunk.iter().skip(ring).step_by(rings));
            }
        }
        let end = end(&sightings);
        let found = matched(two_exits(), &by_drain, end);
        let expected = reference(&two_exits(), &sightings, Span::whole(&two_exits(), end));
        prop_assert_eq!(found.sorted(), expected.sorted());
    }

    /// Nothing is matched that is not, and nothing is lost.
    #[test]
    fn a_full_table_says_so(
        sightings in sightings(), capacity in 0usize..12, seed: u64, disorder in 1..WINDOW
    ) {
        // Each packet has a key of its own, and no two sightings come at the same time.
        let mut number = [0; 2];
        let one_exit = sightings.iter().filter(|it| it.at != SeenAt::Exit(1)).enumerate();
        let own_keys = one_exit.map(|(index, it)| {
            let stamp = moved(it.stamp, index as i64);
            let number = &mut number[usize::from(it.at == SeenAt::Entry)];
            *number += 1u64;
            Sighting { key: *number, stamp, ..*it }
        });
        let own_keys: Vec<_> = own_keys.collect();
        let options = MatcherOptions { capacity, ..options() };
        let end = end(&own_keys);
        let found = matched_late(options, &own_keys, disorder, seed, end);
        let all = reference(&options, &own_keys, Span::whole(&options, end));
        prop_assert!(found.passed.iter().all(|packet| all.passed.contains(packet)));
        for (account, whole) in found.accounts.iter().zip(&all.accounts) {
            adds_up(account);
            prop_assert_eq!((account.entered, account.left), (whole.entered, whole.left));
            // What was not remembered is neither lost nor did it come from nowhere.
            prop_assert!(account.lost_inside <= whole.lost_inside);
            prop_assert!(account.originated <= whole.originated);
        }
    }

    /// The clock was set in between, by any amount, and what knows of it says so.
    #[test]
    fn what_is_inside_when_the_clock_is_set_is_ambiguous(
        before in sightings(), after in sightings(), step in -900_000i64..900_000,
        disorder in 1..WINDOW
    ) {
        let after: Vec<_> = after
            .iter()
            .map(|it| Sighting { stamp: moved(it.stamp, end(&before) as i64 + step), ..*it })
            .collect();
        let ends = [&before, &after].map(|all| all.last().map_or(START, |it| it.stamp.0));
        let is_set = !before.is_empty();
        let span = Span {
            is_distrusted: is_set,
            ..Span::whole(&two_exits(), ends[0] - START)
        };
        let mut expected = reference(&two_exits(), &before, span);
        let doubt = after.first().map(|it| it.stamp.0 + WINDOW);
        let second = Span {
            early_before: 0,
            doubt_through: doubt,
            end: ends[1],
            is_distrusted: false,
        };
        let second = reference(&two_exits(), &after, second);
        expected.add(&second);
        let mut matcher = Matcher::new(two_exits());
        let mut found = Known::default();
        let mut passed = |packet: &Passed<'_>| found.passed.push(packet.into());
        before.iter().for_each(|it| matcher.see(it, &[], &mut passed));
        matcher.distrust();
        after.iter().for_each(|it| matcher.see(it, &[], &mut passed));
        found.accounts = matcher.finish(RawStamp(ends[1]), &mut passed);
        prop_assert_eq!(found.sorted(), expected.sorted());

        // Nobody says so: still each sighting has one outcome.
        let mut matcher = Matcher::new(two_exits());
        let mut ignore = |_: &Passed<'_>| {};
        for sighting in before.iter().chain(&after) {
            matcher.see(sighting, &[], &mut ignore);
            let horizon = sighting.stamp.0.saturating_sub(disorder);
            matcher.close_until(RawStamp(horizon), &mut ignore);
        }
        let accounts = matcher.finish(RawStamp(ends[1]), &mut ignore);
        accounts.iter().for_each(adds_up);
        let seen = accounts[0].entered + accounts.iter().map(|it| it.left).sum::<u64>();
        prop_assert_eq!(seen, (before.len() + after.len()) as u64);
    }
}

fn moved(stamp: RawStamp, by: i64) -> RawStamp {
    RawStamp(stamp.0.wrapping_add_signed(by))
}
