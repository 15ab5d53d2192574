//! The changes of this process, in force until the guard is dropped.

use std::collections::BTreeSet;
use std::io::Write as _;

use super::{Change, ChangeError, GivenBack, Journal, JournalError, JournalFolder, Setting};
use crate::capturing::host::kernel_files::KernelFiles;
use crate::text::causes::{chain, with_causes};

/// A change that could not be made.
#[derive(Debug)]
pub struct Refused {
    /// Which.
    pub change: Change,
    /// Why.
    pub error: ChangeError,
}

/// Changes in force. They are given back on drop, the last one first.
#[derive(Debug)]
pub struct SettingsGuard {
    pub(super) folder: JournalFolder,
    files: KernelFiles,
    /// None before the first change.
    journal: Option<Journal>,
}

impl SettingsGuard {
    /// None yet.
    pub fn new(folder: JournalFolder, files: KernelFiles) -> Self {
        Self {
            folder,
            files,
            journal: None,
        }
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
        let mut journal = self.journal()?;
        let first = journal.changes.len();
        journal.changes.extend(changes);
        self.folder.write(&journal)?;

        let mut refused = Vec::new();
        let planned = journal.changes.split_off(first);
        for mut change in planned.iter().cloned() {
            match change.make(&self.files) {
                Ok(()) => {
                    // The kernel may take less than it was given: RPS leaves out
                    // isolated CPUs (`rps_cpumask_housekeeping`).
                    if let Ok(Some(now)) = change.now(&self.files) {
                        change.new = now;
                    }
                    journal.changes.push(change);
                }
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
    pub fn foresee(&mut self, changes: Vec<Change>) -> Result<(), JournalError> {
        if changes.is_empty() {
            return Ok(());
        }
        let mut journal = self.journal()?;
        journal.changes.extend(changes);
        self.folder.write(&journal)?;
        self.journal = Some(journal);
        Ok(())
    }

    /// What is in force, or an empty journal.
    fn journal(&self) -> Result<Journal, JournalError> {
        match &self.journal {
            Some(journal) => Ok(journal.clone()),
            None => self.folder.journal_of(std::process::id()),
        }
    }

    /// Gives everything back and says what went wrong.
    fn give_back(&mut self) -> Vec<String> {
        let Some(journal) = self.journal.take() else {
            return Vec::new();
        };
        let mut problems = Vec::new();
        let mut gone = BTreeSet::new();
        let done = journal.give_back(
            &self.folder,
            &self.files,
            &[],
            |change, became| match became {
                // What is elsewhere is in the journal, for `tscap restore` there. The rest
                // does not happen: sysfs was the right one when this process began, and
                // no other one may change what it has changed.
                GivenBack::Restored
                | GivenBack::Already
                | GivenBack::Elsewhere
                | GivenBack::OtherSysfs
                | GivenBack::InUse { .. } => {}
                GivenBack::NotSame { now } => problems.push(change.not_same(&now)),
                // Poll threads and interrupts come and go with the driver's queues,
                // which it may remake when XDP is detached.
                GivenBack::Gone if !change.setting.is_of_a_namespace() => {}
                // An interface that moves leaves them behind (`dev_shutdown`).
                GivenBack::Gone
                    if matches!(
                        change.setting,
                        Setting::ClsactQdisc | Setting::ClsactFilter(_)
                    ) => {}
                GivenBack::Gone => {
                    gone.insert(change.interface.name.clone());
                }
                // Others use it.
                GivenBack::LeftAlone { .. } if change.setting == Setting::ClsactQdisc => {}
                GivenBack::LeftAlone { now } => problems.push(change.left_alone(&now)),
                GivenBack::Failed(error) => {
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
        problems
    }
}

impl Drop for SettingsGuard {
    fn drop(&mut self) {
        for problem in self.give_back() {
            let _ = writeln!(std::io::stderr(), "warning: {problem}");
        }
    }
}
