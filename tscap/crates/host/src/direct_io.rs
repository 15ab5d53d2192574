//! Writing a file past the page cache (O_DIRECT).

use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::statfs::{FsType, TMPFS_MAGIC, fstatfs};

/// Offsets and lengths of direct writes are multiples of this, bytes: the page size, of
/// which the block sizes of disks and file systems are divisors.
pub const BLOCK: usize = 4096;

/// ramfs' number (include/uapi/linux/magic.h), which nix lacks.
const RAMFS_MAGIC: FsType = FsType(0x8584_58f6);

/// Of a file that can be written direct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alignment {
    /// The bytes' addresses are multiples of this, a power of two up to [`BLOCK`].
    pub memory: usize,
}

/// A block in memory as a disk wants it.
#[repr(align(4096))]
struct Aligned([u8; BLOCK]);

/// What direct writes to the empty file need; `None` if it can't be written so.
///
/// The kernel says it where it can (statx, STATX_DIOALIGN, kernel 6.1; by file system);
/// elsewhere a block is written and taken off again.
pub fn alignment(file: &File) -> Option<Alignment> {
    if is_in_memory(file)? {
        // tmpfs takes O_DIRECT, and ignores it.
        return None;
    }
    match stated(file) {
        Some((memory, offset)) => {
            let fits = [memory, offset].map(|it| it.is_power_of_two() && it <= BLOCK);
            fits.iter()
                .all(|fits| *fits)
                .then_some(Alignment { memory })
        }
        None => tried(file).ok().map(|()| Alignment { memory: BLOCK }),
    }
}

/// Whether there is no disk behind the file; `None` if that can't be found out.
pub fn is_in_memory(file: &File) -> Option<bool> {
    let kind = fstatfs(file).ok()?.filesystem_type();
    Some([TMPFS_MAGIC, RAMFS_MAGIC].contains(&kind))
}

/// The alignments of memory and offset that the file system states; zeros if it has no
/// direct writes. `None` if it does not say.
fn stated(file: &File) -> Option<(usize, usize)> {
    let mut found = MaybeUninit::<libc::statx>::zeroed();
    // SAFETY: the path is an empty C string, which with AT_EMPTY_PATH stands for the open
    // descriptor; `found` has room for what the kernel writes.
    let result = unsafe {
        libc::statx(
            file.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH,
            libc::STATX_DIOALIGN,
            found.as_mut_ptr(),
        )
    };
    // SAFETY: zeroed before, and a structure of integers: any bytes are valid.
    let found = unsafe { found.assume_init() };
    let is_stated = result == 0 && found.stx_mask & libc::STATX_DIOALIGN != 0;
    is_stated.then_some((
        found.stx_dio_mem_align as usize,
        found.stx_dio_offset_align as usize,
    ))
}

fn tried(file: &File) -> io::Result<()> {
    set(file, WriteMode::Direct)?;
    let block = Box::new(Aligned([0; BLOCK]));
    let written = file.write_all_at(&block.0, 0);
    let emptied = file.set_len(0);
    set(file, WriteMode::Appended)?;
    written.and(emptied)
}

/// How an open file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteMode {
    /// Past the page cache, at any offset.
    Direct,
    /// By way of the page cache, at the file's end.
    Appended,
}

/// Sets how the open file is written, by whatever descriptor of it.
///
/// # Errors
/// If the file system has no direct writes.
pub fn set(file: &File, way: WriteMode) -> io::Result<()> {
    let flags = OFlag::from_bits_retain(fcntl(file, FcntlArg::F_GETFL)?);
    let flags = flags.difference(OFlag::O_DIRECT | OFlag::O_APPEND)
        | match way {
            WriteMode::Direct => OFlag::O_DIRECT,
            WriteMode::Appended => OFlag::O_APPEND,
        };
    fcntl(file, FcntlArg::F_SETFL(flags))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn what_is_in_memory_is_not_written_direct() {
        let Ok(folder) = tempfile::tempdir_in("/dev/shm") else {
            return;
        };
        let file = File::create(folder.path().join("file")).unwrap();
        if fstatfs(&file).unwrap().filesystem_type() == TMPFS_MAGIC {
            assert_eq!(alignment(&file), None);
        }
    }

    #[test]
    fn a_file_is_written_by_turns_in_both_ways() {
        let mut file = tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let Some(Alignment { memory }) = alignment(&file) else {
            println!("no direct writes here");
            return;
        };
        assert!(memory <= BLOCK);
        assert_eq!(file.metadata().unwrap().len(), 0);
        set(&file, WriteMode::Direct).unwrap();
        let block = Box::new(Aligned([7; BLOCK]));
        file.write_all_at(&block.0, 0).unwrap();
        let unaligned = file.write_all_at(&block.0[..100], 0);
        assert_eq!(unaligned.unwrap_err().raw_os_error(), Some(libc::EINVAL));
        set(&file, WriteMode::Appended).unwrap();
        file.write_all(b"end").unwrap();
        assert_eq!(file.metadata().unwrap().len(), BLOCK as u64 + 3);
    }

    #[test]
    fn direct_writes_are_tried_where_nobody_says() {
        let file = tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        assert_eq!(tried(&file).is_ok(), alignment(&file).is_some());
        assert_eq!(file.metadata().unwrap().len(), 0);
        let flags = fcntl(&file, FcntlArg::F_GETFL).unwrap();
        assert!(!OFlag::from_bits_retain(flags).contains(OFlag::O_DIRECT));
    }
}
