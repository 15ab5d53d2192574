//! Files in memory, so that no disk is measured.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

use anyhow::{Context, Result, ensure};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use nix::sys::statvfs::statvfs;
use tempfile::TempDir;
use tscap_host::system;

/// Where a tmpfs is mounted on any Linux.
const TMPFS: &str = "/dev/shm";

/// A folder in memory in which a file of `bytes` has been written and removed.
/// Removed on drop.
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
    warm(folder.path(), bytes)?;
    Ok(folder)
}

/// The same on a tmpfs of its own with room for one such file, which only this
/// thread and what it starts can see; for this thread to drop. Needs root.
pub fn own_warm_folder(bytes: u64) -> Result<OwnFolder> {
    let (room, free) = (bytes + bytes / 16, system::memory_available_bytes()?);
    ensure!(
        free > room + bytes / 4,
        "{} MiB of memory are free, a file needs {} MiB",
        free >> 20,
        room >> 20
    );
    let folder = tempfile::tempdir()?;
    own_mounts()?;
    let (name, size) = (Some("tscap-bench"), format!("size={room}"));
    let (flags, size) = (MsFlags::empty(), Some(size.as_str()));
    mount(name, folder.path(), Some("tmpfs"), flags, size).context("cannot mount a tmpfs")?;
    let folder = OwnFolder(folder);
    warm(folder.path(), bytes)?;
    Ok(folder)
}

/// What this thread mounts from now on only it can see, and what it starts: threads too. Needs
/// root.
pub fn own_mounts() -> Result<()> {
    unshare(CloneFlags::CLONE_NEWNS).context("no mount namespace of our own")?;
    let (none, private) = (None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE);
    mount(none, "/", none, private, none).context("cannot make mounts private")
}

/// A folder on which a tmpfs is mounted.
pub struct OwnFolder(TempDir);

impl OwnFolder {
    /// Where it is.
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for OwnFolder {
    fn drop(&mut self) {
        // What is mounted on can't be removed; a file may still be open.
        let _ = umount2(self.path(), MntFlags::MNT_DETACH);
    }
}

/// Fresh memory is several times slower than recycled pages.
fn warm(folder: &Path, bytes: u64) -> Result<()> {
    let path = folder.join("warm");
    io::copy(&mut io::repeat(1).take(bytes), &mut File::create(&path)?)?;
    Ok(fs::remove_file(&path)?)
}
