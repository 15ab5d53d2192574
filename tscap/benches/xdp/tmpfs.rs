//! Files in memory, so that no disk is measured.

use std::fs::{self, File};
use std::io::{self, Read as _};

use anyhow::{Context, Result, ensure};
use nix::sys::statvfs::statvfs;
use tempfile::TempDir;

/// Where a tmpfs is mounted on any Linux.
const TMPFS: &str = "/dev/shm";

/// A folder in memory in which a file of `bytes` has been written and removed:
/// fresh memory is several times slower than recycled pages. Removed on drop.
pub fn warm_folder(bytes: u64) -> Result<TempDir> {
    let stat = statvfs(TMPFS).with_context(|| format!("no tmpfs at {TMPFS}"))?;
    let free = stat.blocks_available() * stat.fragment_size();
    ensure!(
        free > bytes + bytes / 4,
        "{TMPFS} has {} MiB free, a file needs {} MiB",
        free >> 20,
        bytes >> 20
    );
    let folder = tempfile::tempdir_in(TMPFS)?;
    let path = folder.path().join("warm");
    io::copy(&mut io::repeat(1).take(bytes), &mut File::create(&path)?)?;
    fs::remove_file(&path)?;
    Ok(folder)
}
