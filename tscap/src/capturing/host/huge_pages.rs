//! Memory in huge pages.

use std::mem::MaybeUninit;

/// Length of a huge page on x86-64, bytes.
pub const BYTES: usize = 2 << 20;

/// Has the kernel take huge pages for those parts of `memory` that are as long and begin at a
/// multiple of that, where it has such pages for whoever asks (`madvise` or `always` in
/// /sys/kernel/mm/transparent_hugepage/enabled). Elsewhere nothing happens.
pub fn prefer<T>(memory: &mut [MaybeUninit<T>]) {
    let bytes = size_of_val(memory);
    let start = memory.as_mut_ptr().cast::<u8>();
    let begin = start.align_offset(BYTES).min(bytes);
    let length = (bytes - begin) / BYTES * BYTES;
    if length == 0 {
        return;
    }
    // SAFETY: the range is part of `memory`, which is borrowed as a whole; the advice changes
    // which pages hold it, not what they hold. A kernel without huge pages refuses it.
    unsafe { libc::madvise(start.add(begin).cast(), length, libc::MADV_HUGEPAGE) };
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// The flags of the mapping in which `address` is, by /proc/self/smaps.
    fn flags(address: usize) -> String {
        let smaps = fs::read_to_string("/proc/self/smaps").unwrap();
        let mut is_there = false;
        for line in smaps.lines() {
            let range = line.split(' ').next().and_then(|it| it.split_once('-'));
            let ends = range.map(|(from, to)| [from, to].map(|it| usize::from_str_radix(it, 16)));
            if let Some([Ok(from), Ok(to)]) = ends {
                is_there = (from..to).contains(&address);
            }
            if is_there && let Some(flags) = line.strip_prefix("VmFlags:") {
                return format!("{flags} ");
            }
        }
        panic!("{address:x} is not mapped")
    }

    #[test]
    fn whole_huge_pages_are_asked_for() {
        if !fs::exists("/sys/kernel/mm/transparent_hugepage").unwrap() {
            println!("this kernel has no transparent huge pages");
            return;
        }
        // So much is a mapping of its own (M_MMAP_THRESHOLD, mallopt(3)).
        let mut memory = Vec::<u8>::with_capacity(40 << 20);
        let begin = memory.as_ptr().align_offset(BYTES);
        let address = memory.as_ptr().addr() + begin;
        assert!(!flags(address).contains(" hg "));
        prefer(memory.spare_capacity_mut());
        assert!(flags(address).contains(" hg "), "{}", flags(address));
        // None fits.
        let mut small = Vec::<u8>::with_capacity(BYTES / 2);
        prefer(small.spare_capacity_mut());
        prefer::<u8>(&mut []);
    }
}
