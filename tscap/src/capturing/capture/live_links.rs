//! The attached interfaces while the capture runs: they can be renumbered by a move to
//! another namespace, or go away.

use std::sync::{Mutex, MutexGuard};

use tscap_common::hook::{Direction, Slot};

use super::own_counts::OwnCounts;
use super::scope::Scope;
use super::selection::Selected;
use crate::capturing::accounting::{Directed, InterfaceCounts};
use crate::capturing::hook::{AttachPoint, Attachment, CounterError, Counters, Held, Presence};
use crate::capturing::host::netdev::{self, Link, RxStats};
use crate::capturing::pcapng::Hooks;

/// One interface.
#[derive(Debug)]
pub(super) struct LiveLink {
    pub name: String,
    /// What its namespace was called at the start, if that was not this process's own.
    pub namespace: Option<String>,
    /// Whether it was asked for by its name.
    pub is_named: bool,
    /// Where its programs are: for received frames, for sent ones, or both.
    points: Vec<AttachPoint>,
    mac: Option<[u8; 6]>,
    state: Mutex<State>,
    /// Whether the kernel has counters of frames that the device missed.
    counts_misses: bool,
    /// Those at the start.
    missed_before: u64,
    own: OwnCounts,
}

#[derive(Debug)]
struct State {
    /// Index of its namespace; `None` if it has moved to one that is not captured in.
    scope: Option<usize>,
    /// Its number now, or the last one.
    ifindex: u32,
    /// What holds its programs, one for each point; `None` if that is gone.
    held: Vec<Option<Held>>,
    /// A program that was found lost, until that is told.
    untold: Option<AttachPoint>,
    /// Frames missed since the start, as last read.
    missed: u64,
    /// The counts of an interface that is gone.
    last: Option<InterfaceCounts>,
}

/// What the capture of an interface has lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    /// All of it: the interface is gone.
    Interface,
    /// The program here, while another one is still there.
    Program(AttachPoint),
}

/// All of them, in the file's order.
#[derive(Debug, Default)]
pub(super) struct LiveLinks(pub Vec<LiveLink>);

/// Frames that the device had to leave out for want of buffers: as libpcap
/// counts them. Not `rx_dropped`, in which the kernel also counts frames that
/// it drops after XDP has seen them.
fn missed(stats: &RxStats) -> u64 {
    stats.missed + stats.fifo
}

impl State {
    fn is_gone(&self) -> bool {
        self.held.iter().all(Option::is_none)
    }

    /// Looks whether it is still there, under which number, and with which of its programs
    /// at `points`.
    fn look(&mut self, points: &[AttachPoint]) {
        for (held, at) in self.held.iter_mut().zip(points) {
            match held.as_ref().map(Held::look) {
                Some(Presence::Numbered(ifindex)) => self.ifindex = ifindex,
                Some(Presence::Gone) => {
                    *held = None;
                    self.untold = Some(*at);
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
        // Virtual devices (veth, tun, …) have no such counters of their own.
        let stats = link.stats.as_ref().filter(|_| link.kind.is_none());
        let points = attached.iter().map(|it| it.at).collect();
        Self {
            name: link.name.clone(),
            namespace: scope.label().map(str::to_owned),
            is_named: before.is_named,
            points,
            mac: link.mac,
            state: Mutex::new(State {
                scope: Some(before.scope),
                ifindex: link.index,
                held: attached.into_iter().map(|it| Some(it.held)).collect(),
                untold: None,
                missed: 0,
                last: None,
            }),
            counts_misses: stats.is_some(),
            missed_before: stats.map_or(0, missed),
            own: OwnCounts::begin(link.index),
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

    /// Its number now.
    pub fn ifindex(&self) -> u32 {
        self.state().ifindex
    }

    fn is_gone(&self) -> bool {
        self.state().is_gone()
    }

    /// Where frames of a direction are stamped, if they are.
    pub fn at(&self, direction: Direction) -> Option<AttachPoint> {
        let mut points = self.points.iter().copied();
        points.find(|at| at.hook().direction() == direction)
    }

    /// Its hooks as the file names them.
    pub fn hooks(&self) -> Hooks {
        let name = |direction| self.at(direction).map(|at| at.name().to_owned());
        Hooks {
            received: name(Direction::In),
            sent: name(Direction::Out),
        }
    }

    /// Looks whether it is still there. Says what it has lost since the last look.
    fn refresh(&self) -> Option<Loss> {
        let mut state = self.state();
        state.look(&self.points);
        let lost = state.untold.take()?;
        Some(match state.is_gone() {
            true => Loss::Interface,
            false => Loss::Program(lost),
        })
    }

    /// Whether it is interface `link` of namespace number `scope`. It may have moved there.
    fn is(&self, scope: usize, link: &Link, scopes: &[Scope]) -> bool {
        let mut state = self.state();
        state.look(&self.points);
        let is_alike = !state.is_gone() && state.ifindex == link.index && self.mac == link.mac;
        if !is_alike || state.scope == Some(scope) {
            return is_alike;
        }
        // Another one with the same number and address may be in its namespace.
        let there = state.scope.map(|at| {
            let found = scopes[at].visit(|| netdev::by_index(link.index));
            found.ok().and_then(Result::ok).flatten()
        });
        let has_moved = there.flatten().is_none_or(|it| it.mac != self.mac);
        if has_moved {
            state.scope = Some(scope);
        }
        has_moved
    }

    /// Frames that the device missed since the start.
    fn ifdrop(&self, scopes: &[Scope]) -> Option<u64> {
        if !self.counts_misses {
            return None;
        }
        let mut state = self.state();
        // Only while it can be seen in its namespace; else the last reading.
        let now = state.scope.map(|at| {
            let found = scopes[at].visit(|| netdev::by_index(state.ifindex));
            found.ok().and_then(Result::ok).flatten()
        });
        if let Some(link) = now.flatten()
            && link.name == self.name
            && let Some(stats) = &link.stats
        {
            state.missed = missed(stats).saturating_sub(self.missed_before);
        }
        Some(state.missed)
    }

    /// The slots of its programs, if it is interface `number` of the file; none if its counts
    /// are settled.
    fn slots(&self, number: u32) -> Vec<Slot> {
        let points = match self.state().last {
            Some(_) => &[][..],
            None => &self.points,
        };
        let directions = points.iter().map(|at| at.hook().direction());
        directions.map(|it| Slot::of(number, it)).collect()
    }
}

impl LiveLinks {
    /// Looks after all of them: gives those that have lost something since the last look.
    pub fn look_after(&self) -> Vec<(&LiveLink, Loss)> {
        let looks = self.0.iter();
        looks
            .filter_map(|live| Some((live, live.refresh()?)))
            .collect()
    }

    /// Whether none is left.
    pub fn all_gone(&self) -> bool {
        self.0.iter().all(LiveLink::is_gone)
    }

    /// Whether interface `link` of namespace number `scope` is among them.
    pub fn has(&self, scope: usize, link: &Link, scopes: &[Scope]) -> bool {
        self.0.iter().any(|live| live.is(scope, link, scopes))
    }

    /// The counts of each.
    pub fn counts(
        &self,
        counters: &Counters,
        scopes: &[Scope],
    ) -> Result<Vec<InterfaceCounts>, CounterError> {
        // An interface that is gone now counts no more.
        let gone: Vec<_> = self.0.iter().map(LiveLink::is_gone).collect();
        let numbered = (0..).zip(&self.0);
        let slots: Vec<_> = numbered
            .flat_map(|(number, live)| live.slots(number))
            .collect();
        let mut losses: Vec<_> = self.0.iter().map(|_| Directed::default()).collect();
        for (slot, of_slot) in slots.iter().zip(counters.losses(&slots)?) {
            losses[slot.interface() as usize][slot.direction()] = of_slot;
        }
        let each = self.0.iter().zip(losses).zip(gone);
        Ok(each
            .map(|((live, losses), is_gone)| {
                let last = live.state().last;
                let counts = last.unwrap_or_else(|| InterfaceCounts {
                    losses,
                    ifdrop: live.ifdrop(scopes),
                    own: live.own.look(),
                    is_gone,
                });
                live.state().last = is_gone.then_some(counts);
                counts
            })
            .collect())
    }

    /// Detaches the programs, all that can be; gives the first failure. An interface that
    /// is gone has none any more.
    pub fn detach(&self) -> std::io::Result<()> {
        let detached = self.0.iter().flat_map(|live| {
            live.own.end();
            let state = live.state();
            let held = state.held.iter().flatten();
            held.map(Held::detach).collect::<Vec<_>>()
        });
        detached.fold(Ok(()), std::io::Result::and)
    }
}
