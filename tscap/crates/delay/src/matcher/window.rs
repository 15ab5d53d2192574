//! The packets of the latest window, which are remembered.

use std::collections::VecDeque;

use super::arrivals::Arrival;
use super::judge::{Accounts, Circumstances, Inside, Origin};
use super::kept::{Kept, KeptId};
use super::table::{Lookup, OpenNumbers, Table};
use super::{MatcherOptions, Passed};
use crate::schema::Account;
use crate::sighting::{MOST_EXITS, SeenAt};
use tscap_clock::RawStamp;

/// Room for so many groups is made at least.
const LEAST_ROOM: usize = 1 << 12;
/// Number of the first group.
const FIRST_NUMBER: u32 = 1;

/// The sightings of a key within a window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Group {
    key: u64,
    first: RawStamp,
    /// The first sighting at the entry.
    pub entered: RawStamp,
    /// The first sighting at each exit.
    pub left: [RawStamp; MOST_EXITS],
    /// Sightings at the entry.
    pub ins: u32,
    /// Sightings at each exit.
    pub outs: [u32; MOST_EXITS],
    cpu_in: u32,
    cpu_out: [u32; MOST_EXITS],
    /// Length at the entry, bytes.
    length: u32,
    kept_in: KeptId,
    kept_out: [KeptId; MOST_EXITS],
}

const _: () = assert!(size_of::<Group>() == 80);

impl Group {
    fn new(key: u64, first: RawStamp) -> Self {
        Self {
            key,
            first,
            entered: RawStamp(0),
            left: [RawStamp(0); MOST_EXITS],
            ins: 0,
            outs: [0; MOST_EXITS],
            cpu_in: 0,
            cpu_out: [0; MOST_EXITS],
            length: 0,
            kept_in: KeptId::NONE,
            kept_out: [KeptId::NONE; MOST_EXITS],
        }
    }

    /// Takes in a sighting; gives back its bytes if they are not kept.
    fn take(&mut self, at: SeenAt, arrival: &Arrival) -> KeptId {
        let Arrival { cpu, kept, .. } = *arrival;
        match at {
            SeenAt::Entry => {
                self.ins += 1;
                if self.ins > 1 {
                    return kept;
                }
                (self.entered, self.length) = (arrival.stamp, arrival.length);
                (self.cpu_in, self.kept_in) = (cpu, kept);
            }
            SeenAt::Exit(exit) => {
                self.outs[exit] += 1;
                if self.outs[exit] > 1 {
                    return kept;
                }
                self.left[exit] = arrival.stamp;
                (self.cpu_out[exit], self.kept_out[exit]) = (cpu, kept);
            }
        }
        KeptId::NONE
    }
}

/// Groups in the order in which they opened.
#[derive(Debug)]
pub(super) struct Window {
    length: u64,
    capacity: usize,
    is_mirrored: bool,
    groups: VecDeque<Group>,
    /// Number of the first of them.
    number: u32,
    table: Table,
    kept: Kept,
    accounts: Accounts,
    /// All sightings before it were taken in.
    reached: RawStamp,
    /// Those that open before it are early.
    early_before: RawStamp,
    /// An entry could not be remembered less than a window before.
    blind_through: Option<RawStamp>,
    doubt: Doubt,
}

/// Whether a packet may have entered before the clock was set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doubt {
    None,
    /// It was set, and no packet was seen since.
    Begins,
    /// Those that were first seen up to then may have.
    Through(RawStamp),
}

impl Window {
    pub fn new(options: &MatcherOptions) -> Self {
        let capacity = options.capacity.min(1 << 31);
        let sightings = 1 + if options.keeps_all() {
            options.exits
        } else {
            0
        };
        Self {
            length: options.window,
            capacity,
            is_mirrored: options.is_mirrored,
            groups: VecDeque::new(),
            number: FIRST_NUMBER,
            table: Table::new(capacity),
            kept: Kept::new(options.kept_bytes, capacity * sightings),
            accounts: Accounts::default(),
            reached: RawStamp(0),
            early_before: RawStamp(options.start.0.saturating_add(options.window)),
            blind_through: None,
            doubt: Doubt::None,
        }
    }

    /// Packets that are remembered.
    pub fn open(&self) -> usize {
        self.groups.len()
    }

    pub fn memory_bytes(&self) -> u64 {
        let groups = self.capacity * size_of::<Group>();
        groups as u64 + self.table.memory_bytes() + self.kept.memory_bytes()
    }

    /// For one more group. A queue goes round through all of its memory: one that was as large
    /// as it may get from the start would have the kernel clear pages for every group of its
    /// first round, which takes more time than all else (60 %, `perf` of a million packets a second).
    #[inline]
    fn make_room(&mut self) {
        let count = self.groups.len();
        if count == self.groups.capacity() {
            let more = count.max(LEAST_ROOM).min(self.capacity - count);
            self.groups.reserve_exact(more);
        }
    }

    pub fn accounts(&self) -> &[Account; MOST_EXITS] {
        &self.accounts.0
    }

    /// Keeps the first bytes of a frame.
    #[inline]
    pub fn keep(&mut self, bytes: &[u8]) -> KeptId {
        self.kept.keep(bytes)
    }

    /// The places were watched until here.
    pub fn end(&mut self, end: RawStamp, passed: &mut impl FnMut(&Passed<'_>)) {
        self.reach(end, passed);
        self.close_all(Inside::Pending, passed);
    }

    /// Stamps from here on don't compare with those before.
    pub fn distrust(&mut self, passed: &mut impl FnMut(&Passed<'_>)) {
        self.close_all(Inside::Ambiguous, passed);
        (self.reached, self.early_before) = (RawStamp(0), RawStamp(0));
        self.blind_through = None;
        self.doubt = Doubt::Begins;
    }

    fn close_all(&mut self, inside: Inside, passed: &mut impl FnMut(&Passed<'_>)) {
        while let Some(group) = self.groups.front().copied() {
            self.close(&group, inside, passed);
        }
    }

    /// Takes in sightings; they come in order, but for those that are late.
    pub fn take_all(&mut self, arrivals: &[Arrival], passed: &mut impl FnMut(&Passed<'_>)) {
        self.table
            .prefetch(arrivals.iter().map(|arrival| arrival.key));
        for arrival in arrivals {
            self.take(arrival, passed);
        }
    }

    #[inline]
    fn take(&mut self, arrival: &Arrival, passed: &mut impl FnMut(&Passed<'_>)) {
        if self.doubt == Doubt::Begins {
            self.doubt = Doubt::Through(self.after(arrival.stamp));
        }
        let is_late = arrival.stamp < self.reached;
        if !is_late {
            self.reach(arrival.stamp, passed);
        }
        let open = OpenNumbers {
            first: self.number,
            count: self.groups.len() as u32,
        };
        let may_enter = !is_late && self.groups.len() < self.capacity;
        let of_number = |number: u32| number.wrapping_sub(open.first) as usize;
        let groups = &self.groups;
        let is_of_key = |number| groups[of_number(number)].key == arrival.key;
        let index = match self.table.look_up(arrival.key, open, may_enter, is_of_key) {
            Lookup::Found(number) => of_number(number),
            Lookup::Entered => {
                self.make_room();
                self.groups
                    .push_back(Group::new(arrival.key, arrival.stamp));
                self.groups.len() - 1
            }
            Lookup::Absent => return self.pass_over(arrival, is_late),
        };
        let group = &mut self.groups[index];
        if arrival.stamp < group.first {
            return self.pass_over(arrival, is_late);
        }
        let at = match (self.is_mirrored, group.ins) {
            (false, _) => arrival.at(),
            (true, 0) => SeenAt::Entry,
            (true, _) => SeenAt::Exit(0),
        };
        let unused = group.take(at, arrival);
        self.kept.release(unused);
    }

    /// Accounts for a sighting without a group.
    #[cold]
    fn pass_over(&mut self, arrival: &Arrival, is_late: bool) {
        let at = if self.is_mirrored {
            SeenAt::Entry
        } else {
            arrival.at()
        };
        if is_late {
            self.accounts.late(at);
        } else {
            self.accounts.untracked(at);
            if at == SeenAt::Entry {
                self.blind_through = Some(self.after(arrival.stamp));
            }
        }
        self.kept.release(arrival.kept);
    }

    /// Judges those whose window has passed before `horizon`.
    #[inline]
    pub fn reach(&mut self, horizon: RawStamp, passed: &mut impl FnMut(&Passed<'_>)) {
        self.reached = self.reached.max(horizon);
        while let Some(group) = self.groups.front()
            && self.after(group.first) < horizon
        {
            let group = *group;
            self.close(&group, Inside::Lost, passed);
        }
    }

    /// What an exit without an entry is, of those that were first seen then.
    fn origin(&self, first: RawStamp) -> Origin {
        match self.doubt {
            Doubt::Through(through) if first <= through => Origin::Ambiguous,
            _ if first < self.early_before => Origin::Early,
            _ if self.blind_through.is_some_and(|through| first <= through) => Origin::Untracked,
            _ => Origin::Inside,
        }
    }

    /// When the window that begins at a stamp ends.
    fn after(&self, stamp: RawStamp) -> RawStamp {
        RawStamp(stamp.0.saturating_add(self.length))
    }

    /// Judges the first of them, which leaves.
    #[inline]
    fn close(&mut self, group: &Group, inside: Inside, passed: &mut impl FnMut(&Passed<'_>)) {
        let circumstances = Circumstances {
            inside,
            origin: match inside {
                Inside::Ambiguous => Origin::Ambiguous,
                Inside::Lost | Inside::Pending => self.origin(group.first),
            },
        };
        let matched = self.accounts.judge(group, circumstances);
        if matched != [false; MOST_EXITS] {
            passed(&Passed {
                key: group.key,
                entered: group.entered,
                left: std::array::from_fn(|exit| matched[exit].then_some(group.left[exit])),
                cpu_in: group.cpu_in,
                cpu_out: group.cpu_out,
                length: group.length,
                bytes_in: self.kept.get(group.kept_in),
                bytes_out: group.kept_out.map(|id| self.kept.get(id)),
            });
        }
        let kept = [group.kept_in].into_iter().chain(group.kept_out);
        kept.for_each(|id| self.kept.release(id));
        self.groups.pop_front();
        self.number = self.number.wrapping_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sighting::Sighting;

    #[test]
    fn room_is_made_as_packets_come_and_no_more_than_there_may_be() {
        const MOST: usize = 10_000;
        let mut window = Window::new(&MatcherOptions {
            window: 1 << 40,
            capacity: MOST,
            exits: 1,
            is_mirrored: false,
            kept_bytes: 0,
            keeps_exits: false,
            start: RawStamp(0),
        });
        for key in 0..MOST as u64 + 7 {
            let sighting = Sighting {
                at: SeenAt::Entry,
                key,
                stamp: RawStamp(key),
                cpu: 0,
                length: 60,
            };
            let arrival = Arrival::new(&sighting, KeptId::NONE);
            window.take_all(&[arrival], &mut |_| {});
            let room = window.groups.capacity();
            assert!(
                room <= (2 * window.open()).clamp(LEAST_ROOM, MOST),
                "{room}"
            );
        }
        assert_eq!((window.open(), window.groups.capacity()), (MOST, MOST));
    }
}
