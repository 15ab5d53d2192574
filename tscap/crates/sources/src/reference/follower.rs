//! Follows a reference for the times of a capture.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::time::{Interval, MissedTickBehavior, interval};

use super::{Device, LookOutcome, ReferencePlan};
use crate::ntp::{NtpEvent, NtpPlan, NtpReference, NtpReporter, SharedWith};
use tscap_base::failure::{Context as _, Failure, Hint as _};
use tscap_capture::{Event, Severity, first_brackets};
use tscap_clock::{Estimate, HostClocks, RealNs, StampSource, Tracker, TscCycles};
use tscap_references::ntp::Kissed;
use tscap_references::{
    DeviceDrift, Followed, Known, PeerVerdict, known_by, stamp_one_second_later,
};
use tscap_time::tsc;

/// Between two turns: as often as an idle capture reads its clocks.
const TURN_EVERY: Duration = Duration::from_millis(10);
/// Between two publications: each may bend the times.
const PUBLISH_EVERY: Duration = Duration::from_millis(100);
/// Longest wait for the first time of a server that is asked: a second request is answered too,
/// with the usual poll.
const FIRST_REPLY: Duration = Duration::from_secs(20);
/// The same where a daemon asks, which may do so every 64 s, and twice as rarely.
const FIRST_OF_OTHERS: Duration = Duration::from_secs(130);
/// The same of a device.
const FIRST_LOOK: Duration = Duration::from_secs(5);
/// How well the host's clock carries the time over a jump of the counter, ns: it is slewed by a
/// tenth at most, and the jump is seen within 100 ms.
const OVER_JUMP_NS: u64 = 10_000_000;
/// What the error grows by until the reference answers again, parts per billion.
const ADRIFT_PPB: u64 = 1_000_000;

/// A reference that is followed. When it is dropped, nothing stays attached.
#[derive(Debug)]
pub struct Follower {
    name: String,
    clocks: HostClocks,
    host: Tracker,
    kind: Kind,
    /// Once something is known.
    followed: Option<Followed>,
    published: Instant,
    turns: u64,
    /// Where the latest turn began, if the reference was set.
    set_after: Option<TscCycles>,
    due: Interval,
}

#[derive(Debug)]
enum Kind {
    Ntp {
        reference: Box<NtpReference>,
        ntp_reporter: NtpReporter,
        /// Whose time it is.
        server: Option<SocketAddr>,
        trouble: Trouble,
    },
    Device {
        device: Box<Device>,
        course: DeviceDrift,
    },
}

/// Why there is no time yet.
#[derive(Debug, Default)]
struct Trouble {
    latest: Option<String>,
    is_hopeless: bool,
}

impl Follower {
    /// Begins, and waits until the reference has told its time.
    ///
    /// # Errors
    /// What was tried, why it failed and what to do next. Nothing stays attached.
    pub async fn start(
        plan: &ReferencePlan,
        on_event: &mut dyn FnMut(Event),
    ) -> Result<Self, Failure> {
        tsc::check()
            .context(format!("cannot take the times of {plan}"))
            .hint(
                "`tscap doctor` says more; without --reference the host's clock gives the times",
            )?;
        let mut clocks = HostClocks::new(StampSource::Tsc);
        let host = first_brackets(StampSource::Tsc, &mut clocks).await?;
        let kind = match plan {
            ReferencePlan::Ntp(plan) => {
                let reference = NtpReference::start(plan, SharedWith::Capture, &host, on_event)?;
                on_event(Event::Notice(
                    Severity::Detail,
                    format!("NTP packets are stamped at {}", reference.ready()),
                ));
                Kind::Ntp {
                    reference: Box::new(reference),
                    ntp_reporter: NtpReporter::of(plan),
                    server: None,
                    trouble: Trouble::default(),
                }
            }
            ReferencePlan::Device(path) => Kind::Device {
                device: Box::new(Device::open(path)?),
                course: DeviceDrift::default(),
            },
        };
        let mut due = interval(TURN_EVERY);
        due.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut follower = Self {
            name: plan.to_string(),
            clocks,
            host,
            kind,
            followed: None,
            published: Instant::now(),
            turns: 0,
            set_after: None,
            due,
        };
        let patience = match plan {
            ReferencePlan::Ntp(NtpPlan::Ask { .. }) => FIRST_REPLY,
            ReferencePlan::Ntp(NtpPlan::Passive { .. }) => FIRST_OF_OTHERS,
            ReferencePlan::Device(_) => FIRST_LOOK,
        };
        follower.wait_for_first(patience, on_event).await?;
        Ok(follower)
    }

    async fn wait_for_first(
        &mut self,
        patience: Duration,
        on_event: &mut dyn FnMut(Event),
    ) -> Result<(), Failure> {
        let end = Instant::now() + patience;
        while self.followed.is_none() {
            self.due().await;
            self.turn(on_event);
            if self.followed.is_none() && (Instant::now() >= end || self.is_hopeless()) {
                return Err(self.silent(patience));
            }
        }
        Ok(())
    }

    /// Waits until a turn is due. Safe to cancel.
    pub async fn due(&mut self) {
        self.due.tick().await;
    }

    /// The capture that goes by it was attached.
    pub fn capture_began(&mut self) {
        if let Kind::Ntp { reference, .. } = &mut self.kind {
            reference.capture_began();
        }
    }

    /// What is shared with a capture: known from the start on.
    pub fn followed(&self) -> Option<&Followed> {
        self.followed.as_ref()
    }

    /// Reads the host's clocks and the reference, and publishes what is known.
    pub fn turn(&mut self, on_event: &mut dyn FnMut(Event)) {
        let (_, seen) = self.host.look(&mut self.clocks);
        // Nobody keeps them.
        self.host.take_samples();
        if seen.counter_jump_ns().is_some() {
            self.counter_jumped();
        }
        let was_set = self.kind.turn(&self.host, on_event);
        let before = self.followed.as_ref().map(Followed::known);
        if was_set {
            self.turns += 1;
            self.set_after = before.map(|it| it.used_at);
        }
        let doubt_ns = self.kind.doubt_ns();
        match (&self.followed, before) {
            // Nothing else is known until it is believed or not.
            (Some(followed), Some(before)) if doubt_ns > 0 => {
                followed.publish(Known { doubt_ns, ..before })
            }
            (_, before) => {
                let is_due = self.published.elapsed() >= PUBLISH_EVERY;
                let is_decided = before.is_none_or(|before| before.doubt_ns > 0);
                if was_set || is_due || is_decided {
                    self.publish();
                }
            }
        }
    }

    fn publish(&mut self) {
        let at = tsc::read();
        let turn = (self.turns, self.set_after);
        let Some(known) = self.kind.known(at, &self.host, turn) else {
            // What is known goes on, with a growing bound.
            return;
        };
        self.published = Instant::now();
        match &self.followed {
            Some(followed) => followed.publish(known),
            None => self.followed = Some(Followed::new(&self.name, known)),
        }
    }

    /// The host's clock tells how the reference went on.
    fn counter_jumped(&mut self) {
        self.turns += 1;
        self.set_after = None;
        match &mut self.kind {
            Kind::Ntp { reference, .. } => reference.begin_anew(),
            Kind::Device { device, .. } => device.begin_anew(),
        }
        let (Some(followed), Some(counter)) = (&self.followed, self.host.counter()) else {
            return;
        };
        let before = followed.known();
        let at = tsc::read();
        let host = counter.model().estimate(at).real;
        followed.publish(Known {
            at,
            real: RealNs(host.0.wrapping_add_signed(-before.host_ahead_ns)),
            bound_ns: before.bound_ns.saturating_add(OVER_JUMP_NS),
            growth_ppb: ADRIFT_PPB,
            used_at: at,
            turn: self.turns,
            set_after: None,
            doubt_ns: 0,
            ..before
        });
    }

    fn is_hopeless(&self) -> bool {
        matches!(&self.kind, Kind::Ntp { trouble, .. } if trouble.is_hopeless)
    }

    fn silent(&self, patience: Duration) -> Failure {
        let name = &self.name;
        let why = match &self.kind {
            Kind::Ntp {
                reference, trouble, ..
            } => trouble.latest.clone().unwrap_or_else(|| {
                let requests = reference.counts().requests;
                let seconds = patience.as_secs();
                match requests {
                    0 => format!("no NTP request left the interface in {seconds} s"),
                    _ => format!("no reply came in {seconds} s"),
                }
            }),
            Kind::Device { device, .. } => match device.clock().estimate(tsc::read()) {
                Some(_) => "it counts neither TAI nor UTC, as far as the host's clock tells".into(),
                None => "it gave no readings of use".to_owned(),
            },
        };
        let hint = match &self.kind {
            Kind::Ntp { .. } => {
                "see whether it answers: `chronyd -Q 'server HOST iburst'`; a firewall may drop \
                 UDP port 123. Without --reference the host's clock gives the times"
            }
            Kind::Device { .. } => {
                "`tscap clock --reference` shows it beside the host's clock; ptp4l or phc2sys sets it"
            }
        };
        Failure::new(format!("cannot take the times of {name}: {why}")).hint(hint)
    }
}

impl Kind {
    /// Takes in what there is; says whether the reference was set.
    fn turn(&mut self, host: &Tracker, on_event: &mut dyn FnMut(Event)) -> bool {
        match self {
            Self::Ntp {
                reference,
                ntp_reporter,
                server,
                trouble,
            } => {
                let mut was_set = false;
                reference.turn(host, &mut |event| {
                    if let NtpEvent::Exchange(of, point) = &event {
                        let is_it = server.is_none_or(|server| server == *of);
                        was_set |= is_it && point.verdict == PeerVerdict::Jumped;
                    }
                    trouble.take(&event);
                    ntp_reporter.report(event, on_event);
                });
                was_set
            }
            Self::Device { device, course } => {
                let looked = device.look_if_due(host, on_event);
                let was_set = matches!(looked, Some(LookOutcome::Jumped));
                if was_set {
                    course.was_set();
                }
                was_set
            }
        }
    }

    /// How far off the reference is, ns, if readings are right that are not believed yet.
    fn doubt_ns(&self) -> u64 {
        match self {
            Self::Ntp { .. } => 0,
            Self::Device { device, .. } => device.clock().doubt_ns(),
        }
    }

    /// What is known at a counter value, of this turn, which began behind a counter value if the
    /// reference was set.
    fn known(
        &mut self,
        at: TscCycles,
        host: &Tracker,
        turn: (u64, Option<TscCycles>),
    ) -> Option<Known> {
        match self {
            Self::Ntp {
                reference, server, ..
            } => {
                let later = stamp_one_second_later(at, host)?;
                let (of, now) = reference.known(at, host)?;
                let then = reference.known_of(of, later, host)?;
                *server = Some(of);
                let both = [now, then].map(|it| Estimate {
                    real: it.real,
                    bound_ns: it.bound_ns,
                });
                let own = (Some(now.root_distance_ns), now.used_at);
                known_by([at, later], both, own, host, turn)
            }
            Self::Device { device, course } => course.known(device.clock(), at, host, turn),
        }
    }
}

impl Trouble {
    /// Keeps why a reply was of no use.
    fn take(&mut self, event: &NtpEvent) {
        match event {
            NtpEvent::Rejected(_, reject) => {
                self.latest = Some(format!("a reply is not used: {}", reject.words()));
            }
            NtpEvent::Kissed(_, code, kissed) => {
                self.latest = Some(format!("it answers with the kiss-o'-death {code}"));
                self.is_hopeless |= *kissed == Some(Kissed::Stopped);
            }
            NtpEvent::Refused(server, error) => {
                let is_closed = error.kind() == io::ErrorKind::ConnectionRefused;
                self.latest = Some(if is_closed {
                    format!("no server listens at UDP port {}", server.port())
                } else {
                    format!("a request is not delivered: {error}")
                });
                self.is_hopeless |= is_closed;
            }
            NtpEvent::Lost(lost) => {
                self.latest = Some(lost.to_string());
                self.is_hopeless = true;
            }
            NtpEvent::Notice(_) | NtpEvent::Exchange(..) | NtpEvent::Unanswered(..) => {}
        }
    }
}
