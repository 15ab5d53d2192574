//! An attached interface while the capture runs: it can be renumbered by a move to another
//! namespace, or go away.

use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use tscap_common::hook::{Direction, Slot};
use tscap_live::Scope;

use super::own_counts::OwnCounts;
use super::selection::Selected;
use super::summary::{DirectionSummary, HardwareSummary, InterfaceSummary};
use tscap_file::accounting::{Directed, InterfaceCounts, Outcomes, Totals, Written};
use tscap_file::pcapng::{HardwareOption, HardwareStatistics, Hooks};
use tscap_network::netdev::{self, AttachedXdp, Link};
use tscap_programs::hook::{AttachPoint, Attachment, Held, Presence};

#[derive(Debug)]
pub(super) struct LiveLink {
    pub name: String,
    /// What its namespace was called at the start, if that was not this process's own.
    pub namespace: Option<String>,
    /// Whether it was asked for by its name.
    pub is_named: bool,
    /// How it stamps frames itself, where those stamps are taken.
    pub hardware: Option<HardwareOption>,
    mac: Option<[u8; 6]>,
    state: Mutex<State>,
    own: OwnCounts,
}

#[derive(Debug)]
struct State {
    /// Index of its namespace, or of the last one that is captured in.
    scope: usize,
    /// Its number now, or the last one.
    ifindex: u32,
    /// Its programs: for received frames, for sent ones, or both.
    programs: Vec<Program>,
    /// What is at XDP of others, if received frames are captured beside that, and when that
    /// was looked at.
    beside: Option<(Option<AttachedXdp>, Instant)>,
    /// A program that was found lost, until that is told.
    untold: Option<AttachPoint>,
    /// The counts of an interface that is gone, by writer.
    last: Option<Vec<InterfaceCounts>>,
}

/// A program of this capture.
#[derive(Debug)]
struct Program {
    at: AttachPoint,
    /// Its hook for people and machines.
    hook: String,
    /// What holds it; `None` if that is gone.
    held: Option<Held>,
}

impl Program {
    fn of(attachment: Attachment) -> Self {
        Self {
            at: attachment.at,
            hook: attachment.hook(),
            held: Some(attachment.held),
        }
    }

    fn direction(&self) -> Direction {
        self.at.hook().direction()
    }
}

/// What the capture of an interface has lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    /// All of it: the interface is gone.
    Interface,
    /// The program here, while another one is still there.
    Program(AttachPoint),
}

impl State {
    pub(super) fn is_gone(&self) -> bool {
        self.programs.iter().all(|program| program.held.is_none())
    }

    /// Looks whether it is still there, under which number, and with which of its programs.
    fn look(&mut self) {
        for program in &mut self.programs {
            match program.held.as_ref().map(Held::look) {
                Some(Presence::Numbered(ifindex)) => self.ifindex = ifindex,
                Some(Presence::Gone) => {
                    program.held = None;
                    self.untold = Some(program.at);
                }
                Some(Presence::AsBefore) | None => {}
            }
        }
    }
}

impl LiveLink {
    /// Right after attaching; `before` as it was before.
    pub fn new(before: &Selected, scope: &Scope, attached: Vec<Attachment>) -> Self {
        let link = &before.link;
        let is_beside = attached.iter().any(Attachment::is_beside_others);
        Self {
            name: link.name.clone(),
            namespace: scope.label().map(str::to_owned),
            is_named: before.is_named,
            hardware: None,
            mac: link.mac,
            state: Mutex::new(State {
                scope: before.scope,
                ifindex: link.index,
                programs: attached.into_iter().map(Program::of).collect(),
                beside: is_beside.then(|| (link.xdp.clone(), Instant::now())),
                untold: None,
                last: None,
            }),
            own: OwnCounts::begin(link),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state
            .lock()
            .unwrap_or_else(|broken| broken.into_inner())
    }

    /// Its name, with its namespace's if that is another.
    pub fn whole_name(&self) -> String {
        match &self.namespace {
            None => self.name.clone(),
            Some(namespace) => format!("{} in {namespace}", self.name),
        }
    }

    pub fn ifindex(&self) -> u32 {
        self.state().ifindex
    }

    /// Index of its namespace, or of the last one that is captured in.
    pub fn scope(&self) -> usize {
        self.state().scope
    }

    pub(super) fn is_gone(&self) -> bool {
        self.state().is_gone()
    }

    /// Whether it is this one, as long as no interface has moved.
    pub fn is_of(&self, selected: &Selected) -> bool {
        let state = self.state();
        (state.scope, state.ifindex) == (selected.scope, selected.link.index)
    }

    /// Whether received frames are captured beside what is at XDP of others.
    pub fn is_beside_others(&self) -> bool {
        self.state().beside.is_some()
    }

    /// Where frames of a direction are stamped, if they are.
    pub fn at(&self, direction: Direction) -> Option<AttachPoint> {
        let state = self.state();
        let mut programs = state.programs.iter();
        let found = programs.find(|program| program.direction() == direction);
        found.map(|program| program.at)
    }

    /// The hook there, for people and machines.
    pub fn hook(&self, direction: Direction) -> Option<String> {
        let state = self.state();
        let mut programs = state.programs.iter();
        let found = programs.find(|program| program.direction() == direction);
        found.map(|program| program.hook.clone())
    }

    pub(super) fn account(
        &self,
        observed: &InterfaceCounts,
        written: Directed<Written>,
    ) -> InterfaceSummary {
        let of_each = Directed::by(|direction| {
            let mut outcomes = observed.losses[direction];
            outcomes += written[direction].outcomes;
            Totals::of(written[direction].written, outcomes)
        });
        let directions = Direction::ALL.into_iter().filter_map(|it| {
            let hook = self.hook(it)?;
            Some(DirectionSummary {
                interface: observed.own.map(|own| own[it]),
                ..DirectionSummary::of(it, Some(&hook), of_each[it])
            })
        });
        let received = written[Direction::In];
        let hardware = self.hardware.as_ref().map(|stamping| HardwareSummary {
            stamping: stamping.clone(),
            frames: HardwareStatistics {
                frames: received.hardware,
                without: received.written - received.hardware.with,
                bound_ns: None,
            },
            delay: None,
        });
        let totals = of_each.sum();
        InterfaceSummary {
            name: self.name.clone(),
            namespace: self.namespace.clone(),
            ifindex: self.ifindex(),
            seen: totals.seen,
            written: totals.written,
            outcomes: totals.outcomes,
            directions: directions.collect(),
            ifdrop: observed.ifdrop,
            hardware,
        }
    }

    /// Its hooks as the file names them.
    pub fn hooks(&self) -> Hooks {
        Hooks {
            received: self.hook(Direction::In),
            sent: self.hook(Direction::Out),
        }
    }

    /// Whether it has no carrier now, as far as that can be read.
    pub fn has_lost_carrier(&self) -> bool {
        self.own.has_carrier() == Some(false)
    }

    /// Looks what is at XDP, if received frames are captured beside that. Gives the interface
    /// as it is now if that is no longer the same, and the time since the look before.
    pub(super) fn look_beside(&self, scopes: &[Scope]) -> Option<(Link, Duration)> {
        let mut state = self.state();
        let (before, looked) = state.beside.clone()?;
        let found = scopes[state.scope].visit(|| netdev::by_index(state.ifindex));
        // Who can't look now does so later.
        let Some(link) = found.ok()?.ok()?.filter(|link| link.mac == self.mac) else {
            // After a move to another namespace none of its frames is known by its number.
            state.beside = None;
            drop(state);
            self.lose_received();
            return None;
        };
        state.beside = Some((link.xdp.clone(), Instant::now()));
        (link.xdp != before).then(|| (link, looked.elapsed()))
    }

    /// Detaches the program for received frames, which is told if it is not replaced.
    pub fn lose_received(&self) {
        let mut state = self.state();
        let State {
            programs, untold, ..
        } = &mut *state;
        let mut programs = programs.iter_mut();
        if let Some(program) = programs.find(|it| it.direction() == Direction::In) {
            program.held = None;
            *untold = Some(program.at);
        }
    }

    /// Puts another program for received frames in the place of the one detached.
    pub fn replace_received(&self, attachment: Attachment) {
        let mut state = self.state();
        state.untold = None;
        let mut programs = state.programs.iter_mut();
        if let Some(program) = programs.find(|it| it.direction() == Direction::In) {
            *program = Program::of(attachment);
        }
    }

    /// Looks whether it is still there. Says what it has lost since the last look.
    pub(super) fn refresh(&self) -> Option<Loss> {
        let mut state = self.state();
        state.look();
        let lost = state.untold.take()?;
        Some(if state.is_gone() {
            Loss::Interface
        } else {
            Loss::Program(lost)
        })
    }

    /// Whether it is interface `link` of namespace number `scope`. It may have moved there.
    pub(super) fn is(&self, scope: usize, link: &Link, scopes: &[Scope]) -> bool {
        let mut state = self.state();
        state.look();
        let is_alike = !state.is_gone() && state.ifindex == link.index && self.mac == link.mac;
        if !is_alike || state.scope == scope {
            return is_alike;
        }
        // Another one with the same number and address may be in its namespace.
        let there = scopes[state.scope].visit(|| netdev::by_index(link.index));
        let there = there.ok().and_then(Result::ok).flatten();
        let has_moved = there.is_none_or(|it| it.mac != self.mac);
        if has_moved {
            state.scope = scope;
        }
        has_moved
    }

    /// Its counts, by writer, by what each has lost of it.
    pub(super) fn counts(
        &self,
        losses: impl Iterator<Item = Directed<Outcomes>>,
        is_gone: bool,
    ) -> Vec<InterfaceCounts> {
        if let Some(last) = &self.state().last {
            return last.clone();
        }
        if is_gone {
            self.own.end();
        }
        let own = self.own.look();
        let counts = losses.map(|losses| InterfaceCounts {
            losses,
            ifdrop: own.ifdrop,
            own: own.frames,
            is_gone,
        });
        let counts: Vec<_> = counts.collect();
        self.state().last = is_gone.then(|| counts.clone());
        counts
    }

    pub(super) fn detach(&self) -> Vec<std::io::Result<()>> {
        self.own.end();
        let state = self.state();
        let held = state.programs.iter().filter_map(|it| it.held.as_ref());
        held.map(Held::detach).collect()
    }

    /// The slots of its programs, if it is interface `number` of the file; none if its counts
    /// are settled.
    pub(super) fn slots(&self, number: u32) -> Vec<Slot> {
        let state = self.state();
        let programs = match state.last {
            Some(_) => &[][..],
            None => &state.programs,
        };
        let directions = programs.iter().map(Program::direction);
        directions.map(|it| Slot::of(number, it)).collect()
    }
}
