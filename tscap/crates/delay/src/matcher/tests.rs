//! Of passages whose every sighting is scripted.

use proptest::prelude::*;

use super::*;

mod properties;
mod reference;

use reference::{Known, Span, reference};

const START: u64 = 1_000_000;
const WINDOW: u64 = 1_000;

fn options() -> MatcherOptions {
    MatcherOptions {
        window: WINDOW,
        capacity: 1_000,
        exits: 1,
        is_mirrored: false,
        kept_bytes: 0,
        keeps_exits: true,
        start: RawStamp(START),
    }
}

/// So long after the start.
fn sighting(at: SeenAt, key: u64, after: u64) -> Sighting {
    Sighting {
        at,
        key,
        stamp: RawStamp(START + after),
        cpu: 3,
        length: 64,
    }
}

fn entry(key: u64, after: u64) -> Sighting {
    sighting(SeenAt::Entry, key, after)
}

fn exit(key: u64, after: u64) -> Sighting {
    sighting(SeenAt::Exit(0), key, after)
}

/// What a matcher made of sightings, in the order given, until so long after the start.
fn matched(options: MatcherOptions, sightings: &[Sighting], end: u64) -> Known {
    let mut matcher = Matcher::new(options);
    let mut known = Known::default();
    let mut passed = |packet: &Passed<'_>| known.passed.push(packet.into());
    for sighting in sightings {
        matcher.see(sighting, &[], &mut passed);
    }
    known.accounts = matcher.finish(RawStamp(START + end), &mut passed);
    known.accounts.iter().for_each(adds_up);
    known
}

#[track_caller]
fn adds_up(account: &Account) {
    let Account {
        entered,
        left,
        matched,
        lost_inside,
        pending,
        ambiguous_in,
        untracked_in,
        originated,
        early,
        ambiguous_out,
        untracked_out,
    } = *account;
    let ins = matched + lost_inside + pending + ambiguous_in + untracked_in;
    let outs = matched + originated + early + ambiguous_out + untracked_out;
    assert_eq!((entered, left), (ins, outs), "{account:?}");
}

/// The account of these sightings, which end long after.
fn account(sightings: &[Sighting]) -> Account {
    matched(options(), sightings, 100_000).accounts[0]
}

#[test]
fn each_outcome_has_its_name() {
    let none = Account::default();
    let whole = account(&[entry(1, 2_000), exit(1, 2_500)]);
    let expected = Account {
        entered: 1,
        left: 1,
        matched: 1,
        ..none
    };
    assert_eq!(whole, expected);
    for (stamp, lost_inside, pending) in [(98_999, 1, 0), (99_000, 0, 1), (99_001, 0, 1)] {
        let expected = Account {
            entered: 1,
            lost_inside,
            pending,
            ..none
        };
        assert_eq!(account(&[entry(1, stamp)]), expected, "{stamp}");
    }
    for (stamp, early, originated) in [(0, 1, 0), (999, 1, 0), (1_000, 0, 1)] {
        let expected = Account {
            left: 1,
            early,
            originated,
            ..none
        };
        assert_eq!(account(&[exit(1, stamp)]), expected, "{stamp}");
    }
}

#[test]
fn the_longest_delay_is_the_window() {
    let of = |delay| account(&[entry(1, 2_000), exit(1, 2_000 + delay)]);
    assert_eq!([0, WINDOW].map(|delay| of(delay).matched), [1, 1]);
    let expected = Account {
        entered: 1,
        left: 1,
        lost_inside: 1,
        originated: 1,
        ..Account::default()
    };
    assert_eq!(of(WINDOW + 1), expected);
}

/// It is another packet's.
#[test]
fn an_exit_before_the_entry_is_no_delay() {
    let account = account(&[exit(1, 2_000), entry(1, 2_001)]);
    let found = (account.matched, account.lost_inside, account.originated);
    assert_eq!(found, (0, 1, 1));
}

#[test]
fn equal_keys_within_the_window_are_not_guessed() {
    let two_in = account(&[entry(1, 2_000), entry(1, 2_100), exit(1, 2_200)]);
    assert_eq!((two_in.ambiguous_in, two_in.ambiguous_out), (2, 1));
    let two_out = account(&[entry(1, 2_000), exit(1, 2_100), exit(1, 2_200)]);
    assert_eq!((two_out.ambiguous_in, two_out.ambiguous_out), (1, 2));
    let only_in = account(&[entry(1, 2_000), entry(1, 2_100)]);
    assert_eq!(only_in.lost_inside, 2);
    let only_out = account(&[exit(1, 2_000), exit(1, 2_100)]);
    assert_eq!(only_out.originated, 2);
    let apart = account(&[
        entry(1, 2_000),
        exit(1, 2_100),
        entry(1, 3_001),
        exit(1, 3_100),
    ]);
    assert_eq!(apart.matched, 2);
}

#[test]
fn each_exit_has_its_account() {
    let two = MatcherOptions {
        exits: 2,
        ..options()
    };
    let other = |key, after| sighting(SeenAt::Exit(1), key, after);
    let sightings = [
        entry(1, 2_000),
        entry(2, 2_010),
        other(1, 2_100),
        exit(1, 2_150),
        other(2, 2_200),
    ];
    let known = matched(two, &sightings, 100_000);
    let [tap, egress] = known.accounts[..] else {
        panic!("two exits");
    };
    assert_eq!((tap.entered, tap.matched, tap.lost_inside), (2, 1, 1));
    assert_eq!((egress.entered, egress.matched), (2, 2));
    let left: Vec<_> = known.passed.iter().map(|packet| packet.left).collect();
    let after = |after| Some(RawStamp(START + after));
    let expected = [[after(2_150), after(2_100)], [None, after(2_200)]];
    assert_eq!(left, expected);
}

#[test]
fn mirrored_places_are_told_by_order() {
    let mirrored = MatcherOptions {
        is_mirrored: true,
        ..options()
    };
    let sightings = [
        entry(1, 2_000),
        entry(2, 2_010),
        entry(1, 2_100),
        entry(3, 2_200),
        entry(3, 2_201),
        entry(3, 2_202),
    ];
    let known = matched(mirrored, &sightings, 100_000);
    let expected = Account {
        entered: 3,
        left: 3,
        matched: 1,
        lost_inside: 1,
        ambiguous_in: 1,
        ambiguous_out: 2,
        ..Account::default()
    };
    assert_eq!(known.accounts, [expected]);
    assert_eq!(known.passed[0].left[0], Some(RawStamp(START + 2_100)));
}

#[test]
fn what_finds_no_room_is_untracked() {
    let few = MatcherOptions {
        capacity: 2,
        ..options()
    };
    let sightings = [
        entry(1, 2_000),
        entry(2, 2_001),
        entry(3, 2_002),
        exit(1, 2_100),
        exit(3, 2_101),
        exit(2, 2_102),
        // Two have left; the third one might have come from where it was not seen.
        exit(4, 3_002),
        exit(5, 9_000),
    ];
    let known = matched(few, &sightings, 100_000);
    let expected = Account {
        entered: 3,
        left: 5,
        matched: 2,
        untracked_in: 1,
        untracked_out: 2,
        originated: 1,
        ..Account::default()
    };
    assert_eq!(known.accounts, [expected]);
}

#[test]
fn one_that_comes_too_late_is_ambiguous() {
    let mut matcher = Matcher::new(options());
    let mut ignore = |_: &Passed<'_>| {};
    matcher.see(&entry(1, 2_000), &[], &mut ignore);
    matcher.see(&entry(2, 4_000), &[], &mut ignore);
    matcher.close_until(RawStamp(START + 4_500), &mut ignore);
    assert_eq!(matcher.accounts()[0].lost_inside, 1);
    // Of one that is gone, of one that is there, and in time.
    for late in [exit(1, 2_500), exit(2, 4_200), exit(3, 4_500)] {
        matcher.see(&late, &[], &mut ignore);
    }
    let accounts = matcher.finish(RawStamp(START + 100_000), &mut ignore);
    let expected = Account {
        entered: 2,
        left: 3,
        matched: 1,
        lost_inside: 1,
        originated: 1,
        ambiguous_out: 1,
        ..Account::default()
    };
    assert_eq!(accounts, [expected]);
}

#[test]
fn bytes_are_kept_until_a_packet_is_judged() {
    let kept = MatcherOptions {
        kept_bytes: 4,
        capacity: 3,
        ..options()
    };
    let mut matcher = Matcher::new(kept);
    let mut found = Vec::new();
    let mut passed = |packet: &Passed<'_>| {
        let owned = (packet.bytes_in.to_vec(), packet.bytes_out[0].to_vec());
        found.push(owned);
    };
    for round in 0..100u8 {
        let at = u64::from(round) * 5_000;
        // The third one has no room for a fourth and fifth.
        matcher.see(&entry(1, at), &[round, 1, 2, 3, 4], &mut passed);
        matcher.see(&entry(2, at + 1), &[7], &mut passed);
        matcher.see(&entry(2, at + 2), &[8], &mut passed);
        matcher.see(&exit(1, at + 10), &[round, 9], &mut passed);
        matcher.close_until(RawStamp(START + at + 4_000), &mut passed);
    }
    let expected = |round| (vec![round, 1, 2, 3], vec![round, 9]);
    assert_eq!(found, (0..100).map(expected).collect::<Vec<_>>());
    // With those of entries alone there is room for a packet each.
    let mut matcher = Matcher::new(MatcherOptions {
        keeps_exits: false,
        capacity: 1,
        ..kept
    });
    let mut passed = |packet: &Passed<'_>| {
        assert_eq!(
            (packet.bytes_in, packet.bytes_out[0]),
            (&[5, 6][..], &[][..])
        );
    };
    matcher.see(&entry(1, 0), &[5, 6], &mut passed);
    matcher.see(&exit(1, 10), &[7], &mut passed);
    let accounts = matcher.finish(RawStamp(START + 9_000), &mut passed);
    assert_eq!(accounts[0].matched, 1);
}

#[test]
fn memory_is_known_and_stays() {
    let large = MatcherOptions {
        capacity: 100_000,
        ..options()
    };
    let matcher = Matcher::new(large);
    let a_packet = matcher.memory_bytes() / 100_000;
    assert!((120..140).contains(&a_packet), "{a_packet}");
    let with_bytes = Matcher::new(MatcherOptions {
        kept_bytes: 64,
        ..large
    });
    let more = (with_bytes.memory_bytes() - matcher.memory_bytes()) / 100_000;
    assert_eq!(more, 2 * (64 + 8));
    let at_entries = Matcher::new(MatcherOptions {
        kept_bytes: 64,
        keeps_exits: false,
        ..large
    });
    let more = (at_entries.memory_bytes() - matcher.memory_bytes()) / 100_000;
    assert_eq!(more, 64 + 8);
}
