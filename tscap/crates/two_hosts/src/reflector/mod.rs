//! The session-reflector (RFC 8762, section 4.3; RFC 8972): whom it answers, and what.
//!
//! - `policy`: what it was asked to be;
//! - `budget`: how many replies each source, and all of them, may have;
//! - `sessions`: sequence numbers, and what has been answered before;
//! - `socket`: receives requests with their stamps, and sends replies;
//! - `reply_stamps`: when replies left;
//! - `reflecting`: the thread that does so.
//!
//! Each request has one [`Outcome`]. A reply never has more octets than its request, but for the
//! short requests of TWAMP light, which are answered on demand only.

mod budget;
mod outcome;
mod policy;
mod reflecting;
mod reply_stamps;
mod sessions;
mod socket;

use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

use budget::Budget;
use sessions::{SessionId, Sessions};
use tscap_clock::RealNs;
use tscap_protocol::{
    ErrorEstimate, FollowUp, Malformed, Mode, Reflection, Reply, Request, SyncSource, TimeFormat,
    Timestamp, authenticates, reflect, sign,
};

pub use outcome::{Outcome, Outcomes};
pub use policy::{Policy, Rate};
pub use reflecting::{Clock, Reflecting, Watch};
pub use socket::Socket;

/// Octets of the shortest request of TWAMP light: sequence number, timestamp, error estimate (RFC
/// 5357, appendix I).
const TWAMP_LIGHT: usize = 14;

/// A request that has come.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// Its UDP payload.
    pub packet: &'a [u8],
    /// Who sent it.
    pub from: SocketAddr,
    /// The address that it was sent to.
    pub to: IpAddr,
    /// This host's address that it was received by: another one than `to` if that is a broadcast.
    pub local: IpAddr,
    /// T2.
    pub at: RealNs,
    /// Its time to live, or hop limit.
    pub ttl: u8,
}

/// What is known of this host's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockState {
    /// How far off it is.
    pub error: ErrorEstimate,
    /// What it follows.
    pub source: SyncSource,
}

/// A reply, ready to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Octets of it.
    pub length: usize,
    /// The request asks when the reply before left.
    pub asks_to_follow_up: bool,
    session: Option<SessionId>,
    sequence: u32,
    /// T3 by this process, which is before it leaves.
    at: RealNs,
}

/// A session-reflector, without its socket.
#[derive(Debug)]
pub struct Reflector {
    policy: Policy,
    budget: Budget,
    sessions: Sessions,
}

impl Reflector {
    /// That answers as the policy says.
    pub fn new(policy: Policy) -> Self {
        Self {
            budget: Budget::new(policy.per_source, policy.whole),
            sessions: Sessions::new(policy.most_sessions),
            policy,
        }
    }

    /// Writes the reply to a request to `reply`, which has room for the longest datagram.
    /// `now` tells when T3 is, and `at` is for what a monotonic clock is enough for.
    ///
    /// # Errors
    /// Why there is none.
    pub fn answer(
        &mut self,
        arrival: &Arrival<'_>,
        clock: ClockState,
        at: Instant,
        now: impl FnOnce() -> RealNs,
        reply: &mut [u8],
    ) -> Result<Answer, Outcome> {
        self.admit(arrival, at)?;
        let packet = arrival.packet;
        let (mode, length) = self.shape(packet)?;
        // Of a reflector at any port: whoever forges a source would have two answer each other.
        if Reply::is_one(packet, mode) {
            return Err(Outcome::FromReflector);
        }
        let buffer = &mut reply[..length];
        buffer[..packet.len()].copy_from_slice(packet);
        buffer[packet.len()..].fill(0);
        let request = Request::parse(buffer, mode).map_err(|malformed| match malformed {
            Malformed::Short => Outcome::Short,
            Malformed::ErrorEstimate => Outcome::Corrupt,
        })?;
        if let Some(key) = &self.policy.key
            && !authenticates(packet, key)
        {
            return Err(Outcome::NotAuthentic);
        }
        if !self.policy.takes_session(request.ssid) {
            return Err(Outcome::UnknownSession);
        }
        let (session, sequence, follow_up) = self.session(arrival, &request, at)?;
        let extensions = &mut buffer[mode.base()..];
        let asks_to_follow_up = tscap_protocol::asks_to_follow_up(extensions);
        let reflection = Reflection {
            source: clock.source,
            follow_up,
        };
        let sequences = [request.sequence, sequence];
        // What became of them is in their flags.
        reflect(extensions, sequences, &reflection, self.policy.key.as_ref());
        let time = |real| Timestamp::of(real, TimeFormat::Ntp, 0);
        let left = now();
        let answer = Reply {
            sequence,
            timestamp: time(left),
            error: clock.error,
            ssid: request.ssid,
            received: time(arrival.at),
            sender_sequence: request.sequence,
            sender_timestamp: request.timestamp,
            sender_error: request.error.to_bits(),
            sender_ttl: arrival.ttl,
        };
        answer.write(mode, buffer);
        if let Some(key) = &self.policy.key {
            sign(buffer, key);
        }
        Ok(Answer {
            length,
            asks_to_follow_up,
            session,
            sequence,
            at: left,
        })
    }

    /// A reply has left, as the kernel says. What is before it was made is another one's.
    pub fn left(&mut self, answer: &Answer, at: RealNs) {
        if let Some(session) = &answer.session
            && at >= answer.at
        {
            let reported = FollowUp {
                sequence: answer.sequence,
                timestamp: Timestamp::of(at, TimeFormat::Ntp, 0),
                method: tscap_protocol::Method::Software as u8,
            };
            self.sessions.follow_up(session, reported);
        }
    }

    /// Sessions that are remembered.
    pub fn sessions(&self) -> usize {
        self.sessions.count()
    }

    /// What anybody can forge comes first, and costs least.
    fn admit(&mut self, arrival: &Arrival<'_>, at: Instant) -> Result<(), Outcome> {
        let port = arrival.from.port();
        // Two reflectors would answer each other without end.
        if port == self.policy.port || port == tscap_protocol::PORT || port == 0 {
            return Err(Outcome::FromReflector);
        }
        if arrival.to != arrival.local || arrival.to.is_multicast() {
            return Err(Outcome::NotToOne);
        }
        if !policy::is_one_host(arrival.from.ip()) {
            return Err(Outcome::NotFromOne);
        }
        if !self.policy.allows(arrival.from.ip()) {
            return Err(Outcome::NotAllowed);
        }
        if !self.budget.takes(arrival.from.ip(), at) {
            return Err(Outcome::TooMany);
        }
        Ok(())
    }

    /// The mode of a request, and the octets of its reply.
    fn shape(&self, packet: &[u8]) -> Result<(Mode, usize), Outcome> {
        let mode = match self.policy.key {
            Some(_) => Mode::Authenticated,
            None => Mode::Unauthenticated,
        };
        let is_light = self.policy.takes_twamp_light && mode == Mode::Unauthenticated;
        match packet.len() {
            length if length >= mode.base() => Ok((mode, length)),
            TWAMP_LIGHT.. if is_light => Ok((mode, mode.base())),
            _ if mode == Mode::Authenticated && packet.len() >= Mode::Unauthenticated.base() => {
                Err(Outcome::NotAuthentic)
            }
            _ => Err(Outcome::Short),
        }
    }

    fn session(
        &mut self,
        arrival: &Arrival<'_>,
        request: &Request,
        at: Instant,
    ) -> Result<(Option<SessionId>, u32, Option<FollowUp>), Outcome> {
        if self.policy.is_stateless {
            return Ok((None, request.sequence, None));
        }
        let id = SessionId {
            from: arrival.from,
            to: arrival.local,
            ssid: request.ssid,
        };
        let (sequence, follow_up) = self.sessions.take(&id, request, at)?;
        Ok((Some(id), sequence, follow_up))
    }
}

#[cfg(test)]
mod tests;
