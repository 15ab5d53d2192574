//! A page in memory that several processes share.
//!
//! All words are atomics, so that a page that is written during a read is a torn copy at the
//! worst, which the sequence shows. Its file has its whole length before anybody maps it, and is
//! never made shorter.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering, fence};

use crate::layout::{COPIES_AT, COPY_WORDS, HEADER_WORDS, LATEST_WORDS, SEQUENCE_AT, SIZE};

const WORDS: usize = SIZE / 8;
const SEQUENCE: usize = SEQUENCE_AT / 8;
const COPIES: usize = COPIES_AT / 8;

/// The memory, until it is dropped.
#[derive(Debug)]
struct Memory(NonNull<AtomicU64>);

// SAFETY: the memory is the process's until the last user is dropped, and holds atomics only.
unsafe impl Send for Memory {}
// SAFETY: as above: atomics may be used by several threads.
unsafe impl Sync for Memory {}

impl Memory {
    fn map(file: &File, protection: i32) -> io::Result<Self> {
        if file.metadata()?.len() != SIZE as u64 {
            let what = "the file is not as long as a clock's page";
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        // SAFETY: a new mapping at a place that the kernel chooses touches no memory that is in
        // use; the file is SIZE bytes long.
        let place = unsafe {
            libc::mmap(
                ptr::null_mut(),
                SIZE,
                protection,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if place == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let place = NonNull::new(place.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self(place))
    }

    #[inline]
    fn words(&self) -> &[AtomicU64; WORDS] {
        // SAFETY: the mapping has WORDS words, is aligned to a page, and lasts as long as this.
        // Whoever else writes it does so by atomics, or is another process.
        unsafe { self.0.cast().as_ref() }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: it is the mapping that was made with this length, and nobody has a reference
        // to it any more. It can't fail; if it did, the memory would stay.
        unsafe { libc::munmap(self.0.as_ptr().cast(), SIZE) };
    }
}

/// Tries to read a copy that is not changed meanwhile.
const TRIES: usize = 1_000;

/// A page to read.
#[derive(Debug)]
pub struct Mapping(Memory);

impl Mapping {
    /// Maps a file.
    ///
    /// # Errors
    /// If it is not exactly as long as a page, or can't be mapped.
    pub fn of(file: &File) -> io::Result<Self> {
        Memory::map(file, libc::PROT_READ).map(Self)
    }

    /// The header, which does not change.
    pub fn header(&self) -> [u64; HEADER_WORDS] {
        let words = self.0.words();
        std::array::from_fn(|at| u64::from_le(words[at].load(Ordering::Relaxed)))
    }

    /// The first words of the state, and what `beside` gives while they are valid. `None` if the
    /// page was changed at each try.
    #[inline]
    pub fn latest<T>(&self, beside: impl Fn() -> T) -> Option<([u64; LATEST_WORDS], T)> {
        self.read(beside)
    }

    /// The same with the whole state.
    pub fn whole<T>(&self, beside: impl Fn() -> T) -> Option<([u64; COPY_WORDS], T)> {
        self.read(beside)
    }

    #[inline]
    fn read<const N: usize, T>(&self, beside: impl Fn() -> T) -> Option<([u64; N], T)> {
        let words = self.0.words();
        for _ in 0..TRIES {
            // Acquire: the words are read after it.
            let sequence = words[SEQUENCE].load(Ordering::Acquire);
            let is_second = u64::from_le(sequence) & 1 == 1;
            let from = if is_second {
                COPIES + COPY_WORDS
            } else {
                COPIES
            };
            let copy = &words[from..from + N];
            let copy: [u64; N] =
                std::array::from_fn(|at| u64::from_le(copy[at].load(Ordering::Relaxed)));
            let beside = beside();
            // The words are read before the sequence is read again: whoever has read one of a
            // later change sees the sequence that was stored before it.
            fence(Ordering::Acquire);
            if words[SEQUENCE].load(Ordering::Relaxed) == sequence {
                return Some((copy, beside));
            }
            std::hint::spin_loop();
        }
        None
    }
}

/// A page to write. There must be one writer of a page only.
#[derive(Debug)]
pub struct WritableMapping(Memory);

impl WritableMapping {
    /// Maps a file.
    ///
    /// # Errors
    /// If it is not exactly as long as a page, or can't be mapped.
    pub fn of(file: &File) -> io::Result<Self> {
        Memory::map(file, libc::PROT_READ | libc::PROT_WRITE).map(Self)
    }

    /// Changes the state: one copy after the other.
    pub fn write(&mut self, state: &[u64; COPY_WORDS]) {
        let words = self.0.words();
        let sequence = u64::from_le(words[SEQUENCE].load(Ordering::Relaxed)) & !1;
        for (change, from) in [(1, COPIES), (2, COPIES + COPY_WORDS)] {
            // Release: the copy that readers are sent to by it is whole.
            let next = sequence.wrapping_add(change);
            words[SEQUENCE].store(next.to_le(), Ordering::Release);
            // Whoever reads one of the words below sees this sequence as well.
            fence(Ordering::Release);
            for (word, value) in words[from..].iter().zip(state) {
                word.store(value.to_le(), Ordering::Relaxed);
            }
        }
        // Until the next change, readers take the first copy: the sequence is even.
    }
}

#[cfg(test)]
mod tests;
