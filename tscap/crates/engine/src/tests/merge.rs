//! Blocks of several rings in one order: whatever the traffic.

use super::*;
use crate::window::WINDOW_NS;

mod units;
pub(super) mod world;

use world::{MOST_FRAMES, check_all, count_late, numbers, world};

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
        prop_assert_eq!(finished.order(), StampOrder::default());
        let frames = world.frames.len() as u64;
        let totals = totals(&finished, frames);
        prop_assert!(totals.add_up(), "{totals:?}");
    }

    #[test]
    fn what_is_published_later_is_counted_exactly(world in world(20 * WINDOW_NS)) {
        let mut bench = world.bench(None, usize::MAX);
        world.run(&mut bench);
        let written = numbers(&bench.file());
        check_all(&world, &written);
        let order = bench.finish().order();
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
        let totals = totals(&finished, frames);
        prop_assert!(totals.add_up(), "{totals:?}");
        prop_assert_eq!(totals.written, written.len() as u64);
        let failed = events.iter().any(|event| matches!(event, Event::WriteFailed { .. }));
        prop_assert_eq!(totals.outcomes[Outcome::WriteFailed] > 0, failed);
        let complete = count.unwrap_or(u64::MAX).min(world.frames.len() as u64);
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
            let written = bench.converter.writer.finisher.written();
            prop_assert!((count - 1..=count).contains(&written), "{written} of {count}");
            drained = count;
        }
        bench.script.set(1_000_000 + (drained + 1) * 2 * WINDOW_NS, offset);
        bench.converter.drain();
        prop_assert_eq!(bench.converter.writer.finisher.written(), drained);
        prop_assert!(!bench.converter.drain());
    }
}
