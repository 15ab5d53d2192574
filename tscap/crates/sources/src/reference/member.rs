//! A reference among those that are followed.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::{Device, LookOutcome, ReferencePlan};
use crate::ntp::{NtpEvent, NtpPlan, NtpReference, NtpReporter, SharedWith};
use tscap_base::failure::Failure;
use tscap_capture::{Event, Severity};
use tscap_clock::{Estimate, Tracker, TscCycles};
use tscap_references::ntp::{Kissed, LONGEST_POLL};
use tscap_references::{
    DeviceDrift, Known, PeerVerdict, ReferenceMember, ReferenceState, Vote, known_by,
    stamp_one_second_later,
};
use tscap_time::tsc;

/// Between two publications of one reference: each may bend the times.
const PUBLISH_EVERY: Duration = Duration::from_millis(100);
/// Longest wait for the first time of a server that is asked: a second request is answered too,
/// with the usual poll.
const FIRST_REPLY: Duration = Duration::from_secs(20);
/// The same where a daemon asks, which may do so every 64 s, and twice as rarely.
const FIRST_OF_OTHERS: Duration = Duration::from_secs(130);
/// The same of a device.
const FIRST_LOOK: Duration = Duration::from_secs(5);
/// Between two looks at a device, of which some may fail.
const LOOKS: Duration = Duration::from_millis(200);
/// A reply may take as long.
const PATIENCE: Duration = Duration::from_millis(100);
/// After so many requests in a row without an answer a reference is late: the times follow another
/// one. That is within two polls.
const LATE_AFTER: u32 = 1;
/// After so many it is silent: it has no vote any more (RFC 5905, section 9.2, the reach register).
const SILENT_AFTER: u32 = 8;
/// Answers that are not used, or are seen only, are missed after so many polls: one in the
/// interleaved mode is known a poll later.
const KNOWN_AFTER: u32 = 2;

/// A reference that is followed. When it is dropped, nothing stays attached.
#[derive(Debug)]
pub(super) struct Member {
    name: String,
    kind: Kind,
    patience: Duration,
    /// What was known last.
    known: Option<Known>,
    published: Instant,
    turns: u64,
    /// Where the latest turn began, if the reference was set.
    set_after: Option<TscCycles>,
    pub state: ReferenceState,
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

impl Member {
    /// Opens it.
    ///
    /// # Errors
    /// What was tried, why it failed and what to do next. Nothing stays attached.
    pub fn start(
        plan: &ReferencePlan,
        host: &Tracker,
        on_event: &mut dyn FnMut(Event),
    ) -> Result<Self, Failure> {
        let kind = match plan {
            ReferencePlan::Ntp(plan) => {
                let reference = NtpReference::start(plan, SharedWith::Capture, host, on_event)?;
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
        Ok(Self {
            name: plan.to_string(),
            kind,
            patience: match plan {
                ReferencePlan::Ntp(NtpPlan::Ask { .. }) => FIRST_REPLY,
                ReferencePlan::Ntp(NtpPlan::Passive { .. }) => FIRST_OF_OTHERS,
                ReferencePlan::Device(_) => FIRST_LOOK,
            },
            known: None,
            published: Instant::now(),
            turns: 0,
            set_after: None,
            state: ReferenceState::Unknown,
        })
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Longest wait for its first time.
    pub fn patience(&self) -> Duration {
        self.patience
    }

    /// Whether it has told its time.
    pub fn has_told(&self) -> bool {
        self.known.is_some()
    }

    /// Other programs were attached, whose counters make those of these programs pause.
    pub fn others_began(&mut self) {
        if let Kind::Ntp { reference, .. } = &mut self.kind {
            reference.capture_began();
        }
    }

    /// Takes in what there is. Says whether something else is known of it now.
    pub fn turn(&mut self, host: &Tracker, on_event: &mut dyn FnMut(Event)) -> bool {
        let was_set = self.kind.turn(host, on_event);
        if was_set {
            self.turns += 1;
            self.set_after = self.known.map(|it| it.used_at);
        }
        let doubt_ns = self.kind.doubt_ns();
        match self.known {
            // Nothing else is known until it is believed or not.
            Some(before) if doubt_ns > 0 => {
                self.known = Some(Known { doubt_ns, ..before });
                before.doubt_ns != doubt_ns
            }
            before => {
                let is_due = self.published.elapsed() >= PUBLISH_EVERY;
                let is_decided = before.is_none_or(|before| before.doubt_ns > 0);
                (was_set || is_due || is_decided) && self.look(host)
            }
        }
    }

    /// Finds what is known now; else what was known goes on, with a growing bound.
    fn look(&mut self, host: &Tracker) -> bool {
        let at = tsc::read();
        let turn = (self.turns, self.set_after);
        let Some((known, has_moved)) = self.kind.known(at, host, turn) else {
            return false;
        };
        self.published = Instant::now();
        let before = self.known.replace(known);
        if let Some(before) = before.filter(|_| has_moved)
            && !meet(&before, &known)
        {
            // Another server has its name now, with another time.
            self.turns += 1;
            self.set_after = Some(before.used_at);
            self.known = Some(Known {
                turn: self.turns,
                set_after: self.set_after,
                ..known
            });
        }
        true
    }

    /// The counter jumped: nothing of before holds.
    pub fn counter_jumped(&mut self) {
        self.turns += 1;
        self.set_after = None;
        self.known = None;
        match &mut self.kind {
            Kind::Ntp { reference, .. } => reference.begin_anew(),
            Kind::Device { device, .. } => device.begin_anew(),
        }
    }

    /// What it says now.
    pub fn vote(&self) -> Vote {
        let age = self.known.map(|it| {
            let cycles = tsc::read().0.saturating_sub(it.used_at.0);
            Duration::from_nanos(it.rate.duration_ns(cycles))
        });
        let poll = self.kind.poll();
        let unanswered = self.kind.unanswered();
        let after = |polls: u32| {
            let is_old = |age| age > poll * (polls + KNOWN_AFTER) + PATIENCE;
            unanswered >= polls || age.is_some_and(is_old)
        };
        Vote {
            known: self.known,
            is_late: after(LATE_AFTER),
            is_silent: after(SILENT_AFTER),
        }
    }

    /// What there is to tell of it at the end.
    pub fn report(&self) -> ReferenceMember {
        ReferenceMember {
            name: self.name.clone(),
            state: self.state,
            known: self.known,
        }
    }

    /// Whether it will never tell its time.
    pub fn is_hopeless(&self) -> bool {
        matches!(&self.kind, Kind::Ntp { trouble, .. } if trouble.is_hopeless)
    }

    /// Why it has told no time.
    pub fn why_silent(&self) -> String {
        match &self.kind {
            Kind::Ntp {
                reference, trouble, ..
            } => trouble.latest.clone().unwrap_or_else(|| {
                let requests = reference.counts().requests;
                let seconds = self.patience.as_secs();
                match requests {
                    0 => format!("no NTP request left the interface in {seconds} s"),
                    _ => format!("no reply came in {seconds} s"),
                }
            }),
            Kind::Device { device, .. } => match device.clock().estimate(tsc::read()) {
                Some(_) => "it counts neither TAI nor UTC, as far as the host's clock tells".into(),
                None => "it gave no readings of use".to_owned(),
            },
        }
    }

    /// What helps where it has told no time.
    pub fn hint(&self) -> &'static str {
        match &self.kind {
            Kind::Ntp { .. } => {
                "see whether it answers: `chronyd -Q 'server HOST iburst'`; a firewall may drop \
                 UDP port 123. Without --reference the host's clock gives the times"
            }
            Kind::Device { .. } => {
                "`tscap clock --reference` shows it beside the host's clock; ptp4l or phc2sys sets it"
            }
        }
    }
}

/// Whether what was known and what is known now can both be right.
fn meet(before: &Known, now: &Known) -> bool {
    let bound = |known: &Known| {
        let bounds = known.bounds_at(now.at);
        let own = bounds.own_bound_ns.unwrap_or(0);
        u128::from(bounds.bound_ns) + u128::from(own) + u128::from(known.doubt_ns)
    };
    let apart = before.real_at(now.at).0.abs_diff(now.real.0);
    u128::from(apart) <= bound(before) + bound(now)
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

    /// Requests in a row that were not answered; endless if none is sent any more.
    fn unanswered(&self) -> u32 {
        match self {
            Self::Ntp { reference, .. } => reference.unanswered(),
            Self::Device { .. } => 0,
        }
    }

    /// Between two answers, as long as all are well.
    fn poll(&self) -> Duration {
        match self {
            Self::Ntp { reference, .. } => {
                let polling = reference.asked_every();
                polling.unwrap_or(LONGEST_POLL)
            }
            Self::Device { .. } => LOOKS,
        }
    }

    /// What is known at a counter value, of this turn, which began behind a counter value if the
    /// reference was set; and whether it is of another server than before.
    fn known(
        &mut self,
        at: TscCycles,
        host: &Tracker,
        turn: (u64, Option<TscCycles>),
    ) -> Option<(Known, bool)> {
        match self {
            Self::Ntp {
                reference, server, ..
            } => {
                let later = stamp_one_second_later(at, host)?;
                let (of, now) = reference.known(at, host)?;
                let then = reference.known_of(of, later, host)?;
                let has_moved = server.replace(of).is_some_and(|before| before != of);
                let both = [now, then].map(|it| Estimate {
                    real: it.real,
                    bound_ns: it.bound_ns,
                });
                let own = (Some(now.root_distance_ns), now.used_at);
                let known = known_by([at, later], both, own, host, turn)?;
                Some((known, has_moved))
            }
            Self::Device { device, course } => {
                Some((course.known(device.clock(), at, host, turn)?, false))
            }
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
            NtpEvent::Notice(_)
            | NtpEvent::Exchange(..)
            | NtpEvent::Unanswered(..)
            | NtpEvent::Moved(_)
            | NtpEvent::Unmoved(_) => {}
        }
    }
}
