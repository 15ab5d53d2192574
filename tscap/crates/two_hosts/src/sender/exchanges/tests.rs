use proptest::prelude::*;
use tscap_protocol::{ErrorEstimate, TimeFormat, sign};

use super::*;

const MODE: Mode = Mode::Unauthenticated;
const WAIT: u64 = 1_000;

fn error() -> ErrorEstimate {
    ErrorEstimate::covering(100, false, TimeFormat::Ntp)
}

fn timestamp(sequence: u32) -> Timestamp {
    Timestamp(0x7000_0000 + u64::from(sequence))
}

fn request(sequence: u32) -> Vec<u8> {
    let mut packet = vec![0; 44];
    let request = Request {
        sequence,
        timestamp: timestamp(sequence),
        error: error(),
        ssid: 1,
    };
    request.write(MODE, &mut packet);
    packet
}

fn reply_of(sequence: u32, of: u32) -> Reply {
    Reply {
        sequence,
        timestamp: Timestamp(60),
        error: error(),
        ssid: 1,
        received: Timestamp(50),
        sender_sequence: of,
        sender_timestamp: timestamp(of),
        sender_error: error().to_bits(),
        sender_ttl: 255,
    }
}

fn bytes(reply: &Reply) -> Vec<u8> {
    let mut packet = vec![0; 44];
    reply.write(MODE, &mut packet);
    packet
}

fn session() -> Exchanges {
    Exchanges::new(MODE, None, 1, WAIT)
}

/// What a path makes of packets: of each whether it arrives, and whether its reply does.
fn played(path: &[(bool, bool)], is_stateful: bool) -> SessionAccount {
    let mut session = session();
    let mut replies = 0;
    for (sequence, (arrives, comes_back)) in path.iter().enumerate() {
        let (sequence, at) = (sequence as u32, sequence as u64 * 100);
        session.sent(&request(sequence), RawStamp(at));
        if !arrives {
            continue;
        }
        let number = if is_stateful { replies } else { sequence };
        replies += 1;
        if *comes_back {
            let reply = bytes(&reply_of(number, sequence));
            session
                .received(&reply, RawStamp(at + 50))
                .expect("an exchange");
        }
        session.close_until(RawStamp(at));
    }
    let account = session.finish(path.len() as u64);
    assert!(account.adds_up(), "{account:?}");
    account
}

#[test]
fn an_exchange_has_both_stamps_and_the_reply() {
    let mut session = session();
    session.sent(&request(0), RawStamp(10));
    let reply = reply_of(0, 0);
    let found = session.received(&bytes(&reply), RawStamp(30)).unwrap();
    let expected = Answered {
        sequence: 0,
        own: [RawStamp(10), RawStamp(30)],
        reply,
    };
    assert_eq!(found, expected);
    assert_eq!((session.answered(), session.open()), (1, 0));
}

#[test]
fn loss_has_a_direction_where_the_peer_counts() {
    const OK: (bool, bool) = (true, true);
    const FORWARD: (bool, bool) = (false, false);
    const BACK: (bool, bool) = (true, false);
    let path = [
        OK, FORWARD, OK, BACK, BACK, OK, FORWARD, FORWARD, OK, BACK, FORWARD,
    ];
    let account = played(&path, true);
    assert_eq!(account.answered, 4);
    // Those behind the last reply may have been lost either way.
    let lost = [account.lost_forward, account.lost_back, account.undecided];
    assert_eq!(lost, [3, 2, 2]);
    assert_eq!((account.stateful, account.loss_periods), (Some(true), 4));
    let account = played(&path, false);
    let lost = [account.lost_forward, account.lost_back, account.undecided];
    assert_eq!((account.answered, lost), (4, [0, 0, 7]));
    assert_eq!(account.stateful, None);
}

#[test]
fn a_reply_that_answers_nothing_is_named() {
    let mut session = session();
    session.sent(&request(0), RawStamp(0));
    session.sent(&request(1), RawStamp(1));
    let good = reply_of(0, 0);
    let rejected = [
        (vec![0; 43], "short"),
        (bytes(&Reply { ssid: 2, ..good }), "other_session"),
        (
            bytes(&Reply {
                sender_sequence: 9,
                ..good
            }),
            "unasked",
        ),
    ];
    for (packet, _) in &rejected {
        assert_eq!(session.received(packet, RawStamp(5)), None);
    }
    let mut corrupt = bytes(&good);
    corrupt[13] = 0;
    assert_eq!(session.received(&corrupt, RawStamp(5)), None);
    // These are of a packet that was sent, whose outcome they are unless a good one comes.
    let bogus = Reply {
        sender_timestamp: Timestamp(1),
        ..good
    };
    let backwards = Reply {
        timestamp: Timestamp(49),
        ..reply_of(0, 1)
    };
    assert_eq!(session.received(&bytes(&bogus), RawStamp(5)), None);
    assert_eq!(session.received(&bytes(&backwards), RawStamp(5)), None);
    assert!(session.received(&bytes(&good), RawStamp(6)).is_some());
    let account = session.finish(2);
    assert!(account.adds_up(), "{account:?}");
    assert_eq!(account.answered, 1);
    let names: Vec<_> = account.unasked.keys().map(String::as_str).collect();
    assert_eq!(names, ["corrupt", "other_session", "short", "unasked"]);
    assert_eq!(
        account.rejected,
        BTreeMap::from([("backwards".to_owned(), 1)])
    );
}

#[test]
fn only_who_has_the_key_answers() {
    let key = Key::new(&[9; 16]).unwrap();
    let mode = Mode::Authenticated;
    let mut session = Exchanges::new(mode, Some(key.clone()), 1, WAIT);
    let mut packet = vec![0; 112];
    let sent = Request {
        sequence: 0,
        timestamp: timestamp(0),
        error: error(),
        ssid: 1,
    };
    sent.write(mode, &mut packet);
    session.sent(&packet, RawStamp(0));
    reply_of(0, 0).write(mode, &mut packet);
    assert_eq!(session.received(&packet, RawStamp(5)), None);
    sign(&mut packet, &Key::new(&[8; 16]).unwrap());
    assert_eq!(session.received(&packet, RawStamp(5)), None);
    sign(&mut packet, &key);
    assert!(session.received(&packet, RawStamp(5)).is_some());
    let account = session.finish(1);
    assert_eq!(account.unasked["not_authentic"], 2);
}

#[test]
fn what_comes_late_or_twice_is_told_apart() {
    let mut session = session();
    for sequence in 0..4 {
        session.sent(&request(sequence), RawStamp(u64::from(sequence)));
    }
    assert!(
        session
            .received(&bytes(&reply_of(0, 0)), RawStamp(10))
            .is_some()
    );
    // A copy of the reply, and a reply to a copy of the packet.
    assert_eq!(
        session.received(&bytes(&reply_of(0, 0)), RawStamp(11)),
        None
    );
    assert_eq!(
        session.received(&bytes(&reply_of(1, 0)), RawStamp(12)),
        None
    );
    // Late before it was given up, and afterwards.
    assert_eq!(
        session.received(&bytes(&reply_of(2, 1)), RawStamp(1_002)),
        None
    );
    session.close_until(RawStamp(1_003));
    assert_eq!(
        session.received(&bytes(&reply_of(3, 2)), RawStamp(1_100)),
        None
    );
    assert_eq!(
        session.received(&bytes(&reply_of(3, 2)), RawStamp(1_101)),
        None
    );
    let account = session.finish(4);
    assert!(account.adds_up(), "{account:?}");
    assert_eq!((account.answered, account.late), (1, 2));
    assert_eq!((account.copies_back, account.copies_forward), (1, 1));
    assert_eq!(account.unasked["unasked"], 1);
    assert_eq!(account.undecided, 1);
}

#[test]
fn who_overtook_whom_is_seen_on_either_way() {
    let mut session = session();
    for sequence in 0..6 {
        session.sent(&request(sequence), RawStamp(u64::from(sequence)));
    }
    // 2 arrived before 1; the reply to 4 came before that to 3.
    for (number, of) in [(0, 0), (1, 2), (2, 1), (4, 4), (3, 3), (5, 5)] {
        assert!(
            session
                .received(&bytes(&reply_of(number, of)), RawStamp(50))
                .is_some()
        );
    }
    let account = session.finish(6);
    assert_eq!((account.reordered_forward, account.reordered_back), (1, 1));
}

#[test]
fn a_packet_that_never_left_is_none_that_was_lost() {
    let mut session = session();
    session.sent(&request(0), RawStamp(0));
    session.sent(&request(2), RawStamp(2));
    for of in [0, 2] {
        assert!(
            session
                .received(&bytes(&reply_of(of, of)), RawStamp(9))
                .is_some()
        );
    }
    session.close_until(RawStamp(5_000));
    let account = session.finish(4);
    assert!(account.adds_up(), "{account:?}");
    assert_eq!(
        (account.answered, account.not_left, account.lost()),
        (2, 2, 0)
    );
}

#[test]
fn sequence_numbers_go_round() {
    let mut session = session();
    session.first = (1 << 32) - 2;
    for sequence in [u32::MAX - 1, u32::MAX, 0, 1] {
        session.sent(&request(sequence), RawStamp(5));
        let reply = bytes(&reply_of(sequence, sequence));
        let found = session.received(&reply, RawStamp(6)).unwrap();
        assert_eq!(found.sequence as u32, sequence);
    }
    assert_eq!(session.answered(), 4);
}

proptest! {
    /// Each packet has one outcome, whatever the path does; and with replies at the end, loss of
    /// each direction is exact.
    #[test]
    fn the_account_adds_up(
        path in proptest::collection::vec((any::<bool>(), any::<bool>()), 1..200),
        is_stateful in any::<bool>(),
    ) {
        let mut path = path;
        path.push((true, true));
        // Something has to show that the peer counts.
        let shows = path.iter().any(|it| !it.0);
        let account = played(&path, is_stateful);
        let count = |of: &dyn Fn(&(bool, bool)) -> bool| path.iter().filter(|it| of(it)).count() as u64;
        prop_assert_eq!(account.answered, count(&|it| it.0 && it.1));
        if is_stateful && shows {
            prop_assert_eq!(account.lost_forward, count(&|it| !it.0));
            prop_assert_eq!(account.lost_back, count(&|it| it.0 && !it.1));
        } else {
            prop_assert_eq!(account.undecided, count(&|it| !(it.0 && it.1)));
        }
    }

    #[test]
    fn any_payload_is_taken(payload in proptest::collection::vec(any::<u8>(), 0..120)) {
        let mut session = session();
        session.sent(&payload, RawStamp(0));
        let _ = session.received(&payload, RawStamp(5));
        prop_assert!(session.finish(1).adds_up());
    }
}
