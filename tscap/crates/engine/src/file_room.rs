//! What a file may hold, and where the next one begins.

use super::rotation::Limits;
use tscap_clock::RawStamp;

/// What the current file may hold.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileRoom {
    /// No block once there are so many bytes.
    pub bytes: u64,
    /// No block stamped later.
    pub until: RawStamp,
    /// Frames of the capture that were finished when the file began.
    begun_at: u64,
    /// Frames of the capture that are finished when the file is full.
    full_at: u64,
}

/// The next file is due, before a block is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileBoundary {
    /// Stamp of the block.
    pub stamp: RawStamp,
    /// The block is of another period than the current file.
    pub begins_period: bool,
}

impl FileRoom {
    /// A file that holds everything.
    pub const UNLIMITED: Self = Self {
        bytes: u64::MAX,
        until: RawStamp::NEVER,
        begun_at: 0,
        full_at: u64::MAX,
    };

    /// The room of a file that begins when so many frames are `finished`.
    pub fn of(limits: Limits, finished: u64) -> Self {
        Self {
            bytes: limits.bytes.unwrap_or(u64::MAX),
            until: RawStamp::NEVER,
            begun_at: finished,
            full_at: finished.saturating_add(limits.frames.unwrap_or(u64::MAX)),
        }
    }

    /// Frames of the capture that are finished when the file is full.
    pub fn full_at(&self) -> u64 {
        self.full_at
    }

    /// Whether the file holds as much as it may, at `length` bytes and so many frames of
    /// the capture `finished`. One frame it always holds.
    #[inline]
    pub fn is_full(&self, length: u64, finished: u64) -> bool {
        finished == self.full_at || (length >= self.bytes && finished > self.begun_at)
    }

    /// Whether a stamp may be too late for the file.
    #[inline]
    pub fn has_end(&self) -> bool {
        self.until != RawStamp::NEVER
    }
}
