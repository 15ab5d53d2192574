//! What killed captures left changed, and what `tscap doctor --fix` has changed: given back by
//! the journals.

use super::turn;
use super::{Change, Journal, JournalError, JournalFolder, RestoreOutcome, State};
use crate::membership::{self, PrivilegedTask};
use tscap_base::failure::Failure;
use tscap_base::kernel_files::KernelFiles;

/// What was done and what was not.
#[derive(Debug, Default)]
pub struct Report {
    /// Sentences on what was given back, or need not be.
    pub done: Vec<String>,
    /// Sentences on what is still changed, each with what to do.
    pub problems: Vec<String>,
}

impl Report {
    fn failed(&mut self, what: String, error: impl Into<Box<dyn std::error::Error + Send + Sync>>) {
        let failure = Failure::from_error(error, what);
        self.problems.push(failure.to_string());
    }
}

/// Gives back what the journals of a folder have; calls `waiting` if another process is about to
/// change settings, which is waited for.
///
/// # Errors
/// If the journals can't be read, or this user may not change settings.
pub async fn restore(
    folder: &JournalFolder,
    files: &KernelFiles,
    waiting: impl FnOnce(),
) -> Result<Report, Failure> {
    let failed = |error| turn::failure("cannot look for what is to be restored", error);
    let all = || folder.all().map_err(failed);
    let mut report = Report::default();
    if !all()?.is_empty() {
        // A member's own folder has what the member puts there.
        membership::check(&[PrivilegedTask::ChangeSettings])?;
        // Read again when no process is about to change anything: what was running
        // may be over, and the lock keeps the next one from looking too early.
        let turn = turn::lock_journals(folder, turn::LOCK_TIMEOUT, waiting, failed);
        let _turn = turn.await?;
        restore_from(all()?, folder, files, &mut report);
    }
    if report.done.is_empty() && report.problems.is_empty() {
        let is_root = nix::unistd::geteuid().is_root();
        report.done.push(if is_root {
            "nothing to restore".into()
        } else {
            "nothing of this user's to restore (of root's captures: as root)".into()
        });
    }
    Ok(report)
}

fn restore_from(
    journals: Vec<Result<Journal, JournalError>>,
    folder: &JournalFolder,
    files: &KernelFiles,
    report: &mut Report,
) {
    let (mut live, mut left) = (Vec::new(), Vec::new());
    for journal in journals {
        match journal.and_then(|journal| Ok((folder.state(&journal)?, journal))) {
            Ok((State::Stale | State::Lasting, journal)) => left.push(journal),
            Ok((State::Live, journal)) => {
                report.problems.push(format!(
                    "cannot restore what process {pid} has changed: it is running, and does so \
                     itself when it ends\nhint: kill {pid} ends it",
                    pid = journal.pid
                ));
                live.push(journal);
            }
            Ok((State::OtherBoot, journal)) => {
                report.done.push(format!(
                    "process {} ran before the last boot: its changes went with that",
                    journal.pid
                ));
                remove(&journal, folder, report);
            }
            Err(error) => {
                let failure = turn::failure("cannot restore from a journal", error);
                report.problems.push(failure.to_string());
            }
        }
    }
    for journal in left {
        give_back(journal, &live, folder, files, report);
    }
}

/// Gives back the changes of one journal, and says what became of each.
fn give_back(
    journal: Journal,
    live: &[Journal],
    folder: &JournalFolder,
    files: &KernelFiles,
    report: &mut Report,
) {
    let done = journal.give_back(folder, files, live, |change, became| match became {
        RestoreOutcome::Restored => report
            .done
            .push(format!("restored the {change}: {}", change.old_shown())),
        RestoreOutcome::Already => report.done.push(format!(
            "the {change} had been restored already: {}",
            change.old_shown()
        )),
        RestoreOutcome::LeftAlone { now } => report.done.push(change.left_alone(&now)),
        RestoreOutcome::Gone => report
            .done
            .push(format!("there is no {change} any more: nothing to restore")),
        RestoreOutcome::Elsewhere => report.problems.push(elsewhere(change)),
        RestoreOutcome::OtherSysfs => report.problems.push(other_sysfs(change)),
        RestoreOutcome::NotSame { now } => report.problems.push(change.not_same(&now)),
        RestoreOutcome::InUse { pid } => report.problems.push(format!(
            "cannot restore the {change} yet: process {pid} is running and has changed it since\n\
             hint: run tscap restore when it has ended"
        )),
        RestoreOutcome::Failed(error) => {
            report.failed(format!("cannot restore the {change}"), error);
        }
    });
    if let Err(error) = done {
        report.failed("cannot note what was restored".into(), error);
    }
}

fn elsewhere(change: &Change) -> String {
    let hint = match change.restore_command() {
        Some(command) => command,
        None => format!(
            "run tscap restore inside the namespace net:[{}] (lsns -t net lists them)",
            change.interface.netns.inode
        ),
    };
    format!(
        "cannot restore the {change} from here: it is in another network namespace\nhint: {hint}"
    )
}

fn other_sysfs(change: &Change) -> String {
    let hint = change.command_in_namespace().unwrap_or_else(|| {
        "unshare --mount sh -c 'mount -t sysfs sysfs /sys && exec tscap restore'".into()
    });
    format!("cannot restore the {change}: /sys belongs to another network namespace\nhint: {hint}")
}

fn remove(journal: &Journal, folder: &JournalFolder, report: &mut Report) {
    if let Err(error) = folder.remove(journal) {
        report.failed("cannot remove a journal that is done with".into(), error);
    }
}

#[cfg(test)]
mod tests;
