//! Sightings on their way into order of time.

use super::kept::KeptId;
use crate::capturing::clock::RawStamp;
use crate::measuring::delay::sighting::{At, Sighting};

/// Sightings in order one behind the other, of which so many are merged. Where there are more
/// of them all are sorted.
const MOST_RUNS: usize = 64;
/// Room for so many sightings at least.
const LEAST: usize = 4_096;
/// So many are handed over at a time.
const BATCH: usize = 32;

/// A sighting, in 32 bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub stamp: RawStamp,
    pub key: u64,
    pub cpu: u32,
    pub length: u32,
    pub kept: KeptId,
    /// 0 at the entry, then the exits from 1 on.
    place: u8,
}

const _: () = assert!(size_of::<Arrival>() == 32);

impl Arrival {
    pub fn new(sighting: &Sighting, kept: KeptId) -> Self {
        Self {
            stamp: sighting.stamp,
            key: sighting.key,
            cpu: sighting.cpu,
            length: sighting.length,
            kept,
            place: match sighting.at {
                At::Entry => 0,
                At::Exit(exit) => 1 + exit as u8,
            },
        }
    }

    pub fn at(&self) -> At {
        match self.place {
            0 => At::Entry,
            place => At::Exit(usize::from(place) - 1),
        }
    }
}

/// Sightings in runs, each of which is in order.
#[derive(Debug)]
pub(super) struct Arrivals {
    all: Vec<Arrival>,
    most: usize,
    /// Where each run begins.
    runs: Vec<usize>,
    /// How far each was merged.
    heads: Vec<usize>,
    batch: Vec<Arrival>,
    /// There were too many runs: from the last one on nothing is in order.
    is_shuffled: bool,
}

impl Arrivals {
    pub fn new(capacity: usize) -> Self {
        let most = capacity.max(LEAST);
        Self {
            all: Vec::with_capacity(most),
            most,
            runs: Vec::with_capacity(MOST_RUNS),
            heads: Vec::with_capacity(MOST_RUNS),
            batch: Vec::with_capacity(BATCH),
            is_shuffled: false,
        }
    }

    pub fn memory_bytes(&self) -> u64 {
        (self.most * size_of::<Arrival>()) as u64
    }

    pub fn are_full(&self) -> bool {
        self.all.len() == self.most
    }

    /// There must be room.
    pub fn push(&mut self, arrival: Arrival) {
        let is_in_order = self.all.last().is_some_and(|it| it.stamp <= arrival.stamp);
        if !is_in_order {
            match self.runs.len() < MOST_RUNS {
                true => self.runs.push(self.all.len()),
                false => self.is_shuffled = true,
            }
        }
        self.all.push(arrival);
    }

    /// In the middle between the first stamp and the last one.
    pub fn middle(&mut self) -> RawStamp {
        self.sort();
        let first = self.runs.iter().map(|start| self.all[*start].stamp.0);
        let ends = (0..self.runs.len()).map(|run| self.end(run));
        let last = ends.map(|end| self.all[end - 1].stamp.0);
        let (first, last) = (first.min().unwrap_or(0), last.max().unwrap_or(0));
        RawStamp(first + (last - first) / 2)
    }

    /// Hands over those up to `through`, in order, some at a time.
    pub fn take_through(&mut self, through: RawStamp, mut take: impl FnMut(&[Arrival])) {
        self.sort();
        self.heads.clone_from(&self.runs);
        while let Some((run, limit)) = self.next(through) {
            let (head, end) = (self.heads[run], self.end(run));
            let most = end.min(head + BATCH - self.batch.len());
            let before = self.batch.len();
            let taken = self.all[head..most].iter();
            let taken = taken.take_while(|arrival| arrival.stamp <= limit);
            self.batch.extend(taken);
            self.heads[run] += self.batch.len() - before;
            if self.batch.len() == BATCH {
                take(&self.batch);
                self.batch.clear();
            }
        }
        take(&self.batch);
        self.batch.clear();
        self.close_ranks();
    }

    /// The run that comes next, and up to which stamp; `None` if none has any up to `through`.
    fn next(&self, through: RawStamp) -> Option<(usize, RawStamp)> {
        let (mut first, mut others) = (None, through);
        for (run, head) in self.heads.iter().enumerate() {
            if *head == self.end(run) {
                continue;
            }
            let stamp = self.all[*head].stamp;
            if stamp > through {
                continue;
            }
            match first {
                Some((_, least)) if least <= stamp => others = others.min(stamp),
                Some((_, later)) => (first, others) = (Some((run, stamp)), later),
                None => first = Some((run, stamp)),
            }
        }
        first.map(|(run, _)| (run, others))
    }

    fn end(&self, run: usize) -> usize {
        self.runs.get(run + 1).copied().unwrap_or(self.all.len())
    }

    /// Makes one run of too many.
    fn sort(&mut self) {
        if self.is_shuffled {
            self.all.sort_unstable_by_key(|arrival| arrival.stamp);
            self.runs.truncate(1);
            self.is_shuffled = false;
        }
    }

    /// What was handed over makes room.
    fn close_ranks(&mut self) {
        let (mut runs, mut length) = (0, 0);
        for run in 0..self.runs.len() {
            let rest = self.heads[run]..self.end(run);
            if rest.is_empty() {
                continue;
            }
            let count = rest.len();
            self.all.copy_within(rest, length);
            // Runs before this one were as many at least.
            self.runs[runs] = length;
            runs += 1;
            length += count;
        }
        self.all.truncate(length);
        self.runs.truncate(runs);
    }
}
