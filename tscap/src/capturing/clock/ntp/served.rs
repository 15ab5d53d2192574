//! Requests to a server on this host, and its replies: what its own stamps are like.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;

use super::packet::{CLIENT, Packet, SERVER};
use super::{Datagram, NtpTime};
use crate::capturing::clock::{RealNs, TscCycles};

/// Requests that are remembered until their reply leaves.
pub const MOST_OPEN: usize = 4_096;

/// A request that was served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service {
    /// The client.
    pub client: SocketAddr,
    /// The counter when the request came in and when the reply went out.
    pub tsc: [TscCycles; 2],
    /// The server's stamps of the same: Tb and Te.
    pub real: [RealNs; 2],
}

/// Matches replies with requests, in bounded memory.
#[derive(Debug)]
pub struct Served {
    port: u16,
    open: HashMap<(SocketAddr, NtpTime), TscCycles>,
    /// The oldest first; those served stand here until their turn.
    order: VecDeque<(SocketAddr, NtpTime, TscCycles)>,
    /// Requests that came in.
    pub requests: u64,
    /// Replies that belong to one.
    pub served: u64,
    /// Replies that belong to none that is remembered, as of the interleaved mode.
    pub unmatched: u64,
    /// Requests without a reply, forgotten for want of room.
    pub forgotten: u64,
}

impl Served {
    /// A server at this port.
    pub fn new(port: u16) -> Self {
        Self {
            port,
            open: HashMap::new(),
            order: VecDeque::new(),
            requests: 0,
            served: 0,
            unmatched: 0,
            forgotten: 0,
        }
    }

    /// Requests without a reply so far.
    pub fn open(&self) -> u64 {
        self.open.len() as u64
    }

    /// Takes in what arrived at `at`.
    pub fn received(&mut self, datagram: &Datagram<'_>, at: TscCycles) {
        let packet = Packet::parse(datagram.payload).ok();
        let request = packet.filter(|it| it.mode == CLIENT && datagram.to.port() == self.port);
        let Some(request) = request else {
            return;
        };
        self.requests += 1;
        let key = (datagram.from, request.transmit);
        if self.order.len() == MOST_OPEN
            && let Some((from, cookie, at)) = self.order.pop_front()
            && self.open.get(&(from, cookie)) == Some(&at)
        {
            self.open.remove(&(from, cookie));
            self.forgotten += 1;
        }
        // The same request once more: the later one counts, as the server can't tell either.
        if self.open.insert(key, at).is_some() {
            self.forgotten += 1;
        }
        self.order.push_back((key.0, key.1, at));
    }

    /// Takes in what left at `at`. The host's clock, `near`, tells the era of its times.
    pub fn sent(
        &mut self,
        datagram: &Datagram<'_>,
        at: TscCycles,
        near: RealNs,
    ) -> Option<Service> {
        let packet = Packet::parse(datagram.payload).ok();
        let reply = packet.filter(|it| it.mode == SERVER && datagram.from.port() == self.port)?;
        let Some(came) = self.open.remove(&(datagram.to, reply.origin)) else {
            self.unmatched += 1;
            return None;
        };
        self.served += 1;
        Some(Service {
            client: datagram.to,
            tsc: [came, at],
            real: [reply.receive, reply.transmit].map(|time| time.to_real(near)),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::fixtures::{NOON, reply_to};
    use super::super::{PORT, request};
    use super::*;

    fn ends(client: u16) -> [SocketAddr; 2] {
        [
            SocketAddr::from(([10, 9, 0, 1], client)),
            SocketAddr::from(([10, 9, 0, 2], PORT)),
        ]
    }

    fn come(served: &mut Served, client: u16, cookie: u64, at: u64) {
        let [from, to] = ends(client);
        let payload = &request(NtpTime(cookie));
        served.received(&Datagram { from, to, payload }, TscCycles(at));
    }

    fn leave(served: &mut Served, client: u16, cookie: u64, at: u64) -> Option<Service> {
        let [to, from] = ends(client);
        let payload = &reply_to(NtpTime(cookie), [NOON + 1, NOON + 7].map(RealNs));
        let datagram = Datagram { from, to, payload };
        served.sent(&datagram, TscCycles(at), RealNs(NOON))
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
                match comes {
                    true => come(&mut served, client, cookie, 5),
                    false => drop(leave(&mut served, client, cookie, 6)),
                }
            }
            prop_assert!(served.open.len() <= MOST_OPEN && served.order.len() <= MOST_OPEN);
            let outcomes = served.served + served.forgotten + served.open();
            prop_assert_eq!(served.requests, outcomes);
        }
    }
}
