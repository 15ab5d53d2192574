//! The thread of sessions: matches packets and replies as an interface shows them.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tscap_clock::{RawStamp, Tracker};
use tscap_common::hook::Direction;
use tscap_programs::ring::KeyRecord;
use tscap_protocol::{ErrorEstimate, TimeFormat};
use tscap_references::ntp::Datagram;
use tscap_session::{ClockChange, Keys, Progress, Sink, Times};
use tscap_utc::SharedUtcBound;

use super::figures::{Figures, OwnClock, SessionSecond};
use super::packets::Shared;

/// The bound of the host's clock to UTC is looked at again after so many drains with records.
const ASKED_EVERY: u32 = 64;

/// Sessions.
pub(super) struct SenderSink {
    pub sessions: Vec<Figures>,
    /// By the peer's address and port, and the port of this host.
    by_ends: HashMap<(IpAddr, u16, u16), usize>,
    shared: Vec<Arc<Shared>>,
    own: OwnClock,
    /// Of the host's clock, as the main thread reads it.
    utc: SharedUtcBound,
    until_asked: u32,
    longest: usize,
    /// What came out of the rings, which are read one behind the other: a packet may be in
    /// another one than its reply.
    held: Vec<Held>,
}

/// A packet, or its reply.
struct Held {
    at: RawStamp,
    session: usize,
    direction: Direction,
    payload: Vec<u8>,
}

impl SenderSink {
    /// Of sessions between these addresses, peer and own, each with its figures and with what its
    /// sender hears, and what bounds the host's clock. Payloads have up to `longest` octets.
    pub fn new(
        ends: &[(SocketAddr, SocketAddr)],
        sessions: Vec<Figures>,
        shared: Vec<Arc<Shared>>,
        utc: SharedUtcBound,
        longest: usize,
    ) -> Self {
        let by_ends = ends.iter().enumerate();
        let by_ends =
            by_ends.map(|(number, (peer, local))| ((peer.ip(), peer.port(), local.port()), number));
        Self {
            by_ends: by_ends.collect(),
            sessions,
            shared,
            own: OwnClock {
                stamp_error_ns: 0,
                utc_bound_ns: None,
                tai_offset_s: 0,
            },
            utc,
            until_asked: 0,
            longest,
            held: Vec::new(),
        }
    }

    /// Takes what was stamped before `until`, in the order of time.
    pub fn take_until(&mut self, until: RawStamp, times: &Times) {
        let mut held = std::mem::take(&mut self.held);
        held.sort_by_key(|it| (it.at, it.direction == Direction::In));
        let settled = held.partition_point(|it| it.at < until);
        self.held = held.split_off(settled);
        for Held {
            at,
            session,
            direction,
            payload,
        } in held
        {
            let figures = &mut self.sessions[session];
            match direction {
                Direction::Out => figures.exchanges.sent(&payload, at),
                Direction::In => {
                    if let Some(answered) = figures.exchanges.received(&payload, at) {
                        figures.take(&answered, &self.own, times);
                    }
                }
            }
        }
    }

    fn ask_clock(&mut self, tracker: &Tracker) {
        let host_bound_ns = tracker.host_bound_ns();
        let utc_bound_ns = match tracker.reference() {
            Some(bounds) => bounds.utc_ns(),
            None => self.utc.ns(),
        };
        self.own.utc_bound_ns = utc_bound_ns.map(|ns| ns.saturating_add(host_bound_ns));
        self.own.tai_offset_s = tracker.current().tai_offset_s;
        let error_ns = self.own.utc_bound_ns.unwrap_or(host_bound_ns);
        let synchronised = utc_bound_ns.is_some();
        let error = ErrorEstimate::covering(error_ns, synchronised, TimeFormat::Ntp).to_bits();
        for shared in &self.shared {
            shared.error.store(error, Ordering::Relaxed);
        }
    }
}

impl Sink for SenderSink {
    const THREAD: &'static str = "tscap-sessions";
    const WAITS: bool = true;
    type Records = Keys;
    type Latest = Vec<SessionSecond>;

    fn begin(&mut self, tracker: &Tracker) {
        self.own.stamp_error_ns = tracker.stamp_error_ns();
        self.until_asked = match self.until_asked.checked_sub(1) {
            Some(left) => left,
            None => {
                self.ask_clock(tracker);
                ASKED_EVERY
            }
        };
    }

    fn take(&mut self, _: usize, record: KeyRecord<'_>, _: &Times) {
        let Some(datagram) = Datagram::of(record.kept, self.longest) else {
            return;
        };
        let direction = record.slot.direction();
        let (peer, own) = match direction {
            Direction::In => (datagram.from, datagram.to),
            Direction::Out => (datagram.to, datagram.from),
        };
        let ends = (peer.ip(), peer.port(), own.port());
        if let Some(session) = self.by_ends.get(&ends) {
            self.held.push(Held {
                at: record.stamp,
                session: *session,
                direction,
                payload: datagram.payload.to_vec(),
            });
        }
    }

    fn settled(&mut self, until: RawStamp, times: &Times) {
        self.take_until(until, times);
        for figures in &mut self.sessions {
            figures.exchanges.close_until(until);
        }
    }

    fn clock_changed(&mut self, change: ClockChange) -> Option<String> {
        if let ClockChange::CounterJumped(_) = change {
            self.sessions.iter_mut().for_each(Figures::begin_anew);
            return Some(
                "the counter of the stamps jumped: packets on their way then have no times".into(),
            );
        }
        None
    }

    fn progress(&self) -> Progress {
        let sessions = self.sessions.iter();
        let open = sessions.clone().map(|it| it.exchanges.open()).sum();
        Progress {
            counted: sessions.map(|it| it.exchanges.answered()).sum(),
            open,
        }
    }

    fn latest(&mut self, _: &Tracker) -> Vec<SessionSecond> {
        self.sessions.iter_mut().map(Figures::latest).collect()
    }
}
