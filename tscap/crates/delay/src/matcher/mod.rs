//! Finds the two sightings of each packet, and accounts for those of which there are more or
//! fewer.
//!
//! Sightings of one key form a group. It opens with the first of them and holds those that
//! come within the window after it; a later one opens another group. What a group says is
//! judged when its window has passed (`judge.rs`).
//!
//! Sightings come from several rings, each in order of time. They are put in order first
//! (`arrivals.rs`), so that nothing depends on which ring was emptied first. Groups then open
//! and close in order of time: they are a queue (`window.rs`), and a table leads from a key to
//! its place in it (`table.rs`).
//!
//! Memory is taken as packets come, in large steps, up to [`Matcher::memory_bytes`].

mod arrivals;
mod judge;
mod kept;
mod table;
mod window;

use super::schema::Account;
use super::sighting::{MOST_EXITS, SeenAt, Sighting};
use arrivals::{Arrival, Arrivals};
use kept::KeptId;
use tscap_clock::RawStamp;
use window::Window;

/// What a matcher is to do.
#[derive(Clone, Copy, Debug)]
pub struct MatcherOptions {
    /// Longest delay that is looked for, in units of the stamps.
    pub window: u64,
    /// Packets that are remembered at a time, at most. As many sightings wait to be put in
    /// order. Both together take 130 bytes a packet.
    pub capacity: usize,
    /// Exits of the passage: 1 to [`MOST_EXITS`].
    pub exits: usize,
    /// Places are told by order: the first sighting of a packet is at the entry, the second
    /// one at the exit.
    pub is_mirrored: bool,
    /// Bytes of each sighting that are kept until its packet is judged. They take 8 more
    /// each.
    pub kept_bytes: usize,
    /// Those of sightings at exits too. Where places are told by order they are kept anyway.
    pub keeps_exits: bool,
    /// When the places began to be watched.
    pub start: RawStamp,
}

impl MatcherOptions {
    /// Whether bytes of every sighting are kept.
    fn keeps_all(&self) -> bool {
        self.keeps_exits || self.is_mirrored
    }
}

/// A packet that was seen once where it entered, and once, no earlier, where it left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passed<'a> {
    /// The hash by which the packet was matched.
    pub key: u64,
    /// When it was seen at the entry.
    pub entered: RawStamp,
    /// When it was seen at each exit; `None` where it was not matched.
    pub left: [Option<RawStamp>; MOST_EXITS],
    /// CPU on which it was seen at the entry.
    pub cpu_in: u32,
    /// CPU on which it was seen at each exit.
    pub cpu_out: [u32; MOST_EXITS],
    /// Length at the entry, bytes.
    pub length: u32,
    /// What was kept of it at the entry; nothing if there was no more room.
    pub bytes_in: &'a [u8],
    /// The same at each exit.
    pub bytes_out: [&'a [u8]; MOST_EXITS],
}

/// Matches sightings.
#[derive(Debug)]
pub struct Matcher {
    exits: usize,
    keeps_exits: bool,
    arrivals: Arrivals,
    window: Window,
    /// Not yet told to the window.
    is_distrusted: bool,
}

impl Matcher {
    /// Remembers nothing yet.
    ///
    /// # Panics
    /// If there are no exits or more than [`MOST_EXITS`], or two with mirrored places.
    pub fn new(options: MatcherOptions) -> Self {
        let most = if options.is_mirrored { 1 } else { MOST_EXITS };
        assert!((1..=most).contains(&options.exits), "{options:?}");
        Self {
            exits: options.exits,
            keeps_exits: options.keeps_all(),
            arrivals: Arrivals::new(options.capacity),
            window: Window::new(&options),
            is_distrusted: false,
        }
    }

    /// Takes in a sighting, with the first bytes of the frame if they are to be kept.
    ///
    /// It may be earlier than those before it: see [`close_until`](Self::close_until). Without
    /// calls of that, at least half as many sightings as the capacity may come before one
    /// that is earlier than all of them.
    ///
    /// # Panics
    /// If it is of an exit that the passage does not have.
    pub fn see(&mut self, sighting: &Sighting, bytes: &[u8], passed: &mut impl FnMut(&Passed<'_>)) {
        let is_known = !matches!(sighting.at, SeenAt::Exit(exit) if exit >= self.exits);
        assert!(is_known, "{sighting:?}, exits: {}", self.exits);
        self.settle(passed);
        let kept = if self.keeps_exits || sighting.at == SeenAt::Entry {
            self.window.keep(bytes)
        } else {
            KeptId::NONE
        };
        self.arrivals.push(Arrival::new(sighting, kept));
        if self.arrivals.are_full() {
            let through = self.arrivals.middle();
            self.take_through(through, passed);
        }
    }

    /// Judges the packets whose window has passed before `horizon`, knowing that no sighting
    /// before it is still to come. One that comes nevertheless is ambiguous, unless its
    /// packet is still remembered.
    pub fn close_until(&mut self, horizon: RawStamp, passed: &mut impl FnMut(&Passed<'_>)) {
        self.settle(passed);
        if let Some(through) = horizon.0.checked_sub(1) {
            self.take_through(RawStamp(through), passed);
            self.window.reach(horizon, passed);
        }
    }

    /// Stamps from here on don't compare with those before, as when their clock was set. A
    /// packet that was seen at the entry only is ambiguous, and so is one that is seen at the
    /// exit only, less than a window after.
    pub fn distrust(&mut self) {
        self.is_distrusted = true;
    }

    /// Judges the rest at the end, and gives the account of each exit.
    pub fn finish(mut self, end: RawStamp, passed: &mut impl FnMut(&Passed<'_>)) -> Vec<Account> {
        self.settle(passed);
        self.take_through(RawStamp::NEVER, passed);
        self.window.end(end, passed);
        self.accounts().to_vec()
    }

    /// The account of each exit, of the packets that were judged so far.
    pub fn accounts(&self) -> &[Account] {
        &self.window.accounts()[..self.exits]
    }

    /// Packets that are remembered.
    pub fn open(&self) -> usize {
        self.window.open()
    }

    /// Memory that it takes at most, bytes.
    pub fn memory_bytes(&self) -> u64 {
        self.arrivals.memory_bytes() + self.window.memory_bytes()
    }

    /// Ends what was before the stamps were distrusted.
    #[inline]
    fn settle(&mut self, passed: &mut impl FnMut(&Passed<'_>)) {
        if std::mem::take(&mut self.is_distrusted) {
            self.take_through(RawStamp::NEVER, passed);
            self.window.distrust(passed);
        }
    }

    fn take_through(&mut self, through: RawStamp, passed: &mut impl FnMut(&Passed<'_>)) {
        let window = &mut self.window;
        self.arrivals
            .take_through(through, |arrivals| window.take_all(arrivals, passed));
    }
}

#[cfg(test)]
mod tests;
