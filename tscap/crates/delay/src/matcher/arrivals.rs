//! Sightings on their way into order of time.

use super::kept::KeptId;
use crate::sighting::{SeenAt, Sighting};
use tscap_clock::RawStamp;
use tscap_host::huge_pages;

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
                SeenAt::Entry => 0,
                SeenAt::Exit(exit) => 1 + exit as u8,
            },
        }
    }

    pub fn at(&self) -> SeenAt {
        match self.place {
            0 => SeenAt::Entry,
            place => SeenAt::Exit(usize::from(place) - 1),
        }
    }
}

/// Sightings that wait, one behind the other in order of time.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// The first of them.
    head: usize,
    /// Behind the last one.
    end: usize,
}

impl Run {
    fn len(self) -> usize {
        self.end - self.head
    }
}

/// Sightings in runs, each of which is in order.
#[derive(Debug)]
pub(super) struct Arrivals {
    /// Those that wait, and between the runs some that were handed over.
    all: Vec<Arrival>,
    most: usize,
    /// In the order in which they lie in `all`; none is empty.
    runs: Vec<Run>,
    batch: Vec<Arrival>,
    /// There were too many runs: from the last one on nothing is in order.
    is_shuffled: bool,
}

impl Arrivals {
    pub fn new(capacity: usize) -> Self {
        let most = capacity.max(LEAST);
        let mut all = Vec::with_capacity(most);
        huge_pages::prefer(all.spare_capacity_mut());
        Self {
            all,
            most,
            runs: Vec::with_capacity(MOST_RUNS),
            batch: Vec::with_capacity(BATCH),
            is_shuffled: false,
        }
    }

    pub fn memory_bytes(&self) -> u64 {
        (self.most * size_of::<Arrival>()) as u64
    }

    /// Whether there is no room for one more.
    pub fn are_full(&mut self) -> bool {
        if self.all.len() == self.most {
            self.close_ranks();
        }
        self.all.len() == self.most
    }

    /// There must be room.
    #[inline]
    pub fn push(&mut self, arrival: Arrival) {
        let at = self.all.len();
        let are_many = self.runs.len() == MOST_RUNS;
        match self.runs.last_mut() {
            Some(run)
                if run.end == at
                    && (self.is_shuffled || self.all[at - 1].stamp <= arrival.stamp) =>
            {
                run.end += 1;
            }
            Some(run) if are_many && run.end == at => {
                run.end += 1;
                self.is_shuffled = true;
            }
            _ => self.runs.push(Run {
                head: at,
                end: at + 1,
            }),
        }
        self.all.push(arrival);
    }

    /// In the middle between the first stamp and the last one.
    pub fn middle(&mut self) -> RawStamp {
        self.sort();
        let first = self.runs.iter().map(|run| self.all[run.head].stamp.0);
        let last = self.runs.iter().map(|run| self.all[run.end - 1].stamp.0);
        let (first, last) = (first.min().unwrap_or(0), last.max().unwrap_or(0));
        RawStamp(first + (last - first) / 2)
    }

    /// Hands over those up to `through`, in order, some at a time.
    pub fn take_through(&mut self, through: RawStamp, mut take: impl FnMut(&[Arrival])) {
        self.sort();
        while let Some((run, limit)) = self.next(through) {
            let Run { head, end } = self.runs[run];
            let most = end.min(head + BATCH - self.batch.len());
            let before = self.batch.len();
            let taken = self.all[head..most].iter();
            let taken = taken.take_while(|arrival| arrival.stamp <= limit);
            self.batch.extend(taken);
            self.runs[run].head += self.batch.len() - before;
            if self.batch.len() == BATCH {
                take(&self.batch);
                self.batch.clear();
            }
        }
        take(&self.batch);
        self.batch.clear();
        self.runs.retain(|run| run.len() > 0);
        // Where more wait than were handed over, to move them each time would cost more than
        // all the rest.
        let waiting: usize = self.runs.iter().map(|run| run.len()).sum();
        if waiting <= self.all.len() / 2 || self.all.len() == self.most {
            self.close_ranks();
        }
    }

    /// The run that comes next, and up to which stamp; `None` if none has any up to `through`.
    fn next(&self, through: RawStamp) -> Option<(usize, RawStamp)> {
        let (mut first, mut others) = (None, through);
        for (index, run) in self.runs.iter().enumerate() {
            if run.len() == 0 {
                continue;
            }
            let stamp = self.all[run.head].stamp;
            if stamp > through {
                continue;
            }
            match first {
                Some((_, least)) if least <= stamp => others = others.min(stamp),
                Some((_, later)) => (first, others) = (Some((index, stamp)), later),
                None => first = Some((index, stamp)),
            }
        }
        first.map(|(run, _)| (run, others))
    }

    /// Makes one run of too many.
    fn sort(&mut self) {
        if self.is_shuffled {
            self.close_ranks();
            self.all.sort_unstable_by_key(|arrival| arrival.stamp);
            self.runs.clear();
            self.runs.push(Run {
                head: 0,
                end: self.all.len(),
            });
            self.is_shuffled = false;
        }
    }

    /// What was handed over makes room.
    fn close_ranks(&mut self) {
        let mut length = 0;
        for run in &mut self.runs {
            self.all.copy_within(run.head..run.end, length);
            *run = Run {
                head: length,
                end: length + run.len(),
            };
            length = run.end;
        }
        self.all.truncate(length);
    }
}
