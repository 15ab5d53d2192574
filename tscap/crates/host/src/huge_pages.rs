//! Memory in huge pages.

use std::mem::MaybeUninit;

/// Length of a huge page on x86-64, bytes.
pub const BYTES: usize = 2 << 20;
/// Length of any other page, bytes.
const SMALL_BYTES: usize = 4096;

/// Has the kernel take huge pages for those parts of `memory` that are as long and begin at a
/// multiple of that, where it has such pages for whoever asks (`madvise` or `always` in
/// /sys/kernel/mm/transparent_hugepage/enabled). Elsewhere nothing happens.
pub fn prefer<T>(memory: &mut [MaybeUninit<T>]) {
    // A kernel without huge pages refuses it.
    advise(memory, BYTES, libc::MADV_HUGEPAGE);
}

/// The same, and takes the memory now: who writes there first waits for no page to be cleared,
/// which costs more than most of what is done with it (MADV_POPULATE_WRITE, Linux 5.14).
pub fn take<T>(memory: &mut [MaybeUninit<T>]) {
    prefer(memory);
    // Where there is not so much, that shows when it is written to.
    advise(memory, SMALL_BYTES, libc::MADV_POPULATE_WRITE);
}

/// Gives an advice on the whole pages of this length in `memory`.
fn advise<T>(memory: &mut [MaybeUninit<T>], page: usize, advice: libc::c_int) {
    let bytes = size_of_val(memory);
    let start = memory.as_mut_ptr().cast::<u8>();
    let begin = start.align_offset(page).min(bytes);
    let length = (bytes - begin) / page * page;
    if length == 0 {
        return;
    }
    // SAFETY: the range is part of `memory`, which is borrowed as a whole; both advices change
    // which pages hold it and when the kernel takes them, not what they hold.
    unsafe { libc::madvise(start.add(begin).cast(), length, advice) };
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A field of the mapping in which `address` is, by /proc/self/smaps.
    fn field(address: usize, name: &str) -> String {
        let smaps = fs::read_to_string("/proc/self/smaps").unwrap();
        let mut is_there = false;
        for line in smaps.lines() {
            let range = line.split(' ').next().and_then(|it| it.split_once('-'));
            let ends = range.map(|(from, to)| [from, to].map(|it| usize::from_str_radix(it, 16)));
            if let Some([Ok(from), Ok(to)]) = ends {
                is_there = (from..to).contains(&address);
            }
            if is_there && let Some(value) = line.strip_prefix(name) {
                return format!("{value} ");
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
        assert!(!field(address, "VmFlags:").contains(" hg "));
        prefer(memory.spare_capacity_mut());
        assert!(
            field(address, "VmFlags:").contains(" hg "),
            "{}",
            field(address, "VmFlags:")
        );
        // None fits.
        let mut small = Vec::<u8>::with_capacity(BYTES / 2);
        prefer(small.spare_capacity_mut());
        prefer::<u8>(&mut []);
    }
    #[test]
    fn memory_is_taken_at_once() {
        let mut memory = Vec::<u64>::with_capacity(5 << 20);
        let address = memory.as_ptr().addr() + BYTES;
        let kib = || -> u64 {
            let resident = field(address, "Rss:");
            resident.trim().trim_end_matches(" kB").parse().unwrap()
        };
        let page_kib = BYTES as u64 >> 10;
        assert!(kib() <= page_kib, "{}", kib());
        take(memory.spare_capacity_mut());
        // What is before the first huge page and behind the last one may be a mapping of its own.
        assert!(kib() >= (40 << 10) - 2 * page_kib, "{}", kib());
    }
}
