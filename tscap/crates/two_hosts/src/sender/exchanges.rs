//! The packets of a session and their replies: which belong together, and what became of each.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use tscap_clock::RawStamp;
use tscap_delay::schema::SessionAccount;
use tscap_protocol::{Key, Malformed, Mode, Reply, Request, Timestamp, Tlvs, authenticates};

/// Packets that are waited for, at most.
const MOST_OPEN: usize = 1 << 20;
/// Packets that were given up and may be answered late, at most.
const MOST_GIVEN_UP: usize = 1 << 16;

/// Why a reply is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reject {
    /// Fewer octets than a reply has.
    Short,
    /// The multiplier of its Error Estimate is 0.
    Corrupt,
    /// It is not signed by the key.
    NotAuthentic,
    /// Its session identifier is another one.
    OtherSession,
    /// No packet of that sequence number was sent.
    Unasked,
    /// It does not give back the timestamp of the packet: it is forged, or of another run.
    Bogus,
    /// It left before the packet arrived, by the peer's clock.
    Backwards,
    /// It has no time of one of both.
    NoTime,
}

impl Reject {
    /// Its name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Short => "short",
            Self::Corrupt => "corrupt",
            Self::NotAuthentic => "not_authentic",
            Self::OtherSession => "other_session",
            Self::Unasked => "unasked",
            Self::Bogus => "bogus",
            Self::Backwards => "backwards",
            Self::NoTime => "no_time",
        }
    }
}

/// A packet and its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answered {
    /// Sequence number, from 0 on, also beyond 32 bits.
    pub sequence: u64,
    /// T1 and T4, by this host's stamps.
    pub own: [RawStamp; 2],
    /// What the reply says.
    pub reply: Reply,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    /// When it left; `None` until that is seen.
    sent: Option<RawStamp>,
    /// T1 as it left.
    timestamp: Timestamp,
    /// The reflector's sequence number of its reply.
    answered: Option<u32>,
    rejected: Option<Reject>,
}

/// The packets of one session, in bounded memory.
#[derive(Debug)]
pub struct Exchanges {
    mode: Mode,
    key: Option<Key>,
    ssid: u16,
    /// In units of the stamps.
    wait: u64,
    /// Number of the first that is open.
    first: u64,
    open: VecDeque<Open>,
    /// Those that were given up, and not answered since.
    given_up: BTreeSet<u64>,
    /// How many that were given up have been answered since.
    revived: u64,
    account: SessionAccount,
    /// Not answered, with one behind it that was, and without.
    missing: [u64; 2],
    /// The latest that was closed was not answered.
    is_missing: bool,
    peer: PeerNumbers,
}

/// The reflector's sequence numbers.
#[derive(Clone, Copy, Debug, Default)]
struct PeerNumbers {
    /// The greatest, and that of the packet with it.
    greatest: Option<(u32, u64)>,
    distinct: u64,
    differs: bool,
    has_followed_up: bool,
}

impl Exchanges {
    /// Of a session. Replies are waited for as long as `wait`, in the unit of the stamps.
    pub fn new(mode: Mode, key: Option<Key>, ssid: u16, wait: u64) -> Self {
        Self {
            mode,
            key,
            ssid,
            wait,
            first: 0,
            open: VecDeque::new(),
            given_up: BTreeSet::new(),
            revived: 0,
            account: SessionAccount::default(),
            missing: [0; 2],
            is_missing: false,
            peer: PeerNumbers::default(),
        }
    }

    /// A packet has left: `payload` is that of its datagram.
    pub fn sent(&mut self, payload: &[u8], at: RawStamp) {
        let Ok(request) = Request::parse(payload, self.mode) else {
            return;
        };
        let sequence = self.extended(request.sequence);
        let Some(place) = sequence.checked_sub(self.first) else {
            return;
        };
        if place >= MOST_OPEN as u64 {
            return;
        }
        let place = place as usize;
        while self.open.len() <= place {
            self.open.push_back(Open {
                sent: None,
                timestamp: Timestamp::NONE,
                answered: None,
                rejected: None,
            });
        }
        let open = &mut self.open[place];
        open.sent.get_or_insert(at);
        open.timestamp = request.timestamp;
    }

    /// Something came to the session's port. Gives the exchange, if it is one.
    pub fn received(&mut self, payload: &[u8], at: RawStamp) -> Option<Answered> {
        match self.judge(payload, at) {
            Ok(answered) => answered,
            Err((place, reject)) => {
                let open = place.and_then(|place| self.open.get_mut(place));
                match open {
                    // Another one may answer it yet.
                    Some(open) if open.answered.is_none() => open.rejected = Some(reject),
                    _ => count(&mut self.account.unasked, reject),
                }
                None
            }
        }
    }

    /// From what anybody can forge to what only the peer can say.
    fn judge(
        &mut self,
        payload: &[u8],
        at: RawStamp,
    ) -> Result<Option<Answered>, (Option<usize>, Reject)> {
        let reply = Reply::parse(payload, self.mode).map_err(|malformed| {
            let reject = match malformed {
                Malformed::Short => Reject::Short,
                Malformed::ErrorEstimate => Reject::Corrupt,
            };
            (None, reject)
        })?;
        if let Some(key) = &self.key
            && !authenticates(payload, key)
        {
            return Err((None, Reject::NotAuthentic));
        }
        if reply.ssid != self.ssid {
            return Err((None, Reject::OtherSession));
        }
        let sequence = self.extended(reply.sender_sequence);
        let Some(place) = sequence.checked_sub(self.first) else {
            if self.given_up.remove(&sequence) {
                self.revived += 1;
                self.account.late += 1;
                self.peer.take(&reply, sequence, &mut self.account);
                return Ok(None);
            }
            return Err((None, Reject::Unasked));
        };
        let place = place as usize;
        let open = self.open.get_mut(place).filter(|it| it.sent.is_some());
        let open = open.ok_or((None, Reject::Unasked))?;
        let sent = open.sent.unwrap_or(at);
        if reply.sender_timestamp != open.timestamp {
            return Err((Some(place), Reject::Bogus));
        }
        if [reply.received, reply.timestamp].contains(&Timestamp::NONE) {
            return Err((Some(place), Reject::NoTime));
        }
        if let Some(before) = open.answered {
            if before == reply.sequence {
                self.account.copies_back += 1;
            } else {
                self.account.copies_forward += 1;
                self.peer.take(&reply, sequence, &mut self.account);
            }
            return Ok(None);
        }
        if is_before(reply.timestamp, reply.received) {
            return Err((Some(place), Reject::Backwards));
        }
        if at.0.saturating_sub(sent.0) > self.wait {
            open.answered = Some(reply.sequence);
            self.account.late += 1;
            self.peer.take(&reply, sequence, &mut self.account);
            return Ok(None);
        }
        open.answered = Some(reply.sequence);
        self.account.answered += 1;
        self.peer.take(&reply, sequence, &mut self.account);
        let extensions = payload.get(self.mode.base()..).unwrap_or_default();
        self.peer.has_followed_up |= Tlvs::of(extensions).follow_up().is_some();
        Ok(Some(Answered {
            sequence,
            own: [sent, at],
            reply,
        }))
    }

    /// Gives up what was sent so long before `settled` that it is late if it comes now.
    pub fn close_until(&mut self, settled: RawStamp) {
        let until = settled.0.saturating_sub(self.wait);
        while let Some(open) = self.open.front() {
            match open.sent {
                Some(sent) if sent.0 >= until => break,
                // Those behind it have left: it was dropped before.
                None if open.answered.is_none() && !self.has_left_behind(until) => break,
                _ => self.close_first(),
            }
        }
    }

    /// How many packets were answered so far.
    pub fn answered(&self) -> u64 {
        self.account.answered
    }

    /// How many were given up so far.
    pub fn missing(&self) -> u64 {
        self.missing.iter().sum::<u64>() - self.revived
    }

    /// How many are waited for.
    pub fn open(&self) -> u64 {
        let open = self.open.iter();
        open.filter(|it| it.answered.is_none()).count() as u64
    }

    /// Whether the peer counts its replies, as far as that shows.
    pub fn is_stateful(&self) -> Option<bool> {
        (self.peer.has_followed_up || self.peer.differs).then_some(true)
    }

    /// The account of `sent` packets that were given to the kernel.
    pub fn finish(mut self, sent: u64) -> SessionAccount {
        while !self.open.is_empty() {
            self.close_first();
        }
        let stateful = self.is_stateful();
        let PeerNumbers {
            greatest, distinct, ..
        } = self.peer;
        let [between, tail] = self.missing;
        // Those that were answered since are more likely among the first.
        let tail = tail.saturating_sub(self.revived.saturating_sub(between));
        let between = between.saturating_sub(self.revived);
        let mut account = self.account;
        if stateful == Some(true) {
            let replies = greatest.map_or(0, |it| u64::from(it.0) + 1);
            account.lost_back = replies.saturating_sub(distinct).min(between);
            account.lost_forward = between - account.lost_back;
            account.undecided = tail;
        } else {
            account.undecided = between + tail;
        }
        account.stateful = stateful;
        account.sent = sent;
        // What no program has seen leave, whether it was given up or never open.
        let known = SessionAccount {
            not_left: 0,
            ..account.clone()
        };
        let rejected: u64 = known.rejected.values().sum();
        let others = known.answered + known.late + known.lost() + rejected;
        account.not_left = sent.saturating_sub(others);
        account
    }

    fn has_left_behind(&self, until: u64) -> bool {
        let mut behind = self.open.iter().filter_map(|it| it.sent);
        behind.next().is_some_and(|sent| sent.0 < until)
    }

    fn close_first(&mut self) {
        let Some(open) = self.open.pop_front() else {
            return;
        };
        let sequence = self.first;
        self.first += 1;
        match (open.answered, open.rejected, open.sent) {
            (Some(_), ..) => {
                self.is_missing = false;
                self.missing[0] += std::mem::take(&mut self.missing[1]);
            }
            (None, Some(reject), _) => count(&mut self.account.rejected, reject),
            (None, None, Some(_)) => {
                self.missing[1] += 1;
                if !std::mem::replace(&mut self.is_missing, true) {
                    self.account.loss_periods += 1;
                }
                if self.given_up.len() == MOST_GIVEN_UP {
                    self.given_up.pop_first();
                }
                self.given_up.insert(sequence);
            }
            // It has not left.
            (None, None, None) => {}
        }
    }

    /// A sequence number of 32 bits, next to those that are open.
    fn extended(&self, sequence: u32) -> u64 {
        let near = self.first + self.open.len() as u64;
        let ahead = sequence.wrapping_sub(near as u32).cast_signed();
        near.saturating_add_signed(i64::from(ahead))
    }
}

impl PeerNumbers {
    fn take(&mut self, reply: &Reply, sequence: u64, account: &mut SessionAccount) {
        self.distinct += 1;
        self.differs |= u64::from(reply.sequence) != sequence & 0xffff_ffff;
        match self.greatest {
            Some((greatest, _)) if reply.sequence < greatest => account.reordered_back += 1,
            Some((_, of)) if sequence < of => {
                account.reordered_forward += 1;
                self.greatest = Some((reply.sequence, of));
            }
            _ => self.greatest = Some((reply.sequence, sequence)),
        }
    }
}

fn count(counts: &mut BTreeMap<String, u64>, reject: Reject) {
    *counts.entry(reject.name().to_owned()).or_default() += 1;
}

/// Of timestamps of one format, whichever it is.
fn is_before(one: Timestamp, other: Timestamp) -> bool {
    one.0.wrapping_sub(other.0).cast_signed() < 0
}

#[cfg(test)]
mod tests;
