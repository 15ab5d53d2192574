//! What the runs of a part have around them.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, bail, ensure};
use nix::sys::statvfs::statvfs;
use tempfile::TempDir;
use tscap_host::direct_io;
use tscap_traffic::load::{Pair, Stop, TestBed};

use super::amount::{BETWEEN_PAUSES_S, PAUSE_S};
use super::common::tmpfs::{OwnFolder, own_warm_folder};

/// Free space of a disk over what the largest file takes.
const ROOM: u64 = 2;
/// The file of each run.
const FILE: &str = "out";

/// What ends the frames that captures leave to the system, and where files are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ground {
    /// Frames go on up the stack, where nobody has their address; files are in memory.
    Stack,
    /// A port that only listens: tscap ends the frames, and what others leave is dropped right
    /// behind their taps; files are in memory.
    Tap,
    /// As with the stack, but files are on a disk, in this folder.
    Disk(PathBuf),
    /// The same on a disk with pauses.
    Pauses(PathBuf),
}

/// Where a run's file is.
pub enum Folder {
    Memory(OwnFolder),
    Disk(TempDir),
}

impl Ground {
    /// The part's name before its kinds of frames; the stack's are alone.
    pub fn part(&self) -> Option<&'static str> {
        match self {
            Self::Stack => None,
            Self::Tap => Some("tap"),
            Self::Disk(_) => Some("disk"),
            Self::Pauses(_) => Some("disk-pauses"),
        }
    }

    /// Whether tscap is told that the port only listens.
    pub fn is_tap(&self) -> bool {
        *self == Self::Tap
    }

    /// Whether files are on a disk.
    pub fn is_disk(&self) -> bool {
        matches!(self, Self::Disk(_) | Self::Pauses(_))
    }

    /// For people.
    pub fn conditions(&self) -> String {
        match self {
            Self::Stack => "frames passed on up the stack (nobody has their address); files on a \
                            warm tmpfs"
                .to_owned(),
            Self::Tap => "tap: tscap with --tap; frames of the other programs dropped at tc \
                          ingress, right behind their taps; files on a warm tmpfs"
                .to_owned(),
            Self::Disk(folder) => format!(
                "disk: frames passed on up the stack; a new file each run, in {}",
                folder.display()
            ),
            Self::Pauses(_) => format!(
                "disk-pauses: as disk, in a file system of its own on that disk, whose device \
                 takes nothing for {PAUSE_S} s after each {BETWEEN_PAUSES_S} s"
            ),
        }
    }

    /// A new test bed.
    pub fn bed(&self, stop: &Arc<Stop>) -> Result<TestBed> {
        let bed = TestBed::new(Pair::new()?, Arc::clone(stop))?;
        match self {
            Self::Tap => bed
                .dropping_behind_taps()
                .context("cannot drop frames at tc ingress"),
            _ => Ok(bed),
        }
    }

    /// A folder for files of up to so many bytes, for this thread to drop.
    pub fn folder(&self, bytes: u64) -> Result<Folder> {
        match self {
            Self::Disk(disk) | Self::Pauses(disk) => Ok(Folder::Disk(tempfile::tempdir_in(disk)?)),
            _ => own_warm_folder(bytes).map(Folder::Memory),
        }
    }
}

impl Folder {
    /// The file.
    pub fn file(&self) -> PathBuf {
        match self {
            Self::Memory(folder) => folder.path().join(FILE),
            Self::Disk(folder) => folder.path().join(FILE),
        }
    }
}

/// The folder of a disk that can be written past the page cache and has room for files of up to
/// so many bytes: `asked`, or the first of cargo's target folder, the sources' and /var/tmp.
///
/// # Errors
/// If there is none, with each folder and what it lacks.
pub fn disk(asked: Option<&Path>, bytes: u64) -> Result<PathBuf> {
    let folders = match asked {
        Some(folder) => vec![folder.to_owned()],
        None => {
            let target = env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
            let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target");
            let others = [beside, "/var/tmp".into()];
            target.into_iter().chain(others).collect()
        }
    };
    let mut lacking = Vec::new();
    for folder in folders {
        match fits(&folder, bytes) {
            Ok(()) => return Ok(folder),
            Err(why) => lacking.push(format!("{}: {why:#}", folder.display())),
        }
    }
    bail!("no disk to write to: {}", lacking.join("; "))
}

fn fits(folder: &Path, bytes: u64) -> Result<()> {
    let file = tempfile::tempfile_in(folder)?;
    ensure!(
        direct_io::alignment(&file).is_some(),
        "its file system takes no direct writes"
    );
    let stat = statvfs(folder)?;
    let (free, room) = (stat.blocks_available() * stat.fragment_size(), ROOM * bytes);
    ensure!(
        free > room,
        "{} MiB are free, and twice the largest file takes {} MiB",
        free >> 20,
        room >> 20
    );
    Ok(())
}
