//! Loss, duplication and reordering from the sequence numbers of a flow.

use std::collections::VecDeque;

use roaring::RoaringTreemap;
use serde::{Deserialize, Serialize};

use tscap_statistics::{Distribution, Summary};

/// Number 0 of the flow, unwrapped: leaves room for numbers before it, which
/// come when a flow that has wrapped is reordered at the start.
const ZERO: u64 = 1 << 32;
/// Most stretches that extents are looked up in.
const MOST_STRETCHES: usize = 16_384;

/// The numbers of a flow so far. Exact over the whole flow: numbers that have
/// come are kept as a set, one bit a number where they are dense and about 50
/// bytes where each stands alone.
#[derive(Clone, Debug)]
pub(super) struct Sequence {
    received: u64,
    seen: RoaringTreemap,
    distinct: u64,
    /// The greatest so far.
    greatest: Option<u64>,
    reordered: u64,
    extents: Distribution,
    stretches: VecDeque<Stretch>,
    /// Greatest number of a stretch that is no longer kept.
    forgotten: Option<u64>,
    extents_cut: u64,
}

/// Frames that came one after another with numbers one after another, none
/// reordered.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    /// How many frames of the flow came before its first.
    arrival: u64,
    /// The first one's number.
    number: u64,
    length: u64,
}

/// Loss and duplication. `received` = `distinct` + `duplicates`; `distinct` +
/// `lost` is the frames sent, plus `beyond_sent`, if it is known how many were.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loss {
    /// Frames that came, copies too.
    pub received: u64,
    /// Different numbers that came.
    pub distinct: u64,
    /// Copies after the first one (RFC 5560).
    pub duplicates: u64,
    /// Frames sent, where the caller knows.
    pub sent: Option<u64>,
    /// Numbers that came and were not sent: 0 unless `sent` is wrong.
    pub beyond_sent: u64,
    /// Numbers that did not come: of those sent, or else of those between the
    /// least and the greatest that came (RFC 7680).
    pub lost: u64,
    /// Runs of lost frames: loss periods (RFC 3357).
    pub loss_periods: u64,
    /// Frames of the longest.
    pub longest_loss: u64,
    /// Least number that came, unwrapped; negative before a wrap.
    pub first: Option<i64>,
    /// Greatest number that came, unwrapped.
    pub last: Option<i64>,
}

/// Reordering, by RFC 4737. The order of arrival is that of the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reordering {
    /// Frames with a smaller number than the next expected one
    /// (Type-P-Reordered, section 3.3); of duplicates only the first counts.
    pub reordered: u64,
    /// Reordering extent (section 4.2): how many frames before a reordered one
    /// the first with a greater number came.
    pub extent: Option<Summary>,
    /// Extents that reach back behind 16,384 gaps in the numbers: counted as
    /// reaching to the oldest of these.
    pub extents_cut: u64,
}

impl Sequence {
    pub(super) fn new() -> Self {
        Self {
            received: 0,
            seen: RoaringTreemap::new(),
            distinct: 0,
            greatest: None,
            reordered: 0,
            extents: Distribution::new(),
            stretches: VecDeque::new(),
            forgotten: None,
            extents_cut: 0,
        }
    }

    /// Takes in a number as it is on the wire; gives it unwrapped, or `None` if
    /// it is a duplicate. It is taken as the nearest to the greatest so far: a
    /// loss of 2^31 frames in a row is not seen as such.
    pub(super) fn add(&mut self, seq: u32) -> Option<u64> {
        let number = match self.greatest {
            None => ZERO + u64::from(seq),
            Some(greatest) => {
                let ahead = seq.wrapping_sub(greatest as u32).cast_signed();
                greatest.wrapping_add_signed(i64::from(ahead))
            }
        };
        self.received += 1;
        if !self.seen.insert(number) {
            return None;
        }
        let arrival = self.distinct;
        self.distinct += 1;
        if self.greatest.is_none_or(|greatest| number > greatest) {
            self.greatest = Some(number);
            self.note_in_order(arrival, number);
        } else {
            self.note_reordered(arrival, number);
        }
        Some(number)
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

    /// The first frame to come with a greater number was itself in order, and
    /// began a stretch: `number` lies in none of them.
    fn note_reordered(&mut self, arrival: u64, number: u64) {
        self.reordered += 1;
        let later = self
            .stretches
            .partition_point(|stretch| stretch.number < number);
        let first_greater = self.stretches[later].arrival;
        self.extents.add((arrival - first_greater).cast_signed());
        self.extents_cut += u64::from(self.forgotten.is_some_and(|forgotten| forgotten > number));
    }

    /// The figures, with the number of frames sent if it is known.
    pub(super) fn report(self, sent: Option<u64>) -> (Loss, Reordering) {
        let expected = match (sent, self.seen.min(), self.greatest) {
            (Some(sent), ..) => ZERO..ZERO + sent,
            (None, Some(first), Some(last)) => first..last + 1,
            _ => ZERO..ZERO,
        };
        let unwrapped = |number: u64| number.cast_signed() - ZERO.cast_signed();
        let mut loss = Loss {
            received: self.received,
            distinct: self.distinct,
            duplicates: self.received - self.distinct,
            sent,
            beyond_sent: 0,
            lost: 0,
            loss_periods: 0,
            longest_loss: 0,
            first: self.seen.min().map(unwrapped),
            last: self.greatest.map(unwrapped),
        };
        let mut next = expected.start;
        for number in &self.seen {
            if expected.contains(&number) {
                loss.add_period(number - next);
                next = number + 1;
            } else {
                loss.beyond_sent += 1;
            }
        }
        loss.add_period(expected.end - next);
        let reordering = Reordering {
            reordered: self.reordered,
            extent: self.extents.summary(),
            extents_cut: self.extents_cut,
        };
        (loss, reordering)
    }
}

impl Loss {
    fn add_period(&mut self, frames: u64) {
        self.lost += frames;
        self.loss_periods += u64::from(frames > 0);
        self.longest_loss = self.longest_loss.max(frames);
    }
}

#[cfg(test)]
mod tests;
