//! A server's clock, followed by the exchanges that pass an interface: tscap's own, or those
//! of the host's daemon.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tscap_common::hook::Direction;

use super::ServerName;
use super::client::{AskOutcome, Client};
use super::hooks::{Hooks, Lost, SharedWith};
use tscap_base::failure::Failure;
use tscap_capture::Event;
use tscap_clock::{Tracker, TscCycles};
use tscap_references::ntp::{
    self, Exchanges, KissCode, Kissed, NtpClock, NtpKnown, NtpPoint, NtpStatus, NtpTime, Poller,
    Received, Reject, Rejects,
};

/// Servers that are followed at a time; of a daemon that asks more the first ones.
const MOST_SERVERS: usize = 16;

/// Whose exchanges are followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NtpPlan {
    /// tscap asks this server.
    Ask {
        /// It.
        server: ServerName,
        /// Between two requests.
        poll: Duration,
        /// The interface towards it; `None` for that of the route.
        interface: Option<String>,
    },
    /// Those that pass this interface. Nothing is sent.
    Passive {
        /// It.
        interface: String,
    },
}

/// What there is to tell.
#[derive(Debug)]
pub enum NtpEvent {
    /// A text for people.
    Notice(Event),
    /// An exchange, and what the clock of its server made of it.
    Exchange(SocketAddr, NtpPoint),
    /// A reply that is not used.
    Rejected(SocketAddr, Reject),
    /// A kiss-o'-death, and what is done about it; `None` if it was not for us.
    Kissed(SocketAddr, KissCode, Option<Kissed>),
    /// So many requests in a row were not answered.
    Unanswered(SocketAddr, u32),
    /// A request could not be sent, or not be delivered.
    Refused(SocketAddr, io::Error),
    /// The server's name has this other address now, which is asked from now on.
    Moved(SocketAddr),
    /// It has one at which it can't be asked.
    Unmoved(Failure),
    /// No more exchanges will be seen.
    Lost(Lost),
}

/// A server with its clock.
#[derive(Debug)]
struct Followed {
    server: SocketAddr,
    clock: NtpClock,
}

/// The exchanges of an interface, and the clocks of their servers.
#[derive(Debug)]
pub struct NtpReference {
    hooks: Hooks,
    exchanges: Exchanges,
    client: Option<Client>,
    followed: Vec<Followed>,
    is_lost: bool,
}

/// Numbers of requests and replies.
#[derive(Clone, Copy, Debug)]
pub struct ExchangeCounts {
    /// Requests that left.
    pub requests: u64,
    /// Replies that were used.
    pub replies: u64,
    /// Replies that were not, by the reason.
    pub rejected: Rejects,
}

impl NtpReference {
    /// Looks up the server, and attaches programs. The host's clock must have settled.
    ///
    /// # Errors
    /// What was tried, why it failed and what to do next. Nothing stays attached.
    pub fn start(
        plan: &NtpPlan,
        beside: SharedWith,
        host: &Tracker,
        on_event: &mut dyn FnMut(Event),
    ) -> Result<Self, Failure> {
        let (client, interface, port, expression) = match plan {
            NtpPlan::Ask {
                server,
                poll,
                interface,
            } => {
                let client = Client::open(server, *poll)?;
                let interface = interface.clone().unwrap_or(client.interface.clone());
                let (ip, port) = (client.server.ip(), client.server.port());
                // A name may get another address.
                let expression = if server.is_name() {
                    format!("udp port {port}")
                } else {
                    format!("udp port {port} and host {ip}")
                };
                (Some(client), interface, port, expression)
            }
            NtpPlan::Passive { interface } => {
                let expression = format!("udp port {}", ntp::PORT);
                (None, interface.clone(), ntp::PORT, expression)
            }
        };
        Ok(Self {
            hooks: Hooks::attach(
                &interface,
                (&expression, Direction::Out),
                beside,
                host,
                on_event,
            )?,
            exchanges: Exchanges::new(port),
            client,
            followed: Vec::new(),
            is_lost: false,
        })
    }

    /// Gives up, for good and for the whole process, what is not needed any more; root stays
    /// root if the caller `makes_files` later. Threads that run already keep theirs.
    ///
    /// # Errors
    /// If the kernel refuses. What has been given up by then is gone.
    pub fn give_up_privileges(
        &mut self,
        makes_files: bool,
        on_event: &mut dyn FnMut(Event),
    ) -> Result<(), Failure> {
        self.hooks.give_up_privileges(makes_files, on_event)
    }

    /// A capture was attached, whose counters made those of these programs pause.
    pub fn capture_began(&mut self) {
        self.hooks.others_came();
    }

    /// Where packets are stamped, for people.
    pub fn ready(&self) -> String {
        self.hooks.ready()
    }

    /// Takes in what has passed, and sends what is due; to be called some ten times a second
    /// at least.
    pub fn turn(&mut self, host: &Tracker, on_event: &mut dyn FnMut(NtpEvent)) {
        if self.is_lost {
            return;
        }
        let Self {
            hooks,
            exchanges,
            client,
            followed,
            ..
        } = self;
        let mut reported = Vec::new();
        let asked = client.as_ref().map(|client| client.server);
        let mut see = |direction, datagram: &ntp::Datagram<'_>, at| {
            let server = match direction {
                Direction::Out => datagram.to,
                Direction::In => datagram.from,
            };
            if asked.is_some_and(|asked| asked != server) {
                return;
            }
            if direction == Direction::Out {
                exchanges.sent(datagram, at);
                return;
            }
            let Some(near) = host.counter().map(|it| it.model().estimate(at.tsc).real) else {
                return;
            };
            let received = exchanges.received(datagram, at, near);
            let poller = client.as_mut().map(|client| &mut client.poller);
            reported.extend(judge(received, poller, host, followed));
        };
        let turned = hooks.turn(&mut |event| on_event(NtpEvent::Notice(event)), &mut see);
        reported.into_iter().for_each(&mut *on_event);
        if let Err(lost) = turned {
            self.is_lost = true;
            on_event(NtpEvent::Lost(lost));
            return;
        }
        if let Some(client) = &mut self.client {
            if client.poller.is_due(Instant::now()) {
                let mut on_event = |event| on_event(NtpEvent::Notice(event));
                self.hooks.calibrate(&mut on_event);
            }
            match client.move_on(Instant::now()) {
                Ok(Some(server)) => on_event(NtpEvent::Moved(server)),
                Ok(None) => {}
                Err(failure) => on_event(NtpEvent::Unmoved(failure)),
            }
            let before = self.exchanges.latest(client.server);
            ask(client, before, on_event);
            // What is known of the server at the address of before goes on until then.
            let server = client.server;
            if self.followed.iter().any(|it| it.server == server) {
                self.followed.retain(|it| it.server == server);
            }
        }
    }

    /// The counter jumped: nothing of before holds.
    pub fn begin_anew(&mut self) {
        self.followed.clear();
        self.exchanges.begin_anew();
    }

    /// The server whose clock is known best at a counter value.
    pub fn best(&self, at: TscCycles, host: &Tracker) -> Option<(SocketAddr, NtpStatus)> {
        let known = self.followed.iter();
        let known = known.filter_map(|it| Some((it.server, it.clock.status(at, host)?)));
        known.min_by_key(|(_, status)| status.utc_bound_ns)
    }

    /// The server whose time is known best at a counter value, from its first exchange on.
    pub fn known(&self, at: TscCycles, host: &Tracker) -> Option<(SocketAddr, NtpKnown)> {
        let known = self.followed.iter();
        let known = known.filter_map(|it| Some((it.server, it.clock.known(at, host)?)));
        known.min_by_key(|(_, known)| known.bound_ns.saturating_add(known.root_distance_ns))
    }

    /// The same of this server.
    pub(crate) fn known_of(
        &self,
        server: SocketAddr,
        at: TscCycles,
        host: &Tracker,
    ) -> Option<NtpKnown> {
        let mut of = self.followed.iter().filter(|it| it.server == server);
        of.next()?.clock.known(at, host)
    }

    /// The server that tscap asks.
    pub fn asked(&self) -> Option<SocketAddr> {
        self.client.as_ref().map(|client| client.server)
    }

    /// Requests in a row that were not answered; endless if nothing will come any more.
    pub(crate) fn unanswered(&self) -> u32 {
        let client = self.client.as_ref();
        let is_stopped = client.is_some_and(|it| it.poller.stopped().is_some());
        if self.is_lost || is_stopped {
            return u32::MAX;
        }
        client.map_or(0, |it| it.poller.unanswered())
    }

    /// Between two requests as long as the server answers; `None` if a daemon asks, or if none is
    /// sent any more.
    pub(crate) fn asked_every(&self) -> Option<Duration> {
        Some(self.client.as_ref()?.poller.base())
    }

    /// Between two requests now, and the kiss after which none is sent.
    pub fn polling(&self) -> Option<(Duration, Option<KissCode>)> {
        let client = self.client.as_ref()?;
        Some((client.poller.poll(), client.poller.stopped()))
    }

    /// Servers that are followed.
    pub fn servers(&self) -> usize {
        self.followed.len()
    }

    /// What became of the requests so far.
    pub fn counts(&self) -> ExchangeCounts {
        let exchanges = &self.exchanges;
        ExchangeCounts {
            requests: exchanges.sent_count(),
            replies: exchanges.matched_count(),
            rejected: exchanges.rejects(),
        }
    }
}

/// What a datagram comes to.
fn judge(
    received: Received,
    poller: Option<&mut Poller>,
    host: &Tracker,
    followed: &mut Vec<Followed>,
) -> Option<NtpEvent> {
    match received {
        Received::Other => None,
        Received::Kept => {
            poller.map(Poller::answered);
            None
        }
        Received::Rejected(server, reject) => {
            if let Some(poller) = poller.filter(|_| reject.is_answer()) {
                poller.answered();
            }
            Some(NtpEvent::Rejected(server, reject))
        }
        Received::Kiss(server, code) => {
            let kissed = poller.map(|poller| poller.kissed(code));
            Some(NtpEvent::Kissed(server, code, kissed))
        }
        Received::Exchange(exchange) => {
            if let Some(poller) = poller {
                poller.answered();
            }
            let server = exchange.server;
            let known = followed.iter().position(|it| it.server == server);
            if known.is_none() && followed.len() == MOST_SERVERS {
                return None;
            }
            let place = known.unwrap_or_else(|| {
                followed.push(Followed {
                    server,
                    clock: NtpClock::default(),
                });
                followed.len() - 1
            });
            let clock = &mut followed[place].clock;
            let point = clock.take(&exchange, host)?;
            Some(NtpEvent::Exchange(server, point))
        }
    }
}

/// Sends what is due, and gives up on what was not answered.
fn ask(client: &mut Client, before: Option<NtpTime>, on_event: &mut dyn FnMut(NtpEvent)) {
    let now = Instant::now();
    let server = client.server;
    if let Some(error) = client.empty() {
        on_event(NtpEvent::Refused(server, error));
    }
    if let Some(expired) = client.poller.expire(now) {
        on_event(NtpEvent::Unanswered(server, expired.unanswered));
    }
    if let AskOutcome::Failed(error) = client.ask(now, before) {
        on_event(NtpEvent::Refused(server, error));
    }
}
