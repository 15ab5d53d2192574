use proptest::prelude::*;

use super::*;

/// Merges whole sequences, as the engine does with blocks: a stretch at a time.
fn merge(rings: &[Vec<u64>]) -> Vec<(u64, usize)> {
    let mut merge = Merge::new(rings.len());
    let mut next = vec![0; rings.len()];
    let first = |ring: usize, next: &[usize]| rings[ring].get(next[ring]).copied().map(RawStamp);
    for ring in 0..rings.len() {
        merge.offer(ring, first(ring, &next));
    }
    let mut merged = Vec::new();
    while let Some(turn) = merge.turn() {
        let until = turn.until;
        let before = merged.len();
        while let Some(stamp) = first(turn.ring, &next).filter(|stamp| *stamp <= until) {
            merged.push((stamp.0, turn.ring));
            next[turn.ring] += 1;
        }
        assert!(merged.len() > before, "a turn without a block");
        merge.offer(turn.ring, first(turn.ring, &next));
    }
    merged
}

proptest! {
    #[test]
    fn ordered_rings_merge_into_one_order(
        mut rings in prop::collection::vec(
            prop::collection::vec(prop_oneof![3 => 0u64..100, 1 => 0..u64::MAX], 0..50),
            1..70,
        ),
    ) {
        for ring in &mut rings {
            ring.sort_unstable();
        }
        let mut expected: Vec<u64> = rings.concat();
        expected.sort_unstable();
        let merged = merge(&rings);
        let stamps: Vec<u64> = merged.iter().map(|(stamp, _)| *stamp).collect();
        prop_assert_eq!(stamps, expected);
    }

    /// Whatever the rings hold: all of it comes out, each ring in its own order.
    #[test]
    fn unordered_rings_keep_their_own_order(
        rings in prop::collection::vec(prop::collection::vec(0u64..20, 0..20), 1..10),
    ) {
        let merged = merge(&rings);
        for (number, ring) in rings.iter().enumerate() {
            let of_it = merged.iter().filter(|(_, ring)| *ring == number);
            prop_assert!(of_it.map(|(stamp, _)| stamp).eq(ring));
        }
    }
}

#[test]
fn bursts_go_on_until_the_runner_up() {
    let mut merge = Merge::new(3);
    assert_eq!(merge.turn(), None);
    let turn = |ring, until| Some(NextRing { ring, until });
    merge.offer(2, Some(RawStamp(7)));
    assert!(merge.turn().unwrap().is_alone());
    merge.offer(0, Some(RawStamp(5)));
    assert_eq!(merge.turn(), turn(0, RawStamp(7)));
    merge.offer(0, Some(RawStamp(9)));
    assert_eq!(merge.turn(), turn(2, RawStamp(7)));
    merge.offer(2, Some(RawStamp(8)));
    assert_eq!(merge.turn(), turn(2, RawStamp(9)));
    merge.offer(2, None);
    assert_eq!(merge.turn(), turn(0, RawStamp(9)));
    merge.offer(0, Some(RawStamp(10)));
    assert_eq!(merge.turn(), turn(0, RawStamp::NEVER));
    merge.offer(0, None);
    assert_eq!(merge.turn(), None);
}
