use super::*;
use tscap_clock::{NsPerCycle, ReferenceBounds};

mod days;

const MS: u64 = 1_000_000;
const S: u64 = 1_000 * MS;
/// The true time at counter value 0; the counter counts ns.
const EPOCH: u64 = 1_800_000_000 * S;

/// What a reference says at `t` that is off by `off_ns`, within `bound_ns` of its own and as much
/// against UTC.
fn known(t: u64, off_ns: i64, bound_ns: u64) -> Known {
    Known {
        at: TscCycles(t),
        real: RealNs((EPOCH + t).wrapping_add_signed(off_ns)),
        rate: NsPerCycle::ONE,
        bound_ns: bound_ns / 2,
        growth_ppb: 100,
        own_bound_ns: Some(bound_ns - bound_ns / 2),
        own_growth_ppb: 15_000,
        used_at: TscCycles(t),
        host_ahead_ns: -off_ns,
        turn: 0,
        set_after: None,
        doubt_ns: 0,
    }
}

fn device(t: u64, off_ns: i64, bound_ns: u64) -> Known {
    Known {
        bound_ns,
        own_bound_ns: None,
        ..known(t, off_ns, bound_ns)
    }
}

fn vote(known: Known) -> Vote {
    Vote {
        known: Some(known),
        is_late: false,
        is_silent: false,
    }
}

fn utc(known: &Known) -> ReferenceBounds {
    known.bounds_at(known.at)
}

/// Whether the true time is within what is said.
fn holds(said: &Known) -> bool {
    let off = said.real.0.abs_diff(EPOCH + said.at.0);
    utc(said).utc_ns().is_some_and(|bound| off <= bound)
}

#[test]
fn more_than_half_of_the_intervals_hold_the_truth() {
    let interval = |low, high| Interval { low, high };
    for (all, expected) in [
        (&[(0, 10)][..], Some((0, 10))),
        (&[(0, 10), (5, 20)], Some((5, 10))),
        (&[(0, 10), (10, 20)], Some((10, 10))),
        (&[(0, 10), (11, 20)], None),
        // One of three may be wrong, whichever.
        (&[(0, 10), (5, 20), (8, 9)], Some((5, 10))),
        (&[(0, 10), (2, 8), (100, 110)], Some((2, 8))),
        (&[(0, 10), (8, 20), (18, 30)], Some((8, 20))),
        (&[(0, 10), (20, 30), (40, 50)], None),
        // Of four more than two must be right.
        (&[(0, 10), (5, 20), (6, 9), (100, 110)], Some((6, 9))),
        (&[(0, 10), (5, 20), (100, 110), (105, 120)], None),
    ] {
        let all: Vec<_> = all
            .iter()
            .map(|(low, high)| interval(*low, *high))
            .collect();
        let expected = expected.map(|(low, high)| interval(low, high));
        assert_eq!(Interval::of_majority(&all), expected, "{all:?}");
    }
}

#[test]
fn one_reference_is_passed_on_as_it_is() {
    let known = Known {
        turn: 7,
        doubt_ns: 5,
        ..known(S, 3, 1_000)
    };
    let said = Combined::default()
        .judge(&[vote(known)], TscCycles(2 * S))
        .unwrap();
    assert_eq!(
        (said.known, said.states),
        (known, vec![ReferenceState::Leads])
    );
    let silent = Vote {
        is_silent: true,
        ..vote(known)
    };
    let said = Combined::default()
        .judge(&[silent], TscCycles(2 * S))
        .unwrap();
    assert_eq!(
        (said.known, said.states),
        (known, vec![ReferenceState::Silent])
    );
}

#[test]
fn a_falseticker_is_named_and_moves_nothing() {
    let votes = [
        vote(known(S, 0, MS)),
        // Known best by its own account.
        vote(known(S, 50 * MS as i64, 1_000)),
        vote(known(S, 400_000, 2 * MS)),
    ];
    let said = Combined::default().judge(&votes, TscCycles(S)).unwrap();
    let states = [
        ReferenceState::Leads,
        ReferenceState::Falseticker,
        ReferenceState::Agrees,
    ];
    assert_eq!(said.states, states);
    assert!(holds(&said.known) && !said.is_split, "{said:?}");
    assert_eq!(said.known.real, RealNs(EPOCH + S));
    // From -1 ms to 1 ms, within which the third begins at -1.6 ms.
    assert!(utc(&said.known).utc_ns() <= Some(MS + 2));
}

/// It is inside of what the others allow, and would be believed by the intersection of all.
#[test]
fn a_small_lie_is_in_the_bound() {
    let votes = [
        vote(known(S, 900_000, 1_000)),
        vote(known(S, 0, MS)),
        vote(known(S, 0, MS)),
    ];
    let said = Combined::default().judge(&votes, TscCycles(S)).unwrap();
    assert!(holds(&said.known), "{said:?}");
}

#[test]
fn where_two_contradict_each_other_the_bound_is_around_both() {
    for off in [0, 10 * MS as i64] {
        let votes = [
            vote(known(S, off, MS)),
            vote(known(S, 10 * MS as i64 - off, MS)),
        ];
        let said = Combined::default().judge(&votes, TscCycles(S)).unwrap();
        assert!(said.is_split && holds(&said.known), "{said:?}");
    }
}

/// One that is late leads no more, one that is silent has no vote, and the clock goes on without a
/// step.
#[test]
fn another_one_takes_over() {
    let mut combined = Combined::default();
    let [good, poor] = [known(S, 1_000, 10_000), known(S, 900_000, MS)].map(vote);
    let said = combined.judge(&[good, poor], TscCycles(S)).unwrap();
    assert_eq!(said.states[0], ReferenceState::Leads);
    let late = Vote {
        is_late: true,
        ..good
    };
    let at = 40 * S;
    let poor = vote(known(at, 900_000, MS));
    let said = combined.judge(&[late, poor], TscCycles(at)).unwrap();
    assert_eq!(said.states, [ReferenceState::Agrees, ReferenceState::Leads]);
    assert!(holds(&said.known), "{said:?}");
    // The first still holds it together.
    assert!(utc(&said.known).utc_ns() < Some(MS));
    let silent = Vote {
        is_silent: true,
        ..late
    };
    let at = 200 * S;
    let poor = vote(known(at, 900_000, MS));
    let said = combined.judge(&[silent, poor], TscCycles(at)).unwrap();
    assert_eq!(said.states, [ReferenceState::Silent, ReferenceState::Leads]);
    assert!(holds(&said.known) && said.known.turn == 0, "{said:?}");
    assert!(utc(&said.known).utc_ns() >= Some(MS));
    // All are: the latest that led goes on, with a growing bound.
    let both = [
        silent,
        Vote {
            is_silent: true,
            ..poor
        },
    ];
    let said = combined.judge(&both, TscCycles(3_000 * S)).unwrap();
    assert_eq!(said.states, [ReferenceState::Silent; 2]);
    assert!(
        utc(&said.known).utc_ns() > Some(MS + 40_000_000),
        "{said:?}"
    );
    assert_eq!(said.known.used_at, TscCycles(at));
}

#[test]
fn what_cannot_be_joined_is_a_step_from_where_it_was_set() {
    let mut combined = Combined::default();
    let votes = |t, off, turn| {
        let it = Known {
            turn,
            set_after: Some(TscCycles(9 * S)).filter(|_| turn > 0),
            ..known(t, off, MS)
        };
        [vote(it), vote(it), vote(known(t, 0, MS))]
    };
    let said = combined
        .judge(&votes(10 * S, 0, 0), TscCycles(10 * S))
        .unwrap();
    assert_eq!((said.known.turn, said.known.set_after), (0, None));
    let far = S as i64;
    let said = combined
        .judge(&votes(12 * S, far, 1), TscCycles(12 * S))
        .unwrap();
    assert_eq!(
        (said.known.turn, said.known.set_after),
        (1, Some(TscCycles(9 * S)))
    );
    assert_eq!(said.states[2], ReferenceState::Falseticker);
    // Once.
    let said = combined
        .judge(&votes(13 * S, far, 1), TscCycles(13 * S))
        .unwrap();
    assert_eq!(said.known.turn, 1);
}

/// A PTP clock says nothing of UTC: servers do, and it leads where they allow it.
#[test]
fn a_device_leads_where_servers_vouch_for_it() {
    let votes = [vote(device(S, 2_000, 500)), vote(known(S, 0, MS))];
    let said = Combined::default().judge(&votes, TscCycles(S)).unwrap();
    assert_eq!(said.states, [ReferenceState::Leads, ReferenceState::Agrees]);
    assert_eq!(said.known.real, RealNs(EPOCH + S + 2_000));
    assert!(holds(&said.known), "{said:?}");
    let votes = [vote(device(S, 5 * MS as i64, 500)), vote(known(S, 0, MS))];
    let said = Combined::default().judge(&votes, TscCycles(S)).unwrap();
    assert_eq!(said.states[0], ReferenceState::Falseticker);
    assert!(holds(&said.known), "{said:?}");
    let votes = [vote(device(S, 0, 500)), vote(device(S, 100, 900))];
    let said = Combined::default().judge(&votes, TscCycles(S)).unwrap();
    assert_eq!(said.known.own_bound_ns, None);
}
