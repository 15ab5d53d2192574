//! Giving back what a journal says is changed.

use super::{Change, GivenBack, Journal, JournalError, JournalFolder};
use crate::sys::kernel_files::KernelFiles;

impl Journal {
    /// Gives back every change, the last one first; `tell` hears what became of
    /// each. The journal in `folder` keeps what could not be given back, and is
    /// removed if there is nothing of that kind.
    ///
    /// # Errors
    /// If the journal can't be written or removed; everything has been given back
    /// all the same.
    pub fn give_back(
        mut self,
        folder: &JournalFolder,
        files: &KernelFiles,
        mut tell: impl FnMut(&Change, GivenBack),
    ) -> Result<(), JournalError> {
        let mut owed = Vec::new();
        for change in self.changes.drain(..).rev() {
            let given_back = change.give_back(files);
            let is_owed = matches!(given_back, GivenBack::Elsewhere | GivenBack::Failed(_));
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
}
