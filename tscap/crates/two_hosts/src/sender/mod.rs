//! The session-sender (RFC 8762, section 4.2).
//!
//! - `plan`: what it is asked to do;
//! - `packets`: sends the packets of a session;
//! - `points`: where they are stamped when they leave, and replies when they arrive;
//! - `sink`: the thread that takes both out of the rings;
//! - `exchanges`: which packets and replies belong together, and what became of each;
//! - `figures`, `variation`: what is made of them.

mod exchanges;
mod figures;
mod own_filter;
mod packets;
mod plan;
mod points;
mod sink;

use std::sync::atomic::Ordering;
use std::time::Duration;

use exchanges::Exchanges;
use figures::Figures;
use packets::{PacketPlan, PacketSocket, Sending};
use sink::SenderSink;
use tscap_base::failure::{Context as _, Failure, Hint as _};
use tscap_capture::Event;
use tscap_clock::RawStamp;
use tscap_common::key::KeyOf;
use tscap_common::sighting::MOST_KEPT;
use tscap_delay::schema::{AlignmentReport, PeerSession, SessionAccount};
use tscap_filter::{Filter, LinkType};
use tscap_host::random::Random;
use tscap_live::Scope;
use tscap_network::netdev::{self, Link};
use tscap_network::route;
use tscap_references::ReferenceSummary;
use tscap_session::{
    Attached, Draining, EndReason, Live, Machine, Recorded, Session, SessionPlan, Times,
    clock_at_tap,
};
use tscap_utc::{Roots, SharedUtcBound, UtcReader};

pub use figures::SessionSecond;
pub use plan::{FREE_PPB, Pacing, Peer, STEERED_PPB, SenderPlan};

/// Headers in front of a payload: two VLAN tags, IPv6 with some extension headers, UDP.
const HEADERS: u32 = 22 + 40 + 64 + 8;
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Sessions while they go on. When this is dropped, nothing stays attached.
pub struct Running {
    draining: Draining<SenderSink, Attached<()>>,
    sending: Vec<Sending>,
    begun: Vec<PeerSession>,
    /// What bounds the host's clock against UTC, and the same for the thread of the sessions.
    utc: UtcReader,
    utc_bound: SharedUtcBound,
    wait: Duration,
    has_told_of_refusal: bool,
}

/// What is left of sessions.
#[derive(Debug)]
pub struct SenderResult {
    /// The function that reads the clock of the stamps.
    pub clock: String,
    /// How long they went on, s.
    pub seconds: f64,
    /// Each of them.
    pub sessions: Vec<PeerSession>,
    /// The reference of the times, if they are not the host's.
    pub reference: Option<ReferenceSummary>,
    /// What a reader must know before the figures.
    pub warnings: Vec<String>,
    /// Whether the programs' account adds up.
    pub adds_up: bool,
}

/// A peer, and how it is reached.
struct Reached {
    socket: PacketSocket,
    link: Link,
    ssid: u16,
}

impl SenderPlan {
    /// Checks this against the machine, loads the programs, reads the clocks, attaches, and sends.
    /// `on_event` is told what a user should know.
    ///
    /// # Errors
    /// What was tried, why it failed and what to do next. Nothing stays attached.
    pub async fn start(&self, on_event: &mut dyn FnMut(Event)) -> Result<Running, Failure> {
        let machine = Machine::check(self.clock)?;
        let scope = Scope::open(self.namespace.as_ref(), "send from")?;
        let reached = scope.visit(|| self.reach())??;
        let mut links: Vec<Link> = Vec::new();
        for it in &reached {
            if links.iter().all(|link| link.index != it.link.index) {
                links.push(it.link.clone());
            }
        }
        let filter = self.filter();
        let (clock, tsc_path) = clock_at_tap(self.clock);
        // A reply that is longer than what is kept shows its beginning.
        let kept = (HEADERS + self.size).min(MOST_KEPT as u32 - 4);
        let plan = SessionPlan {
            recorded: Recorded::Keys {
                of: KeyOf::Bridge,
                kept: kept.next_multiple_of(4),
            },
            clock,
            tsc_path,
            reference: self.reference.as_ref(),
            filter: None,
            interfaces: links.len() as u32,
            ring_bytes: self.ring_bytes,
        };
        let session = Session::open(&machine, &plan, on_event).await?;
        let points = points::attach(&links, &session.loaded, filter.as_ref(), &scope)?;
        let begun = reached.iter().zip(&self.peers);
        let begun: Vec<_> = begun
            .map(|(it, peer)| self.begun(it, peer, &scope))
            .collect();
        let ends = reached.iter().zip(&self.peers);
        let ends: Vec<_> = ends
            .map(|(it, peer)| (peer.address, it.socket.local))
            .collect();
        let ssids: Vec<_> = reached.iter().map(|it| it.ssid).collect();
        let mut sending = Vec::new();
        for it in reached {
            let plan = PacketPlan {
                pacing: self.pacing,
                size: self.size,
                count: self.count,
                ssid: it.ssid,
                mode: self.mode(),
                key: self.key.clone(),
            };
            sending.push((it.socket, plan));
        }
        let sending = sending.into_iter().map(|(socket, plan)| socket.send(plan));
        let sending: Vec<Sending> = sending
            .collect::<Result<_, _>>()
            .context("cannot start a thread that sends")?;
        let shared = sending.iter().map(|it| std::sync::Arc::clone(&it.shared));
        let shared: Vec<_> = shared.collect();
        let mut utc = UtcReader::open(Roots::live());
        let utc_bound = SharedUtcBound::new(utc.read().bound_ns);
        let draining = session.drain(points, |_, beginning| {
            let wait = beginning.units_of(self.wait);
            let figures = ssids.iter().map(|ssid| {
                let exchanges = Exchanges::new(self.mode(), self.key.clone(), *ssid, wait);
                Figures::new(self, exchanges, beginning.start)
            });
            let longest = (kept - HEADERS) as usize;
            let utc = utc_bound.clone();
            SenderSink::new(&ends, figures.collect(), shared, utc, longest)
        })?;
        Ok(Running {
            draining,
            sending,
            begun,
            utc,
            utc_bound,
            wait: self.wait,
            has_told_of_refusal: false,
        })
    }

    /// Finds the way to each peer, and opens a socket for it, in this thread's network namespace.
    fn reach(&self) -> Result<Vec<Reached>, Failure> {
        let mut random = Random::open().context("cannot choose a session identifier")?;
        let reached = self.peers.iter().map(|peer| {
            let what = || format!("cannot send to {}", peer.name);
            let way = route::way_to(peer.address.ip()).context(what())?;
            if way.is_local {
                return Err(Failure::new(format!("{}: it is this host", what()))
                    .hint("one-way delay is measured between two hosts, or two namespaces"));
            }
            let link = netdev::by_index(way.interface).context(what())?;
            let link = link.ok_or_else(|| Failure::new(format!("{}: no interface", what())))?;
            if link.frames() != Some(LinkType::Ethernet) {
                return Err(Failure::new(format!(
                    "{}: {} carries no Ethernet frames",
                    what(),
                    link.name
                ))
                .hint("packets are stamped at Ethernet interfaces"));
            }
            let socket = PacketSocket::open(peer.address, self.dscp).context(what());
            let socket = socket.hint("is there a route, and an address of this family?")?;
            let chosen = match self.ssid {
                Some(ssid) => ssid,
                None => {
                    let number = random
                        .number()
                        .context("cannot choose a session identifier")?;
                    (number as u16).max(1)
                }
            };
            Ok(Reached {
                socket,
                link,
                ssid: chosen,
            })
        });
        reached.collect()
    }

    /// Everything to and from the peers. Without libpcap, and of more than fifty peers, all packets
    /// are looked at.
    fn filter(&self) -> Option<Filter> {
        let addresses: Vec<_> = self.peers.iter().map(|it| it.address.ip()).collect();
        let hosts = addresses.iter().map(|it| format!("host {it}"));
        let expression = hosts.collect::<Vec<_>>().join(" or ");
        let compiled = Filter::from_expression(&expression).ok();
        compiled.or_else(|| own_filter::filter(&addresses))
    }

    fn begun(&self, reached: &Reached, peer: &Peer, scope: &Scope) -> PeerSession {
        PeerSession {
            peer: peer.name.clone(),
            address: peer.address.to_string(),
            local: reached.socket.local.to_string(),
            interface: scope.name_of(&reached.link.name),
            ssid: reached.ssid,
            authenticated: self.key.is_some(),
            size: self.size,
            account: SessionAccount::default(),
            peer_clock: None,
            alignment: AlignmentReport {
                by: self.align.name().to_owned(),
                max_drift_ppb: self.max_drift_ppb.unwrap_or(FREE_PPB),
                max_asymmetry_ns: self.max_asymmetry_ns,
                bound_ns: None,
                median_bound_ns: None,
                peer_ahead_ns: None,
                skew_ppb: None,
                skew_bound_ppb: None,
                utc_bound_ns: None,
                changes: 0,
                contradictions: 0,
                unaligned: 0,
                packets: None,
            },
            round_trip: None,
            forward: None,
            back: None,
            forward_variation: None,
            back_variation: None,
            voice: None,
            wait_ns: u64::try_from(self.wait.as_nanos()).unwrap_or(u64::MAX),
        }
    }
}

impl Live for Running {
    type Latest = Vec<SessionSecond>;

    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }

    fn ready(&self) -> String {
        let points = points::ready(self.draining.points());
        format!("{points}, {}", self.draining.clock())
    }

    fn give_up_privileges(
        &mut self,
        makes_files: bool,
        on_event: &mut dyn FnMut(Event),
    ) -> Result<(), Failure> {
        self.draining.give_up_privileges(makes_files, on_event)
    }

    fn supervise(&mut self, on_event: &mut dyn FnMut(Event)) -> Option<EndReason> {
        let sessions = self.sending.iter().zip(&self.begun);
        for (_, begun) in sessions.filter(|it| it.0.shared.is_refused.load(Ordering::Relaxed)) {
            if !std::mem::replace(&mut self.has_told_of_refusal, true) {
                on_event(Event::Notice(
                    tscap_capture::Severity::Warning,
                    format!(
                        "{}: nobody answers at this port; tscap delay --serve INTERFACE does",
                        begun.address
                    ),
                ));
            }
        }
        self.utc_bound.set(self.utc.read().bound_ns);
        let over = self.draining.supervise(None, on_event);
        let is_over = self.sending.iter().all(Sending::is_over);
        over.or(is_over.then_some(EndReason::Count))
    }

    fn take_latest(&self) -> Option<Vec<SessionSecond>> {
        self.draining.take_latest()
    }
}

impl Running {
    /// Names of the peers.
    pub fn peers(&self) -> impl Iterator<Item = &str> {
        self.begun.iter().map(|it| it.peer.as_str())
    }

    /// Ends: no more packets are sent, and replies are waited for. `hurry` ends the waiting.
    ///
    /// # Errors
    /// If the counters can't be read.
    pub async fn finish(
        mut self,
        hurry: impl Future<Output = ()>,
    ) -> Result<SenderResult, Failure> {
        let seconds = self.draining.seconds();
        self.sending.iter_mut().for_each(Sending::stop);
        tokio::select! {
            () = self.settle() => {}
            () = hurry => {}
        }
        let ended = self.draining.finish()?;
        let slots = ended.points.slots();
        let (losses, seen) = ended.losses(&slots)?;
        let mut tracker = ended.tracker;
        let times = Times::of(&mut tracker);
        let mut warnings = ended.warnings;
        let lost: u64 = losses
            .iter()
            .map(tscap_file::accounting::Outcomes::lost)
            .sum();
        if lost > 0 {
            warnings.push(format!(
                "{lost} packets were not recorded: some of those that count as not left, as lost \
                 or as unasked may be among them (--ring-size)"
            ));
        }
        let mut sink = ended.sink;
        sink.take_until(RawStamp::NEVER, &times);
        let accounted: u64 = losses.iter().map(|it| it.total()).sum();
        let sessions = sink.sessions.into_iter();
        let sessions = sessions.zip(self.begun).zip(&self.sending);
        let sessions: Vec<_> = sessions
            .map(|((figures, begun), sending)| {
                let sent = sending.shared.sent.load(Ordering::Relaxed);
                figures.finish(sent, &times, begun)
            })
            .collect();
        Ok(SenderResult {
            clock: ended.path.function().to_owned(),
            seconds,
            adds_up: accounted <= seen && sessions.iter().all(|it| it.account.adds_up()),
            sessions,
            reference: ended.reference,
            warnings,
        })
    }

    /// Until all have been answered, or nothing can come in time.
    async fn settle(&self) {
        let until = tokio::time::Instant::now() + self.wait;
        while tokio::time::Instant::now() < until {
            tokio::time::sleep(LOOK_EVERY).await;
            let sent: u64 = self
                .sending
                .iter()
                .map(|it| it.shared.sent.load(Ordering::Relaxed))
                .sum();
            let now = self.draining.progress();
            if now.open == 0 && now.counted >= sent {
                return;
            }
        }
        // What has come by then is in the rings.
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
