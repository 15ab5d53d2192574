//! Copies a frame's bytes into its record.
//!
//! Word by word where the verifier can follow and the bytes lie in one piece, else by
//! the hook's helper.

use core::hint::black_box;

use crate::frame::Frame;

/// Bytes copied at once.
pub const CHUNK: u64 = 32;

/// Copies the first `len` bytes of the frame to `to`; false if the kernel refuses.
///
/// # Safety
/// `to` must have room for `len` bytes.
#[inline(always)]
pub unsafe fn copy<F: Frame>(frame: F, to: *mut u8, len: u64) -> bool {
    // Opaque, or LLVM compares with what `len` is the least of, instead of what the
    // verifier knows the bounds of.
    let len = black_box(len);
    // Opaque again behind the comparison: LLVM must not conclude from it how often the loop
    // runs, and the verifier of 6.1 does not know a copy that was laid on the stack before.
    unsafe {
        F::MOST_BY_WORDS > 0
            && len <= F::MOST_BY_WORDS
            && copy_first_buffer(frame, to, black_box(len))
            || frame.load(to, len as u32)
    }
}

/// Copies what lies in the first buffer of the frame; false if that is not all.
#[inline(always)]
unsafe fn copy_first_buffer<F: Frame>(frame: F, to: *mut u8, len: u64) -> bool {
    unsafe {
        let (start, end) = frame.first_buffer();
        let (mut done, mut left) = (0, len);
        // Counted down, and compared with a constant: of two variables the verifier of
        // 6.1 can't tell which is the greater. What is done is compared too, for verifiers
        // that have lost the bounds of what is left.
        while left >= CHUNK && done < F::MOST_BY_WORDS {
            if start + done + CHUNK > end {
                return false;
            }
            put::<4>(start + done, to.add(done as usize));
            done += CHUNK;
            left -= CHUNK;
        }
        // The rest lies over bytes that are there already. The length is opaque once more: the
        // verifier has to see it compared, of which LLVM can know the outcome by the loop.
        match black_box(len) {
            len @ CHUNK.. => left == 0 || copy_last::<4>(start, end, to, len),
            len @ 16.. => copy_first::<2>(start, end, to) && copy_last::<2>(start, end, to, len),
            len @ 8.. => copy_first::<1>(start, end, to) && copy_last::<1>(start, end, to, len),
            // Shorter than any frame that is recorded.
            _ => false,
        }
    }
}

/// Copies the first `WORDS` words of the frame.
#[inline(always)]
unsafe fn copy_first<const WORDS: usize>(start: u64, end: u64, to: *mut u8) -> bool {
    if start + bytes::<WORDS>() > end {
        return false;
    }
    unsafe { put::<WORDS>(start, to) };
    true
}

/// Copies the last `WORDS` words of the `len` bytes.
#[inline(always)]
unsafe fn copy_last<const WORDS: usize>(start: u64, end: u64, to: *mut u8, len: u64) -> bool {
    // Opaque, or LLVM makes `start + len` of the sum below, which tells the verifier
    // nothing of the bytes before it.
    let at = black_box(len - bytes::<WORDS>());
    if start + at + bytes::<WORDS>() > end {
        return false;
    }
    unsafe { put::<WORDS>(start + at, to.add(at as usize)) };
    true
}

/// Copies `WORDS` words, aligned or not, from a place of the frame.
#[inline(always)]
unsafe fn put<const WORDS: usize>(from: u64, to: *mut u8) {
    let (from, to) = (from as *const u64, to.cast::<u64>());
    let mut word = 0;
    while word < WORDS {
        unsafe {
            to.add(word)
                .write_unaligned(from.add(word).read_unaligned())
        };
        word += 1;
    }
}

const fn bytes<const WORDS: usize>() -> u64 {
    (WORDS * size_of::<u64>()) as u64
}
