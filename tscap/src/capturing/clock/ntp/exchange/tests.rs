use proptest::prelude::*;

use super::super::fixtures::{NOON, reply_to};
use super::super::{PORT, request};
use super::*;

const COOKIE: NtpTime = NtpTime(0xfeed_f00d_0123_4567);

fn client() -> SocketAddr {
    "10.9.0.1:40000".parse().unwrap()
}

fn server() -> SocketAddr {
    "10.9.0.2:123".parse().unwrap()
}

fn ask(exchanges: &mut Exchanges, cookie: NtpTime, at: u64) {
    let datagram = Datagram {
        from: client(),
        to: server(),
        payload: &request(cookie),
    };
    exchanges.sent(&datagram, TscCycles(at));
}

fn answer(exchanges: &mut Exchanges, payload: &[u8], at: u64) -> Received {
    let datagram = Datagram {
        from: server(),
        to: client(),
        payload,
    };
    exchanges.received(&datagram, TscCycles(at), RealNs(NOON))
}

fn good() -> [u8; 48] {
    reply_to(COOKIE, [RealNs(NOON), RealNs(NOON + 10_000)])
}

/// With one request outstanding.
fn asked() -> Exchanges {
    let mut exchanges = Exchanges::new(PORT);
    ask(&mut exchanges, COOKIE, 1_000);
    exchanges
}

#[track_caller]
fn rejected(exchanges: &mut Exchanges, payload: &[u8], reject: Reject) {
    let before = exchanges.rejects().of(reject);
    let found = answer(exchanges, payload, 2_000);
    assert_eq!(found, Received::Rejected(server(), reject));
    assert_eq!(exchanges.rejects().of(reject), before + 1);
}

#[test]
fn a_reply_belongs_to_its_request() {
    let mut exchanges = asked();
    let Received::Exchange(found) = answer(&mut exchanges, &good(), 9_000) else {
        panic!("it is good");
    };
    assert_eq!(found.tsc, [TscCycles(1_000), TscCycles(9_000)]);
    assert_eq!(found.real, [RealNs(NOON), RealNs(NOON + 10_000)]);
    assert_eq!((exchanges.sent_count(), exchanges.matched_count()), (1, 1));
    assert_eq!(exchanges.rejects(), Rejects::default());
    // 2^-32 s of precision are a nanosecond.
    let bracket = found.bracket(7);
    assert_eq!(bracket.tsc, [TscCycles(993), TscCycles(9_007)]);
    assert_eq!(bracket.real, [RealNs(NOON + 1), RealNs(NOON + 9_999)]);
}

#[test]
fn each_fault_of_a_reply_has_its_name() {
    for (reject, change) in [
        (Reject::Version, (|it| it[0] = 0x04) as fn(&mut [u8; 48])),
        (Reject::Version, |it| it[0] = 0x2c),
        (Reject::Mode, |it| it[0] = 0x22),
        (Reject::Mode, |it| it[0] = 0x25),
        (Reject::BogusOrigin, |it| it[31] ^= 1),
        (Reject::Unsynchronised, |it| it[0] |= 0xc0),
        (Reject::Unsynchronised, |it| it[1] = 16),
        (Reject::NoTime, |it| it[32..40].fill(0)),
        (Reject::NoTime, |it| it[40..48].fill(0)),
        (Reject::Backwards, |it| it[35] += 1),
        (Reject::RootDistance, |it| it[9] = 1),
        (Reject::RootDistance, |it| it[5] = 2),
    ] {
        let mut bytes = good();
        change(&mut bytes);
        let mut exchanges = asked();
        rejected(&mut exchanges, &bytes, reject);
        // Who has not seen the request can't use it up.
        let found = answer(&mut exchanges, &good(), 3_000);
        assert_eq!(matches!(found, Received::Exchange(_)), !reject.is_answer());
    }
    rejected(&mut asked(), &good()[..47], Reject::Short);
    rejected(&mut asked(), &[], Reject::Short);
    rejected(&mut asked(), &[&good()[..], &[0]].concat(), Reject::Ragged);
    rejected(&mut Exchanges::new(PORT), &good(), Reject::Unasked);
}

#[test]
fn a_kiss_answers_the_request() {
    for code in [KissCode::DENY, KissCode::RSTR, KissCode::RATE] {
        let mut exchanges = asked();
        let mut bytes = good();
        bytes[0] |= 0xc0;
        bytes[1] = 0;
        bytes[12..16].copy_from_slice(&code.0);
        let found = answer(&mut exchanges, &bytes, 2_000);
        assert_eq!(found, Received::Kiss(server(), code));
        assert_eq!(exchanges.rejects().of(Reject::Kiss), 1);
        // Who has not seen the request can't stop a client.
        bytes[24] ^= 1;
        rejected(&mut exchanges, &bytes, Reject::BogusOrigin);
    }
}

#[test]
fn what_was_answered_is_answered_once() {
    let mut exchanges = asked();
    rejected(
        &mut exchanges,
        &reply_to(NtpTime(1), [RealNs(NOON); 2]),
        Reject::BogusOrigin,
    );
    assert!(matches!(
        answer(&mut exchanges, &good(), 2_000),
        Received::Exchange(_)
    ));
    rejected(&mut exchanges, &good(), Reject::Replayed);
    // The next request makes the one before a thing of the past, answered or not.
    ask(&mut exchanges, NtpTime(5), 3_000);
    rejected(&mut exchanges, &good(), Reject::BogusOrigin);
    assert_eq!(exchanges.matched_count(), 1);
}

#[test]
fn what_is_none_of_a_client_is_passed_over() {
    let mut exchanges = asked();
    let [from, other] = ["10.9.0.9:123", "10.9.0.2:124"].map(|it| it.parse().unwrap());
    let mut look = |from, payload: &[u8]| {
        let to = client();
        let datagram = Datagram { from, to, payload };
        exchanges.received(&datagram, TscCycles(2_000), RealNs(NOON))
    };
    assert_eq!(look(from, &request(COOKIE)), Received::Other);
    assert_eq!(look(other, &good()), Received::Other);
    assert_eq!(
        look(from, &good()),
        Received::Rejected(from, Reject::Unasked)
    );
    // A reply of a server here is no request.
    let datagram = Datagram {
        from: server(),
        to: from,
        payload: &good(),
    };
    exchanges.sent(&datagram, TscCycles(1));
    assert_eq!(exchanges.sent_count(), 1);
}

#[test]
fn memory_is_bounded() {
    let mut exchanges = Exchanges::new(PORT);
    for number in 0..1_000u16 {
        let [high, low] = number.to_be_bytes();
        let datagram = Datagram {
            from: client(),
            to: SocketAddr::from(([10, 9, high, low], PORT)),
            payload: &request(COOKIE),
        };
        exchanges.sent(&datagram, TscCycles(1));
    }
    assert_eq!(exchanges.requests.len(), MOST_REQUESTS);
}

proptest! {
    /// Whatever is sent back: at most one exchange a request, each datagram has one outcome.
    #[test]
    fn every_datagram_is_counted_once(
        turns in proptest::collection::vec(
            (any::<bool>(), 0usize..60, any::<u8>(), 0usize..49), 1..60,
        ),
    ) {
        let mut exchanges = Exchanges::new(PORT);
        let (mut asked, mut came, mut others) = (0, 0, 0);
        let mut cookie = NtpTime(1);
        for (asks, at, byte, length) in turns {
            if asks {
                cookie = NtpTime(cookie.0 + 1);
                ask(&mut exchanges, cookie, asked * 1_000);
                asked += 1;
                continue;
            }
            let mut bytes = reply_to(cookie, [RealNs(NOON), RealNs(NOON + 5)]);
            if let Some(place) = bytes.get_mut(at) {
                *place = byte;
            }
            let length = if length % 3 == 0 { length } else { 48 };
            let found = answer(&mut exchanges, &bytes[..length], asked * 1_000 + 500);
            others += u64::from(found == Received::Other);
            came += 1;
        }
        let counted = exchanges.matched_count() + exchanges.rejects().total();
        prop_assert_eq!(counted + others, came);
        prop_assert!(exchanges.matched_count() <= asked);
        prop_assert_eq!(exchanges.sent_count(), asked);
    }
}
