//! When a client may send: one request at a time, no faster than it was told.

use std::time::{Duration, Instant};

use super::KissCode;

/// The longest time between two requests.
pub const LONGEST_POLL: Duration = Duration::from_secs(1_024);
/// A reply that has not come by then won't: MAXDISP is 16 s, but who takes more than this
/// gives a bound of seconds.
const PATIENCE: Duration = Duration::from_secs(4);
/// Requests without a reply after which a server is asked less and less: UNREACH (RFC 5905,
/// section 7.2).
const UNREACHABLE: u32 = 12;

/// What became of a request that nobody answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expired {
    /// So many in a row.
    pub unanswered: u32,
}

/// What a client does about a kiss-o'-death (RFC 5905, section 7.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kissed {
    /// It sends nothing any more.
    Stopped,
    /// It asks this rarely from now on.
    Slower(Duration),
    /// Nothing: the code tells of the server's state, or is not known.
    Ignored,
}

/// The times of a client's requests.
#[derive(Clone, Debug)]
pub struct Poller {
    /// As asked for, or as the server wants it.
    base: Duration,
    /// In force: longer while the server is away.
    poll: Duration,
    latest: Option<Instant>,
    is_outstanding: bool,
    unanswered: u32,
    stopped: Option<KissCode>,
}

impl Poller {
    /// Every `poll`.
    pub fn new(poll: Duration) -> Self {
        Self {
            base: poll,
            poll,
            latest: None,
            is_outstanding: false,
            unanswered: 0,
            stopped: None,
        }
    }

    /// Whether a request may be sent now.
    pub fn is_due(&self, now: Instant) -> bool {
        let is_time = self.latest.is_none_or(|latest| now >= latest + self.poll);
        is_time && !self.is_outstanding && self.stopped.is_none()
    }

    /// One was sent, or should have been.
    pub fn sent(&mut self, now: Instant) {
        self.latest = Some(now);
        self.is_outstanding = true;
    }

    /// The server answered, whatever it said.
    pub fn answered(&mut self) {
        self.is_outstanding = false;
        self.unanswered = 0;
        self.poll = self.base;
    }

    /// It answered with a kiss.
    pub fn kissed(&mut self, code: KissCode) -> Kissed {
        self.answered();
        match code {
            KissCode::DENY | KissCode::RSTR => {
                self.stopped = Some(code);
                Kissed::Stopped
            }
            KissCode::RATE => {
                self.base = (self.base * 2).min(LONGEST_POLL);
                self.poll = self.base;
                Kissed::Slower(self.base)
            }
            _ => Kissed::Ignored,
        }
    }

    /// Gives up on the request that is outstanding, if it is too old or the next one is due.
    pub fn expire(&mut self, now: Instant) -> Option<Expired> {
        let latest = self.latest.filter(|_| self.is_outstanding)?;
        if now < latest + self.poll.min(PATIENCE) {
            return None;
        }
        self.is_outstanding = false;
        self.unanswered = self.unanswered.saturating_add(1);
        if self.unanswered >= UNREACHABLE {
            self.poll = (self.poll * 2).min(LONGEST_POLL.max(self.base));
        }
        Some(Expired {
            unanswered: self.unanswered,
        })
    }

    /// Requests in a row that nobody answered.
    pub fn unanswered(&self) -> u32 {
        self.unanswered
    }

    /// Between two requests while the server answers.
    pub fn base(&self) -> Duration {
        self.base
    }

    /// Between two requests now.
    pub fn poll(&self) -> Duration {
        self.poll
    }

    /// The kiss after which nothing is sent.
    pub fn stopped(&self) -> Option<KissCode> {
        self.stopped
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const POLL: Duration = Duration::from_secs(16);

    fn start() -> (Poller, Instant) {
        (Poller::new(POLL), Instant::now())
    }

    #[test]
    fn one_request_is_outstanding_and_none_comes_early() {
        let (mut poller, now) = start();
        assert!(poller.is_due(now));
        poller.sent(now);
        assert!(!poller.is_due(now + POLL));
        poller.answered();
        assert!(!poller.is_due(now + POLL - Duration::from_nanos(1)));
        assert!(poller.is_due(now + POLL));
    }

    #[test]
    fn a_kiss_that_denies_ends_it() {
        for code in [KissCode::DENY, KissCode::RSTR] {
            let (mut poller, now) = start();
            poller.sent(now);
            assert_eq!(poller.kissed(code), Kissed::Stopped);
            assert_eq!(poller.stopped(), Some(code));
            assert!(!poller.is_due(now + 1_000 * POLL));
        }
    }

    #[test]
    fn a_kiss_for_the_rate_doubles_the_time_for_good() {
        let (mut poller, now) = start();
        for expected in [32, 64, 128, 256, 512, 1_024, 1_024] {
            poller.sent(now);
            let slower = Kissed::Slower(Duration::from_secs(expected));
            assert_eq!(poller.kissed(KissCode::RATE), slower);
            assert_eq!(poller.poll(), Duration::from_secs(expected));
            // It is an answer.
            assert_eq!(poller.expire(now + LONGEST_POLL), None);
        }
        poller.sent(now);
        poller.answered();
        assert_eq!(poller.poll(), LONGEST_POLL);
        assert_eq!(poller.kissed(KissCode(*b"INIT")), Kissed::Ignored);
    }

    #[test]
    fn a_server_that_is_away_is_asked_less_and_then_as_before() {
        let (mut poller, mut now) = start();
        for number in 1..=20 {
            poller.sent(now);
            assert_eq!(poller.expire(now + Duration::from_secs(1)), None);
            now += PATIENCE;
            let unanswered = number;
            assert_eq!(poller.expire(now), Some(Expired { unanswered }));
            assert_eq!(poller.expire(now), None);
            let most = if number < UNREACHABLE {
                POLL
            } else {
                LONGEST_POLL
            };
            assert!(poller.poll() <= most && (number < UNREACHABLE || poller.poll() > POLL));
        }
        assert_eq!(poller.poll(), LONGEST_POLL);
        poller.answered();
        assert_eq!((poller.poll(), poller.unanswered()), (POLL, 0));
    }

    proptest! {
        /// Whatever the server does: no two requests are closer than the poll asked for.
        #[test]
        fn it_never_sends_faster(turns in proptest::collection::vec((0u64..40_000, 0u8..5), 1..200)) {
            let (mut poller, mut now) = start();
            let mut latest: Option<Instant> = None;
            for (ms, what) in turns {
                now += Duration::from_millis(ms);
                match what {
                    0 => poller.answered(),
                    1 => drop(poller.kissed(KissCode::RATE)),
                    2 => drop(poller.expire(now)),
                    _ => {}
                }
                if poller.is_due(now) {
                    prop_assert!(latest.is_none_or(|latest| now >= latest + POLL));
                    latest = Some(now);
                    poller.sent(now);
                }
            }
        }
    }
}
