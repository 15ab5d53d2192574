//! What a disk takes alone: a capture's blocks as fast as they can be written, without a
//! capture.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::statfs::{FsType, TMPFS_MAGIC, fstatfs};
use nix::sys::statvfs::statvfs;
use nix::time::{ClockId, clock_gettime};
use serde::Serialize;
use tscap_common::block;

use super::error::LossError;
use tscap_base::text::numbers::size;
use tscap_engine::{Io, Output};
use tscap_host::direct_io::BLOCK;
use tscap_traffic::load::Stop;

/// The kept bytes of a frame in the blocks that are written: with shorter ones no more
/// bytes fit into a second.
const CAPLEN: usize = 1500;
/// The blocks lie in memory about as long as a usual ring, 64 MiB, one lap after the other. As
/// in a ring they can be written direct from where they lie: a lap is a multiple of the
/// disk's blocks and of these.
const RING_BLOCKS: usize = 42 * BLOCK / 4;
/// The file takes at most this share of the free space.
const SHARE_OF_ROOM: u64 = 2;
/// Least length of a file that tells anything, bytes.
const LEAST: u64 = 64 << 20;
/// How often the progress is told.
const TELL_EVERY: Duration = Duration::from_millis(100);
/// A file system in memory that is no tmpfs (statfs(2)).
const RAMFS_MAGIC: FsType = FsType(0x8584_58f6);

/// What a disk took. The time until all of it was on the disk counts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DiskRate {
    /// The folder that was written to.
    pub folder: String,
    /// How: "direct" where the file system can, or "buffered" by way of the page cache.
    pub io: &'static str,
    /// Bytes that were written and then waited for.
    pub bytes: u64,
    /// Of these, past the page cache.
    pub direct_bytes: u64,
    /// Time of writing, s.
    pub write_seconds: f64,
    /// From then until the last byte was on the disk, s.
    pub sync_seconds: f64,
    /// All bytes by all of the time, bytes/s.
    pub bytes_per_s: f64,
    /// CPU time of the thread that wrote, s. What other threads of the kernel do for it is
    /// not in it.
    pub cpu_seconds: f64,
    /// The file reached half of the free space before the time was over.
    pub ended_by_room: bool,
}

/// Why a disk can't be measured.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// Nothing can be written.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The file system can't be written direct.
    #[error("its file system can't be written past the page cache")]
    NotDirect,
    /// Too little room.
    #[error(
        "only {} are free, where a measurement takes {}",
        size(*free),
        size(SHARE_OF_ROOM * LEAST)
    )]
    Full {
        /// Free, bytes.
        free: u64,
    },
}

/// A folder with a file that has no name: it goes with the process, however that ends.
#[derive(Debug)]
pub struct Disk {
    folder: PathBuf,
    on_disk: File,
    output: Output,
    /// Most bytes to write.
    most: u64,
}

impl Disk {
    /// Makes the file, to be written by `io`; `None` if what is written to it stays in
    /// memory.
    ///
    /// # Errors
    /// If it can't be made, or not be written so, or there is too little room.
    pub fn open(folder: &Path, io: Io) -> Result<Option<Self>, DiskError> {
        let file = tempfile::tempfile_in(folder)?;
        // As a capture's.
        fcntl(&file, FcntlArg::F_SETFL(OFlag::O_APPEND)).map_err(io::Error::from)?;
        let kind = fstatfs(&file).map_err(io::Error::from)?.filesystem_type();
        if kind == TMPFS_MAGIC || kind == RAMFS_MAGIC {
            return Ok(None);
        }
        let disk = statvfs(folder).map_err(io::Error::from)?;
        Ok(Some(Self {
            folder: folder.to_owned(),
            on_disk: file.try_clone()?,
            output: Output::regular(file, io).map_err(|error| match error.kind() {
                io::ErrorKind::Unsupported => DiskError::NotDirect,
                _ => error.into(),
            })?,
            most: most(disk.blocks_available() * disk.fragment_size())?,
        }))
    }

    /// Writes for so long, and says in between for how long it has written.
    ///
    /// # Errors
    /// If it was told to end, or a write failed.
    pub fn measure(
        mut self,
        lasting: Duration,
        stop: &Stop,
        mut tell: impl FnMut(Duration),
    ) -> Result<DiskRate, LossError> {
        let ring = Ring::new();
        let output = &mut self.output;
        let io = output.way();
        // A capture at its limit is.
        output.set_behind(true);
        let mut pieces = ring.pieces(output.piece()).cycle();
        let cpu = cpu_time()?;
        let start = Instant::now();
        let mut reported = Duration::ZERO;
        let mut ended_by_room = false;
        while start.elapsed() < lasting
            && let Some(piece) = pieces.next()
        {
            stop.go_on()?;
            if output.length() + piece.len() as u64 > self.most {
                ended_by_room = true;
                break;
            }
            output.write(piece).map_err(|error| error.source)?;
            if start.elapsed() - reported > TELL_EVERY {
                reported = start.elapsed();
                tell(reported);
            }
        }
        output.settle().map_err(|error| error.source)?;
        let write_seconds = start.elapsed().as_secs_f64();
        self.on_disk.sync_data()?;
        let seconds = start.elapsed().as_secs_f64();
        Ok(DiskRate {
            folder: self.folder.display().to_string(),
            io,
            direct_bytes: output.written_direct(),
            bytes: output.length(),
            write_seconds,
            sync_seconds: seconds - write_seconds,
            bytes_per_s: output.length() as f64 / seconds,
            cpu_seconds: (cpu_time()? - cpu).as_secs_f64(),
            ended_by_room,
        })
    }
}

/// How long the file may become where so many bytes are free.
fn most(free: u64) -> Result<u64, DiskError> {
    let most = free / SHARE_OF_ROOM;
    if most < LEAST {
        Err(DiskError::Full { free })
    } else {
        Ok(most)
    }
}

/// Whole blocks, in memory that begins as a ring does. The frames can't be compressed, as
/// some file systems would.
struct Ring {
    memory: Vec<u8>,
    /// Where the blocks begin.
    begin: usize,
}

impl Ring {
    fn new() -> Self {
        let (length, mut random) = (block::block_len(CAPLEN, 0), 1_u64);
        let mut memory = Vec::<u8>::with_capacity(RING_BLOCKS * length + BLOCK);
        let begin = memory.as_ptr().align_offset(BLOCK);
        memory.resize(begin, 0);
        for _ in 0..RING_BLOCKS {
            let end = memory.len() + length;
            let (length, caplen) = (length as u32, CAPLEN as u32);
            for word in [block::EPB_TYPE, length, 0, 0, 0, caplen, caplen] {
                memory.extend_from_slice(&word.to_ne_bytes());
            }
            while memory.len() + size_of::<u32>() < end {
                // A linear congruential generator (Knuth's MMIX); its upper bits are random.
                random = random
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                memory.extend_from_slice(&((random >> 32) as u32).to_ne_bytes());
            }
            memory.extend_from_slice(&length.to_ne_bytes());
        }
        Self { memory, begin }
    }

    /// What the converter writes at once: about so many bytes, piece by piece.
    fn pieces(&self, bytes: usize) -> std::slice::Chunks<'_, u8> {
        let block = block::block_len(CAPLEN, 0);
        self.memory[self.begin..].chunks(bytes / block * block)
    }
}

/// That of this thread.
fn cpu_time() -> io::Result<Duration> {
    Ok(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)?.into())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    /// That of the sources: a temporary one may be in memory.
    fn on_disk() -> tempfile::TempDir {
        tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap()
    }

    #[test]
    fn what_is_written_are_whole_blocks() {
        let ring = Ring::new();
        let bytes = ring.memory.len() - ring.begin;
        assert!(bytes.is_multiple_of(BLOCK) && (62 << 20..64 << 20).contains(&bytes));
        assert!(
            ring.memory[ring.begin..]
                .as_ptr()
                .addr()
                .is_multiple_of(BLOCK)
        );
        let mut count = 0;
        for piece in ring.pieces(512 << 10) {
            assert!(piece.len() <= 512 << 10);
            let mut left = piece;
            while !left.is_empty() {
                let word = |at: usize| u32::from_ne_bytes(left[at..at + 4].try_into().unwrap());
                let length = word(block::LENGTH_OFFSET) as usize;
                assert_eq!(word(block::TYPE_OFFSET), block::EPB_TYPE);
                assert_eq!(word(block::CAPLEN_OFFSET), CAPLEN as u32);
                assert_eq!(word(length - 4), word(block::LENGTH_OFFSET));
                left = &left[length..];
                count += 1;
            }
        }
        assert_eq!(count, RING_BLOCKS);
    }

    #[test]
    fn it_takes_half_of_the_room_or_refuses() {
        assert_eq!(most(1 << 40).unwrap(), 1 << 39);
        assert_eq!(most(2 * LEAST).unwrap(), LEAST);
        let refused = most(100_000_000).unwrap_err().to_string();
        let words = "only 100.0 MB are free, where a measurement takes 134.2 MB";
        assert_eq!(refused, words);
    }

    #[test]
    fn all_that_was_written_and_all_of_the_time_counts() {
        let folder = on_disk();
        let disk = Disk::open(folder.path(), Io::Auto).unwrap().unwrap();
        assert_eq!(
            disk.on_disk.metadata().unwrap().nlink(),
            0,
            "it has no name"
        );
        let mut reported = Vec::new();
        let lasting = Duration::from_millis(250);
        let rate = disk.measure(lasting, &Stop::default(), |at| reported.push(at));
        let rate = rate.unwrap();
        assert!(rate.bytes > 0 && rate.write_seconds >= 0.25, "{rate:?}");
        let seconds = rate.write_seconds + rate.sync_seconds;
        assert!((rate.bytes_per_s * seconds / rate.bytes as f64 - 1.0).abs() < 1e-9);
        assert!(rate.cpu_seconds > 0.0 && rate.cpu_seconds <= seconds * 1.1);
        assert!(!reported.is_empty() && reported.is_sorted(), "{reported:?}");
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
    }

    #[test]
    fn it_ends_by_room_and_by_request() {
        let folder = on_disk();
        let mut disk = Disk::open(folder.path(), Io::Auto).unwrap().unwrap();
        disk.most = 20 << 20;
        let stop = Stop::default();
        let rate = disk.measure(Duration::from_secs(60), &stop, |_| ());
        let rate = rate.unwrap();
        assert!(rate.ended_by_room && (12 << 20..=20 << 20).contains(&rate.bytes));
        stop.ask();
        let disk = Disk::open(folder.path(), Io::Auto).unwrap().unwrap();
        let ended = disk.measure(Duration::from_secs(60), &stop, |_| ());
        assert!(matches!(ended, Err(LossError::Stopped(_))));
    }

    #[test]
    fn memory_is_no_disk() {
        assert!(
            Disk::open(Path::new("/dev/shm"), Io::Auto)
                .unwrap()
                .is_none()
        );
        for other in ["/proc", "/nonexistent", "/dev/null"] {
            assert!(Disk::open(Path::new(other), Io::Auto).is_err(), "{other}");
        }
    }
}
