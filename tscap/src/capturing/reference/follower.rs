//! Follows a reference for the times of a capture.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::time::{Interval, MissedTickBehavior, interval};

use super::{Device, Looked, ReferencePlan};
use crate::capturing::capture::{Event, Severity, first_brackets};
use crate::capturing::clock::ntp::{Kissed, NtpVerdict};
use crate::capturing::clock::{
    Estimate, Followed, HostClocks, Known, NsPerCycle, PhcBase, PhcClock, PhcStatus, RealNs,
    StampSource, Tracker, TscCycles,
};
use crate::capturing::host::tsc;
use crate::capturing::ntp::{Beside, NtpEvent, NtpPlan, NtpReference, Teller};
use crate::capturing::time::NS_PER_S;
use crate::failure::{Context as _, Failure, Hint as _};

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
/// What a root distance grows by: PHI (RFC 5905, section 7.2), parts per billion.
const PHI_PPB: u64 = 15_000;
/// How well the host's clock carries the time over a jump of the counter, ns: it is slewed by a
/// tenth at most, and the jump is seen within 100 ms.
const OVER_JUMP_NS: u64 = 10_000_000;
/// What the error grows by until the reference is heard again, parts per billion.
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
        teller: Teller,
        /// Whose time it is.
        server: Option<SocketAddr>,
        trouble: Trouble,
    },
    Device {
        device: Box<Device>,
        course: Course,
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
    pub async fn start(plan: &ReferencePlan, hear: &mut dyn FnMut(Event)) -> Result<Self, Failure> {
        tsc::check()
            .context(format!("cannot take the times of {plan}"))
            .hint(
                "`tscap doctor` says more; without --reference the host's clock gives the times",
            )?;
        let mut clocks = HostClocks::new(StampSource::Tsc);
        let host = first_brackets(StampSource::Tsc, &mut clocks).await?;
        let kind = match plan {
            ReferencePlan::Ntp(plan) => {
                let reference = NtpReference::start(plan, Beside::Capture, &host, hear)?;
                hear(Event::Notice(
                    Severity::Detail,
                    format!("NTP packets are stamped at {}", reference.ready()),
                ));
                Kind::Ntp {
                    reference: Box::new(reference),
                    teller: Teller::of(plan),
                    server: None,
                    trouble: Trouble::default(),
                }
            }
            ReferencePlan::Device(path) => Kind::Device {
                device: Box::new(Device::open(path)?),
                course: Course::default(),
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
        follower.wait_for_first(patience, hear).await?;
        Ok(follower)
    }

    async fn wait_for_first(
        &mut self,
        patience: Duration,
        hear: &mut dyn FnMut(Event),
    ) -> Result<(), Failure> {
        let end = Instant::now() + patience;
        while self.followed.is_none() {
            self.due().await;
            self.turn(hear);
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
    pub fn turn(&mut self, hear: &mut dyn FnMut(Event)) {
        let cross = self.host.read(&mut self.clocks);
        let seen = self.host.observe(&cross);
        // Nobody keeps them.
        self.host.take_samples();
        if seen.counter_jump_ns().is_some() {
            self.counter_jumped();
        }
        let was_set = self.kind.turn(&self.host, hear);
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

    /// No time came.
    fn silent(&self, patience: Duration) -> Failure {
        let name = &self.name;
        let why = match &self.kind {
            Kind::Ntp {
                reference, trouble, ..
            } => trouble.latest.clone().unwrap_or_else(|| {
                let (requests, ..) = reference.counts();
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
    fn turn(&mut self, host: &Tracker, hear: &mut dyn FnMut(Event)) -> bool {
        match self {
            Self::Ntp {
                reference,
                teller,
                server,
                trouble,
            } => {
                let mut was_set = false;
                reference.turn(host, &mut |event| {
                    if let NtpEvent::Exchange(of, point) = &event {
                        let is_it = server.is_none_or(|server| server == *of);
                        was_set |= is_it && point.verdict == NtpVerdict::Jumped;
                    }
                    trouble.take(&event);
                    teller.hear(event, hear);
                });
                was_set
            }
            Self::Device { device, course } => {
                let looked = device.look_if_due(host, hear);
                let was_set = matches!(looked, Some(Looked::Jumped));
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
                let later = a_second_after(at, host)?;
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

/// How a device goes on beside UTC.
#[derive(Debug, Default)]
pub(in crate::capturing) struct Course {
    /// How far it is ahead, ns; unknown at first.
    ahead_ns: Option<i64>,
    /// It was set, and what it counts since is not judged yet.
    was_set: bool,
}

impl Course {
    /// The device was set.
    pub(in crate::capturing) fn was_set(&mut self) {
        self.was_set = true;
    }

    /// What is known of the device at a counter value.
    pub(in crate::capturing) fn known(
        &mut self,
        clock: &PhcClock,
        at: TscCycles,
        host: &Tracker,
        turn: (u64, Option<TscCycles>),
    ) -> Option<Known> {
        let later = a_second_after(at, host)?;
        let status = clock.status(at, host)?;
        let counter = host.counter()?;
        if self.ahead_ns.is_none() || self.was_set {
            // What is far from all that the host's clock tells counts what it did before.
            let here = counter.model().estimate(at).real;
            self.ahead_ns = ahead_of_utc(&status, here).or(self.ahead_ns);
            self.was_set = false;
        }
        let ahead_ns = self.ahead_ns?;
        let utc = |it: Estimate| Estimate {
            real: RealNs(it.real.0.wrapping_add_signed(-ahead_ns)),
            ..it
        };
        let both = [utc(clock.estimate(at)?), utc(clock.estimate(later)?)];
        let aged = counter.rate().cycles_in(status.age_ns.cast_signed());
        let used_at = TscCycles(at.0.saturating_sub(aged.unsigned_abs()));
        known_by([at, later], both, (None, used_at), host, turn)
    }
}

/// The counter a second later, by the host's clock.
fn a_second_after(at: TscCycles, host: &Tracker) -> Option<TscCycles> {
    let cycles = host.counter()?.rate().cycles_in(NS_PER_S).unsigned_abs();
    Some(TscCycles(at.0.saturating_add(cycles)))
}

/// What a reference shows at two counter values, as what is known of it. It says itself how far
/// it is off UTC, if it does, and it was read at a counter value last.
fn known_by(
    [at, later]: [TscCycles; 2],
    [now, then]: [Estimate; 2],
    (own_bound_ns, used_at): (Option<u64>, TscCycles),
    host: &Tracker,
    (turn, set_after): (u64, Option<TscCycles>),
) -> Option<Known> {
    let ns = then.real.0.checked_sub(now.real.0)?;
    let here = host.counter()?.model().estimate(at).real;
    Some(Known {
        at,
        real: now.real,
        rate: NsPerCycle::of(ns, later.0.checked_sub(at.0)?)?,
        bound_ns: now.bound_ns,
        growth_ppb: growth_ppb(now.bound_ns, then.bound_ns),
        own_bound_ns,
        own_growth_ppb: PHI_PPB,
        host_ahead_ns: here.0.wrapping_sub(now.real.0).cast_signed(),
        used_at,
        turn,
        set_after,
        doubt_ns: 0,
    })
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
                self.latest = Some(match is_closed {
                    true => format!("no server listens at UDP port {}", server.port()),
                    false => format!("a request is not delivered: {error}"),
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

/// How far a device is ahead of UTC by what it counts, ns: leap seconds, or nothing.
fn ahead_of_utc(status: &PhcStatus, host: RealNs) -> Option<i64> {
    let plain_ns = host.0.wrapping_sub(status.phc.0).cast_signed();
    (status.base != PhcBase::Unknown).then(|| status.host_ahead_ns.saturating_sub(plain_ns))
}

/// What a bound grows by, a second apart.
fn growth_ppb(now_ns: u64, then_ns: u64) -> u64 {
    then_ns.saturating_sub(now_ns).saturating_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capturing::clock::{Counts, PhcNs};

    fn status(base: PhcBase, phc: u64, host_ahead_ns: i64) -> PhcStatus {
        PhcStatus {
            phc: PhcNs(phc),
            base,
            host_ahead_ns,
            bound_ns: 100,
            host_rate_ppb: 0,
            rate_bound_ppb: 1,
            least_width_ns: 80,
            age_ns: 0,
            readings: Counts::default(),
            stood: 0,
            torn: 0,
            failed: 0,
        }
    }

    /// The host's clock is 5 us ahead of it.
    #[test]
    fn a_device_is_ahead_of_utc_by_whole_leap_seconds() {
        let host = 1_795_564_800_000_005_000;
        let utc = host - 5_000;
        let tai = utc + 37_000_000_000;
        for (base, phc, ahead_ns) in [
            (PhcBase::Utc, utc, Some(0)),
            (PhcBase::Tai, tai, Some(37_000_000_000)),
            (PhcBase::Unknown, utc, None),
        ] {
            let found = ahead_of_utc(&status(base, phc, 5_000), RealNs(host));
            assert_eq!(found, ahead_ns, "{base:?}");
        }
    }

    #[test]
    fn what_a_bound_grows_by_is_never_too_little() {
        assert_eq!(growth_ppb(1_000, 1_100), 101);
        assert_eq!(growth_ppb(1_000, 900), 1);
    }
}
