//! Giving back what a journal says is changed.

use super::{Change, Journal, JournalError, JournalFolder, RestoreOutcome};
use tscap_base::kernel_files::KernelFiles;

impl Journal {
    /// Gives back every change, the last one first, unless one of the `live` journals
    /// has the same setting; `tell` hears what became of each. The journal in `folder` keeps what could not be given back, and is
    /// removed if there is nothing of that kind.
    ///
    /// # Errors
    /// If the journal can't be written or removed; everything has been given back
    /// all the same.
    pub fn give_back(
        mut self,
        folder: &JournalFolder,
        files: &KernelFiles,
        live: &[Self],
        mut tell: impl FnMut(&Change, RestoreOutcome),
    ) -> Result<(), JournalError> {
        let mut owed = Vec::new();
        for change in self.changes.drain(..).rev() {
            let given_back = match live.iter().find(|live| live.has_changed(&change)) {
                Some(live) => RestoreOutcome::InUse { pid: live.pid },
                None => change.give_back(files),
            };
            let is_owed = given_back.is_pending();
            tell(&change, given_back);
            if is_owed {
                owed.push(change);
            }
        }
        if owed.is_empty() {
            return folder.remove(&self);
        }
        owed.reverse();
        self.changes = owed;
        folder.write(&self)
    }

    fn has_changed(&self, change: &Change) -> bool {
        let mut changes = self.changes.iter();
        changes.any(|own| own.is_of_same_setting(change))
    }
}
