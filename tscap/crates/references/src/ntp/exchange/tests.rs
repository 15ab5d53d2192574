use proptest::prelude::*;

use super::super::fixtures::{NOON, exactly, reply_to};
use super::super::{Interleaved, PORT, request};
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
        payload: &request(cookie, None),
    };
    exchanges.sent(&datagram, exactly(at));
}

fn answer(exchanges: &mut Exchanges, payload: &[u8], at: u64) -> Received {
    let datagram = Datagram {
        from: server(),
        to: client(),
        payload,
    };
    exchanges.received(&datagram, exactly(at), RealNs(NOON))
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

/// A client and a server in the interleaved mode, the fields of which are these.
struct Talk {
    exchanges: Exchanges,
    round: u64,
}

impl Talk {
    /// Asks, about the latest reply if there is one, from another port each time as chronyd
    /// does, and gives the cookies of both modes.
    fn ask(&mut self) -> [NtpTime; 2] {
        self.round += 1;
        let [basic, cookie] = [self.round, 1_000 + self.round].map(NtpTime);
        let before = self.exchanges.latest(server());
        let interleaved = before.map(|before| Interleaved { before, cookie });
        let datagram = Datagram {
            from: self.client(),
            to: server(),
            payload: &request(basic, interleaved),
        };
        self.exchanges.sent(&datagram, exactly(self.round * 1_000));
        [basic, cookie]
    }

    fn client(&self) -> SocketAddr {
        SocketAddr::from(([10, 9, 0, 1], 40_000 + self.round as u16))
    }

    /// The reply arrives at 500 of the round, and came to the server at 200.
    fn answer(&mut self, origin: NtpTime, left: u64) -> Received {
        let arrived = self.round * 1_000 + 200;
        let payload = &reply_to(origin, [arrived, left].map(|at| RealNs(NOON + at)));
        let datagram = Datagram {
            from: server(),
            to: self.client(),
            payload,
        };
        let at = exactly(self.round * 1_000 + 500);
        self.exchanges.received(&datagram, at, RealNs(NOON))
    }
}

#[track_caller]
fn exchange(received: Received) -> ([u64; 2], [u64; 2]) {
    let Received::Exchange(found) = received else {
        panic!("no exchange: {received:?}");
    };
    (found.tsc.map(|it| it.0), found.real.map(|it| it.0 - NOON))
}

fn talk() -> Talk {
    Talk {
        exchanges: Exchanges::new(PORT),
        round: 0,
    }
}

#[test]
fn an_interleaved_reply_tells_when_the_one_before_left() {
    let mut talk = talk();
    let [basic, _] = talk.ask();
    assert_eq!(talk.exchanges.latest(server()), None);
    let found = exchange(talk.answer(basic, 1_201));
    assert_eq!(found, ([1_000, 1_500], [1_200, 1_201]));
    // That exchange was used: a better time of it comes too late.
    let [_, cookie] = talk.ask();
    assert_eq!(talk.answer(cookie, 1_300), Received::Kept);
    let [_, cookie] = talk.ask();
    let found = exchange(talk.answer(cookie, 2_300));
    assert_eq!(found, ([2_000, 2_500], [2_200, 2_300]));
    let replayed = talk.answer(cookie, 2_300);
    assert_eq!(replayed, Received::Rejected(server(), Reject::Replayed));
    // A request that is lost, and its reply's time with it.
    talk.ask();
    let [_, cookie] = talk.ask();
    let found = exchange(talk.answer(cookie, 3_300));
    assert_eq!(found, ([3_000, 3_500], [3_200, 3_300]));
    // The server has forgotten the client.
    let [basic, _] = talk.ask();
    let found = exchange(talk.answer(basic, 6_201));
    assert_eq!(found, ([6_000, 6_500], [6_200, 6_201]));
    assert_eq!(talk.exchanges.matched_count(), 5);
}

#[test]
fn an_interleaved_reply_is_looked_at_as_any_other() {
    let mut talk = talk();
    let [basic, _] = talk.ask();
    exchange(talk.answer(basic, 1_201));
    // One that left before its request arrived leaves all as it was.
    let [_, cookie] = talk.ask();
    let backwards = Received::Rejected(server(), Reject::Backwards);
    assert_eq!(talk.answer(cookie, 1_199), backwards);
    let [_, cookie] = talk.ask();
    let bogus = Received::Rejected(server(), Reject::BogusOrigin);
    assert_eq!(talk.answer(NtpTime(cookie.0 + 1), 1_300), bogus);
    assert_eq!(talk.answer(cookie, 1_200), Received::Kept);
    // The counter jumped: the next reply of either mode belongs to nothing.
    let [basic, cookie] = talk.ask();
    talk.exchanges.begin_anew();
    let unasked = Received::Rejected(server(), Reject::Unasked);
    assert_eq!(talk.answer(basic, 4_201), unasked);
    assert_eq!(talk.answer(cookie, 3_300), unasked);
    assert_eq!(talk.exchanges.latest(server()), None);
}

/// A daemon of somebody else says what it wants.
#[test]
fn a_request_that_asks_about_no_reply_is_none_of_the_interleaved_mode() {
    for (origin, receive) in [(7, 8), (0, 0), (0, 8)] {
        let mut talk = talk();
        let [basic, _] = talk.ask();
        exchange(talk.answer(basic, 1_201));
        talk.round += 1;
        let interleaved = Interleaved {
            before: NtpTime(origin),
            cookie: NtpTime(receive),
        };
        let datagram = Datagram {
            from: talk.client(),
            to: server(),
            payload: &request(NtpTime(2), Some(interleaved)),
        };
        talk.exchanges.sent(&datagram, exactly(2_000));
        let bogus = Received::Rejected(server(), Reject::BogusOrigin);
        assert_eq!(talk.answer(NtpTime(receive), 2_300), bogus);
        exchange(talk.answer(NtpTime(2), 2_300));
    }
}

#[test]
fn what_is_none_of_a_client_is_passed_over() {
    let mut exchanges = asked();
    let [from, other] = ["10.9.0.9:123", "10.9.0.2:124"].map(|it| it.parse().unwrap());
    let mut look = |from, payload: &[u8]| {
        let to = client();
        let datagram = Datagram { from, to, payload };
        exchanges.received(&datagram, exactly(2_000), RealNs(NOON))
    };
    assert_eq!(look(from, &request(COOKIE, None)), Received::Other);
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
    exchanges.sent(&datagram, exactly(1));
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
            payload: &request(COOKIE, None),
        };
        exchanges.sent(&datagram, exactly(1));
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

#[test]
fn a_reason_is_told_by_words_and_counted_by_its_name() {
    let words: std::collections::HashSet<_> = Reject::ALL.map(Reject::words).into();
    assert!(words.len() == Reject::ALL.len() && !words.contains(""));
    let mut exchanges = asked();
    rejected(&mut exchanges, &good()[..47], Reject::Short);
    let counted = serde_json::to_value(exchanges.rejects()).unwrap();
    assert_eq!(counted, serde_json::json!({"short": 1}));
}
