//! Follows references for the times of a capture or a measurement.

use std::time::{Duration, Instant};

use tokio::time::{Interval, MissedTickBehavior, interval};

use super::ReferencePlan;
use super::member::Member;
use tscap_base::failure::{Context as _, Failure, Hint as _};
use tscap_capture::{Event, Severity, first_brackets};
use tscap_clock::{HostClocks, RealNs, StampSource, Tracker};
use tscap_references::{Combined, Consensus, Followed, Known, ReferenceState};
use tscap_time::tsc;

/// Between two turns: as often as an idle capture reads its clocks.
const TURN_EVERY: Duration = Duration::from_millis(10);
/// Once most of several references have told their times, the others have so long.
const FOR_OTHERS: Duration = Duration::from_secs(3);
/// How well the host's clock carries the time over a jump of the counter, ns: it is slewed by a
/// tenth at most, and the jump is seen within 100 ms.
const OVER_JUMP_NS: u64 = 10_000_000;
/// What the error grows by until the reference answers again, parts per billion.
const ADRIFT_PPB: u64 = 1_000_000;

/// References that are followed. When it is dropped, nothing stays attached.
#[derive(Debug)]
pub struct Follower {
    name: String,
    clocks: HostClocks,
    host: Tracker,
    members: Vec<Member>,
    combined: Combined,
    /// What is told: no majority agrees.
    is_split: bool,
    /// Once something is known.
    followed: Option<Followed>,
    due: Interval,
}

impl Follower {
    /// Begins, and waits until the references have told their times: all of them, or most and
    /// those that will not for some seconds more.
    ///
    /// # Errors
    /// What was tried, why it failed and what to do next. Nothing stays attached.
    pub async fn start(
        plans: &[ReferencePlan],
        on_event: &mut dyn FnMut(Event),
    ) -> Result<Self, Failure> {
        let names: Vec<_> = plans.iter().map(ToString::to_string).collect();
        let name = names.join(" + ");
        tsc::check()
            .context(format!("cannot take the times of {name}"))
            .hint(
                "`tscap doctor` says more; without --reference the host's clock gives the times",
            )?;
        let mut clocks = HostClocks::new(StampSource::Tsc);
        let host = first_brackets(StampSource::Tsc, &mut clocks).await?;
        let mut members: Vec<Member> = Vec::new();
        for plan in plans {
            let member = Member::start(plan, &host, on_event)?;
            members.iter_mut().for_each(Member::others_began);
            members.push(member);
        }
        let mut due = interval(TURN_EVERY);
        due.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut follower = Self {
            name,
            clocks,
            host,
            members,
            combined: Combined::default(),
            is_split: false,
            followed: None,
            due,
        };
        follower.wait_for_first(on_event).await?;
        Ok(follower)
    }

    async fn wait_for_first(&mut self, on_event: &mut dyn FnMut(Event)) -> Result<(), Failure> {
        let begun = Instant::now();
        let mut most_told = None;
        loop {
            self.due().await;
            self.turn(on_event);
            let has_told = self.members.iter().filter(|it| it.has_told()).count();
            if has_told > self.members.len() / 2 {
                most_told.get_or_insert_with(Instant::now);
            }
            let mut waits = self.members.iter().filter(|it| {
                !it.has_told() && !it.is_hopeless() && begun.elapsed() < it.patience()
            });
            let is_enough = most_told.is_some_and(|since| since.elapsed() >= FOR_OTHERS);
            if waits.next().is_none() || is_enough {
                break;
            }
        }
        if self.followed.is_none() {
            return Err(self.silent());
        }
        for member in self.members.iter().filter(|it| !it.has_told()) {
            let text = format!(
                "{} has told no time: {}",
                member.name(),
                member.why_silent()
            );
            on_event(Event::Notice(Severity::Warning, text));
        }
        Ok(())
    }

    /// Waits until a turn is due. Safe to cancel.
    pub async fn due(&mut self) {
        self.due.tick().await;
    }

    /// The programs of what goes by it were attached.
    pub fn others_began(&mut self) {
        self.members.iter_mut().for_each(Member::others_began);
    }

    /// What is shared with a capture: known from the start on.
    pub fn followed(&self) -> Option<&Followed> {
        self.followed.as_ref()
    }

    /// Reads the host's clocks and the references, and publishes what is known.
    pub fn turn(&mut self, on_event: &mut dyn FnMut(Event)) {
        let (_, seen) = self.host.look(&mut self.clocks);
        // Nobody keeps them.
        self.host.take_samples();
        if seen.counter_jump_ns().is_some() {
            self.counter_jumped();
        }
        let host = &self.host;
        let turns = self.members.iter_mut().map(|it| it.turn(host, on_event));
        // Each has its turn.
        let has_news = turns.fold(false, |one, other| one | other);
        let votes: Vec<_> = self.members.iter().map(Member::vote).collect();
        if has_news && let Some(said) = self.combined.judge(&votes, tsc::read()) {
            self.publish(said, on_event);
        }
    }

    fn publish(&mut self, said: Consensus, on_event: &mut dyn FnMut(Event)) {
        let Consensus {
            known,
            states,
            is_split,
        } = said;
        match &self.followed {
            Some(followed) => followed.publish(known),
            None => self.followed = Some(Followed::new(&self.name, known)),
        }
        let mut tell = |severity, text| on_event(Event::Notice(severity, text));
        if is_split && !self.is_split {
            tell(
                Severity::Warning,
                format!(
                    "no majority of {} agrees: the bound is around what all of them say",
                    self.name
                ),
            );
        }
        self.is_split = is_split;
        let is_one = self.members.len() == 1;
        for (member, state) in self.members.iter_mut().zip(states) {
            let before = std::mem::replace(&mut member.state, state);
            if before == state || is_one {
                continue;
            }
            let name = member.name();
            match state {
                ReferenceState::Falseticker => tell(
                    Severity::Warning,
                    format!(
                        "{name} contradicts the other references, and is left out (falseticker)"
                    ),
                ),
                ReferenceState::Silent => tell(
                    Severity::Warning,
                    format!("{name} is silent, and has no vote until it answers"),
                ),
                ReferenceState::Leads => tell(Severity::Note, format!("the times follow {name}")),
                ReferenceState::Agrees if before == ReferenceState::Falseticker => tell(
                    Severity::Note,
                    format!("{name} agrees with the other references again"),
                ),
                ReferenceState::Agrees | ReferenceState::Unknown => {}
            }
        }
        if let Some(followed) = &self.followed {
            followed.publish_members(self.members.iter().map(Member::report).collect());
        }
    }

    /// The host's clock tells how the references went on.
    fn counter_jumped(&mut self) {
        self.members.iter_mut().for_each(Member::counter_jumped);
        let (Some(followed), Some(counter)) = (&self.followed, self.host.counter()) else {
            return;
        };
        let before = followed.known();
        let at = tsc::read();
        let host = counter.model().estimate(at).real;
        let known = Known {
            at,
            real: RealNs(host.0.wrapping_add_signed(-before.host_ahead_ns)),
            bound_ns: before.bound_ns.saturating_add(OVER_JUMP_NS),
            growth_ppb: ADRIFT_PPB,
            used_at: at,
            turn: before.turn + 1,
            set_after: None,
            doubt_ns: 0,
            ..before
        };
        self.combined.counter_jumped(known);
        followed.publish(known);
    }

    fn silent(&self) -> Failure {
        let why = self.members.iter().map(|it| match &self.members[..] {
            [_] => it.why_silent(),
            _ => format!("{}: {}", it.name(), it.why_silent()),
        });
        let why: Vec<_> = why.collect();
        let hint = self.members.first().map_or("", Member::hint);
        let name = &self.name;
        Failure::new(format!(
            "cannot take the times of {name}: {}",
            why.join("; ")
        ))
        .hint(hint)
    }
}
