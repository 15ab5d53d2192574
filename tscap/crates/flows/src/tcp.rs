//! Segments of TCP: bytes of a flow that are seen again, and their order.

use super::schema::Retransmissions;

/// What a segment says of its bytes, and of those that came the other way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Sequence number of the first byte, or of the SYN.
    pub seq: u32,
    /// Bytes of payload, as its headers say.
    pub payload: u32,
    /// It begins a connection.
    pub is_syn: bool,
    /// It ends its direction of the connection.
    pub is_fin: bool,
    /// The byte that is expected next of the other direction, where the ACK flag is set.
    pub ack: Option<u32>,
    /// The timestamps option (RFC 7323).
    pub timestamps: Option<Timestamps>,
}

/// The timestamps option of TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamps {
    /// TSval: the sender's clock.
    pub value: u32,
    /// TSecr: a TSval of the other side. Valid with the ACK flag.
    pub echo: u32,
}

/// Kinds of TCP options.
const END_OF_OPTIONS: u8 = 0;
const NO_OPERATION: u8 = 1;
const TIMESTAMPS: u8 = 8;

impl Timestamps {
    /// That of a segment with these options, if they have one.
    #[inline]
    pub fn of(mut options: &[u8]) -> Option<Self> {
        loop {
            match *options {
                [TIMESTAMPS, 10, a, b, c, d, e, f, g, h, ..] => {
                    return Some(Self {
                        value: u32::from_be_bytes([a, b, c, d]),
                        echo: u32::from_be_bytes([e, f, g, h]),
                    });
                }
                [NO_OPERATION, ref rest @ ..] => options = rest,
                [END_OF_OPTIONS, ..] | [] | [_] => return None,
                // A length counts its kind and itself.
                [_, length, ..] => options = options.get(usize::from(length).max(2)..)?,
            }
        }
    }
}

/// Where the bytes of a segment are, of those seen so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// The first segment that was seen, of a connection that is older.
    First,
    /// A SYN begins a connection.
    Start,
    /// Just behind those before.
    Next,
    /// Behind a gap.
    Ahead,
    /// Some of them before the greatest byte: again, or late.
    Behind,
    /// It has none.
    Empty,
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

    /// Behind the greatest byte so far.
    pub fn end(&self) -> Option<u32> {
        self.end
    }

    #[inline]
    pub fn add(&mut self, segment: &Segment) -> Order {
        let from = segment.seq.wrapping_add(u32::from(segment.is_syn));
        let Some(end) = self.end else {
            self.begin(from, segment);
            return if segment.is_syn {
                Order::Start
            } else {
                Order::First
            };
        };
        if segment.is_syn && from != self.start {
            self.begin(from, segment);
            return Order::Start;
        }
        if segment.payload == 0 {
            return if segment.is_syn {
                Order::Behind
            } else {
                Order::Empty
            };
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
        match behind {
            ..0 => Order::Behind,
            0 => Order::Next,
            1.. => Order::Ahead,
        }
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
            ..Segment::default()
        }
    }

    fn again(segments: &[Segment]) -> (u64, u64) {
        let mut bytes = Bytes::new();
        segments.iter().for_each(|segment| {
            bytes.add(segment);
        });
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

    #[test]
    fn segments_have_an_order() {
        let mut bytes = Bytes::new();
        let syn = Segment {
            is_syn: true,
            ..data(9, 0)
        };
        let orders = [
            (data(1, 5), Order::First),
            (syn, Order::Start),
            (syn, Order::Behind),
            (data(10, 0), Order::Empty),
            (data(10, 5), Order::Next),
            (data(20, 5), Order::Ahead),
            (data(15, 5), Order::Behind),
            (data(24, 5), Order::Behind),
            (data(29, 5), Order::Next),
        ];
        for (segment, order) in orders {
            assert_eq!(bytes.add(&segment), order, "{segment:?}");
        }
    }

    #[test]
    fn the_timestamps_option_is_found_behind_others() {
        let option = [8, 10, 0, 0, 0, 7, 0, 0, 0, 9];
        let found = Some(Timestamps { value: 7, echo: 9 });
        let with = |before: &[u8]| Timestamps::of(&[before, &option].concat());
        for before in [
            &[][..],
            &[1, 1],
            &[2, 4, 5, 180, 4, 2],
            &[5, 10, 0, 0, 0, 1, 0, 0, 0, 2],
        ] {
            assert_eq!(with(before), found, "{before:?}");
        }
        // The end of the list; a length that is too long, one that is 0, and a part of one.
        for before in [&[0][..], &[3, 40], &[3, 0, 0, 0], &[8, 9]] {
            assert_eq!(with(before), None, "{before:?}");
        }
        assert_eq!(Timestamps::of(&option[..9]), None);
    }

    proptest! {
        #[test]
        fn options_of_any_bytes_end(options in proptest::collection::vec(any::<u8>(), 0..44)) {
            Timestamps::of(&options);
        }

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
