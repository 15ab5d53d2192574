//! Single cases.

use super::*;

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
    assert!(
        bench.converter.drain(),
        "what is held back is found again soon"
    );
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
    bench.converter.writer.output = Output::stream(Places(Arc::clone(&places)));
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

/// An output that tries to have its rings overwritten.
struct Greedy {
    producers: Arc<Mutex<Vec<Producer>>>,
    writes: Arc<Mutex<Vec<bool>>>,
}

/// Whether a frame more fits any of the rings.
fn has_room(producers: &Mutex<Vec<Producer>>) -> bool {
    let mut producers = producers.lock().unwrap();
    let mut all = producers.iter_mut();
    all.any(|producer| producer.push(SLOT, RawStamp(1), &[0; 60]))
}

impl Write for Greedy {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writes.lock().unwrap().push(has_room(&self.producers));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn no_room_is_given_back_before_its_blocks_are_written() {
    for rings in [1, 2] {
        let mut bench = unlimited(rings);
        let mut stamp = 1_000_000;
        for producer in &mut bench.producers {
            while producer.push(SLOT, RawStamp(stamp), &[0; 60]) {
                stamp += 1;
            }
        }
        let producers = Arc::new(Mutex::new(std::mem::take(&mut bench.producers)));
        let writes = Arc::new(Mutex::new(Vec::new()));
        bench.converter.writer.output = Output::stream(Greedy {
            producers: Arc::clone(&producers),
            writes: Arc::clone(&writes),
        });
        bench.script.set(stamp + 10 * WINDOW_NS, EPOCH);
        bench.converter.drain();
        let writes = writes.lock().unwrap();
        assert!(
            !writes.is_empty() && !writes.contains(&true),
            "{rings} rings"
        );
        assert!(has_room(&producers));
    }
}

#[test]
fn a_clock_set_back_makes_frames_late_for_two_drains_at_most() {
    const HOUR: u64 = 3_600_000_000_000;
    let mut bench = bench_of(
        StampSource::Tai,
        2,
        None,
        usize::MAX,
        io::ErrorKind::StorageFull,
    );
    let mut offset = EPOCH;
    for drain in 1..=20u64 {
        let mono = 1_000_000 + drain * 2 * WINDOW_NS;
        if drain == 10 {
            offset -= HOUR;
        }
        for number in 0..5 {
            let stamp = mono + offset - WINDOW_NS / 2 + 10 * number;
            bench.push(0, stamp, 60);
            bench.push(1, stamp + 5, 60);
        }
        bench.script.set(mono, offset);
        bench.converter.drain();
    }
    bench.converter.drain_all();
    let order = bench.finish().order();
    // What came with the step and in the drain after it, one of the rings' own
    // last frame before it each.
    assert!((1..=20).contains(&order.late), "{order:?}");
    assert_eq!(order.stamp_decreases, 2);
    assert!(order.largest_lateness_ns <= HOUR);
}
