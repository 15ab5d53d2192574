//! Blocks of several rings in one order: generated traffic, in which each frame
//! is stamped at one time and published at a later one.

use std::collections::BTreeMap;

use super::*;
use crate::engine::window::WINDOW_NS;

/// An interface that nobody captures.
const STRANGER: u32 = 99;
/// All frames of a world together stay below half a ring, so that nothing but
/// the window decides what is held back.
const MOST_FRAMES: usize = 400;
const LONGEST_FRAME: usize = 120;

/// One frame on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Frame {
    ring: usize,
    ifindex: u32,
    length: usize,
    /// When it is stamped, ns of CLOCK_MONOTONIC.
    stamp: u64,
    /// When its block is published; in order within a ring.
    published: u64,
}

/// Traffic, and when the converter drains.
#[derive(Clone, Debug)]
struct World {
    /// Each ring's stamps are this much behind the common clock.
    offsets: Vec<i64>,
    /// In order of stamps.
    frames: Vec<Frame>,
    drains: Vec<u64>,
}

/// Frames of one CPU in a row: the ring, the gaps before each, the time from
/// stamp to publication of each, the lengths.
type Burst = (prop::sample::Index, Vec<(u64, u64, usize, bool)>);

fn burst(longest_delay: u64) -> impl Strategy<Value = Burst> {
    let gap = prop_oneof![1 => Just(0u64), 6 => 1u64..2_000, 1 => 2_000u64..400_000];
    let delay = prop_oneof![4 => 50u64..3_000, 1 => 0..=longest_delay];
    let frame = (gap, delay, 22..=LONGEST_FRAME, prop::bool::weighted(0.05));
    (
        any::<prop::sample::Index>(),
        prop::collection::vec(frame, 1..24),
    )
}

fn rings() -> impl Strategy<Value = usize> {
    prop_oneof![1 => Just(1usize), 4 => Just(2), 3 => 3usize..9, 1 => Just(64)]
}

/// Worlds in which blocks are published at most `longest_delay` ns after the
/// stamp (or when the one before on the same CPU is, if that is later).
fn world(longest_delay: u64) -> impl Strategy<Value = World> {
    let offset = prop_oneof![Just(0i64), -900_000i64..1_000_000_000_000];
    let bursts = prop::collection::vec(burst(longest_delay), 1..40);
    let sleeps = prop::collection::vec(prop_oneof![1 => 1u64..50_000, 3 => Just(200_000)], 1..80);
    (rings(), prop::collection::vec(offset, 64), bursts, sleeps).prop_map(
        move |(rings, offsets, bursts, sleeps)| {
            let mut now = 1_000_000;
            let mut busy_until = vec![0; rings];
            let mut frames = Vec::new();
            for (index, burst) in bursts {
                let ring = index.index(rings);
                for (gap, delay, length, is_strange) in burst {
                    now += gap;
                    // One CPU works on one frame at a time.
                    let stamp: u64 = now.max(busy_until[ring]);
                    let published = stamp + delay;
                    busy_until[ring] = published;
                    let ifindex = if is_strange { STRANGER } else { IFINDEX };
                    frames.push(Frame {
                        ring,
                        ifindex,
                        length,
                        stamp,
                        published,
                    });
                }
            }
            frames.truncate(MOST_FRAMES);
            frames.sort_by_key(|frame| frame.stamp);
            let mut at = 1_000_000;
            let drains = sleeps.into_iter().map(|sleep| {
                at += sleep;
                at
            });
            World {
                offsets: offsets[..rings].to_vec(),
                frames,
                drains: drains.collect(),
            }
        },
    )
}

impl World {
    /// The frame's bytes: its number in the world, and more.
    fn bytes(&self, number: usize) -> Vec<u8> {
        let mut bytes = vec![0xa5; self.frames[number].length];
        bytes[14..22].copy_from_slice(&(number as u64).to_le_bytes());
        bytes
    }

    fn bench(&self, count: Option<u64>, room: usize) -> Bench {
        let rings = u32::try_from(self.offsets.len()).unwrap();
        let mut bench = bench(rings, count, room, io::ErrorKind::StorageFull);
        for (consumer, offset) in bench
            .converter
            .rings
            .consumers
            .iter_mut()
            .zip(&self.offsets)
        {
            consumer.set_stamp_offset(*offset);
        }
        bench
    }

    /// Lets time pass: each block is published and each drain happens when it is
    /// to, and all that is left at the end.
    fn run(&self, bench: &mut Bench) {
        let mut order: Vec<usize> = (0..self.frames.len()).collect();
        order.sort_by_key(|number| self.frames[*number].published);
        let mut to_publish = order.into_iter().peekable();
        for drain in self.drains.iter().copied().chain([u64::MAX]) {
            while let Some(number) =
                to_publish.next_if(|number| self.frames[*number].published <= drain)
            {
                let frame = &self.frames[number];
                let stamp = frame.stamp.wrapping_add_signed(-self.offsets[frame.ring]);
                let bytes = self.bytes(number);
                assert!(bench.producers[frame.ring].push(frame.ifindex, RawStamp(stamp), &bytes));
            }
            if drain == u64::MAX {
                bench.script.set(self.end(), EPOCH);
                bench.converter.drain_all();
            } else {
                bench.script.set(drain, EPOCH);
                bench.converter.drain();
            }
        }
        assert!(!bench.converter.drain_all());
    }

    /// Later than everything.
    fn end(&self) -> u64 {
        let last = self.frames.iter().map(|frame| frame.published).max();
        last.unwrap_or(0).max(*self.drains.last().unwrap()) + 1
    }

    fn of_interest(&self) -> usize {
        self.frames
            .iter()
            .filter(|frame| frame.ifindex == IFINDEX)
            .count()
    }
}

/// Numbers and stamps of the frames in a file.
fn numbers(file: &[u8]) -> Vec<(usize, u64)> {
    let mut packets = Vec::new();
    let (mut rest, mut parser) = PcapNgParser::new(file).unwrap();
    while !rest.is_empty() {
        let (next, block) = parser.next_block(rest).unwrap();
        if let FileBlock::EnhancedPacket(packet) = block {
            let number = u64::from_le_bytes(packet.data[14..22].try_into().unwrap());
            let stamp = u64::try_from(packet.timestamp.as_nanos()).unwrap();
            packets.push((usize::try_from(number).unwrap(), stamp));
        }
        rest = next;
    }
    packets
}

/// How many frames stand behind a younger one of another ring.
fn count_late(world: &World, written: &[(usize, u64)]) -> u64 {
    let mut youngest = BTreeMap::new();
    let mut late = 0;
    for (number, _) in written {
        let Frame { ring, stamp, .. } = world.frames[*number];
        let others = youngest.iter().filter(|(other, _)| **other != ring);
        late += u64::from(others.map(|(_, stamp)| *stamp).max() > Some(stamp));
        let of_it = youngest.entry(ring).or_insert(0);
        *of_it = stamp.max(*of_it);
    }
    late
}

/// Everything is there once, as it was pushed, with its own ring in order.
fn check_all(world: &World, written: &[(usize, u64)]) {
    assert_eq!(written.len(), world.of_interest());
    let mut next = vec![None; world.offsets.len()];
    let mut seen = vec![false; world.frames.len()];
    for (number, stamp) in written {
        let frame = &world.frames[*number];
        assert!(
            !std::mem::replace(&mut seen[*number], true),
            "frame {number} is there twice"
        );
        assert_eq!(*stamp, frame.stamp + EPOCH);
        assert!(
            next[frame.ring] <= Some(*number),
            "ring {} is out of order",
            frame.ring
        );
        next[frame.ring] = Some(*number);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn what_is_published_within_the_window_is_in_order(world in world(WINDOW_NS)) {
        let mut bench = world.bench(None, usize::MAX);
        world.run(&mut bench);
        let written = numbers(&bench.file());
        check_all(&world, &written);
        prop_assert!(written.is_sorted_by_key(|(_, stamp)| *stamp));
        let finished = bench.finish();
        prop_assert_eq!(finished.batch.order, StampOrder::default());
        let frames = world.frames.len() as u64;
        let totals = finished.totals(frames, &Observed::default(), Outcomes::default());
        prop_assert!(totals.add_up(), "{totals:?}");
    }

    #[test]
    fn what_is_published_later_is_counted_exactly(world in world(20 * WINDOW_NS)) {
        let mut bench = world.bench(None, usize::MAX);
        world.run(&mut bench);
        let written = numbers(&bench.file());
        check_all(&world, &written);
        let order = bench.finish().batch.order;
        prop_assert_eq!(order.late, count_late(&world, &written));
        prop_assert_eq!(order.late == 0, written.is_sorted_by_key(|(_, stamp)| *stamp));
        prop_assert_eq!(order.stamp_decreases, 0);
    }

    /// A count and a failure cut the file short, and change nothing else.
    #[test]
    fn a_shorter_file_is_the_start_of_the_whole_one(
        world in world(2 * WINDOW_NS),
        count in prop::option::of(1u64..MOST_FRAMES as u64),
        room in prop_oneof![1 => Just(usize::MAX), 3 => 0usize..60_000],
    ) {
        let mut whole = world.bench(None, usize::MAX);
        world.run(&mut whole);
        let mut bench = world.bench(count, room);
        world.run(&mut bench);
        let events = bench.events();
        let file = bench.file();
        let finished = bench.finish();
        let length = usize::try_from(finished.output.length()).unwrap();
        let written = numbers(&file[..length]);
        prop_assert!(numbers(&whole.file()).starts_with(&written));

        let frames = world.frames.len() as u64;
        let totals = finished.totals(frames, &Observed::default(), Outcomes::default());
        prop_assert!(totals.add_up(), "{totals:?}");
        prop_assert_eq!(totals.written, written.len() as u64);
        let failed = events.iter().any(|event| matches!(event, Event::WriteFailed(_)));
        prop_assert_eq!(totals.outcomes.write_failed > 0, failed);
        let complete = count.unwrap_or(u64::MAX).min(world.of_interest() as u64);
        prop_assert_eq!(totals.written < complete, failed);
    }

    /// Whatever the stamps say, and however the clock is set: a block goes out by
    /// the second drain after it was published, once.
    #[test]
    fn nothing_is_held_back_for_long(
        frames in prop::collection::vec(
            (0usize..3, prop_oneof![any::<u64>(), 0u64..10_000_000]),
            1..100,
        ),
        steps in prop::collection::vec(
            prop_oneof![3 => Just(0i64), 1 => any::<i64>().prop_map(|step| step / 4)],
            100,
        ),
        source in prop_oneof![Just(StampSource::Ktime), Just(StampSource::Tai)],
    ) {
        let mut bench = bench_of(source, 3, None, usize::MAX, io::ErrorKind::StorageFull);
        let mut drained = 0;
        let mut offset = EPOCH;
        for (count, ((ring, stamp), step)) in (1u64..).zip(frames.into_iter().zip(steps)) {
            bench.push(ring, stamp, 60);
            offset = (EPOCH / 2).max(offset.saturating_add_signed(step)).min(2 * EPOCH);
            bench.script.set(1_000_000 + count * 2 * WINDOW_NS, offset);
            bench.converter.drain();
            let written = bench.converter.pieces.batch.written();
            prop_assert!((count - 1..=count).contains(&written), "{written} of {count}");
            drained = count;
        }
        bench.script.set(1_000_000 + (drained + 1) * 2 * WINDOW_NS, offset);
        bench.converter.drain();
        prop_assert_eq!(bench.converter.pieces.batch.written(), drained);
        prop_assert!(!bench.converter.drain());
    }
}

#[test]
fn the_youngest_blocks_wait_for_the_next_drain() {
    let mut bench = unlimited(2);
    bench.push(0, 1_000_000, 60);
    bench.push(0, 1_000_001, 60);
    bench.script.set(1_000_000 + WINDOW_NS, EPOCH);
    assert!(bench.converter.drain());
    assert_eq!(bench.stamps(), [EPOCH + 1_000_000]);
    // Held back, so that this one is in time.
    bench.push(1, 1_000_000, 60);
    bench.script.set(1_000_001 + WINDOW_NS, EPOCH);
    assert!(bench.converter.drain());
    assert_eq!(
        bench.stamps(),
        [0, 0, 1].map(|mono| EPOCH + 1_000_000 + mono)
    );
    assert!(!bench.converter.drain());
}

#[test]
fn one_ring_waits_for_nobody() {
    let mut bench = unlimited(1);
    bench.push(0, 1_000_000, 60);
    assert!(bench.converter.drain());
    assert_eq!(bench.stamps().len(), 1);
}

#[test]
fn more_than_half_a_ring_is_not_held_back() {
    let mut bench = unlimited(2);
    let frames = MIN_RING_BYTES / 2 / 92;
    for number in 0..frames as u64 {
        bench.push(0, 1_000_000 + number, 60);
    }
    bench.push(1, 1_000_001, 60);
    bench.converter.drain();
    assert_eq!(bench.stamps().len(), 0, "half a ring at most");
    bench.push(0, 1_100_000, 60);
    bench.converter.drain();
    let stamps = bench.stamps();
    assert_eq!(stamps.len(), frames + 2);
    assert!(stamps.is_sorted());
}

/// An output that notes where in memory the bytes came from.
struct Places(Arc<Mutex<Vec<(usize, usize)>>>);

impl Write for Places {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0
            .lock()
            .unwrap()
            .push((bytes.as_ptr().addr(), bytes.len()));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn one_ring_with_blocks_is_written_where_it_lies_several_from_one_buffer() {
    let places = Arc::new(Mutex::new(Vec::new()));
    let mut bench = unlimited(2);
    bench.converter.pieces.output = Output::stream(Places(Arc::clone(&places)));
    let mut now = 1_000_000;
    for rings in [&[0][..], &[0], &[0, 1], &[0, 1]] {
        for ring in rings {
            bench.push(*ring, now, 60);
            bench.push(*ring, now + 1, 60);
        }
        now += 10 * WINDOW_NS;
        bench.script.set(now, EPOCH);
        bench.converter.drain();
    }
    let places = places.lock().unwrap();
    let [first, second, third, fourth] = places[..] else {
        panic!("one write a drain: {places:?}");
    };
    assert_eq!(second.0, first.0 + first.1, "where the ring goes on");
    assert_eq!((third, third.1), (fourth, 4 * 92), "the same buffer");
}

#[test]
fn a_bad_block_in_one_ring_leaves_the_others_in_order() {
    let mut bench = unlimited(3);
    for ring in 0..3 {
        for number in 0..10 {
            bench.push(ring, 1_000_000 + 3 * number + ring as u64, 60);
        }
    }
    bench.converter.rings.consumers[1].take(4);
    for now in [2_000_000, 3_000_000] {
        bench.script.set(now, EPOCH);
        bench.converter.drain();
        let stamps = bench.stamps();
        assert_eq!(stamps.len(), 20);
        assert!(stamps.is_sorted());
    }
    // What stands for its stamp may be in the future: found at the second drain.
    assert!(matches!(bench.events()[..], [Event::Corrupt(_)]));
    bench.push(1, 3_000_000, 60);
    bench.script.set(4_000_000, EPOCH);
    bench.converter.drain();
    assert_eq!(bench.stamps().len(), 21, "what comes later is good again");
}
