//! How much of a file the page cache holds, and writing that out and giving it back.

use std::fs::File;
use std::io;
use std::num::NonZeroUsize;
use std::ops;
use std::os::fd::AsRawFd as _;
use std::ptr::NonNull;

use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};
use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};
use nix::unistd::{SysconfVar, sysconf};

/// `__NR_cachestat` (include/uapi/asm-generic/unistd.h), the same on every architecture.
const SYS_CACHESTAT: libc::c_long = 451;

/// `struct cachestat_range` (include/uapi/linux/mman.h).
#[repr(C)]
struct Range {
    offset: u64,
    /// 0: to the end of the file.
    length: u64,
}

/// `struct cachestat` (include/uapi/linux/mman.h), in pages.
#[repr(C)]
#[derive(Default)]
struct Statistics {
    cached: u64,
    dirty: u64,
    writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

const _: () = assert!(size_of::<Range>() == 16);
const _: () = assert!(size_of::<Statistics>() == 40);

/// Has the page cache give up the pages of these bytes, which are on the disk.
pub fn give_back(file: &File, bytes: ops::Range<u64>) {
    // A hint: what can't be given up stays.
    if let Ok((from, count)) = offsets(&bytes) {
        let _ = posix_fadvise(file, from, count, PosixFadviseAdvice::POSIX_FADV_DONTNEED);
    }
}

/// Waits until the disk has these bytes of a file, which may be found there only once its length
/// is (fdatasync(2)).
///
/// # Errors
/// If the disk did not take them, or others since the file was opened, of which the file's
/// description is told once (errseq_t, Documentation/core-api/errseq.rst).
pub fn write_out(file: &File, bytes: ops::Range<u64>) -> io::Result<()> {
    let (from, count) = offsets(&bytes)?;
    let how = libc::SYNC_FILE_RANGE_WAIT_BEFORE
        | libc::SYNC_FILE_RANGE_WRITE
        | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    // SAFETY: numbers and an open descriptor; no memory is given to the kernel.
    match unsafe { libc::sync_file_range(file.as_raw_fd(), from, count, how) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Where the bytes begin, and how many they are.
fn offsets(bytes: &ops::Range<u64>) -> io::Result<(i64, i64)> {
    let [from, count] = [bytes.start, bytes.end - bytes.start].map(i64::try_from);
    Ok((
        from.map_err(io::Error::other)?,
        count.map_err(io::Error::other)?,
    ))
}

/// Bytes of the pages that the page cache holds of a file: a multiple of the page size.
///
/// The kernel counts them from Linux 6.5 on (cachestat(2)); before, the file is mapped and
/// each page asked for (mincore(2)), which tells it of files only that the caller owns or may
/// write.
///
/// # Errors
/// If neither system call is available, or the file can't be mapped.
pub fn held_of(file: &File) -> io::Result<u64> {
    let pages = match counted(file) {
        Err(error) if is_unknown(&error) => looked_up(file)?,
        counted => counted?,
    };
    Ok(pages * page_bytes()?)
}

/// ENOSYS before Linux 6.5; EPERM where a filter of system calls does not know it.
fn is_unknown(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM))
}

fn counted(file: &File) -> io::Result<u64> {
    let range = Range {
        offset: 0,
        length: 0,
    };
    let mut found = Statistics::default();
    // SAFETY: `range` is read and `found` written, each a live structure of the length that
    // the kernel has for it; the descriptor is open.
    let result = unsafe {
        libc::syscall(
            SYS_CACHESTAT,
            file.as_raw_fd(),
            &raw const range,
            &raw mut found,
            0,
        )
    };
    match result {
        0 => Ok(found.cached),
        _ => Err(io::Error::last_os_error()),
    }
}

fn looked_up(file: &File) -> io::Result<u64> {
    let length = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
    let Some(mapped) = NonZeroUsize::new(length) else {
        return Ok(0);
    };
    // SAFETY: a new mapping, whose place the kernel chooses. Nothing is read through it: the
    // file may become shorter meanwhile.
    let at = unsafe {
        let (prot, flags) = (ProtFlags::PROT_READ, MapFlags::MAP_SHARED);
        mmap(None, mapped, prot, flags, file, 0)?
    };
    let pages = held(at, length);
    // SAFETY: the mapping made above, which nobody else knows.
    unsafe { munmap(at, length)? };
    pages
}

/// Pages of a mapping that are in memory.
fn held(at: NonNull<libc::c_void>, length: usize) -> io::Result<u64> {
    let page = usize::try_from(page_bytes()?).map_err(io::Error::other)?;
    let mut pages = vec![0_u8; length.div_ceil(page)];
    // SAFETY: `at` is a mapping of `length` bytes, and `pages` has a byte for each of its pages.
    let result = unsafe { libc::mincore(at.as_ptr(), length, pages.as_mut_ptr()) };
    match result {
        // Only the lowest bit has a meaning.
        0 => Ok(pages.iter().map(|page| u64::from(page & 1)).sum()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn page_bytes() -> io::Result<u64> {
    let bytes = sysconf(SysconfVar::PAGE_SIZE)?;
    let bytes = bytes.and_then(|bytes| u64::try_from(bytes).ok());
    bytes.ok_or_else(|| io::Error::other("the kernel names no page size"))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    /// Somewhat more than 20 pages, which nothing has evicted yet.
    const BYTES: usize = 20 * 4096 + 1;

    #[test]
    fn what_was_just_written_is_held() {
        let mut file = tempfile::tempfile().unwrap();
        assert_eq!(held_of(&file).unwrap(), 0);
        file.write_all(&[7; BYTES]).unwrap();
        let page = page_bytes().unwrap();
        let whole = (BYTES as u64).next_multiple_of(page);
        assert_eq!(held_of(&file).unwrap(), whole);
        assert_eq!(looked_up(&file).unwrap() * page, whole);
    }

    #[test]
    fn what_was_written_past_it_is_not_held() {
        use crate::direct_io::{self, BLOCK, WriteMode};
        let mut file = tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        if direct_io::alignment(&file).is_none() {
            println!("no direct writes here");
            return;
        }
        direct_io::set(&file, WriteMode::Direct).unwrap();
        let memory = vec![7; 3 * BLOCK];
        let begin = memory.as_ptr().align_offset(BLOCK);
        file.write_all(&memory[begin..begin + 2 * BLOCK]).unwrap();
        assert_eq!(held_of(&file).unwrap(), 0);
        assert_eq!(looked_up(&file).unwrap(), 0);
    }

    #[test]
    fn what_is_given_back_is_on_the_disk_and_not_held() {
        let mut file = tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        file.write_all(&[7; BYTES]).unwrap();
        write_out(&file, 0..BYTES as u64).unwrap();
        give_back(&file, 0..8 << 20);
        if crate::direct_io::alignment(&file).is_some() {
            // A disk: what is in memory anyway can't be given back.
            assert_eq!(held_of(&file).unwrap(), 0);
        }
        let mut read = Vec::new();
        io::Seek::rewind(&mut file).unwrap();
        io::Read::read_to_end(&mut file, &mut read).unwrap();
        assert!(read == [7; BYTES]);
    }

    #[test]
    fn only_a_missing_system_call_is_made_up_for() {
        assert!(is_unknown(&io::Error::from_raw_os_error(libc::ENOSYS)));
        assert!(!is_unknown(&io::Error::from_raw_os_error(libc::EBADF)));
    }
}
