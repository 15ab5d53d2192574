//! From a key to the number of its group.
//!
//! Groups are numbered in the order in which they open, and close in the same order. So a
//! number tells whether its group is still open, and nothing has to be taken out of the table:
//! a slot whose group has closed is free. That saves half of the cache misses of a map from
//! which each key is removed, and there is never a table to be built again.

use tscap_host::huge_pages;

/// Slots of a bucket. With its last word a bucket is a cache line.
const SLOTS: usize = 7;
/// Slots for each group that may be open.
const SLOTS_A_GROUP: usize = 2;
/// 2^64 divided by the golden ratio, odd.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// The groups that are open: `count` numbers from `first` on, which wrap.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenNumbers {
    pub first: u32,
    pub count: u32,
}

impl OpenNumbers {
    pub fn has(self, number: u32) -> bool {
        number.wrapping_sub(self.first) < self.count
    }

    /// The number of the group that opens next.
    pub fn next(self) -> u32 {
        self.first.wrapping_add(self.count)
    }
}

/// What became of a key that was looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lookup {
    Found(u32),
    /// It has none, and none was to be entered.
    Absent,
    /// It had none, and was entered with the next number.
    Entered,
}

#[derive(Clone, Debug)]
#[repr(align(64))]
struct Bucket {
    /// Each half of a key's hash, made odd, above the number of a group; 0 if never used.
    slots: [u64; SLOTS],
    /// The latest group that found no room here: it is in a bucket behind this one.
    spilled: Option<u32>,
}

const _: () = assert!(size_of::<Bucket>() == 64);

impl Bucket {
    /// The slots that are free, and those of open groups with this half of a hash: a bit for
    /// each. Without branches, which nothing could predict.
    #[inline]
    fn look(&self, tag: u64, open: OpenNumbers) -> (u8, u8) {
        let (mut free, mut alike) = (0, 0);
        for (index, slot) in self.slots.iter().enumerate() {
            let is_free = (*slot == 0) | !open.has(*slot as u32);
            let is_alike = !is_free & (slot >> 32 == tag);
            free |= u8::from(is_free) << index;
            alike |= u8::from(is_alike) << index;
        }
        (free, alike)
    }
}

#[derive(Debug)]
pub(super) struct Table {
    buckets: Vec<Bucket>,
}

impl Table {
    /// For so many open groups.
    pub fn new(groups: usize) -> Self {
        let empty = Bucket {
            slots: [0; SLOTS],
            spilled: None,
        };
        let count = (groups * SLOTS_A_GROUP).div_ceil(SLOTS) + 1;
        let mut buckets = Vec::with_capacity(count);
        // A key may be anywhere in it: of small pages each look-up would miss the TLB too.
        huge_pages::prefer(buckets.spare_capacity_mut());
        buckets.resize(count, empty);
        Self { buckets }
    }

    pub fn memory_bytes(&self) -> u64 {
        (self.buckets.len() * size_of::<Bucket>()) as u64
    }

    /// Loads where keys are looked up into the cache. No load waits for another, as lookups
    /// do, each of which may end in another way.
    #[inline]
    pub fn prefetch(&self, keys: impl Iterator<Item = u64>) {
        let first_slots = keys.map(|key| self.buckets[self.home(hash(key))].slots[0]);
        std::hint::black_box(first_slots.fold(0, |all, slot| all ^ slot));
    }

    fn home(&self, hash: u64) -> usize {
        (((hash >> 32) * self.buckets.len() as u64) >> 32) as usize
    }

    /// Looks up a key. If it is absent it is entered with the next number if `may_enter`:
    /// fewer groups must be open than the table is for. `is_of_key` says whether the group
    /// with a number has the key.
    #[inline]
    pub fn look_up(
        &mut self,
        key: u64,
        open: OpenNumbers,
        may_enter: bool,
        is_of_key: impl Fn(u32) -> bool,
    ) -> Lookup {
        let hash = hash(key);
        let tag = hash & u64::from(u32::MAX) | 1;
        let home = self.home(hash);
        let mut free = None;
        let mut at = home;
        loop {
            let bucket = &self.buckets[at];
            let (is_free, mut is_alike) = bucket.look(tag, open);
            while is_alike != 0 {
                let number = bucket.slots[is_alike.trailing_zeros() as usize] as u32;
                if is_of_key(number) {
                    return Lookup::Found(number);
                }
                is_alike &= is_alike - 1;
            }
            if free.is_none() && is_free != 0 {
                free = Some((at, is_free.trailing_zeros() as usize));
            }
            if !bucket.spilled.is_some_and(|number| open.has(number)) {
                break;
            }
            at = self.behind(at);
            if at == home {
                break;
            }
        }
        if !may_enter {
            return Lookup::Absent;
        }
        // There are more slots than groups; numbers of 2^32 groups ago may take up some.
        let Some((target, index)) = free.or_else(|| self.first_free(home, open)) else {
            return Lookup::Absent;
        };
        let mut at = home;
        while at != target {
            self.buckets[at].spilled = Some(open.next());
            at = self.behind(at);
        }
        self.buckets[target].slots[index] = tag << 32 | u64::from(open.next());
        Lookup::Entered
    }

    /// The bucket behind one; behind the last one is the first.
    fn behind(&self, at: usize) -> usize {
        if at + 1 == self.buckets.len() {
            0
        } else {
            at + 1
        }
    }

    #[cold]
    fn first_free(&self, home: usize, open: OpenNumbers) -> Option<(usize, usize)> {
        let all = (home..self.buckets.len()).chain(0..home);
        let free = all.map(|at| (at, self.buckets[at].look(0, open).0));
        let mut with_room = free.filter(|(_, free)| *free != 0);
        with_room
            .next()
            .map(|(at, free)| (at, free.trailing_zeros() as usize))
    }
}

fn hash(key: u64) -> u64 {
    key.wrapping_mul(FACTOR)
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    /// Against a list, with few hash values, so that buckets spill, over the end of the table
    /// and over that of the numbers too.
    #[test]
    fn a_key_is_found_while_its_group_is_open() {
        const MOST: usize = 40;
        let mut random = fastrand::Rng::with_seed(3);
        // What a key must be for its hash: by Newton's method.
        let inverse = (0..6).fold(FACTOR, |it, _| {
            it.wrapping_mul(2u64.wrapping_sub(FACTOR.wrapping_mul(it)))
        });
        for spread in [1, 5, 1_000] {
            let mut table = Table::new(MOST);
            let (mut open, mut keys) = (VecDeque::new(), 0u64..);
            let mut first = u32::MAX - 5_000;
            let mut spilled = 0;
            for _ in 0..20_000 {
                let numbers = |open: &VecDeque<u64>| OpenNumbers {
                    first,
                    count: open.len() as u32,
                };
                let of = |key: u64| {
                    let hash = key % spread * (u64::MAX / spread) + key / spread;
                    hash.wrapping_mul(inverse)
                };
                let key = if random.bool() && !open.is_empty() {
                    open[random.usize(..open.len())]
                } else {
                    of(keys.next().unwrap())
                };
                let may_enter = open.len() < MOST && random.u8(..) > 10;
                let at = |number: u32| open[number.wrapping_sub(first) as usize];
                let is_of_key = |number| at(number) == key;
                let found = table.look_up(key, numbers(&open), may_enter, is_of_key);
                let place = open.iter().position(|it| *it == key);
                let expected = match place {
                    Some(place) => Lookup::Found(first.wrapping_add(place as u32)),
                    None if may_enter => Lookup::Entered,
                    None => Lookup::Absent,
                };
                assert_eq!(found, expected);
                if found == Lookup::Entered {
                    open.push_back(key);
                }
                let has = |number| numbers(&open).has(number);
                let mut buckets = table.buckets.iter();
                spilled += u32::from(buckets.any(|it| it.spilled.is_some_and(has)));
                if random.u8(..) < 100 && open.pop_front().is_some() {
                    first = first.wrapping_add(1);
                }
            }
            assert!(spread > 5 || spilled > 1_000, "{spread}: {spilled}");
        }
    }
}
