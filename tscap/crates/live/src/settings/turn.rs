//! Turns of those that look at journals, and what to say of errors.

use std::time::{Duration, Instant};

use super::{Journal, JournalError, JournalFolder, JournalLock};
use tscap_base::failure::Failure;
use tscap_network::netns::NetnsId;

/// How long another process may take from looking to changing.
pub const LOCK_TIMEOUT: Duration = Duration::from_secs(10);
/// How often its end is looked for.
const TURN_EVERY: Duration = Duration::from_millis(10);

/// Takes the lock of the journals. `note` is called if another process has it, and
/// `failed` tells why there is no lock.
pub async fn lock_journals(
    folder: &JournalFolder,
    within: Duration,
    note: impl FnOnce(),
    failed: impl Fn(JournalError) -> Failure,
) -> Result<JournalLock, Failure> {
    let try_lock = || folder.try_lock().map_err(&failed);
    if let Some(turn) = try_lock()? {
        return Ok(turn);
    }
    note();
    let deadline = Instant::now() + within;
    loop {
        if let Some(turn) = try_lock()? {
            return Ok(turn);
        }
        if Instant::now() > deadline {
            return Err(Failure::new(format!(
                "cannot change settings: another tscap has been about to for {} s",
                within.as_secs()
            ))
            .hint("fuser -v /run/tscap/lock names it: end it, or let it go on if it is stopped"));
        }
        tokio::time::sleep(TURN_EVERY).await;
    }
}

/// What to say of a journal that can't be read or written.
pub fn failure(what: &str, error: JournalError) -> Failure {
    let hint = error.remedy();
    Failure::from_error(error, what).hint(hint)
}

/// Refuses to change what the live process of `journal` has changed, of these `interfaces`
/// of this network namespace.
pub fn refuse_shared(journal: &Journal, interfaces: &[u32]) -> Result<(), Failure> {
    let Ok(here) = NetnsId::here() else {
        return Ok(());
    };
    let is_captured = |ifindex| interfaces.contains(&ifindex);
    let mut interfaces = journal.changes.iter().map(|change| &change.interface);
    let shared = interfaces.find(|id| id.netns.is(here) && is_captured(id.ifindex));
    let Some(shared) = shared else { return Ok(()) };
    Err(Failure::new(format!(
        "cannot change {}: tscap, process {}, is running and has changed it",
        shared.name, journal.pid
    ))
    .hint(format!(
        "stop it first: kill {} (it then restores what it has changed)",
        journal.pid
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tscap_base::recorded::Recorded;

    #[tokio::test]
    async fn one_process_at_a_time() {
        let machine = Recorded::veth();
        let folder = JournalFolder::at(&machine.path("journals"), &machine.files);
        let unexpected = || panic!("nobody else has it");
        let failed = |error| failure("cannot look", error);
        let turn = lock_journals(&folder, Duration::ZERO, unexpected, failed)
            .await
            .ok();
        assert!(turn.is_some());
        let mut notes = 0;
        let refused = lock_journals(&folder, Duration::ZERO, || notes += 1, failed).await;
        let failure = refused.unwrap_err().to_string();
        assert!(failure.contains("another tscap"), "{failure}");
        assert!(failure.contains("hint: fuser"), "{failure}");
        // The next one waits until this one is done.
        let next = lock_journals(&folder, LOCK_TIMEOUT, || notes += 1, failed);
        let (next, ()) = tokio::join!(next, async { drop(turn) });
        assert!(next.is_ok());
        assert_eq!(notes, 2);
    }
}
