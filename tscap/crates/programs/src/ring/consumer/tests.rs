use proptest::prelude::*;
use tscap_common::hook::Slot;
use tscap_common::ring::{MIN_RING_BYTES, SLACK_BYTES};

use crate::ring::synthetic;
use tscap_clock::{RawStamp, RealNs};

const ANY: RawStamp = RawStamp(u64::MAX);

/// One step of a producer and a consumer that share a ring.
#[derive(Clone, Debug)]
enum Step {
    Push { length: usize },
    Drain { blocks: usize },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let length = prop_oneof![
        4 => 14usize..200,
        2 => 200usize..9018,
        1 => Just(tscap_common::block::MAX_CAPLEN),
    ];
    prop::collection::vec(
        prop_oneof![
            3 => length.prop_map(|length| Step::Push { length }),
            1 => (1usize..40).prop_map(|blocks| Step::Drain { blocks }),
        ],
        1..400,
    )
}

proptest! {
    /// Whatever the lengths and however often the ring wraps: every frame that
    /// was pushed comes out once, in order, whole; the others are refused.
    #[test]
    fn frames_come_out_as_they_went_in(steps in steps()) {
        let (mut producers, mut consumers) = synthetic::rings(1, MIN_RING_BYTES).unwrap();
        let (producer, consumer) = (&mut producers[0], &mut consumers[0]);
        let mut inside = std::collections::VecDeque::new();
        let mut number = 0u64;
        for step in steps.into_iter().chain([Step::Drain { blocks: usize::MAX }]) {
            match step {
                Step::Push { length } => {
                    number += 1;
                    let fill = number.to_le_bytes()[0];
                    if producer.push(Slot(7), RawStamp(number), &vec![fill; length]) {
                        inside.push_back((number, length));
                    } else {
                        let used = consumer.head() - consumer.next();
                        prop_assert!(used + length as u64 + 64 > MIN_RING_BYTES as u64);
                    }
                }
                Step::Drain { mut blocks } => {
                    let head = consumer.head();
                    while blocks > 0 && let Some(mut run) = consumer.run(head, ANY) {
                        while blocks > 0 && let Some(block) = run.next_block() {
                            let mut block = block.unwrap();
                            let (number, length) = inside.pop_front().unwrap();
                            prop_assert_eq!(block.raw_stamp(), RawStamp(number));
                            prop_assert_eq!(block.slot(), Slot(7));
                            prop_assert_eq!(block.data().len(), length);
                            let fill = number.to_le_bytes()[0];
                            prop_assert!(block.data().iter().all(|byte| *byte == fill));
                            block.finish(0, RealNs(number));
                            blocks -= 1;
                        }
                        let taken = run.taken();
                        prop_assert_eq!(run.bytes().len(), taken);
                        consumer.take(taken);
                        consumer.release();
                    }
                }
            }
        }
        prop_assert!(inside.is_empty());
        prop_assert_eq!(consumer.head(), consumer.next());
    }
}

#[test]
fn a_ring_gone_bad_is_an_error_with_its_place() {
    let (mut producers, mut consumers) = synthetic::rings(1, MIN_RING_BYTES).unwrap();
    producers[0].push(Slot(1), RawStamp(1), &[0; 60]);
    producers[0].push(Slot(1), RawStamp(2), &[0; 60]);
    let consumer = &mut consumers[0];
    let head = consumer.head();
    let first = consumer
        .run(head, ANY)
        .unwrap()
        .next_block()
        .unwrap()
        .unwrap()
        .len();
    consumer.take(first - 4);
    let error = consumer
        .run(head, ANY)
        .unwrap()
        .next_block()
        .unwrap()
        .unwrap_err();
    assert_eq!(error.position, first as u64 - 4);
    assert!(error.to_string().contains("no packet block at position 88"));
}

#[test]
fn a_run_ends_before_a_later_stamp_with_the_rings_offset() {
    let (mut producers, mut consumers) = synthetic::rings(1, MIN_RING_BYTES).unwrap();
    for stamp in [100, 110, 105, 120] {
        producers[0].push(Slot(1), RawStamp(stamp), &[0; 60]);
    }
    let consumer = &mut consumers[0];
    consumer.set_stamp_offset(-100);
    let head = consumer.head();
    assert_eq!(consumer.next_stamp(head), Some(RawStamp(0)));
    let mut run = consumer.run(head, RawStamp(7)).unwrap();
    let first = run.next_block().unwrap().unwrap().raw_stamp();
    assert_eq!(first, RawStamp(0));
    assert!(
        run.next_block().is_none(),
        "10 comes first, though 5 follows"
    );
    let taken = run.taken();
    consumer.take(taken);
    assert_eq!(consumer.next_stamp(head), Some(RawStamp(10)));
    assert!(consumer.run(consumer.next(), ANY).is_none());
}

#[test]
fn the_producer_gets_its_room_back_on_release_only() {
    let (mut producers, mut consumers) = synthetic::rings(1, MIN_RING_BYTES).unwrap();
    while producers[0].push(Slot(1), RawStamp(1), &[0; 60]) {}
    let consumer = &mut consumers[0];
    // Two blocks of 92 bytes: room for one that also reports the drops.
    consumer.take(2 * 92);
    assert!(!producers[0].push(Slot(1), RawStamp(2), &[0; 60]));
    consumer.release();
    assert!(producers[0].push(Slot(1), RawStamp(2), &[0; 60]));
}

/// A run may go on in the slack behind the ring, with one block at most, and no farther.
#[test]
fn a_run_ends_with_the_ring() {
    let (mut producers, mut consumers) = synthetic::rings(1, MIN_RING_BYTES).unwrap();
    let consumer = &mut consumers[0];
    let mut pushed = 0;
    while producers[0].push(Slot(1), RawStamp(1), &[0; 60]) {
        pushed += 92;
    }
    consumer.take(pushed - 92);
    consumer.release();
    while producers[0].push(Slot(1), RawStamp(2), &[0; 60]) {}
    let (head, begin) = (consumer.head(), consumer.next() as usize);
    let mut run = consumer.run(head, ANY).unwrap();
    assert!(run.bytes().len() <= MIN_RING_BYTES - begin + SLACK_BYTES);
    while let Some(block) = run.next_block() {
        assert!(!block.unwrap().is_empty());
    }
    let taken = run.taken();
    assert!((MIN_RING_BYTES..MIN_RING_BYTES + 92).contains(&(begin + taken)));
}
