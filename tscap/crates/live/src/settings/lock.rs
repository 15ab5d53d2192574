//! One at a time: who looks at journals and then changes something.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt as _;

use super::journal::{failed, open_own};
use super::{JournalError, JournalFolder};

/// The file in the folder that is locked. It stays: a file that were removed
/// could be locked by one process while another makes it anew.
const NAME: &str = "lock";

/// Held from looking at journals until changes are made. Two processes that did
/// so at once would each take the other's values for what was there before. The
/// kernel gives it back when the process dies, however it dies.
#[derive(Debug)]
pub struct JournalLock {
    _file: File,
}

impl JournalFolder {
    /// Takes the lock; `None` while another process holds it.
    pub fn try_lock(&self) -> Result<Option<JournalLock>, JournalError> {
        let path = self.make()?.join(NAME);
        let mut options = OpenOptions::new();
        let file = open_own(options.write(true).create(true).mode(0o600), &path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(JournalLock { _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(failed("lock", &path)(error)),
        }
    }
}
