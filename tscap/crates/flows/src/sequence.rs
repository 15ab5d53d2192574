//! Loss, duplication and reordering of a flow from its sequence numbers.

use std::collections::VecDeque;
use std::num::NonZeroU64;

use roaring::RoaringTreemap;

use super::schema::{Extent, Loss, Reordering};
use tscap_statistics::Distribution;

/// Number 0 of the flow, unwrapped: leaves room for numbers before it, which come when a flow
/// is reordered at its start.
const ZERO: u64 = 1 << 32;
/// In memory that does not grow so many numbers, up to the greatest that came, are told apart one
/// by one. What is older has been judged.
pub(super) const WINDOW: u64 = 1_024;
const WORDS: usize = (WINDOW / 64) as usize;
/// Most stretches that extents are looked up in, in memory that does not grow.
const MOST_STRETCHES: usize = 32;
/// The same where all numbers are kept.
pub(super) const MOST_STRETCHES_OF_ALL: usize = 16_384;

/// The numbers of a flow so far.
///
/// In memory that does not grow, about 1.1 kB, they are exact, but for numbers that come when the
/// greatest is 1,024 or more ahead: those are counted as too late, and nothing else is said of
/// them. Where all are kept there are none of these: a number takes one bit where they are
/// dense, and about 50 bytes where it stands alone.
#[derive(Clone, Debug)]
pub(super) struct Sequence {
    received: u64,
    distinct: u64,
    duplicates: u64,
    too_late: u64,
    came: Came,
    /// The least and the greatest that came.
    ends: Option<[u64; 2]>,
    judged: Judged,
    reordered: u64,
    extents: Extents,
    stretches: VecDeque<Stretch>,
    /// Greatest number of a stretch that is no longer kept.
    forgotten: Option<NonZeroU64>,
}

/// Which numbers came.
#[derive(Clone, Debug)]
enum Came {
    /// Of those from the greatest back, whether they came; by number modulo the window.
    Latest([u64; WORDS]),
    /// All of them.
    All(Box<All>),
}

/// Where all numbers are kept: these, and the extents of those that were reordered.
#[derive(Clone, Debug)]
struct All {
    numbers: RoaringTreemap,
    extents: Distribution,
}

impl Came {
    fn has(&self, number: u64) -> bool {
        match self {
            Self::Latest(words) => {
                let bit = number % WINDOW;
                words[(bit / 64) as usize] >> (bit % 64) & 1 != 0
            }
            Self::All(all) => all.numbers.contains(number),
        }
    }

    fn mark(&mut self, number: u64) {
        match self {
            Self::Latest(words) => {
                let bit = number % WINDOW;
                words[(bit / 64) as usize] |= 1 << (bit % 64);
            }
            Self::All(all) => {
                all.numbers.insert(number);
            }
        }
    }

    fn forget(&mut self) {
        match self {
            Self::Latest(words) => *words = [0; WORDS],
            Self::All(all) => all.numbers.clear(),
        }
    }
}

/// What is known of the numbers that have left the window.
#[derive(Clone, Copy, Debug, Default)]
struct Judged {
    lost: u64,
    periods: u64,
    longest: u64,
    /// Lost ones up to the last one that was judged, without a break.
    run: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Extents {
    sum: u64,
    max: u64,
    cut: u64,
}

/// Packets that came one after another with numbers one after another, none reordered.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    /// How many packets of the flow came before its first.
    arrival: u64,
    /// The first one's number.
    number: u64,
    length: u64,
}

impl Judged {
    fn judge(&mut self, least: u64, number: u64, came: bool) {
        if came {
            self.run = 0;
        } else if number >= least {
            self.lose(1);
        }
    }

    fn lose(&mut self, packets: u64) {
        self.periods += u64::from(self.run == 0 && packets > 0);
        self.lost += packets;
        self.run += packets;
        self.longest = self.longest.max(self.run);
    }
}

impl Sequence {
    /// Bytes that it takes beside itself.
    pub const HEAP_BYTES: usize = MOST_STRETCHES * size_of::<Stretch>();

    /// In memory that does not grow.
    pub fn new() -> Self {
        Self::of(Came::Latest([0; WORDS]))
    }

    /// That keeps all numbers.
    pub fn of_all() -> Self {
        Self::of(Came::All(Box::new(All {
            numbers: RoaringTreemap::new(),
            extents: Distribution::new(),
        })))
    }

    fn of(came: Came) -> Self {
        Self {
            received: 0,
            distinct: 0,
            duplicates: 0,
            too_late: 0,
            came,
            ends: None,
            judged: Judged::default(),
            reordered: 0,
            extents: Extents::default(),
            stretches: VecDeque::with_capacity(MOST_STRETCHES),
            forgotten: None,
        }
    }

    /// Takes in a number of 32 bits, as it is on the wire: it is taken as the nearest to the
    /// greatest so far. Gives it unwrapped, or `None` of a duplicate or of one that is too
    /// late.
    #[inline]
    pub fn add(&mut self, seq: u32) -> Option<u64> {
        let number = match self.ends {
            None => ZERO + u64::from(seq),
            Some([_, greatest]) => {
                let ahead = seq.wrapping_sub(greatest as u32).cast_signed();
                greatest.wrapping_add_signed(i64::from(ahead))
            }
        };
        self.add_unwrapped(number)
    }

    /// The same with a number of 16 bits (RTP).
    #[inline]
    pub fn add_short(&mut self, seq: u16) -> Option<u64> {
        let number = match self.ends {
            None => ZERO + u64::from(seq),
            Some([_, greatest]) => {
                let ahead = seq.wrapping_sub(greatest as u16).cast_signed();
                greatest.wrapping_add_signed(i64::from(ahead))
            }
        };
        self.add_unwrapped(number)
    }

    /// The greatest number so far, as much of it as is on the wire of RTP.
    pub fn greatest_short(&self) -> Option<u16> {
        self.ends.map(|[_, greatest]| greatest as u16)
    }

    /// Begins anew with the next number, as after a restart of the sender: what is missing up
    /// to here is lost, and nothing in between.
    pub fn restart(&mut self) {
        if let Some([least, greatest]) = self.ends.take() {
            self.judge_rest(least, greatest);
            self.judged.run = 0;
        }
        self.came.forget();
        self.stretches.clear();
        self.forgotten = None;
    }

    fn add_unwrapped(&mut self, number: u64) -> Option<u64> {
        self.received += 1;
        let arrival = self.distinct;
        let Some([least, greatest]) = self.ends else {
            self.ends = Some([number; 2]);
            self.distinct += 1;
            self.came.mark(number);
            self.note_in_order(arrival, number);
            return Some(number);
        };
        if number > greatest {
            self.move_on(least, greatest, number);
            self.ends = Some([least, number]);
            self.distinct += 1;
            self.came.mark(number);
            self.note_in_order(arrival, number);
            return Some(number);
        }
        if matches!(self.came, Came::Latest(_)) && greatest - number >= WINDOW {
            self.too_late += 1;
            return None;
        }
        if self.came.has(number) {
            self.duplicates += 1;
            return None;
        }
        self.ends = Some([least.min(number), greatest]);
        self.distinct += 1;
        self.came.mark(number);
        self.note_reordered(arrival, number);
        Some(number)
    }

    /// Judges what leaves the window, if there is one, when it moves on to `number`.
    fn move_on(&mut self, least: u64, greatest: u64, number: u64) {
        let Came::Latest(words) = &mut self.came else {
            return;
        };
        let window_from = |greatest: u64| greatest + 1 - WINDOW;
        let (from, to) = (window_from(greatest), window_from(number));
        for leaving in from..to.min(greatest + 1) {
            let bit = leaving % WINDOW;
            let word = &mut words[(bit / 64) as usize];
            self.judged
                .judge(least, leaving, *word >> (bit % 64) & 1 != 0);
            *word &= !(1 << (bit % 64));
        }
        // Never in the window.
        self.judged.lose(to.saturating_sub(greatest + 1));
    }

    /// Judges all numbers up to the greatest that have not been judged.
    fn judge_rest(&mut self, least: u64, greatest: u64) {
        if let Came::All(all) = &self.came {
            let mut next = least;
            for number in &all.numbers {
                self.judged.lose(number - next);
                self.judged.run = 0;
                next = number + 1;
            }
            return;
        }
        for number in greatest + 1 - WINDOW..=greatest {
            self.judged.judge(least, number, self.came.has(number));
        }
    }

    fn note_in_order(&mut self, arrival: u64, number: u64) {
        if let Some(last) = self.stretches.back_mut()
            && (last.arrival + last.length, last.number + last.length) == (arrival, number)
        {
            last.length += 1;
            return;
        }
        let most = match self.came {
            Came::Latest(_) => MOST_STRETCHES,
            Came::All(_) => MOST_STRETCHES_OF_ALL,
        };
        if self.stretches.len() == most {
            let oldest = self.stretches.pop_front();
            let last = oldest.and_then(|it| NonZeroU64::new(it.number + it.length - 1));
            self.forgotten = last;
        }
        self.stretches.push_back(Stretch {
            arrival,
            number,
            length: 1,
        });
    }

    /// The first packet to come with a greater number was itself in order, and began a
    /// stretch: `number` lies in none of them.
    fn note_reordered(&mut self, arrival: u64, number: u64) {
        self.reordered += 1;
        let later = self
            .stretches
            .partition_point(|stretch| stretch.number < number);
        let extent = arrival - self.stretches[later].arrival;
        self.extents.sum += extent;
        self.extents.max = self.extents.max.max(extent);
        self.extents.cut += u64::from(self.forgotten.is_some_and(|it| it.get() > number));
        if let Came::All(all) = &mut self.came {
            all.extents.add(extent.cast_signed());
        }
    }

    /// Packets that are missing so far, also those that may still come.
    pub fn lost(&self) -> u64 {
        let missing = self.ends.map_or(0, |[least, greatest]| {
            let numbers = greatest - least + 1;
            match &self.came {
                Came::Latest(words) => {
                    let came: u32 = words.iter().map(|word| word.count_ones()).sum();
                    numbers.min(WINDOW) - u64::from(came)
                }
                Came::All(all) => numbers - all.numbers.len(),
            }
        });
        self.judged.lost + missing
    }

    /// The figures so far.
    pub fn report(&self) -> (Loss, Reordering) {
        let mut whole = self.clone();
        whole.restart();
        let unwrapped = |number: u64| number.cast_signed() - ZERO.cast_signed();
        let loss = Loss {
            received: self.received,
            distinct: self.distinct,
            duplicates: self.duplicates,
            too_late: self.too_late,
            lost: whole.judged.lost,
            loss_periods: whole.judged.periods,
            longest_loss: whole.judged.longest,
            first: self.ends.map(|[least, _]| unwrapped(least)),
            last: self.ends.map(|[_, greatest]| unwrapped(greatest)),
        };
        let extent = (self.reordered > 0).then(|| Extent {
            mean: self.extents.sum as f64 / self.reordered as f64,
            max: self.extents.max,
            cut: self.extents.cut,
            of_all: match &self.came {
                Came::Latest(_) => None,
                Came::All(all) => all.extents.summary(),
            },
        });
        let reordering = Reordering {
            reordered: self.reordered,
            extent,
        };
        (loss, reordering)
    }
}

#[cfg(test)]
mod tests;
