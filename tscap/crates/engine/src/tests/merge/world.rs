//! Generated traffic, in which each frame is stamped at one time and published at
//! a later one.

use std::collections::BTreeMap;

use super::*;

/// All frames of a world together stay below half a ring, so that nothing but
/// the window decides what is held back.
pub(crate) const MOST_FRAMES: usize = 400;
const LONGEST_FRAME: usize = 120;

/// One frame on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    ring: usize,
    length: usize,
    /// When it is stamped, ns of CLOCK_MONOTONIC.
    stamp: u64,
    /// When its block is published; in order within a ring.
    published: u64,
}

/// Traffic, and when the converter drains.
#[derive(Clone, Debug)]
pub(crate) struct World {
    /// Each ring's stamps are this much behind the common clock.
    offsets: Vec<i64>,
    /// In order of stamps.
    pub(crate) frames: Vec<Frame>,
    drains: Vec<u64>,
}

/// Frames of one CPU in a row: the ring, the gaps before each, the time from
/// stamp to publication of each, the lengths.
type Burst = (prop::sample::Index, Vec<(u64, u64, usize)>);

fn burst(longest_delay: u64) -> impl Strategy<Value = Burst> {
    let gap = prop_oneof![1 => Just(0u64), 6 => 1u64..2_000, 1 => 2_000u64..400_000];
    let delay = prop_oneof![4 => 50u64..3_000, 1 => 0..=longest_delay];
    let frame = (gap, delay, 22..=LONGEST_FRAME);
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
pub(crate) fn world(longest_delay: u64) -> impl Strategy<Value = World> {
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
                for (gap, delay, length) in burst {
                    now += gap;
                    // One CPU works on one frame at a time.
                    let stamp: u64 = now.max(busy_until[ring]);
                    let published = stamp + delay;
                    busy_until[ring] = published;
                    frames.push(Frame {
                        ring,
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

    pub(crate) fn bench(&self, count: Option<u64>, room: usize) -> Bench {
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
    pub(crate) fn run(&self, bench: &mut Bench) {
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
                assert!(bench.producers[frame.ring].push(SLOT, RawStamp(stamp), &bytes));
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

    fn end(&self) -> u64 {
        let last = self.frames.iter().map(|frame| frame.published).max();
        last.unwrap_or(0).max(*self.drains.last().unwrap()) + 1
    }
}

/// Numbers and stamps of the frames in a file.
pub(crate) fn numbers(file: &[u8]) -> Vec<(usize, u64)> {
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
pub(crate) fn count_late(world: &World, written: &[(usize, u64)]) -> u64 {
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
pub(crate) fn check_all(world: &World, written: &[(usize, u64)]) {
    assert_eq!(written.len(), world.frames.len());
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
