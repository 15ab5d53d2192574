//! Round trips of TCP from where its packets are stamped: data to the acknowledgement of just these
//! bytes, and a timestamp to its first echo.

use super::schema::{Figures, RoundTrip, RoundTripBy};
use super::tcp::{Order, Segment};
use tscap_clock::{CounterReport, RawStamp, interval_ns};
use tscap_statistics::Distribution;

/// Packets of a flow that are timed at a time, by each of both.
const MOST_TIMED: usize = 16;

/// Packets whose answer is awaited, by a number that wraps, in ascending order.
#[derive(Clone, Debug)]
struct Awaited {
    numbers: [u32; MOST_TIMED],
    stamps: [RawStamp; MOST_TIMED],
    count: usize,
}

/// `a` is before `b`, where numbers wrap.
fn is_before(a: u32, b: u32) -> bool {
    a.wrapping_sub(b).cast_signed() < 0
}

impl Awaited {
    fn new() -> Self {
        Self {
            numbers: [0; MOST_TIMED],
            stamps: [RawStamp(0); MOST_TIMED],
            count: 0,
        }
    }

    /// Leaves a packet out when so many are awaited.
    fn add(&mut self, number: u32, stamp: RawStamp) {
        if self.count < MOST_TIMED {
            self.numbers[self.count] = number;
            self.stamps[self.count] = stamp;
            self.count += 1;
        }
    }

    /// Takes out the packets up to this number; gives the stamp of the one that has it.
    fn take_up_to(&mut self, number: u32) -> Option<RawStamp> {
        let numbers = &self.numbers[..self.count];
        let past = numbers.iter().take_while(|it| !is_before(number, **it));
        let past = past.count();
        let last = past.checked_sub(1)?;
        let stamp = (self.numbers[last] == number).then_some(self.stamps[last]);
        self.numbers.copy_within(past..self.count, 0);
        self.stamps.copy_within(past..self.count, 0);
        self.count -= past;
        stamp
    }

    /// No longer awaits this number, which is the latest one or was never awaited.
    fn forget_latest(&mut self, number: u32) {
        if self.count > 0 && self.numbers[self.count - 1] == number {
            self.count -= 1;
        }
    }
}

/// Round trips of one direction of a connection. Memory: some 500 bytes, and those of the values
/// once there is one.
#[derive(Clone, Debug)]
pub(super) struct RoundTrips {
    /// By the number behind their last byte.
    segments: Awaited,
    /// Nothing is timed until this byte is acknowledged: what acknowledges bytes behind a gap
    /// waits until the gap is filled.
    held_until: Option<u32>,
    /// By their TSval.
    timestamps: Awaited,
    greatest_value: Option<u32>,
    by_acknowledgement: Option<Distribution>,
    by_timestamps: Option<Distribution>,
}

impl RoundTrips {
    /// Bytes that they take beside themselves.
    pub const HEAP_BYTES: usize = 2 * Distribution::fixed_bytes(false);

    pub fn new() -> Self {
        Self {
            segments: Awaited::new(),
            held_until: None,
            timestamps: Awaited::new(),
            greatest_value: None,
            by_acknowledgement: None,
            by_timestamps: None,
        }
    }

    /// Takes in a segment of this direction, whose bytes are in this order; `end` is behind the
    /// greatest byte so far.
    #[inline]
    pub fn sent(&mut self, segment: &Segment, order: Order, end: Option<u32>, stamp: RawStamp) {
        self.note_bytes(segment, order, end, stamp);
        self.note_value(segment, order, stamp);
    }

    fn note_bytes(&mut self, segment: &Segment, order: Order, end: Option<u32>, stamp: RawStamp) {
        let length = segment.payload + u32::from(segment.is_syn) + u32::from(segment.is_fin);
        let own_end = segment.seq.wrapping_add(length);
        match order {
            Order::Empty => {}
            Order::Start => {
                self.segments = Awaited::new();
                self.timestamps = Awaited::new();
                self.greatest_value = None;
                self.held_until = None;
                self.segments.add(own_end, stamp);
            }
            Order::Next if self.held_until.is_none() => self.segments.add(own_end, stamp),
            Order::Next => {}
            Order::First | Order::Ahead => self.held_until = end,
            // Karn: nobody knows which of two equal segments is acknowledged.
            Order::Behind => {
                self.segments.count = 0;
                self.held_until = end;
            }
        }
    }

    /// Only the first packet with a value counts, if it has to be answered at once and its value
    /// is the one that is echoed then.
    fn note_value(&mut self, segment: &Segment, order: Order, stamp: RawStamp) {
        let Some(value) = segment.timestamps.map(|it| it.value) else {
            return;
        };
        let is_new = self.greatest_value.is_none_or(|it| is_before(it, value));
        if !is_new {
            if order == Order::Behind {
                self.timestamps.forget_latest(value);
            }
            return;
        }
        self.greatest_value = Some(value);
        match order {
            Order::Start | Order::Next | Order::Behind => self.timestamps.add(value, stamp),
            // Of the first packet that is seen, a packet before may have had this value.
            Order::First | Order::Ahead | Order::Empty => {}
        }
    }

    /// Takes in what a segment of the other direction acknowledges.
    #[inline]
    pub fn answered(
        &mut self,
        segment: &Segment,
        stamp: RawStamp,
        counter: Option<&CounterReport>,
    ) {
        let Some(ack) = segment.ack else {
            return;
        };
        if self.held_until.is_some_and(|held| !is_before(ack, held)) {
            self.held_until = None;
        }
        let sent = self.segments.take_up_to(ack);
        add_since(&mut self.by_acknowledgement, sent, stamp, counter);
        if let Some(timestamps) = segment.timestamps {
            let sent = self.timestamps.take_up_to(timestamps.echo);
            add_since(&mut self.by_timestamps, sent, stamp, counter);
        }
    }

    /// The figures, whose values may be off by what `bound_ns` says of the longest.
    pub fn report(&self, bound_ns: impl Fn(u64) -> Option<u64> + Copy) -> Vec<RoundTrip> {
        let all = [
            (RoundTripBy::Acknowledgement, &self.by_acknowledgement),
            (RoundTripBy::Timestamps, &self.by_timestamps),
        ];
        let all = all.into_iter().filter_map(|(by, values)| {
            let summary = values.as_ref()?.summary()?;
            let figures = Figures::of(summary, bound_ns);
            Some(RoundTrip { by, figures })
        });
        all.collect()
    }
}

/// Adds the time since a packet. A clock that went back meanwhile gives none.
fn add_since(
    values: &mut Option<Distribution>,
    sent: Option<RawStamp>,
    stamp: RawStamp,
    counter: Option<&CounterReport>,
) {
    if let Some(sent) = sent.filter(|sent| *sent <= stamp) {
        let values = values.get_or_insert_with(Distribution::fixed);
        values.add(interval_ns(sent, stamp, counter));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::tcp::{Bytes, Timestamps};

    /// One direction, with what the other answers.
    struct Path {
        bytes: Bytes,
        trips: RoundTrips,
    }

    impl Path {
        fn new() -> Self {
            Self {
                bytes: Bytes::new(),
                trips: RoundTrips::new(),
            }
        }

        fn send(&mut self, at: u64, segment: Segment) {
            let order = self.bytes.add(&segment);
            let end = self.bytes.end();
            self.trips.sent(&segment, order, end, RawStamp(at));
        }

        fn answer(&mut self, at: u64, segment: Segment) {
            self.trips.answered(&segment, RawStamp(at), None);
        }

        /// Number and range of the times by acknowledgement, and by timestamps.
        fn found(&self) -> [(u64, i64, i64); 2] {
            let of = |values: &Option<Distribution>| {
                let summary = values.as_ref().and_then(Distribution::summary);
                summary.map_or((0, 0, 0), |it| (it.n, it.min, it.max))
            };
            [
                of(&self.trips.by_acknowledgement),
                of(&self.trips.by_timestamps),
            ]
        }
    }

    fn data(seq: u32, payload: u32, value: u32) -> Segment {
        Segment {
            seq,
            payload,
            timestamps: Some(Timestamps { value, echo: 0 }),
            ..Segment::default()
        }
    }

    fn ack(number: u32, echo: u32) -> Segment {
        Segment {
            ack: Some(number),
            timestamps: Some(Timestamps { value: 1, echo }),
            ..Segment::default()
        }
    }

    fn syn(seq: u32, value: u32) -> Segment {
        Segment {
            is_syn: true,
            ..data(seq, 0, value)
        }
    }

    /// From SYN on: each has a round trip, the delayed acknowledgement of two that of the last.
    #[test]
    fn an_acknowledgement_is_of_the_segment_that_ends_there() {
        let mut path = Path::new();
        path.send(0, syn(u32::MAX, 5));
        path.answer(100, ack(0, 5));
        path.send(1_000, data(0, 10, 6));
        path.send(1_010, data(10, 10, 7));
        path.answer(1_200, ack(20, 6));
        // In the middle of a segment; then its end, for which nothing is awaited any more.
        path.send(2_000, data(20, 10, 8));
        path.answer(2_100, ack(25, 8));
        path.answer(2_150, ack(30, 8));
        // Twice the same.
        path.answer(2_900, ack(30, 8));
        assert_eq!(path.found(), [(3, 100, 190), (3, 100, 200)]);
    }

    /// 10 is lost beyond: it is sent again, and what came behind it is acknowledged late.
    #[test]
    fn a_segment_that_is_sent_again_has_none() {
        let mut path = Path::new();
        path.send(0, syn(u32::MAX, 1));
        path.answer(50, ack(0, 1));
        path.send(100, data(0, 10, 2));
        path.send(110, data(10, 10, 3));
        path.send(120, data(20, 10, 4));
        path.answer(150, ack(10, 2));
        // For 20: that of 10 is awaited.
        path.answer(170, ack(10, 2));
        path.send(900, data(10, 10, 9));
        path.send(910, data(30, 10, 10));
        path.answer(950, ack(30, 9));
        path.answer(960, ack(40, 10));
        assert_eq!(path.found(), [(2, 50, 50), (4, 50, 50)]);
        // It goes on.
        path.send(1_000, data(40, 10, 11));
        path.answer(1_070, ack(50, 11));
        assert_eq!(path.found(), [(3, 50, 70), (5, 50, 70)]);
    }

    /// The gap is on the near side: what is behind it is acknowledged when it is filled.
    #[test]
    fn what_comes_behind_a_gap_has_none() {
        let mut path = Path::new();
        path.send(0, syn(u32::MAX, 1));
        path.answer(50, ack(0, 1));
        path.send(100, data(10, 10, 3));
        path.send(400, data(0, 10, 4));
        path.answer(450, ack(20, 4));
        assert_eq!(path.found(), [(1, 50, 50), (2, 50, 50)]);
    }

    /// The echo of a value whose first packet need not be answered says nothing.
    #[test]
    fn values_of_mere_acknowledgements_do_not_count() {
        let mut path = Path::new();
        path.send(0, syn(u32::MAX, 1));
        path.send(100, data(0, 0, 2));
        path.send(101, data(0, 10, 2));
        path.answer(150, ack(10, 2));
        let [by_bytes, by_values] = path.found();
        assert_eq!((by_bytes, by_values.0), ((1, 49, 49), 0));
        // Sent again within one tick of the clock.
        path.send(200, data(10, 10, 3));
        path.send(210, data(10, 10, 3));
        path.answer(260, ack(20, 3));
        assert_eq!(path.found()[1].0, 0);
    }

    /// The connection is older than the measurement.
    #[test]
    fn the_first_segment_may_be_one_that_is_sent_again() {
        let mut path = Path::new();
        path.send(0, data(100, 10, 1));
        path.send(10, data(110, 10, 2));
        path.answer(500, ack(120, 1));
        path.send(600, data(120, 10, 9));
        path.answer(640, ack(130, 9));
        assert_eq!(path.found()[0], (1, 40, 40));
    }

    proptest! {
        /// A path that loses nothing: each time is that of the path, or longer by as much as an
        /// acknowledgement waits for the second segment. Numbers wrap.
        #[test]
        fn times_are_those_of_the_path(
            lengths in proptest::collection::vec(1..3_000_u32, 1..200),
            gap in 1..50_u64,
            trip in 1..2_000_u64,
            is_delayed: bool,
        ) {
            let start = u32::MAX - 40_000;
            let mut path = Path::new();
            let mut events = vec![(0, 0, syn(start, 0))];
            events.push((trip, 1, ack(start.wrapping_add(1), 0)));
            let mut seq = start.wrapping_add(1);
            for (number, length) in (1..).zip(&lengths) {
                let at = trip + gap * u64::from(number);
                events.push((at, 0, data(seq, *length, number)));
                seq = seq.wrapping_add(*length);
                if !is_delayed || number % 2 == 0 {
                    let echo = if is_delayed { number - 1 } else { number };
                    events.push((at + trip, 1, ack(seq, echo)));
                }
            }
            events.sort_by_key(|it| (it.0, it.1));
            for (at, way, segment) in events {
                match way {
                    0 => path.send(at, segment),
                    _ => path.answer(at, segment),
                }
            }
            let [by_bytes, by_values] = path.found();
            let trip = trip as i64;
            prop_assert_eq!((by_bytes.1, by_bytes.2), (trip, trip));
            let waited = if is_delayed { gap as i64 } else { 0 };
            prop_assert!(by_values.1 == trip && by_values.2 <= trip + waited);
            if !is_delayed && trip < gap as i64 * MOST_TIMED as i64 {
                prop_assert_eq!(by_bytes.0, lengths.len() as u64 + 1);
                prop_assert_eq!(by_values.0, lengths.len() as u64 + 1);
            }
        }

        /// Whatever comes: never more times than segments, never a negative one.
        #[test]
        fn anything_may_come(
            events in proptest::collection::vec(
                (any::<bool>(), 0..100_u32, 0..40_u32, any::<[bool; 2]>(), 0..20_u32), 1..200),
        ) {
            let mut path = Path::new();
            let mut sent = 0;
            for (at, (is_sent, number, payload, [is_syn, is_fin], value)) in (0..).zip(events) {
                if is_sent {
                    path.send(at, Segment { is_syn, is_fin, ..data(number, payload, value) });
                    sent += 1;
                } else {
                    path.answer(at, ack(number, value));
                }
            }
            for (n, min, _) in path.found() {
                prop_assert!(n <= sent && min >= 0);
            }
        }
    }
}
