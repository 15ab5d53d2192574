//! Bytes that wait to be written, in memory as a disk wants it.

use std::ops::Deref;

use tscap_host::direct_io::BLOCK;
use tscap_host::huge_pages;

/// Bytes that begin at a multiple of [`BLOCK`] in memory. Many are in huge pages: a disk takes
/// each page that is apart as a part of its own.
#[derive(Debug)]
pub(super) struct Waiting {
    /// Where in the output they begin.
    pub at: u64,
    bytes: Vec<u8>,
    /// Where in `bytes` they begin.
    start: usize,
}

impl Waiting {
    /// None, with room for so many.
    pub fn with_capacity(bytes: usize) -> Self {
        let step = match bytes {
            ..huge_pages::BYTES => BLOCK,
            _ => huge_pages::BYTES,
        };
        let mut bytes = Vec::<u8>::with_capacity(bytes + step);
        let start = bytes.as_ptr().align_offset(step);
        huge_pages::prefer(bytes.spare_capacity_mut());
        bytes.resize(start, 0);
        Self {
            at: 0,
            bytes,
            start,
        }
    }

    /// Takes the memory for so many now: none is taken later.
    pub fn reserve(&mut self, bytes: usize) {
        if self.start + bytes > self.bytes.capacity() {
            self.move_to(Self::with_capacity(bytes));
        }
        huge_pages::take(self.bytes.spare_capacity_mut());
    }

    pub fn extend(&mut self, more: &[u8]) {
        let needed = self.len() + more.len();
        if self.start + needed > self.bytes.capacity() {
            self.move_to(Self::with_capacity(needed.next_power_of_two()));
        }
        self.bytes.extend_from_slice(more);
    }

    /// To grow in place would lose the alignment.
    fn move_to(&mut self, mut larger: Self) {
        larger.at = self.at;
        larger.bytes.extend_from_slice(self);
        *self = larger;
    }

    pub fn truncate(&mut self, length: usize) {
        self.bytes.truncate(self.start + length);
    }

    /// None, where the output goes on at `at`.
    pub fn restart(&mut self, at: u64) {
        self.at = at;
        self.truncate(0);
    }

    /// Forgets the first bytes.
    pub fn skip(&mut self, count: usize) {
        self.at += count as u64;
        self.bytes.copy_within(self.start + count.., self.start);
        self.truncate(self.len() - count);
    }
}

impl Default for Waiting {
    fn default() -> Self {
        Self::with_capacity(0)
    }
}

impl Deref for Waiting {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[self.start..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_lie_aligned_however_many() {
        let mut waiting = Waiting::with_capacity(10);
        assert!(waiting.is_empty());
        let (mut expected, mut skipped) = (Vec::new(), 0);
        for round in 0..20u8 {
            let more = vec![round; 777 * usize::from(round)];
            waiting.extend(&more);
            expected.extend(more);
            assert!(waiting.as_ptr().addr().is_multiple_of(BLOCK));
            assert_eq!(*waiting, *expected);
            if round % 3 == 0 {
                skipped += expected.len() / 2;
                waiting.skip(expected.len() / 2);
                expected.drain(..expected.len() / 2);
                assert_eq!(*waiting, *expected);
            }
            assert_eq!(waiting.at, skipped as u64);
        }
        waiting.restart(5);
        assert!(waiting.is_empty());
        assert_eq!(waiting.at, 5);
    }

    #[test]
    fn memory_that_was_reserved_is_enough() {
        let mut waiting = Waiting::with_capacity(10);
        waiting.extend(b"before");
        waiting.at = 7;
        waiting.reserve(huge_pages::BYTES);
        assert_eq!((&*waiting, waiting.at), (&b"before"[..], 7));
        let memory = waiting.as_ptr();
        waiting.extend(&vec![1; huge_pages::BYTES - 6]);
        waiting.reserve(10);
        assert_eq!(waiting.as_ptr(), memory);
        assert_eq!(waiting.len(), huge_pages::BYTES);
    }

    #[test]
    fn many_bytes_lie_in_huge_pages() {
        let mut waiting = Waiting::with_capacity(10);
        let more = vec![7; huge_pages::BYTES / 3];
        for count in 1..9 {
            waiting.extend(&more);
            assert_eq!(waiting.len(), count * more.len());
            let step = match count {
                ..4 => BLOCK,
                _ => huge_pages::BYTES,
            };
            assert!(waiting.as_ptr().addr().is_multiple_of(step), "{count}");
        }
        assert!(waiting.iter().all(|byte| *byte == 7));
    }
}
