//! A file that is written past the page cache: whole blocks of the disk, straight from a ring
//! while its frames lie aligned, else from an aligned buffer.
//!
//! The thread that takes frames out of the rings writes too, and waits meanwhile; the rings
//! are the buffer. A write holds so much that its time is the disk's: pieces of 8 MiB are written
//! as fast as by several writes at a time (io_uring, threads), for half of the CPU time.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::time::Instant;

use super::extent::Torn;
use super::pace::Pace;
use super::{Io, Output};
use crate::WriteWatch;
use tscap_clock::MonoNs;
use tscap_file::pcapng::LEAST_PADDING;
use tscap_host::direct_io::{self, Alignment, BLOCK, WriteMode};

/// Blocks are written in pieces of at most this many bytes: a disk takes several requests of a
/// piece at a time, and nothing between two pieces.
pub(super) const PIECE_BYTES: usize = 8 << 20;
/// The shortest ones, bytes.
const LEAST_PIECE_BYTES: usize = 1 << 20;
/// A piece is this part of a ring, which has no room for others while the piece is written.
const PIECES_OF_RING: usize = 8;
/// Less than this waits, bytes: a disk takes some thousand writes a second.
const WORTHWHILE: usize = 256 * 1024;
/// It waits no longer than this and goes by way of the page cache then, ns: 100 ms. Traffic of
/// less than 2.6 MB/s is written so altogether.
const LONGEST_WAIT_NS: u64 = 100_000_000;

/// Writes are direct again when the disk has to get no more than this of what went by way of the
/// page cache, bytes.
const MOST_LEFT: u64 = 16 << 20;

/// Length of the pieces out of rings of `ring_bytes`, bytes.
pub(super) fn piece_of(ring_bytes: usize) -> usize {
    (ring_bytes / PIECES_OF_RING).clamp(LEAST_PIECE_BYTES, PIECE_BYTES)
}

/// What is known of it.
#[derive(Debug)]
pub(super) struct Direct {
    alignment: Alignment,
    /// How the file is written now.
    way: WriteMode,
    /// The block that begins before the bytes that wait.
    pub torn: Option<Torn>,
    /// Frames pile up in the rings.
    pub is_behind: bool,
    /// Blocks go by way of the page cache, because the rings would not bear the disk's pauses.
    pub spills: bool,
    pace: Pace,
    /// How much was written, and since when it has not been more.
    latest: (u64, MonoNs),
}

impl Direct {
    pub fn new(alignment: Alignment) -> Self {
        Self {
            alignment,
            way: WriteMode::Appended,
            torn: None,
            is_behind: false,
            spills: false,
            pace: Pace::default(),
            latest: (0, MonoNs(0)),
        }
    }

    /// How many bytes to add to an output of `end` bytes so that what lies at `address` can
    /// follow.
    pub fn padding(&self, end: u64, address: usize) -> usize {
        let step = self.alignment.memory;
        let missing = address.wrapping_sub(end as usize) & (step - 1);
        match missing {
            0 | LEAST_PADDING.. => missing,
            _ => missing + step.max(LEAST_PADDING),
        }
    }

    /// Whether bytes have been waiting for too long by `now`: of `length` so many are `written`.
    pub fn is_overdue(&mut self, written: u64, length: u64, now: MonoNs) -> bool {
        if written == length || written != self.latest.0 {
            self.latest = (written, now);
        }
        now.0.saturating_sub(self.latest.1.0) >= LONGEST_WAIT_NS
    }

    /// The page cache has taken a second for a MiB, and the disk a millisecond.
    #[cfg(test)]
    pub fn slow_page_cache(&mut self) {
        use std::time::Duration;
        for (way, time) in [(WriteMode::Direct, 1), (WriteMode::Appended, 1_000)] {
            for _ in 0..100 {
                self.pace.wrote(way, 1 << 20, Duration::from_millis(time));
            }
        }
    }

    fn is_aligned(&self, bytes: &[u8]) -> bool {
        bytes.as_ptr().addr().is_multiple_of(self.alignment.memory)
    }
}

impl Output {
    /// Writes as many of the bytes that wait and of `blocks`, which follow them, as are whole
    /// blocks of the disk; fewer than are worth it wait.
    pub(super) fn write_direct(&mut self, blocks: &[u8]) -> io::Result<()> {
        let total = self.waiting.len() + blocks.len();
        if total < WORTHWHILE {
            self.waiting.extend(blocks);
            return Ok(());
        }
        let way = match self.io {
            Io::Auto => self.next_way(blocks.len()),
            Io::Direct | Io::Buffered => WriteMode::Direct,
        };
        if way == WriteMode::Appended {
            return self.append_direct(blocks);
        }
        let begin = self.length - blocks.len() as u64;
        let cut = self.waiting.at + whole(total) as u64;
        let torn = self.extent(begin, blocks).torn_by(cut);
        self.turn(WriteMode::Direct)?;
        let before = self.waiting.len();
        let begun = Instant::now();
        let written = self.put_whole(blocks);
        if let Err(error) = written {
            // They are counted as `blocks`.
            self.waiting.truncate(before.min(self.waiting.len()));
            return match error.raw_os_error() {
                // As at a limit of the file's size that is no multiple of a block.
                Some(libc::EINVAL) => self.append_direct(blocks),
                _ => Err(error),
            };
        }
        let now = Instant::now();
        let time = now.duration_since(begun);
        if let Some(direct) = &mut self.direct {
            direct.torn = torn;
            direct.pace.wrote(WriteMode::Direct, total, time);
        }
        if let Some(bearing) = &self.bearing {
            bearing.pauses.took(time, now);
        }
        Ok(())
    }

    /// The way of the next write, of which so many bytes come from a ring.
    ///
    /// By way of the page cache while the rings would not bear that the disk pauses as it has done,
    /// and until the disk has what went that way. But what the page cache can't take at the rate
    /// of the frames either goes the faster way.
    fn next_way(&mut self, bytes: usize) -> WriteMode {
        let Self {
            direct: Some(direct),
            bearing,
            writeback,
            length,
            waiting,
            ..
        } = self
        else {
            return WriteMode::Appended;
        };
        let Some(bearing) = bearing else {
            return direct.pace.way(direct.is_behind);
        };
        let now = Instant::now();
        let rate = bearing.take_up_to(*length, now);
        let left = writeback.as_ref().map_or(0, |it| it.left());
        let bears = bearing.bears(now) && left <= MOST_LEFT;
        let is_slow = direct.is_behind && !direct.pace.keeps_up(rate);
        direct.spills = !bears && !is_slow;
        if direct.spills {
            bearing.spilled += (waiting.len() + bytes) as u64;
            WriteMode::Appended
        } else {
            direct.pace.way(direct.is_behind)
        }
    }

    /// Writes what is whole of what waits and of `blocks`; the rest waits.
    fn put_whole(&mut self, blocks: &[u8]) -> io::Result<()> {
        let Self {
            regular: Some(file),
            direct: Some(direct),
            waiting,
            written,
            written_direct,
            watch,
            ..
        } = self
        else {
            return Ok(());
        };
        let missing = waiting.len().next_multiple_of(BLOCK) - waiting.len();
        let lies_aligned = blocks
            .get(missing..)
            .is_some_and(|it| direct.is_aligned(it));
        let (first, rest) = if lies_aligned {
            blocks.split_at(missing)
        } else {
            (blocks, &[][..])
        };
        let begin = waiting.at;
        waiting.extend(first);
        let count = whole(waiting.len());
        put_at(file, waiting.at, &waiting[..count], written, watch)?;
        waiting.skip(count);
        if !rest.is_empty() {
            direct.torn = None;
        }
        let count = whole(rest.len());
        put_at(file, waiting.at, &rest[..count], written, watch)?;
        waiting.at += count as u64;
        waiting.extend(&rest[count..]);
        *written_direct += waiting.at - begin;
        Ok(())
    }

    /// Writes what waits and `blocks`, which follow, by way of the page cache. What is in the
    /// disk's last block is kept: it is written again when that is whole.
    pub(super) fn append_direct(&mut self, blocks: &[u8]) -> io::Result<()> {
        let begin = self.length - blocks.len() as u64;
        let cut = self.length / BLOCK as u64 * BLOCK as u64;
        let torn = self.extent(begin, blocks).torn_by(cut);
        self.turn(WriteMode::Appended)?;
        let begun = Instant::now();
        let waiting = std::mem::take(&mut self.waiting);
        let behind = |begin: u64| self.written.saturating_sub(begin) as usize;
        let fresh = waiting.get(behind(waiting.at)..).unwrap_or_default();
        let following = &blocks[behind(begin)..];
        let total = fresh.len() + following.len();
        let appended = self.append(fresh).and_then(|()| self.append(following));
        self.waiting = waiting;
        appended?;
        let kept = (self.length - cut) as usize;
        match blocks.len().checked_sub(kept) {
            Some(skipped) => {
                self.waiting.restart(cut);
                self.waiting.extend(&blocks[skipped..]);
            }
            None => {
                self.waiting.extend(blocks);
                self.waiting.skip((cut - self.waiting.at) as usize);
            }
        }
        if let Some(direct) = &mut self.direct {
            direct.torn = torn;
            if total >= WORTHWHILE {
                direct
                    .pace
                    .wrote(WriteMode::Appended, total, begun.elapsed());
            }
        }
        Ok(())
    }

    /// Writes in this way from here on, and looks whether the file is as long as it should
    /// be: others may have cut it off, which a write at an offset would hide.
    fn turn(&mut self, way: WriteMode) -> io::Result<()> {
        let Self {
            regular: Some(file),
            direct: Some(direct),
            ..
        } = self
        else {
            return Ok(());
        };
        let (found, written) = (file.metadata()?.len(), self.base + self.written);
        if found != written {
            self.changed.get_or_insert((found, written));
        }
        if direct.way != way {
            direct_io::set(file, way)?;
            direct.way = way;
        }
        Ok(())
    }
}

/// How many of so many bytes are whole blocks of a disk.
fn whole(bytes: usize) -> usize {
    bytes / BLOCK * BLOCK
}

/// Writes whole blocks of the disk at `at`. So many bytes of the file are `written` then.
fn put_at(
    file: &File,
    at: u64,
    bytes: &[u8],
    written: &mut u64,
    watch: &WriteWatch,
) -> io::Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        // After a part of a block, as on a disk that is full, that block again.
        let from = whole(done);
        match file.write_at(&bytes[from..], at + from as u64) {
            Ok(count) if from + count > done => {
                done = from + count;
                *written = (*written).max(at + done as u64);
                watch.wrote();
            }
            Ok(_) => return Err(io::ErrorKind::WriteZero.into()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if done < bytes.len() && watch.is_aborted() {
            return Err(io::ErrorKind::Interrupted.into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn direct() -> Direct {
        Direct::new(Alignment { memory: 512 })
    }

    #[test]
    fn padding_brings_frames_where_they_can_be_written_from() {
        for (end, address, padding) in [
            (1_000, 0x1_0000 + 1_000, 0),
            (1_000, 0x1_0000 + 1_000 + 511, 511),
            (1_000, 0x1_0000 + 1_000 + LEAST_PADDING, LEAST_PADDING),
            // Too little for a block of padding: a step more.
            (1_000, 0x1_0000 + 1_004, 4 + 512),
            (1_004, 0x1_0000 + 1_000, 508),
        ] {
            assert_eq!(direct().padding(end, address), padding, "{end} {address}");
        }
    }

    #[test]
    fn bytes_are_overdue_once_none_were_written_for_so_long() {
        let mut direct = direct();
        for (written, length, ms, is_overdue) in [
            (500, 500, 1_000, false),
            (500, 600, 1_099, false),
            (500, 700, 1_100, true),
            // Some were written since.
            (600, 700, 1_101, false),
            (600, 700, 1_200, false),
            (600, 700, 1_201, true),
            // Nothing waits.
            (700, 700, 1_500, false),
            (700, 701, 1_599, false),
            (700, 701, 1_600, true),
        ] {
            let now = MonoNs(ms * 1_000_000);
            let reported = direct.is_overdue(written, length, now);
            assert_eq!(reported, is_overdue, "{written} of {length} at {ms} ms");
        }
    }
}
