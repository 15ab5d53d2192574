//! Sessions of a reflector that keeps a state of each, in bounded memory.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use tscap_protocol::{FollowUp, Request};

use super::Outcome;

/// A session is forgotten after this time without a request, once there is no room for another
/// one. RFC 8762, section 4, leaves it to the implementation; REFWAIT of TWAMP is 900 s.
const IDLE: Duration = Duration::from_secs(60);
/// Sequence numbers behind the greatest that are remembered.
const WINDOW: u32 = 1_024;

/// What makes a session one (RFC 8972, section 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct SessionId {
    pub from: SocketAddr,
    pub to: IpAddr,
    pub ssid: u16,
}

#[derive(Clone, Debug)]
struct Session {
    /// Of the next reply.
    next: u32,
    /// The greatest sequence number of a request.
    greatest: u32,
    /// Those up to it that have come, by their remainders.
    seen: [u64; (WINDOW / 64) as usize],
    /// The greatest timestamp of a request.
    latest: u64,
    follow_up: Option<FollowUp>,
    at: Instant,
}

/// The sessions.
#[derive(Debug)]
pub(super) struct Sessions {
    most: usize,
    all: HashMap<SessionId, Session>,
    swept: Option<Instant>,
}

impl Sessions {
    pub fn new(most: usize) -> Self {
        Self {
            most,
            all: HashMap::new(),
            swept: None,
        }
    }

    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// Gives the sequence number of the reply to a request, and what is known of the reply before.
    pub fn take(
        &mut self,
        id: &SessionId,
        request: &Request,
        at: Instant,
    ) -> Result<(u32, Option<FollowUp>), Outcome> {
        if !self.all.contains_key(id) {
            self.make_room(at)?;
        }
        let session = self.all.entry(*id).or_insert_with(|| Session::new(at));
        let timestamp = request.timestamp.0;
        // A sender that begins anew counts from 0, later.
        if session.next > 0 && request.sequence == 0 && timestamp > session.latest {
            *session = Session::new(at);
        }
        if !session.is_new(request.sequence) {
            return Err(Outcome::Replayed);
        }
        session.latest = session.latest.max(timestamp);
        session.at = at;
        let sequence = session.next;
        session.next = session.next.wrapping_add(1);
        Ok((sequence, session.follow_up.take()))
    }

    pub fn follow_up(&mut self, id: &SessionId, reported: FollowUp) {
        if let Some(session) = self.all.get_mut(id) {
            session.follow_up = Some(reported);
        }
    }

    fn make_room(&mut self, at: Instant) -> Result<(), Outcome> {
        let is_due = self
            .swept
            .is_none_or(|swept| at - swept >= Duration::from_secs(1));
        if self.all.len() >= self.most && is_due {
            self.swept = Some(at);
            self.all
                .retain(|_, session| at.saturating_duration_since(session.at) < IDLE);
        }
        if self.all.len() >= self.most {
            return Err(Outcome::NoSessionLeft);
        }
        Ok(())
    }
}

impl Session {
    fn new(at: Instant) -> Self {
        Self {
            next: 0,
            greatest: 0,
            seen: [0; (WINDOW / 64) as usize],
            latest: 0,
            follow_up: None,
            at,
        }
    }

    /// Whether no request with that sequence number has come; takes it down.
    fn is_new(&mut self, sequence: u32) -> bool {
        let ahead = sequence.wrapping_sub(self.greatest);
        let is_first = self.next == 0;
        if is_first {
            self.greatest = sequence;
        } else if ahead > 0 && ahead.cast_signed() > 0 {
            // What lies between has not come yet.
            for behind in 0..ahead.min(WINDOW) {
                let (word, bit) = place(sequence.wrapping_sub(behind));
                self.seen[word] &= !bit;
            }
            self.greatest = sequence;
        } else if self.greatest.wrapping_sub(sequence) >= WINDOW {
            return false;
        }
        let (word, bit) = place(sequence);
        let is_new = self.seen[word] & bit == 0;
        self.seen[word] |= bit;
        is_new
    }
}

/// Where a sequence number is remembered.
fn place(sequence: u32) -> (usize, u64) {
    let slot = sequence % WINDOW;
    ((slot / 64) as usize, 1 << (slot % 64))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tscap_protocol::{ErrorEstimate, TimeFormat, Timestamp};

    use super::*;

    fn request(sequence: u32, timestamp: u64) -> Request {
        Request {
            sequence,
            timestamp: Timestamp(timestamp),
            error: ErrorEstimate::covering(1, false, TimeFormat::Ntp),
            ssid: 1,
        }
    }

    fn id(port: u16) -> SessionId {
        SessionId {
            from: SocketAddr::new([10, 0, 0, 1].into(), port),
            to: [10, 0, 0, 2].into(),
            ssid: 1,
        }
    }

    fn sequence(sessions: &mut Sessions, sequence: u32, at: Instant) -> Result<u32, Outcome> {
        let request = request(sequence, u64::from(sequence) + 1);
        sessions.take(&id(1), &request, at).map(|it| it.0)
    }

    #[test]
    fn replies_are_counted_and_replays_are_not() {
        let mut sessions = Sessions::new(4);
        let at = Instant::now();
        let mut take = |number| sequence(&mut sessions, number, at);
        assert_eq!(take(0), Ok(0));
        assert_eq!(take(2), Ok(1));
        assert_eq!(take(1), Ok(2), "one that was overtaken");
        assert_eq!(take(2), Err(Outcome::Replayed));
        assert_eq!(take(5_000), Ok(3));
        assert_eq!(
            take(5_000 - WINDOW),
            Err(Outcome::Replayed),
            "too old to be known"
        );
        assert_eq!(take(5_001 - WINDOW), Ok(4));
        assert_eq!(take(2), Err(Outcome::Replayed));
    }

    #[test]
    fn a_sender_that_begins_anew_is_a_new_session() {
        let mut sessions = Sessions::new(4);
        let at = Instant::now();
        let mut take = |sequence, timestamp| {
            let request = request(sequence, timestamp);
            sessions.take(&id(1), &request, at).map(|it| it.0)
        };
        assert_eq!(take(0, 10), Ok(0));
        assert_eq!(take(1, 11), Ok(1));
        assert_eq!(take(0, 10), Err(Outcome::Replayed));
        assert_eq!(take(0, 12), Ok(0));
        assert_eq!(take(1, 13), Ok(1));
    }

    #[test]
    fn sequence_numbers_go_round() {
        let mut sessions = Sessions::new(4);
        let at = Instant::now();
        let mut take = |number| sequence(&mut sessions, number, at);
        assert_eq!(take(u32::MAX), Ok(0));
        assert_eq!(take(1), Ok(1));
        assert_eq!(take(u32::MAX), Err(Outcome::Replayed));
    }

    #[test]
    fn sessions_are_bounded_and_idle_ones_make_room() {
        let mut sessions = Sessions::new(2);
        let at = Instant::now();
        let mut take = |port, at| sessions.take(&id(port), &request(7, 7), at).map(|it| it.0);
        assert_eq!((take(1, at), take(2, at)), (Ok(0), Ok(0)));
        assert_eq!(take(3, at), Err(Outcome::NoSessionLeft));
        assert_eq!(take(3, at + IDLE), Ok(0));
    }

    proptest! {
        /// Against a set of all that came, within the window.
        #[test]
        fn each_is_taken_once(numbers in proptest::collection::vec(0u32..3_000, 1..400)) {
            let mut sessions = Sessions::new(1);
            let at = Instant::now();
            let mut seen = std::collections::HashSet::new();
            let mut greatest = numbers[0];
            for number in numbers {
                // One that begins anew is another matter.
                let number = number + 1;
                greatest = greatest.max(number);
                let expected = greatest - number < WINDOW && seen.insert(number);
                prop_assert_eq!(sequence(&mut sessions, number, at).is_ok(), expected);
            }
        }
    }
}
