//! Bytes of a TCP flow that are seen again.

use super::schema::Retransmissions;

/// What a segment says of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Sequence number of the first byte, or of the SYN.
    pub seq: u32,
    /// Bytes of payload, as its headers say.
    pub payload: u32,
    /// It begins a connection.
    pub is_syn: bool,
}

/// Most gaps in the bytes that are remembered.
const MOST_GAPS: usize = 8;

/// Bytes of one direction of a connection so far. A byte was seen before if it lies before
/// the greatest that was seen, and in no gap. Memory: some 100 bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct Bytes {
    start: u32,
    /// Behind the greatest so far.
    end: Option<u32>,
    /// From a byte to one behind, in ascending order.
    gaps: Vec<[u32; 2]>,
    again: Retransmissions,
}

impl Bytes {
    /// Bytes that it takes beside itself.
    pub const HEAP_BYTES: usize = (MOST_GAPS + 1) * size_of::<[u32; 2]>();

    pub fn new() -> Self {
        Self {
            gaps: Vec::with_capacity(MOST_GAPS + 1),
            ..Self::default()
        }
    }

    pub fn report(&self) -> Retransmissions {
        self.again
    }

    #[inline]
    pub fn add(&mut self, segment: &Segment) {
        let from = segment.seq.wrapping_add(u32::from(segment.is_syn));
        let Some(end) = self.end else {
            self.begin(from, segment);
            return;
        };
        if segment.is_syn && from != self.start {
            self.begin(from, segment);
            return;
        }
        if segment.payload == 0 {
            return;
        }
        let behind = from.wrapping_sub(end).cast_signed();
        let to = from.wrapping_add(segment.payload);
        if to.wrapping_sub(end).cast_signed() > 0 {
            self.end = Some(to);
            if behind > 0 {
                self.add_gap([end, from]);
            }
        }
        let before_end = behind.min(0).unsigned_abs().min(segment.payload);
        let fills = self.fill(from, from.wrapping_add(before_end));
        let again = before_end - fills;
        self.again.bytes += u64::from(again);
        self.again.segments += u64::from(again > 0);
    }

    fn begin(&mut self, from: u32, segment: &Segment) {
        self.start = from;
        self.end = Some(from.wrapping_add(segment.payload));
        self.gaps.clear();
    }

    fn add_gap(&mut self, gap: [u32; 2]) {
        if self.gaps.len() == MOST_GAPS {
            self.gaps.remove(0);
            self.again.gaps_forgotten += 1;
        }
        self.gaps.push(gap);
    }

    /// Takes these bytes out of the gaps; gives how many lay in one.
    fn fill(&mut self, from: u32, to: u32) -> u32 {
        let before = |a: u32, b: u32| a.wrapping_sub(b).cast_signed() < 0;
        let mut filled = 0;
        let mut at = 0;
        while at < self.gaps.len() {
            let [start, end] = self.gaps[at];
            let first = if before(start, from) { from } else { start };
            let last = if before(to, end) { to } else { end };
            if !before(first, last) {
                at += 1;
                continue;
            }
            filled += last.wrapping_sub(first);
            match (start == first, last == end) {
                (true, true) => {
                    self.gaps.remove(at);
                    continue;
                }
                (true, false) => self.gaps[at] = [last, end],
                (false, true) => self.gaps[at] = [start, first],
                (false, false) if self.gaps.len() < MOST_GAPS => {
                    self.gaps[at] = [start, first];
                    self.gaps.insert(at + 1, [last, end]);
                    at += 1;
                }
                (false, false) => {
                    self.gaps[at] = [last, end];
                    self.again.gaps_forgotten += 1;
                }
            }
            at += 1;
        }
        filled
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn data(seq: u32, payload: u32) -> Segment {
        Segment {
            seq,
            payload,
            is_syn: false,
        }
    }

    fn again(segments: &[Segment]) -> (u64, u64) {
        let mut bytes = Bytes::new();
        segments.iter().for_each(|segment| bytes.add(segment));
        (bytes.report().segments, bytes.report().bytes)
    }

    #[test]
    fn only_bytes_seen_again_count() {
        let syn = Segment {
            is_syn: true,
            ..data(u32::MAX, 0)
        };
        let all = [
            syn,
            syn,
            data(0, 100),
            // Two segments change places.
            data(200, 100),
            data(100, 100),
            // Again, and a half again.
            data(0, 100),
            data(250, 100),
            // An acknowledgement, and the first segment of all once more.
            data(350, 0),
            syn,
            data(350, 10),
        ];
        assert_eq!(again(&all), (2, 150));
        let new = Segment {
            is_syn: true,
            ..data(9_000, 0)
        };
        assert_eq!(again(&[data(0, 100), new, data(9_001, 5)]), (0, 0));
    }

    proptest! {
        /// As long as there are few gaps.
        #[test]
        fn bytes_are_counted_one_by_one(
            segments in proptest::collection::vec((0..60_u32, 1..12_u32), 1..14),
            start in prop_oneof![Just(0_u32), Just(u32::MAX - 30)],
        ) {
            let mut bytes = Bytes::new();
            let first = segments[0].0;
            let (mut seen, mut expected) = ([false; 80], (0, 0));
            for (at, length) in &segments {
                // Nothing is known of what lies before the first byte.
                let at = (*at).max(first);
                bytes.add(&data(start.wrapping_add(at), *length));
                let range = &mut seen[at as usize..(at + length) as usize];
                let again = range.iter().filter(|seen| **seen).count() as u64;
                range.fill(true);
                expected = (expected.0 + u64::from(again > 0), expected.1 + again);
            }
            let found = bytes.report();
            if found.gaps_forgotten == 0 {
                prop_assert_eq!((found.segments, found.bytes), expected);
            }
        }
    }
}
