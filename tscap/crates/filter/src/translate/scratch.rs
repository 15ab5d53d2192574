//! The stack memory of a filter.

use super::{SCRATCH_BYTES, TranslateError};
use crate::classic::SCRATCH_WORDS;

/// Bytes of a program's stack (`MAX_BPF_STACK`).
const STACK: i16 = 512;
/// Where the scratch memory's words of classic BPF begin.
const WORDS: i16 = 24;

const _: () = assert!(SCRATCH_BYTES == WORDS as usize + 4 * SCRATCH_WORDS as usize);

/// The memory, by its offset from the end of the stack.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scratch(i16);

impl Scratch {
    pub fn at(offset: i16) -> Result<Self, TranslateError> {
        let most = -(SCRATCH_BYTES as i16);
        if !(-STACK..=most).contains(&offset) || offset % 8 != 0 {
            return Err(TranslateError::Scratch(offset));
        }
        Ok(Self(offset))
    }

    /// The context, 8 bytes.
    pub fn context(self) -> i16 {
        self.0
    }

    /// The frame's length, 4 bytes.
    pub fn length(self) -> i16 {
        self.0 + 8
    }

    /// A or X while a helper is called, 4 bytes.
    pub fn kept(self) -> i16 {
        self.0 + 12
    }

    /// What a helper has loaded, up to 4 bytes.
    pub fn loaded(self) -> i16 {
        self.0 + 16
    }

    /// The VLAN tag beside the frame, 4 bytes.
    pub fn tag(self) -> i16 {
        self.0 + 20
    }

    /// A word of the scratch memory of classic BPF.
    pub fn word(self, number: u32) -> i16 {
        self.0 + WORDS + 4 * number as i16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_must_be_in_the_stack() {
        for offset in [0, -8, -80, -84, -89, -520, 8] {
            assert!(Scratch::at(offset).is_err(), "{offset}");
        }
        for offset in [-88, -96, -512] {
            assert!(Scratch::at(offset).is_ok(), "{offset}");
        }
    }
}
