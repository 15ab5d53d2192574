//! What captures that were killed have left changed.

use super::check::{Check, Topic, advice, fix};
use tscap_base::text::causes::chain;
use tscap_base::text::numbers::counted;
use tscap_live::settings::{Journal, JournalError, JournalFolder, State};

const JOURNALS: Topic = Topic {
    id: "journals",
    why: "A killed capture leaves affinities, steering or offloads as it had set them.",
};

/// Whether there are journals of killed captures. `again` is the command that
/// would look with all privileges.
pub(super) fn left_over(folder: &JournalFolder, again: &str) -> Check {
    let journals = match folder.all() {
        Ok(journals) => journals,
        Err(error) if error.is_permission() => {
            return JOURNALS.warning("not known: the journals are root's", fix(again));
        }
        Err(error) => return unreadable(&error),
    };
    let (mut live, mut lasting, mut left) = (0, 0, Vec::new());
    for journal in journals {
        match journal.and_then(|journal| Ok((folder.state(&journal)?, journal))) {
            Ok((State::Live, _)) => live += 1,
            Ok((State::Stale, journal)) => left.push(journal),
            Ok((State::Lasting, journal)) => lasting += journal.changes.len(),
            // Its changes went with that boot.
            Ok((State::OtherBoot, _)) => {}
            Err(error) => return unreadable(&error),
        }
    }
    if !left.is_empty() {
        return owed(&left);
    }
    let mut found = "none left over".to_owned();
    if live > 0 {
        found += &format!("; {live} of running captures");
    }
    if lasting > 0 {
        let changes = counted(lasting as u64, "change");
        found += &format!("; {changes} by doctor --fix, which tscap restore gives back");
    }
    JOURNALS.good(found)
}

fn owed(left: &[Journal]) -> Check {
    let changes: Vec<_> = left.iter().flat_map(|journal| &journal.changes).collect();
    let pids: Vec<_> = left.iter().map(|journal| journal.pid.to_string()).collect();
    let found = match &changes[..] {
        [] => format!("process {} left a journal without changes", pids.join(", ")),
        [first] => format!("process {} left the {first} changed", pids.join(", ")),
        [first, more @ ..] => format!(
            "process {} left the {first} changed, and {} more",
            pids.join(", "),
            more.len()
        ),
    };
    let here = changes.iter().find(|change| change.is_here());
    let command = match here.or(changes.first()) {
        Some(change) => change.restore_command(),
        None => Some("tscap restore".into()),
    };
    JOURNALS.warning(
        found,
        match command {
            Some(command) => fix(command),
            None => advice(
                "run tscap restore inside the network namespace of the capture (lsns -t net)",
            ),
        },
    )
}

fn unreadable(error: &JournalError) -> Check {
    JOURNALS.warning(chain(error), advice(error.remedy()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Verdict::{Good, Warning};
    use tscap_base::recorded::Recorded;
    use tscap_live::settings::{Change, InterfaceId, Setting};
    use tscap_network::netns::NetnsId;
    use tscap_network::recorded::link;

    const PID: u32 = 77;
    const NOWHERE: NetnsId = NetnsId {
        inode: 1,
        cookie: None,
    };

    /// A machine with the journal of process [`PID`], which runs.
    fn machine(queues: u32, netns: NetnsId) -> (Recorded, JournalFolder) {
        let machine = Recorded::veth();
        machine.run(PID, 5);
        let folder = JournalFolder::at(&machine.path("journals"), &machine.files);
        let mut journal = folder.journal_of(PID).unwrap();
        journal.changes = (0..queues)
            .map(|queue| Change {
                interface: InterfaceId {
                    netns,
                    ..InterfaceId::here(&link("veth0", 5)).unwrap()
                },
                setting: Setting::Rps { queue },
                path: String::new(),
                old: String::new(),
                new: "1".into(),
            })
            .collect();
        folder.write(&journal).unwrap();
        (machine, folder)
    }

    fn check(folder: &JournalFolder) -> Check {
        left_over(folder, "sudo tscap doctor")
    }

    #[test]
    fn only_those_of_killed_captures_count() {
        let here = NetnsId::here().unwrap();
        let (machine, folder) = machine(2, here);
        check(&folder).is(Good, "1 of running captures");
        machine.end(PID);
        check(&folder)
            .is(
                Warning,
                "process 77 left the RPS CPUs of veth0's queue 0 changed, and 1 more",
            )
            .fixed_by("tscap restore");
        machine.put("proc/sys/kernel/random/boot_id", "boot-2");
        check(&folder).is(Good, "none left over");
        let nothing = JournalFolder::at(&machine.path("nothing"), &machine.files);
        assert_eq!(check(&nothing).found, "none left over");
    }

    #[test]
    fn one_that_cannot_be_restored_from_here() {
        let (recorded, folder) = machine(1, NOWHERE);
        recorded.end(PID);
        check(&folder)
            .is(
                Warning,
                "process 77 left the RPS CPUs of veth0's queue 0 changed",
            )
            .advises("inside the network namespace");
        let (recorded, folder) = machine(0, NOWHERE);
        recorded.end(PID);
        check(&folder)
            .is(Warning, "without changes")
            .fixed_by("tscap restore");
    }

    #[test]
    fn rubbish_is_named() {
        let (machine, folder) = machine(1, NOWHERE);
        machine.put("journals/1-1.json", "rubbish");
        check(&folder).is(Warning, "1-1.json").advises("remove it");
    }
}
