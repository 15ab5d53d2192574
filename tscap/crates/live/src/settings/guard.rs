//! The changes of this process, in force until the guard is dropped or for longer.

use std::collections::BTreeSet;
use std::io::{self, Write as _};

use super::keeper::Keeper;
use super::{Change, ChangeError, Journal, JournalError, JournalFolder, RestoreOutcome, Setting};
use tscap_base::kernel_files::KernelFiles;
use tscap_base::text::causes::{chain, with_causes};

/// A change that could not be made.
#[derive(Debug)]
pub struct Refused {
    /// Which.
    pub change: Change,
    /// Why.
    pub error: ChangeError,
}

/// Changes in force. They are given back on drop, the last one first, unless they are to
/// last.
#[derive(Debug)]
pub struct SettingsGuard {
    pub(super) folder: JournalFolder,
    files: KernelFiles,
    /// None before the first change, and when a keeper has it.
    journal: Option<Journal>,
    keeper: Option<Keeper>,
    /// A keeper is to be there before the first change: whether changes are to be of other
    /// network namespaces.
    begins_with_keeper: Option<bool>,
    is_lasting: bool,
}

/// What came of giving changes back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RestoreSummary {
    /// What went wrong.
    pub problems: Vec<String>,
    /// Something that tscap changed may still be changed, and nobody else has asked for that.
    pub is_left: bool,
}

impl SettingsGuard {
    /// None yet.
    pub fn new(folder: JournalFolder, files: KernelFiles) -> Self {
        Self {
            folder,
            files,
            journal: None,
            keeper: None,
            begins_with_keeper: None,
            is_lasting: false,
        }
    }

    /// None yet; those to come last until `tscap restore`.
    pub fn lasting(folder: JournalFolder, files: KernelFiles) -> Self {
        let mut guard = Self::new(folder, files);
        guard.is_lasting = true;
        guard
    }

    /// Leaves all changes to a process of its own from the first one on, as
    /// [`Self::leave_to_keeper`] does: whoever is killed then leaves nothing changed.
    #[must_use]
    pub fn with_keeper(mut self, is_elsewhere: bool) -> Self {
        self.begins_with_keeper = Some(is_elsewhere);
        self
    }

    fn begin_keeper(&mut self) -> Result<(), JournalError> {
        match self.begins_with_keeper {
            Some(is_elsewhere) => self
                .leave_to_keeper(is_elsewhere)
                .map_err(JournalError::NoKeeper),
            None => Ok(()),
        }
    }

    /// Whether the process that changes were left to has ended although it should not have.
    pub fn has_lost_keeper(&mut self) -> bool {
        self.keeper.as_mut().is_some_and(Keeper::has_ended)
    }

    /// Takes over the changes of `journal`, which may be another process's.
    pub(super) fn adopt(&mut self, journal: Journal) {
        self.journal = Some(journal);
    }

    /// Whether nothing has been changed.
    pub fn is_empty(&self) -> bool {
        self.journal.is_none()
    }

    /// Leaves all changes, those to come too, to a process that has the privileges that this
    /// thread has now. It gives everything back also if this one is killed. Changes of
    /// interfaces in other network namespaces are to come or there if `is_elsewhere`.
    ///
    /// # Errors
    /// If the process can't be started.
    pub fn leave_to_keeper(&mut self, is_elsewhere: bool) -> io::Result<()> {
        if self.keeper.is_some() {
            return Ok(());
        }
        let journal = self.journal().map_err(io::Error::other)?;
        self.keeper = Some(Keeper::start(journal, is_elsewhere)?);
        self.journal = None;
        Ok(())
    }

    /// Where procfs and sysfs are.
    pub fn files(&self) -> &KernelFiles {
        &self.files
    }

    /// Journals `changes`, then makes each of them. Returns those that the
    /// kernel refused; they leave no trace.
    ///
    /// # Errors
    /// If they can't be journalled; then none of them is made.
    pub fn make(&mut self, changes: Vec<Change>) -> Result<Vec<Refused>, JournalError> {
        if changes.is_empty() {
            return Ok(Vec::new());
        }
        self.begin_keeper()?;
        if let Some(keeper) = &mut self.keeper {
            return keeper.make(changes);
        }
        let mut journal = self.journal()?;
        let first = journal.changes.len();
        journal.changes.extend(changes);
        self.folder.write(&journal)?;

        let mut refused = Vec::new();
        let planned = journal.changes.split_off(first);
        for mut change in planned.iter().cloned() {
            match change.make(&self.files) {
                Ok(()) => journal.changes.push(change),
                Err(error) => refused.push(Refused { change, error }),
            }
        }
        let is_as_planned = journal.changes[first..] == planned;
        self.journal = Some(journal);
        match &self.journal {
            Some(journal) if !is_as_planned => self.folder.write(journal)?,
            _ => {}
        }
        Ok(refused)
    }

    /// Journals `changes` that somebody else may be about to make on our account.
    ///
    /// # Errors
    /// If they can't be journalled; then they are not given back.
    pub fn journal_ahead(&mut self, changes: Vec<Change>) -> Result<(), JournalError> {
        if changes.is_empty() {
            return Ok(());
        }
        self.begin_keeper()?;
        if let Some(keeper) = &mut self.keeper {
            return keeper.journal_ahead(changes);
        }
        let mut journal = self.journal()?;
        journal.changes.extend(changes);
        self.folder.write(&journal)?;
        self.journal = Some(journal);
        Ok(())
    }

    /// Whether a change of the same setting is in a journal, of any process.
    pub(super) fn is_made(&mut self, change: &Change) -> Result<bool, JournalError> {
        if let Some(keeper) = &mut self.keeper {
            return keeper.is_made(change);
        }
        let journals = self.folder.all()?.into_iter().flatten();
        let mut made = journals.flat_map(|journal| journal.changes);
        Ok(made.any(|made| made.is_of_same_setting(change)))
    }

    /// What is in force, or an empty journal.
    fn journal(&self) -> Result<Journal, JournalError> {
        match &self.journal {
            Some(journal) => Ok(journal.clone()),
            None => {
                let mut journal = self.folder.journal_of(std::process::id())?;
                journal.is_lasting = self.is_lasting;
                Ok(journal)
            }
        }
    }

    /// Gives everything back.
    pub fn give_back(&mut self) -> RestoreSummary {
        if let Some(keeper) = self.keeper.take() {
            return keeper.give_back();
        }
        let Some(journal) = self.journal.take() else {
            return RestoreSummary::default();
        };
        let (mut problems, mut is_left) = (Vec::new(), false);
        let mut gone = BTreeSet::new();
        let done = journal.give_back(
            &self.folder,
            &self.files,
            &[],
            |change, became| match became {
                // What is elsewhere is in the journal, for `tscap restore` there. The rest
                // does not happen: sysfs was the right one when this process began, and
                // no other one may change what it has changed.
                RestoreOutcome::Restored
                | RestoreOutcome::Already
                | RestoreOutcome::Elsewhere
                | RestoreOutcome::OtherSysfs
                | RestoreOutcome::InUse { .. } => {}
                RestoreOutcome::NotSame { now } => problems.push(change.not_same(&now)),
                // Poll threads and interrupts come and go with the driver's queues,
                // which it may remake when XDP is detached.
                RestoreOutcome::Gone if !change.setting.is_of_a_namespace() => {}
                // An interface that moves leaves them behind (`dev_shutdown`).
                RestoreOutcome::Gone
                    if matches!(
                        change.setting,
                        Setting::ClsactQdisc | Setting::ClsactFilter(_)
                    ) => {}
                RestoreOutcome::Gone => {
                    gone.insert(change.interface.name.clone());
                }
                // Others use it.
                RestoreOutcome::LeftAlone { .. } if change.setting == Setting::ClsactQdisc => {}
                RestoreOutcome::LeftAlone { now } => problems.push(change.left_alone(&now)),
                RestoreOutcome::Failed(error) => {
                    is_left = true;
                    let what = format!("cannot restore the {change}");
                    problems.push(with_causes(what, Some(&error)));
                }
            },
        );
        problems.extend(gone.iter().map(|interface| {
            format!(
                "{interface} is not here any more to be restored: if it moved to another network namespace, it has kept the changes"
            )
        }));
        problems.extend(done.err().map(|error| chain(&error)));
        RestoreSummary { problems, is_left }
    }
}

impl Drop for SettingsGuard {
    fn drop(&mut self) {
        let has_changes = |journal: &Journal| !journal.changes.is_empty();
        if self.is_lasting && self.journal.as_ref().is_some_and(has_changes) {
            return;
        }
        for problem in self.give_back().problems {
            let _ = writeln!(io::stderr(), "warning: {problem}");
        }
    }
}
