//! The order of blocks that lie in several rings: which ring comes next, and
//! for how long. Pure: it knows stamps and numbers of rings only.

use std::hint::select_unpredictable;

use tscap_clock::RawStamp;

/// The ring that comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextRing {
    /// Index of the ring among those that are merged.
    pub ring: usize,
    /// Every block of this ring up to this stamp comes before any block of
    /// another.
    pub until: RawStamp,
}

impl NextRing {
    /// Whether no other ring offers a block.
    pub fn is_alone(self) -> bool {
        self.until == RawStamp::NEVER
    }
}

/// A tournament between the first blocks of all rings: each node holds the
/// lesser of the two below it. A ring that has moved on plays its way up again,
/// one comparison a level and no branch that depends on who wins.
///
/// On its way it meets the best of all others. If it still wins, that is the
/// runner-up, and it may go on until there. If not, the best of the others may
/// go on for now with its first stamp only: its own runner-up is found when it
/// has moved on. So a burst takes two turns, and frames in turns one each.
#[derive(Clone, Debug)]
pub struct Merge {
    /// The root at 1, the nodes below `i` at `2 * i` and `2 * i + 1`, the rings'
    /// own entries in the second half.
    nodes: Vec<Entry>,
    /// The least of all; of no ring if none offers anything.
    winner: Entry,
    until: RawStamp,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    stamp: RawStamp,
    ring: u32,
}

const NOTHING: Entry = Entry {
    stamp: RawStamp::NEVER,
    ring: u32::MAX,
};

impl Entry {
    #[inline]
    fn lesser(self, other: Self) -> Self {
        // Which one wins is not predictable.
        let wins = self.stamp <= other.stamp;
        Self {
            stamp: select_unpredictable(wins, self.stamp, other.stamp),
            ring: select_unpredictable(wins, self.ring, other.ring),
        }
    }
}

impl Merge {
    /// For `rings` rings, none of which offers anything yet.
    pub fn new(rings: usize) -> Self {
        Self {
            nodes: vec![NOTHING; 2 * rings.next_power_of_two()],
            winner: NOTHING,
            until: RawStamp::NEVER,
        }
    }

    /// Says what `ring` has first: a block with this stamp, or nothing.
    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "CPUs are far fewer")]
    pub fn offer(&mut self, ring: usize, stamp: Option<RawStamp>) {
        let own = Entry {
            stamp: stamp.unwrap_or(RawStamp::NEVER),
            ring: ring as u32,
        };
        let mut others = NOTHING;
        let mut node = self.nodes.len() / 2 + ring;
        self.nodes[node] = own;
        while node > 1 {
            others = others.lesser(self.nodes[node ^ 1]);
            node /= 2;
            self.nodes[node] = own.lesser(others);
        }
        self.winner = own.lesser(others);
        self.until = others.stamp;
    }

    /// Whose turn it is; `None` if nobody offers anything.
    #[inline]
    pub fn turn(&self) -> Option<NextRing> {
        (self.winner.stamp != RawStamp::NEVER).then_some(NextRing {
            ring: self.winner.ring as usize,
            until: self.until,
        })
    }
}

#[cfg(test)]
mod tests;
