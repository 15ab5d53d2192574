//! Journals of other captures: what a killed one left changed is told, and what
//! a running one has changed is kept away from.

use super::check::Machine;
use super::event::Reporter;
use super::pinning::journal_failure;
use super::plan::{Capture, HardwareStamps, Offloads};
use tscap_base::failure::Failure;
use tscap_live::settings::turn;
use tscap_live::settings::{Journal, JournalError, JournalFolder, JournalLock, State};

/// Waits until no other capture is between looking at the journals and changing
/// what it wants to change. `None` if this one changes nothing.
pub(super) async fn turn(
    plan: &Capture,
    reporter: &mut Reporter<'_>,
) -> Result<Option<JournalLock>, Failure> {
    if !makes_changes(plan) {
        return Ok(None);
    }
    let note = || reporter.note("waiting for another tscap that is about to change settings");
    let folder = JournalFolder::live();
    let turn = turn::lock_journals(&folder, turn::LOCK_TIMEOUT, note, journal_failure);
    turn.await.map(Some)
}

fn makes_changes(plan: &Capture) -> bool {
    plan.rx_cpus.is_some()
        || plan.offloads == Offloads::Off
        || plan.hardware_stamps == Some(HardwareStamps::Set)
}

/// Looks at the journals before anything is changed, in each namespace. A plan that changes
/// something is refused where that can't be journalled, and on an interface
/// that a running capture has changed.
pub(super) fn look_at_journals(
    plan: &Capture,
    machine: &Machine,
    reporter: &mut Reporter<'_>,
) -> Result<(), Failure> {
    for (number, scope) in machine.interfaces.scopes.iter().enumerate() {
        let interfaces = machine
            .interfaces
            .now
            .iter()
            .filter(|it| it.scope == number);
        let interfaces: Vec<_> = interfaces.map(|it| it.link.index).collect();
        scope.visit(|| look(&JournalFolder::live(), plan, &interfaces, reporter))??;
    }
    Ok(())
}

fn look(
    folder: &JournalFolder,
    plan: &Capture,
    interfaces: &[u32],
    reporter: &mut Reporter<'_>,
) -> Result<(), Failure> {
    let makes_changes = makes_changes(plan);
    if makes_changes {
        try_out(folder).map_err(journal_failure)?;
    }
    let journals = match folder.all() {
        Ok(journals) => journals,
        // Not ours to read: an ordinary user with capabilities.
        Err(error) if error.is_permission() => return Ok(()),
        Err(error) => {
            let failure = journal_failure(error);
            reporter.warning(&failure.to_string());
            return Ok(());
        }
    };
    for journal in journals {
        let state = journal.and_then(|journal| Ok((folder.state(&journal)?, journal)));
        match state {
            Ok((State::Live, journal)) if makes_changes => {
                turn::refuse_shared(&journal, interfaces)?
            }
            // Lasting changes are as somebody wants them.
            Ok((State::Live | State::Lasting, _)) => {}
            Ok((State::OtherBoot, journal)) => {
                reporter.detail(&format!(
                    "removed the journal of process {}: it is from before the last boot",
                    journal.pid
                ));
                // Should it stay, it is of no consequence.
                let _ = folder.remove(&journal);
            }
            Ok((State::Stale, journal)) => warn_of(&journal, reporter),
            Err(error) => {
                let what = "cannot tell what a capture left changed";
                reporter.warning(&Failure::from_error(error, what).chain());
            }
        }
    }
    Ok(())
}

/// Writes a journal without changes, and removes it.
fn try_out(folder: &JournalFolder) -> Result<(), JournalError> {
    let journal = folder.journal_of(std::process::id())?;
    folder.write(&journal)?;
    folder.remove(&journal)
}

fn warn_of(journal: &Journal, reporter: &mut Reporter<'_>) {
    let mut here = journal.changes.iter().filter(|change| change.is_here());
    let Some(first) = here.next() else { return };
    let more = match here.count() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    reporter.warning(&format!(
        "a capture that was killed (process {}) left the {first} changed{more}: `tscap restore` \
         gives back what it was",
        journal.pid
    ));
}

#[cfg(test)]
mod tests;
