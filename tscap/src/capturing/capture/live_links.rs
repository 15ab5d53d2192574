//! The attached interfaces while the capture runs: they can be renumbered by a move to
//! another namespace, or go away.

use std::sync::Mutex;

use tscap_common::hook::{Direction, Slot};

use crate::capturing::accounting::{Directed, InterfaceCounts};
use crate::capturing::hook::{AttachPoint, Attachment, CounterError, Counters, Presence};
use crate::capturing::host::netdev::{self, Link, RxStats};

/// One interface.
#[derive(Debug)]
pub(super) struct LiveLink {
    pub name: String,
    /// Its programs: for received frames, for sent ones, or both.
    attached: Vec<Attachment>,
    state: Mutex<State>,
    /// Whether the kernel has counters of frames that the device missed.
    counts_misses: bool,
    /// Those at the start.
    missed_before: u64,
}

#[derive(Debug)]
struct State {
    /// Its number now, or the last one.
    ifindex: u32,
    /// How many of its programs are gone.
    lost: usize,
    /// Frames missed since the start, as last read.
    missed: u64,
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
#[derive(Debug)]
pub(super) struct LiveLinks(pub Vec<LiveLink>);

/// Frames that the device had to leave out for want of buffers: as libpcap
/// counts them. Not `rx_dropped`, in which the kernel also counts frames that
/// it drops after XDP has seen them.
fn missed(stats: &RxStats) -> u64 {
    stats.missed + stats.fifo
}

impl LiveLink {
    /// Right after attaching; `before` as it was before.
    pub fn new(before: &Link, attached: Vec<Attachment>) -> Self {
        // Virtual devices (veth, tun, …) have no such counters of their own.
        let stats = before.stats.as_ref().filter(|_| before.kind.is_none());
        Self {
            name: before.name.clone(),
            attached,
            state: Mutex::new(State {
                ifindex: before.index,
                lost: 0,
                missed: 0,
            }),
            counts_misses: stats.is_some(),
            missed_before: stats.map_or(0, missed),
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state
            .lock()
            .unwrap_or_else(|broken| broken.into_inner())
    }

    /// Its number now.
    pub fn ifindex(&self) -> u32 {
        self.state().ifindex
    }

    fn is_gone(&self) -> bool {
        self.state().lost == self.attached.len()
    }

    /// Where frames of a direction are stamped, if they are.
    pub fn at(&self, direction: Direction) -> Option<AttachPoint> {
        let mut points = self.attached.iter().map(|it| it.at);
        points.find(|at| at.hook().direction() == direction)
    }

    /// Looks whether it is still there, under which number, and with its programs. Says what
    /// it has lost since the last look.
    fn refresh(&self) -> Option<Loss> {
        let looks = self.attached.iter().map(|it| (it.at, it.held.look()));
        let (gone, there): (Vec<_>, Vec<_>) = looks.partition(|(_, it)| *it == Presence::Gone);
        let mut state = self.state();
        for (_, presence) in &there {
            if let Presence::Numbered(ifindex) = presence {
                state.ifindex = *ifindex;
            }
        }
        let lost_before = std::mem::replace(&mut state.lost, gone.len());
        if gone.len() <= lost_before {
            return None;
        }
        Some(match there.as_slice() {
            [] => Loss::Interface,
            _ => Loss::Program(gone[lost_before].0),
        })
    }

    /// Frames that the device missed since the start.
    fn ifdrop(&self) -> Option<u64> {
        // Only while it can be seen in this namespace; else the last reading.
        if let Ok(Some(link)) = netdev::by_index(self.ifindex())
            && link.name == self.name
            && let Some(stats) = &link.stats
        {
            self.state().missed = missed(stats).saturating_sub(self.missed_before);
        }
        self.counts_misses.then(|| self.state().missed)
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

    /// The counts of each.
    pub fn counts(&self, counters: &Counters) -> Result<Vec<InterfaceCounts>, CounterError> {
        let count = |(number, live): (u32, &LiveLink)| {
            let mut losses = Directed::default();
            let directions = Direction::ALL.into_iter();
            for direction in directions.filter(|it| live.at(*it).is_some()) {
                losses[direction] = counters.losses(Slot::of(number, direction))?;
            }
            Ok(InterfaceCounts {
                losses,
                ifdrop: live.ifdrop(),
            })
        };
        (0..).zip(&self.0).map(count).collect()
    }

    /// Detaches the programs, all that can be; gives the first failure. An interface that
    /// is gone has none any more.
    pub fn detach(&self) -> std::io::Result<()> {
        let attached = self.0.iter().flat_map(|live| &live.attached);
        let detached = attached.map(|attachment| attachment.held.detach());
        detached.fold(Ok(()), std::io::Result::and)
    }
}
