//! The attached interfaces while the capture runs: they can be renumbered by a
//! move to another namespace, or go away.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::capturing::accounting::{InterfaceCounts, Outcomes};
use crate::capturing::hook::{AttachPoint, Attachment, CounterError, Counters};
use crate::capturing::host::bpf::XdpLink;
use crate::capturing::host::netdev::{self, Link, RxStats};

/// One interface.
#[derive(Debug)]
pub(super) struct LiveLink {
    pub name: String,
    pub at: AttachPoint,
    link: XdpLink,
    state: Mutex<State>,
    /// Whether the kernel has counters of frames that the device missed.
    counts_misses: bool,
    /// Those at the start.
    missed_before: u64,
}

#[derive(Debug)]
struct State {
    /// Every number that it has had, the current one last.
    numbers: Vec<u32>,
    is_gone: bool,
    /// Frames missed since the start, as last read.
    missed: u64,
}

/// All of them.
#[derive(Debug)]
pub(super) struct LiveLinks {
    /// In the file's order.
    pub all: Vec<LiveLink>,
    /// How often one has got another number.
    renumbered: AtomicU64,
}

/// Finds the interfaces of frames without a lock for each.
#[derive(Debug)]
pub(super) struct Resolver {
    links: Arc<LiveLinks>,
    /// Numbers with their index in the file, as of so many renumberings.
    known: Vec<(u32, u32)>,
    as_of: u64,
}

impl Resolver {
    pub fn new(links: &Arc<LiveLinks>) -> Self {
        Self {
            links: Arc::clone(links),
            known: Vec::new(),
            as_of: 0,
        }
    }

    /// As [`LiveLinks::resolve`].
    pub fn resolve(&mut self, ifindex: u32) -> Option<u32> {
        let now = self.links.renumbered.load(Ordering::Acquire);
        if now != self.as_of {
            self.as_of = now;
            self.known.clear();
        }
        let known = self.known.iter().find(|(number, _)| *number == ifindex);
        if let Some((_, index)) = known {
            return Some(*index);
        }
        let index = self.links.resolve(ifindex)?;
        self.known.push((ifindex, index));
        Some(index)
    }
}

/// Frames that the device had to leave out for want of buffers: as libpcap
/// counts them. Not `rx_dropped`, in which the kernel also counts frames that
/// it drops after XDP has seen them.
fn missed(stats: &RxStats) -> u64 {
    stats.missed + stats.fifo
}

impl LiveLink {
    /// Right after attaching; `before` as it was before.
    pub fn new(before: &Link, attachment: Attachment) -> Self {
        // Virtual devices (veth, tun, …) have no such counters of their own.
        let stats = before.stats.as_ref().filter(|_| before.kind.is_none());
        Self {
            name: before.name.clone(),
            at: attachment.at,
            link: attachment.link,
            state: Mutex::new(State {
                numbers: vec![before.index],
                is_gone: false,
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
        self.state().numbers.last().copied().unwrap_or(0)
    }

    /// Looks whether it is still there and under which number. Says whether that is
    /// another one.
    fn refresh(&self) -> bool {
        let now = self.link.ifindex().ok().flatten();
        let mut state = self.state();
        match now {
            None => state.is_gone = true,
            Some(number) if state.numbers.last() != Some(&number) => {
                state.numbers.push(number);
                return true;
            }
            Some(_) => {}
        }
        false
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
    pub fn new(all: Vec<LiveLink>) -> Self {
        Self {
            all,
            renumbered: AtomicU64::new(0),
        }
    }

    fn refresh(&self, live: &LiveLink) {
        if live.refresh() {
            self.renumbered.fetch_add(1, Ordering::Release);
        }
    }

    /// Index in the file of the interface with this number, also if it has got
    /// it just now.
    pub fn resolve(&self, ifindex: u32) -> Option<u32> {
        self.find(ifindex).or_else(|| {
            for live in &self.all {
                self.refresh(live);
            }
            self.find(ifindex)
        })
    }

    fn find(&self, ifindex: u32) -> Option<u32> {
        let owner = |live: &LiveLink| live.state().numbers.last() == Some(&ifindex);
        let earlier = |live: &LiveLink| live.state().numbers.contains(&ifindex);
        let position = self.all.iter().position(owner);
        let position = position.or_else(|| self.all.iter().position(earlier));
        position.and_then(|index| u32::try_from(index).ok())
    }

    /// Looks after all of them: gives those that have gone by now and new
    /// numbers loss counters of their own.
    pub fn look_after(&self, counters: &mut Counters) -> Vec<&LiveLink> {
        let mut gone = Vec::new();
        for live in &self.all {
            let was_gone = live.state().is_gone;
            self.refresh(live);
            // Without counters of its own its losses would count under "other".
            // The converter may have seen a new number before this does.
            let _ = counters.announce(live.ifindex());
            if !was_gone && live.state().is_gone {
                gone.push(live);
            }
        }
        gone
    }

    /// Whether none is left.
    pub fn all_gone(&self) -> bool {
        self.all.iter().all(|live| live.state().is_gone)
    }

    /// Two interfaces that have got the same number in two namespaces: their
    /// frames can't be told apart.
    pub fn collision(&self) -> Option<(&str, &str)> {
        self.all.iter().enumerate().find_map(|(index, live)| {
            let same =
                |other: &&LiveLink| other.ifindex() == live.ifindex() && !other.state().is_gone;
            let other = self.all[index + 1..].iter().find(same)?;
            (!live.state().is_gone).then_some((live.name.as_str(), other.name.as_str()))
        })
    }

    /// The counts of each. A number that several have had, or one had twice, is
    /// counted once: for the one that [`Self::resolve`] gives.
    pub fn counts(&self, counters: &Counters) -> Result<Vec<InterfaceCounts>, CounterError> {
        let count = |live: &LiveLink| InterfaceCounts {
            losses: Outcomes::default(),
            ifdrop: live.ifdrop(),
        };
        let mut counts: Vec<_> = self.all.iter().map(count).collect();
        let numbers = self
            .all
            .iter()
            .flat_map(|live| live.state().numbers.clone());
        let numbers: BTreeSet<_> = numbers.collect();
        for number in numbers {
            if let Some(owner) = self.find(number) {
                counts[owner as usize].losses += counters.losses(number)?;
            }
        }
        Ok(counts)
    }

    /// Detaches the programs. An interface that is gone has none any more.
    pub fn detach(&self) -> std::io::Result<()> {
        for live in &self.all {
            match live.link.detach() {
                Err(error) if error.raw_os_error() != Some(libc::ENOLINK) => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}
