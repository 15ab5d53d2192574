//! The parts of a file that can't be read: what they are, where, and how many.

use serde::Serialize;

use super::block::{BlockFault, is_packet};
use tscap_base::text::numbers::{counted, grouped};

/// Parts of a file that are kept one by one.
const MOST_KEPT: usize = 100;

/// A part of a file that can't be read: a block, or bytes in which no blocks are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Damaged {
    /// Where in the file it begins.
    pub at: u64,
    /// Length of the part in the file, bytes.
    pub bytes: u64,
    /// The type of the block; `None` where it is not known how many blocks it was.
    pub block: Option<u32>,
    /// What is wrong.
    pub fault: BlockFault,
}

impl Damaged {
    /// Whether it was one packet and nothing else.
    pub fn is_packet(&self) -> bool {
        self.block.is_some_and(is_packet)
    }
}

/// All such parts of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Damage {
    /// How many there are.
    pub parts: u64,
    /// Length of all parts that were left out, bytes.
    pub bytes: u64,
    /// Those of them that were one packet each.
    pub packets: u64,
    /// The first 100, in the file's order.
    pub first: Vec<Damaged>,
}

impl Damage {
    /// Takes in one more.
    pub fn add(&mut self, damaged: Damaged) {
        self.parts += 1;
        self.bytes += damaged.bytes;
        self.packets += u64::from(damaged.is_packet());
        if self.first.len() < MOST_KEPT {
            self.first.push(damaged);
        }
    }

    /// Whether the file is whole.
    pub fn is_none(&self) -> bool {
        self.parts == 0
    }

    /// Whether the only fault is that the file ends within a block, as that of a killed capture
    /// may.
    pub fn is_torn_end(&self) -> bool {
        matches!(self.first[..], [it] if it.fault == BlockFault::Torn)
    }

    /// Whether each part was one packet and nothing else.
    pub fn is_of_packets(&self) -> bool {
        self.packets == self.parts
    }

    /// How much it is, and the first few parts with what is wrong in them.
    pub fn lines(&self) -> Vec<String> {
        const MOST_SHOWN: usize = 5;
        let mut lines = vec![format!(
            "{} that can't be read ({}; packets: {})",
            counted(self.parts, "part"),
            counted(self.bytes, "byte"),
            grouped(self.packets)
        )];
        lines.extend(self.first.iter().take(MOST_SHOWN).map(|it| {
            let (at, bytes) = (it.at, counted(it.bytes, "byte"));
            format!("at byte {at}, {bytes}: {}", it.fault)
        }));
        let more = self.parts.saturating_sub(MOST_SHOWN as u64);
        if more > 0 {
            lines.push(format!("and {}", counted(more, "more part")));
        }
        lines
    }
}
