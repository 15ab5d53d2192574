//! How an output ends: what is cut off, and what is checked.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt as _;

use super::error::CloseError;
use super::{Output, ending};
use tscap_host::direct_io::{self, WriteMode};

impl Output {
    /// Takes off a file what is behind `whole`.
    pub(super) fn cut_at(&mut self, whole: u64) -> io::Result<()> {
        if let Some(file) = &mut self.regular {
            if self.direct.is_some() {
                direct_io::set(file, WriteMode::Appended)?;
            }
            file.set_len(self.base + whole)?;
            let end = io::Seek::seek(file, io::SeekFrom::End(0))?;
            // Nothing else is written any more but what room was kept for.
            // Best effort: there may be no room even now.
            let _ = self.allocate(i64::try_from(end).unwrap_or(i64::MAX));
        }
        Ok(())
    }

    /// Whether the file has no name any more.
    pub(crate) fn is_removed(&self) -> bool {
        let data = self.regular.as_ref().map(File::metadata);
        matches!(data, Some(Ok(data)) if data.nlink() == 0)
    }

    /// Ends the output, which is [settled](Self::settle), and waits until the disk has it.
    ///
    /// # Errors
    /// If the file does not hold what was written, or has no name, or may not be on the disk.
    pub fn close(self) -> Result<(), CloseError> {
        let is_removed = self.is_removed();
        self.close_removed(is_removed)
    }

    /// Ends an output whose file had no name any more at some time, if it `is_removed`.
    pub(crate) fn close_removed(self, is_removed: bool) -> Result<(), CloseError> {
        let intact = if is_removed {
            Err(CloseError::Removed)
        } else {
            self.check_length()
        };
        if self.reserve > 0
            && intact.is_ok()
            && let Some(file) = self.regular.as_ref().filter(|_| self.is_alone)
        {
            // What was kept for the end and not used.
            file.set_len(self.base + self.length)?;
        }
        // What nobody can find any more needs no disk.
        let writeback = self.writeback.as_ref().filter(|_| !self.is_removed());
        let synced = writeback.map_or(Ok(()), |it| it.finish(&self.watch));
        let ended = match (&self.regular, self.has_failed && intact.is_ok()) {
            (Some(file), true) => ending::check(file, self.base),
            _ => Ok(()),
        };
        // The thread may hold the file for a moment more.
        self.unlock();
        // The first descriptor to close hears of an earlier write's error, and `writer`
        // is another one of the same file.
        let closed = self.regular.map_or(Ok(()), nix::unistd::close);
        drop(self.writer);
        closed.map_err(io::Error::from)?;
        intact.and(synced).and(ended)
    }

    /// Whether the file has the length of what was written, and had it before.
    pub(super) fn check_length(&self) -> Result<(), CloseError> {
        let Some(file) = &self.regular else {
            return Ok(());
        };
        let now = (file.metadata()?.len(), self.base + self.length);
        let (found, written) = self.changed.unwrap_or(now);
        if found < written || (self.is_alone && found > written) {
            Err(CloseError::Changed { found, written })
        } else {
            Ok(())
        }
    }

    /// Lets other captures take the file over.
    pub(crate) fn unlock(&self) {
        // Best effort: it is unlocked when it is closed.
        let _ = self.regular.as_ref().map(File::unlock);
    }

    /// Device and inode of a regular file.
    pub fn id(&self) -> Option<(u64, u64)> {
        let data = self.regular.as_ref()?.metadata().ok()?;
        Some((data.dev(), data.ino()))
    }
}
