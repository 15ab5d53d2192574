//! Loss, duplication and reordering of a flow from its sequence numbers, in memory that does
//! not grow.

use std::collections::VecDeque;

use super::schema::{Extent, Loss, Reordering};

/// Number 0 of the flow, unwrapped: leaves room for numbers before it, which come when a flow
/// is reordered at its start.
const ZERO: u64 = 1 << 32;
/// So many numbers, up to the greatest that came, are told apart one by one. What is older has
/// been judged.
pub(super) const WINDOW: u64 = 1_024;
const WORDS: usize = (WINDOW / 64) as usize;
/// Most stretches that extents are looked up in.
const MOST_STRETCHES: usize = 32;

/// The numbers of a flow so far. Exact, but for numbers that come when the greatest is 1,024
/// or more ahead: those are counted as too late, and nothing else is said of them. Memory:
/// about 1.1 kB.
#[derive(Clone, Debug)]
pub(super) struct Sequence {
    received: u64,
    distinct: u64,
    duplicates: u64,
    too_late: u64,
    /// Of the numbers from the greatest back, whether they came; by number modulo the window.
    came: [u64; WORDS],
    /// The least and the greatest that came.
    ends: Option<[u64; 2]>,
    judged: Judged,
    reordered: u64,
    extents: Extents,
    stretches: VecDeque<Stretch>,
    /// Greatest number of a stretch that is no longer kept.
    forgotten: Option<u64>,
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

    pub fn new() -> Self {
        Self {
            received: 0,
            distinct: 0,
            duplicates: 0,
            too_late: 0,
            came: [0; WORDS],
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
            self.judge_window(least, greatest);
            self.judged.run = 0;
        }
        self.came = [0; WORDS];
        self.stretches.clear();
        self.forgotten = None;
    }

    fn add_unwrapped(&mut self, number: u64) -> Option<u64> {
        self.received += 1;
        let arrival = self.distinct;
        let Some([least, greatest]) = self.ends else {
            self.ends = Some([number; 2]);
            self.distinct += 1;
            self.mark(number);
            self.note_in_order(arrival, number);
            return Some(number);
        };
        if number > greatest {
            self.move_on(least, greatest, number);
            self.ends = Some([least, number]);
            self.distinct += 1;
            self.mark(number);
            self.note_in_order(arrival, number);
            return Some(number);
        }
        if greatest - number >= WINDOW {
            self.too_late += 1;
            return None;
        }
        if self.has(number) {
            self.duplicates += 1;
            return None;
        }
        self.ends = Some([least.min(number), greatest]);
        self.distinct += 1;
        self.mark(number);
        self.note_reordered(arrival, number);
        Some(number)
    }

    fn has(&self, number: u64) -> bool {
        let bit = number % WINDOW;
        self.came[(bit / 64) as usize] >> (bit % 64) & 1 != 0
    }

    fn mark(&mut self, number: u64) {
        let bit = number % WINDOW;
        self.came[(bit / 64) as usize] |= 1 << (bit % 64);
    }

    fn clear(&mut self, number: u64) {
        let bit = number % WINDOW;
        self.came[(bit / 64) as usize] &= !(1 << (bit % 64));
    }

    /// Judges what leaves the window when it moves on to `number`.
    fn move_on(&mut self, least: u64, greatest: u64, number: u64) {
        let window_from = |greatest: u64| greatest + 1 - WINDOW;
        let (from, to) = (window_from(greatest), window_from(number));
        for leaving in from..to.min(greatest + 1) {
            self.judge(least, leaving);
            self.clear(leaving);
        }
        // Never in the window.
        self.judged.lose(to.saturating_sub(greatest + 1));
    }

    fn judge(&mut self, least: u64, number: u64) {
        match (self.has(number), number < least) {
            (true, _) => self.judged.run = 0,
            (false, true) => {}
            (false, false) => self.judged.lose(1),
        }
    }

    fn judge_window(&mut self, least: u64, greatest: u64) {
        for number in greatest + 1 - WINDOW..=greatest {
            self.judge(least, number);
        }
    }

    fn note_in_order(&mut self, arrival: u64, number: u64) {
        if let Some(last) = self.stretches.back_mut()
            && (last.arrival + last.length, last.number + last.length) == (arrival, number)
        {
            last.length += 1;
            return;
        }
        if self.stretches.len() == MOST_STRETCHES {
            let oldest = self.stretches.pop_front();
            self.forgotten = oldest.map(|oldest| oldest.number + oldest.length - 1);
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
        self.extents.cut += u64::from(self.forgotten.is_some_and(|forgotten| forgotten > number));
    }

    /// Packets that are missing so far, those in the window too.
    pub fn lost(&self) -> u64 {
        let missing_in_window = self.ends.map_or(0, |[least, greatest]| {
            let numbers = (greatest - least + 1).min(WINDOW);
            let came: u32 = self.came.iter().map(|word| word.count_ones()).sum();
            numbers - u64::from(came)
        });
        self.judged.lost + missing_in_window
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
