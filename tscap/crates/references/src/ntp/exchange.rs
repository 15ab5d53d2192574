//! Requests and their replies, as an interface shows them.

use std::collections::VecDeque;
use std::net::SocketAddr;

use serde::Serialize;

use super::packet::{CLIENT, KissCode, Packet, PacketError, SERVER};
use super::{Datagram, NtpTime, PacketStamp};
use tscap_clock::{Bracket, RealNs, TscCycles};

/// Requests that are remembered: one to each server, of this many servers.
const MOST_REQUESTS: usize = 64;
/// The versions that have this header (RFC 5905, section 7.3; 1: RFC 1059).
const VERSIONS: std::ops::RangeInclusive<u8> = 1..=4;
/// A server whose root distance is greater is of no use: MAXDIST (RFC 5905, section 7.2).
const MOST_DISTANCE_NS: u64 = 1_000_000_000;

/// A request and its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// The server.
    pub server: SocketAddr,
    /// The counter when the request left (Ta) and when the reply arrived (Tf).
    pub tsc: [TscCycles; 2],
    /// Greatest error of these, ns.
    pub stamp_error_ns: u64,
    /// The server's clock when the request arrived (Tb) and when the reply left (Te).
    pub real: [RealNs; 2],
    /// The reply that left then.
    pub packet: Packet,
}

impl Exchange {
    /// What the server's clock read between two readings of the counter, strictly, whatever
    /// the shares of both ways: each stamp of the counter is off by `stamp_error` cycles, each
    /// of the server by its precision (whose random bits are below that: RFC 5905, section 6).
    pub fn bracket(&self, stamp_error: u64) -> Bracket {
        let [sent, received] = self.tsc;
        let [arrived, left] = self.real;
        let precision_ns = self.packet.precision_ns;
        Bracket {
            tsc: [
                TscCycles(sent.0.saturating_sub(stamp_error)),
                TscCycles(received.0.saturating_add(stamp_error)),
            ],
            real: [
                RealNs(arrived.0.saturating_add(precision_ns)),
                RealNs(left.0.saturating_sub(precision_ns)),
            ],
        }
    }
}

/// Why a reply is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reject {
    /// It has fewer than 48 bytes.
    Short,
    /// Its length is no whole number of 32-bit words.
    Ragged,
    /// Its version has another header.
    Version,
    /// It is of another mode than a server's.
    Mode,
    /// Nobody asked that server from there.
    Unasked,
    /// Its origin is of neither mode of the request: it is forged, or of an earlier one.
    BogusOrigin,
    /// The request was answered before.
    Replayed,
    /// A kiss-o'-death has no time.
    Kiss,
    /// The server says that its clock is not synchronised.
    Unsynchronised,
    /// The server has not said when the request arrived, or when its reply left.
    NoTime,
    /// The reply left before the request arrived.
    Backwards,
    /// The server's root distance is more than a second.
    RootDistance,
}

impl Reject {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::Short,
        Self::Ragged,
        Self::Version,
        Self::Mode,
        Self::Unasked,
        Self::BogusOrigin,
        Self::Replayed,
        Self::Kiss,
        Self::Unsynchronised,
        Self::NoTime,
        Self::Backwards,
        Self::RootDistance,
    ];

    /// Whether it answers the request: only who has seen that can have sent it.
    pub const fn is_answer(self) -> bool {
        match self {
            Self::Kiss
            | Self::Unsynchronised
            | Self::NoTime
            | Self::Backwards
            | Self::RootDistance => true,
            Self::Short
            | Self::Ragged
            | Self::Version
            | Self::Mode
            | Self::Unasked
            | Self::BogusOrigin
            | Self::Replayed => false,
        }
    }

    /// What is wrong with the reply, for people.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Short => "it is shorter than an NTP packet",
            Self::Ragged => "its length is none of an NTP packet",
            Self::Version => "its version is not 1 to 4",
            Self::Mode => "it is no reply of a server",
            Self::Unasked => "nobody asked",
            Self::BogusOrigin => "it does not answer the latest request",
            Self::Replayed => "the request was answered before",
            Self::Kiss => "it is a kiss-o'-death",
            Self::Unsynchronised => "the server says that its clock is not synchronised",
            Self::NoTime => "it has no time",
            Self::Backwards => "it left before the request arrived, by the server's clock",
            Self::RootDistance => "the server's root distance is more than 1 s",
        }
    }
}

/// How many replies were rejected for which reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rejects([u64; Reject::ALL.len()]);

impl Rejects {
    /// How many for this one.
    pub fn of(&self, reject: Reject) -> u64 {
        self.0[reject as usize]
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    fn count(&mut self, reject: Reject) {
        self.0[reject as usize] += 1;
    }
}

impl Serialize for Rejects {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let counted = Reject::ALL.into_iter().filter(|it| self.of(*it) > 0);
        serializer.collect_map(counted.map(|it| (it, self.of(it))))
    }
}

/// What a datagram that came in is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// A request and its reply: this one, or the one before, of which this one tells when it
    /// left.
    Exchange(Exchange),
    /// A reply to a request, of which the next one may tell when it left. The exchange before
    /// was known.
    Kept,
    /// The server wants to be left alone, or asked less: it answers the request.
    Kiss(SocketAddr, KissCode),
    /// A reply that is not used.
    Rejected(SocketAddr, Reject),
    /// No reply: a request to a server on this host, for instance.
    Other,
}

/// A request that left.
#[derive(Clone, Copy, Debug)]
struct Request {
    from: SocketAddr,
    server: SocketAddr,
    cookie: NtpTime,
    /// Of the interleaved mode: the other cookie, and the reply that it asks about.
    interleaved: Option<(NtpTime, Reply)>,
    at: PacketStamp,
    is_answered: bool,
    /// The latest good reply of the server to the same host.
    latest: Option<Reply>,
}

#[derive(Clone, Copy, Debug)]
struct Reply {
    at: [PacketStamp; 2],
    arrived: RealNs,
    packet: Packet,
    /// It has been of use, with the transmit time that it had itself.
    is_used: bool,
}

/// Matches replies with requests, in bounded memory: the latest request to each server can
/// be answered once.
#[derive(Debug)]
pub struct Exchanges {
    /// Port of the servers.
    port: u16,
    requests: VecDeque<Request>,
    sent: u64,
    matched: u64,
    rejects: Rejects,
}

impl Exchanges {
    /// With servers at this port.
    pub fn new(port: u16) -> Self {
        Self {
            port,
            requests: VecDeque::new(),
            sent: 0,
            matched: 0,
            rejects: Rejects::default(),
        }
    }

    /// Takes in what left at `at`.
    pub fn sent(&mut self, datagram: &Datagram<'_>, at: PacketStamp) {
        let packet = Packet::parse(datagram.payload).ok();
        let request = packet.filter(|it| it.mode == CLIENT && datagram.to.port() == self.port);
        let Some(request) = request else {
            return;
        };
        // A daemon may take another port for each request.
        let mut requests = self.requests.iter();
        let before = requests.find(|it| it.server == datagram.to);
        let before = before.filter(|it| it.from.ip() == datagram.from.ip());
        let latest = before.and_then(|it| it.latest);
        self.requests.retain(|it| it.server != datagram.to);
        if self.requests.len() == MOST_REQUESTS {
            self.requests.pop_front();
        }
        self.sent += 1;
        self.requests.push_back(Request {
            from: datagram.from,
            server: datagram.to,
            cookie: request.transmit,
            interleaved: latest
                .filter(|it| it.packet.receive == request.origin)
                .map(|it| (request.receive, it))
                .filter(|(cookie, _)| ![NtpTime::NONE, request.transmit].contains(cookie)),
            at,
            is_answered: false,
            latest,
        });
    }

    /// The receive time of the server's latest good reply: what a request in the interleaved
    /// mode asks about.
    pub fn latest(&self, server: SocketAddr) -> Option<NtpTime> {
        let request = self.requests.iter().find(|it| it.server == server)?;
        Some(request.latest?.packet.receive)
    }

    /// The counter jumped: nothing of before can be matched.
    pub fn begin_anew(&mut self) {
        self.requests.clear();
    }

    /// Takes in what arrived at `at`. The host's clock, `near`, tells the era of its times.
    pub fn received(&mut self, datagram: &Datagram<'_>, at: PacketStamp, near: RealNs) -> Received {
        let server = datagram.from;
        let packet = Packet::parse(datagram.payload);
        let is_from_client = matches!(&packet, Ok(packet) if packet.mode == CLIENT);
        if server.port() != self.port || is_from_client {
            return Received::Other;
        }
        let received = match self.judge(datagram, packet, at, near) {
            Ok(exchange) => {
                self.matched += 1;
                return exchange.map_or(Received::Kept, Received::Exchange);
            }
            Err(Refused::Kiss(code)) => (Reject::Kiss, Received::Kiss(server, code)),
            Err(Refused::Rejected(reject)) => (reject, Received::Rejected(server, reject)),
        };
        self.rejects.count(received.0);
        received.1
    }

    /// The checks of a packet (RFC 5905, sections 7.4, 8 and 9.2, `packet` in A.5.1, and RFC
    /// 9769, section 2), from what anybody can forge to what only the server can say.
    fn judge(
        &mut self,
        datagram: &Datagram<'_>,
        packet: Result<Packet, PacketError>,
        at: PacketStamp,
        near: RealNs,
    ) -> Result<Option<Exchange>, Refused> {
        let reject = |is_so: bool, reject| {
            if is_so {
                Err(Refused::Rejected(reject))
            } else {
                Ok(())
            }
        };
        let packet = packet.map_err(|error| {
            Refused::Rejected(match error {
                PacketError::Short => Reject::Short,
                PacketError::Ragged => Reject::Ragged,
            })
        })?;
        reject(!VERSIONS.contains(&packet.version), Reject::Version)?;
        reject(packet.mode != SERVER, Reject::Mode)?;
        let mut requests = self.requests.iter_mut();
        let request = requests.find(|it| it.server == datagram.from && it.from == datagram.to);
        let request = request.ok_or(Refused::Rejected(Reject::Unasked))?;
        let is_basic = packet.origin == request.cookie;
        // The reply that an interleaved one tells of.
        let before = request.interleaved.filter(|it| it.0 == packet.origin);
        reject(!is_basic && before.is_none(), Reject::BogusOrigin)?;
        reject(request.is_answered, Reject::Replayed)?;
        request.is_answered = true;
        if packet.stratum == 0 {
            return Err(Refused::Kiss(KissCode(packet.reference_id)));
        }
        reject(!packet.is_synchronised(), Reject::Unsynchronised)?;
        let times = [packet.receive, packet.transmit];
        reject(times.contains(&NtpTime::NONE), Reject::NoTime)?;
        let [arrived, left] = times.map(|time| time.to_real(near));
        let distance_ns = packet.root_distance_ns();
        let reply = Reply {
            at: [request.at, at],
            arrived,
            packet,
            is_used: is_basic,
        };
        let reported = before.map_or(reply, |it| it.1);
        reject(left < reported.arrived, Reject::Backwards)?;
        reject(distance_ns > MOST_DISTANCE_NS, Reject::RootDistance)?;
        request.latest = Some(reply);
        let exchange = Exchange {
            server: datagram.from,
            tsc: reported.at.map(|it| it.tsc),
            stamp_error_ns: PacketStamp::error_of(reported.at),
            real: [reported.arrived, left],
            packet: reported.packet,
        };
        Ok((is_basic || !reported.is_used).then_some(exchange))
    }

    /// Requests that left.
    pub fn sent_count(&self) -> u64 {
        self.sent
    }

    /// Replies of use.
    pub fn matched_count(&self) -> u64 {
        self.matched
    }

    /// Replies that were not.
    pub fn rejects(&self) -> Rejects {
        self.rejects
    }
}

enum Refused {
    Kiss(KissCode),
    Rejected(Reject),
}

#[cfg(test)]
mod tests;
