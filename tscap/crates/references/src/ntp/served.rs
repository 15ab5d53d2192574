//! Requests to a server on this host, and its replies: what its own stamps are like.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::net::{IpAddr, SocketAddr};

use super::packet::{CLIENT, Packet, SERVER};
use super::{Datagram, NtpTime, PacketStamp};
use tscap_clock::{RealNs, TscCycles};

/// Requests that are remembered until their reply leaves.
pub const MOST_OPEN: usize = 4_096;

/// A request that was served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service {
    /// The client.
    pub client: SocketAddr,
    /// The counter when the request came in and when the reply went out.
    pub tsc: [TscCycles; 2],
    /// Greatest error of these, ns.
    pub stamp_error_ns: u64,
    /// The server's stamps of the same: Tb and Te.
    pub real: [RealNs; 2],
}

/// Matches replies with requests, in bounded memory.
#[derive(Debug)]
pub struct Served {
    port: u16,
    /// By the client and the transmit time.
    open: Latest<(SocketAddr, NtpTime), Request>,
    /// The transmit times of those that may be answered in the interleaved mode, by the client
    /// and the receive time.
    interleaved: Latest<(SocketAddr, NtpTime), NtpTime>,
    /// Replies in that mode: the client's next one tells when they left. A daemon may take
    /// another port for each request.
    untold: Latest<(IpAddr, NtpTime), Service>,
    /// Requests that came in.
    pub requests: u64,
    /// Replies that belong to one.
    pub served: u64,
    /// Replies that belong to none that is remembered.
    pub unmatched: u64,
    /// Requests without a reply, forgotten for want of room.
    pub forgotten: u64,
}

/// A request that came in.
#[derive(Clone, Copy, Debug)]
struct Request {
    at: PacketStamp,
    /// The receive time of the reply that it asks about, in the interleaved mode.
    before: NtpTime,
}

impl Served {
    /// A server at this port.
    pub fn new(port: u16) -> Self {
        Self {
            port,
            open: Latest::default(),
            interleaved: Latest::default(),
            untold: Latest::default(),
            requests: 0,
            served: 0,
            unmatched: 0,
            forgotten: 0,
        }
    }

    /// Requests without a reply so far.
    pub fn open(&self) -> u64 {
        self.open.found.len() as u64
    }

    /// Takes in what arrived at `at`.
    pub fn received(&mut self, datagram: &Datagram<'_>, at: PacketStamp) {
        let packet = Packet::parse(datagram.payload).ok();
        let request = packet.filter(|it| it.mode == CLIENT && datagram.to.port() == self.port);
        let Some(request) = request else {
            return;
        };
        self.requests += 1;
        let (client, before) = (datagram.from, request.origin);
        // The same request once more: the later one counts, as the server can't tell either.
        self.forgotten += self
            .open
            .insert((client, request.transmit), Request { at, before });
        if request.receive != NtpTime::NONE {
            let _ = self
                .interleaved
                .insert((client, request.receive), request.transmit);
        }
    }

    /// Takes in what left at `at`. The host's clock, `near`, tells the era of its times. Gives
    /// what is known with it: of a reply in the interleaved mode the service before.
    pub fn sent(
        &mut self,
        datagram: &Datagram<'_>,
        at: PacketStamp,
        near: RealNs,
    ) -> Option<Service> {
        let packet = Packet::parse(datagram.payload).ok();
        let reply = packet.filter(|it| it.mode == SERVER && datagram.from.port() == self.port)?;
        let client = datagram.to;
        let transmit = self.interleaved.remove(&(client, reply.origin));
        let key = (client, transmit.unwrap_or(reply.origin));
        let Some(request) = self.open.remove(&key) else {
            self.unmatched += 1;
            return None;
        };
        self.served += 1;
        let [arrived, left] = [reply.receive, reply.transmit].map(|time| time.to_real(near));
        let this = Service {
            client,
            tsc: [request.at.tsc, at.tsc],
            stamp_error_ns: PacketStamp::error_of([request.at, at]),
            real: [arrived, left],
        };
        if transmit.is_none() {
            return Some(this);
        }
        let _ = self.untold.insert((client.ip(), reply.receive), this);
        let reported = self.untold.remove(&(client.ip(), request.before))?;
        Some(Service {
            real: [reported.real[0], left],
            ..reported
        })
    }
}

/// The latest [`MOST_OPEN`] values, by their keys.
#[derive(Debug)]
struct Latest<K, V> {
    found: HashMap<K, (u64, V)>,
    /// The oldest first; those removed stand here until their turn.
    order: VecDeque<(u64, K)>,
    inserted: u64,
}

impl<K, V> Default for Latest<K, V> {
    fn default() -> Self {
        Self {
            found: HashMap::new(),
            order: VecDeque::new(),
            inserted: 0,
        }
    }
}

impl<K: Copy + Eq + Hash, V> Latest<K, V> {
    /// Gives how many values it forgot for this one.
    fn insert(&mut self, key: K, value: V) -> u64 {
        let mut forgotten = 0;
        if self.order.len() == MOST_OPEN
            && let Some((number, key)) = self.order.pop_front()
            && self.found.get(&key).is_some_and(|it| it.0 == number)
        {
            self.found.remove(&key);
            forgotten += 1;
        }
        self.inserted += 1;
        self.order.push_back((self.inserted, key));
        let before = self.found.insert(key, (self.inserted, value));
        forgotten + u64::from(before.is_some())
    }

    fn remove(&mut self, key: &K) -> Option<V> {
        self.found.remove(key).map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::fixtures::{NOON, exactly, reply_to};
    use super::super::{Interleaved, PORT, request};
    use super::*;

    fn ends(client: u16) -> [SocketAddr; 2] {
        [
            SocketAddr::from(([10, 9, 0, 1], client)),
            SocketAddr::from(([10, 9, 0, 2], PORT)),
        ]
    }

    fn come(served: &mut Served, client: u16, cookie: u64, at: u64) {
        let [from, to] = ends(client);
        let payload = &request(NtpTime(cookie), None);
        served.received(&Datagram { from, to, payload }, exactly(at));
    }

    fn leave(served: &mut Served, client: u16, cookie: u64, at: u64) -> Option<Service> {
        let [to, from] = ends(client);
        let payload = &reply_to(NtpTime(cookie), [NOON + 1, NOON + 7].map(RealNs));
        let datagram = Datagram { from, to, payload };
        served.sent(&datagram, exactly(at), RealNs(NOON))
    }

    #[test]
    fn a_reply_is_matched_by_client_and_origin() {
        let mut served = Served::new(PORT);
        come(&mut served, 1_000, 1, 100);
        come(&mut served, 1_001, 1, 200);
        assert_eq!(leave(&mut served, 1_000, 2, 300), None);
        let found = leave(&mut served, 1_001, 1, 300).unwrap();
        assert_eq!(found.tsc, [TscCycles(200), TscCycles(300)]);
        assert_eq!(found.real, [RealNs(NOON + 1), RealNs(NOON + 7)]);
        // A request is served once.
        assert_eq!(leave(&mut served, 1_001, 1, 300), None);
        let counts = (
            served.requests,
            served.served,
            served.unmatched,
            served.open(),
        );
        assert_eq!(counts, (2, 1, 2, 1));
    }

    #[test]
    fn what_is_of_no_server_here_is_passed_over() {
        let mut served = Served::new(PORT);
        let [client, server] = ends(1_000);
        let elsewhere = SocketAddr::new(server.ip(), PORT + 1);
        let asks = &request(NtpTime(1), None)[..];
        let replies = &reply_to(NtpTime(1), [NOON + 1, NOON + 7].map(RealNs))[..];
        for (to, payload) in [(elsewhere, asks), (server, replies)] {
            let from = client;
            served.received(&Datagram { from, to, payload }, exactly(1));
        }
        for (from, payload) in [(elsewhere, replies), (server, asks)] {
            let to = client;
            let datagram = Datagram { from, to, payload };
            assert_eq!(served.sent(&datagram, exactly(2), RealNs(NOON)), None);
        }
        assert_eq!((served.requests, served.unmatched), (0, 0));
    }

    /// One that is asked for once more is as young as that.
    #[test]
    fn the_oldest_is_forgotten() {
        let mut latest = Latest::default();
        assert_eq!(latest.insert(0, "before"), 0);
        assert_eq!(latest.insert(0, "after"), 1);
        let others = 1..MOST_OPEN as u32;
        let forgotten: u64 = others.map(|key| latest.insert(key, "other")).sum();
        assert_eq!((forgotten, latest.remove(&0)), (0, Some("after")));
        assert_eq!(latest.insert(0, "again"), 0);
        assert_eq!(latest.insert(MOST_OPEN as u32, "one more"), 1);
        assert_eq!(latest.remove(&1), None);
    }

    /// A reply in the interleaved mode tells when the one before left.
    #[test]
    fn an_interleaved_reply_belongs_to_the_service_before() {
        let mut served = Served::new(PORT);
        let (mut before, mut found) = (NtpTime(0), Vec::new());
        for round in 1..=4 {
            // Another port each time, as chronyd does it.
            let [client, server] = ends(1_000 + round as u16);
            let cookie = NtpTime(100 + round);
            let interleaved = (round > 1).then_some(Interleaved { before, cookie });
            let payload = &request(NtpTime(round), interleaved);
            let (from, to) = (client, server);
            served.received(&Datagram { from, to, payload }, exactly(round * 1_000));
            // The third reply is the first that a server may interleave.
            let times = [round * 1_000, round * 1_000 - 900].map(|at| RealNs(NOON + at));
            let (origin, times) = match round {
                3.. => (cookie, times),
                _ => (NtpTime(round), [times[0], RealNs(times[0].0 + 1)]),
            };
            before = NtpTime::of(times[0]);
            let payload = &reply_to(origin, times);
            let (from, to) = (server, client);
            let at = exactly(round * 1_000 + 100);
            let service = served.sent(&Datagram { from, to, payload }, at, RealNs(NOON));
            found.extend(service.map(|it| (it.tsc.map(|it| it.0), it.real.map(|it| it.0 - NOON))));
        }
        let basic = [
            ([1_000, 1_100], [1_000, 1_001]),
            ([2_000, 2_100], [2_000, 2_001]),
        ];
        let interleaved = ([3_000, 3_100], [3_000, 3_100]);
        assert_eq!(found, [&basic[..], &[interleaved]].concat());
        assert_eq!(
            (served.requests, served.served, served.unmatched),
            (4, 4, 0)
        );
    }

    proptest! {
        #[test]
        fn every_request_has_an_outcome_and_memory_is_bounded(
            turns in proptest::collection::vec((any::<bool>(), 0u16..3, 0u64..5_000), 1..200),
            many in 0u64..10_000,
        ) {
            let mut served = Served::new(PORT);
            for cookie in 0..many {
                come(&mut served, 9, cookie, cookie);
            }
            for (comes, client, cookie) in turns {
                if comes {
                    come(&mut served, client, cookie, 5);
                } else {
                    leave(&mut served, client, cookie, 6);
                }
            }
            let lengths = (served.open.found.len(), served.open.order.len());
            prop_assert!(lengths.0 <= MOST_OPEN && lengths.1 <= MOST_OPEN);
            let outcomes = served.served + served.forgotten + served.open();
            prop_assert_eq!(served.requests, outcomes);
        }
    }
}
