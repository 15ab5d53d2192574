//! Blocks by where they are in the file: which of them are whole if the file ends somewhere.

use tscap_programs::ring::{self, FinalFrame};

/// A block that begins before the bytes that wait, and ends among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Torn {
    pub start: u64,
    pub end: u64,
    /// If it has one.
    pub frame: Option<FinalFrame>,
}

/// Blocks one behind the other, all of them in memory but for the beginning of the first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent<'a> {
    torn: Option<Torn>,
    /// Whole blocks, and where in the file they begin.
    parts: [(u64, &'a [u8]); 2],
}

impl<'a> Extent<'a> {
    /// The bytes that are `waiting` to be written at `at`, of which the first ones may
    /// belong to `torn`, and after them `blocks`, which begin at `begin`.
    pub fn new(
        torn: Option<Torn>,
        (at, waiting): (u64, &'a [u8]),
        (begin, blocks): (u64, &'a [u8]),
    ) -> Self {
        let from = torn.map_or(at, |torn| torn.end);
        let skipped = usize::try_from(from - at).unwrap_or(usize::MAX);
        let waiting = waiting.get(skipped..).unwrap_or_default();
        Self {
            torn,
            parts: [(from, waiting), (begin, blocks)],
        }
    }

    /// If the file ends at `end`: where its last whole block ends, and the frames that are
    /// not whole in it.
    pub fn cut_at(&self, end: u64) -> (u64, Vec<FinalFrame>) {
        let [(first, _), (begin, _)] = self.parts;
        let mut whole = self.torn.map_or(first.min(begin), |torn| torn.start);
        let mut lost = Vec::new();
        let torn = self.torn.iter().map(|torn| (torn.frame, torn.end));
        let of_parts = self.parts.iter().flat_map(|(offset, blocks)| {
            ring::blocks(blocks).map(move |(frame, end)| (frame, offset + end as u64))
        });
        for (frame, block_end) in torn.chain(of_parts) {
            if block_end <= end {
                whole = block_end
            } else {
                lost.extend(frame)
            }
        }
        (whole, lost)
    }

    /// The block that begins before `cut` and ends behind it.
    pub fn torn_by(&self, cut: u64) -> Option<Torn> {
        for (offset, blocks) in self.parts.iter().rev() {
            let mut left = *blocks;
            while let Some((length, frame)) = ring::last_block(left) {
                let end = offset + left.len() as u64;
                let start = end - length as u64;
                if end <= cut {
                    return None;
                }
                if start < cut {
                    return Some(Torn { start, end, frame });
                }
                left = &left[..left.len() - length];
            }
        }
        self.torn.filter(|torn| torn.start < cut && torn.end > cut)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tscap_common::hook::{Direction, Slot};

    use super::*;

    /// A block of so many words that is no frame, or one of the interface.
    fn block(words: u32, interface: Option<u32>) -> Vec<u8> {
        let length = (words * 4).to_ne_bytes();
        let mut block = vec![0; words as usize * 4];
        block[..4].copy_from_slice(&interface.map_or(5u32, |_| 6).to_ne_bytes());
        block[4..8].copy_from_slice(&length);
        block[8..12].copy_from_slice(&interface.unwrap_or(0).to_ne_bytes());
        let end = block.len() - 4;
        block[end..].copy_from_slice(&length);
        block
    }

    proptest! {
        /// However blocks are divided into torn, waiting and new ones.
        #[test]
        fn frames_are_whole_or_lost(
            sizes in prop::collection::vec((8u32..40, prop::option::of(0u32..4)), 1..30),
            first in 0usize..30,
            split in 0usize..30,
            missing in 0u64..40,
            end in 0u64..4_000,
            cut in 0u64..4_000,
        ) {
            const BEFORE: u64 = 8_192;
            let blocks: Vec<_> = sizes.iter().map(|(words, of)| block(*words, *of)).collect();
            let ends: Vec<u64> = blocks.iter().scan(BEFORE, |end, block| {
                *end += block.len() as u64;
                Some(*end)
            }).collect();
            let starts: Vec<u64> = std::iter::once(BEFORE).chain(ends.iter().copied()).collect();
            let frame = |index: usize| sizes[index].1.map(|it| FinalFrame {
                slot: Slot::of(it, Direction::In),
                has_hardware_stamp: false,
                is_converted: false,
            });

            let has_torn = first % 2 == 0 && missing > 0 && missing < ends[0] - BEFORE;
            let torn = has_torn.then(|| Torn { start: BEFORE, end: ends[0], frame: frame(0) });
            let split = split.clamp(usize::from(has_torn), blocks.len());
            let waiting = blocks[..split].concat();
            let at = BEFORE + if has_torn { missing } else { 0 };
            let rest = blocks[split..].concat();
            let waiting = (at, &waiting[(at - BEFORE) as usize..]);
            let extent = Extent::new(torn, waiting, (starts[split], &rest));

            let end = BEFORE + end;
            let (whole, lost) = extent.cut_at(end);
            let expected = starts.iter().copied().filter(|it| *it <= end).max();
            prop_assert_eq!(Some(whole), expected);
            let expected: Vec<_> = (0..blocks.len())
                .filter(|index| ends[*index] > end)
                .filter_map(frame)
                .collect();
            prop_assert_eq!(lost, expected);

            let cut = at + cut;
            let expected = (0..blocks.len())
                .find(|index| starts[*index] < cut && ends[*index] > cut)
                .map(|index| Torn { start: starts[index], end: ends[index], frame: frame(index) });
            prop_assert_eq!(extent.torn_by(cut), expected);
        }
    }
}
