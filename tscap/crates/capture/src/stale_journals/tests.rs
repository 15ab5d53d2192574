use super::*;
use crate::event::nobody;
use crate::plan::plan_of;
use tscap_base::recorded::Recorded;
use tscap_live::settings::{Change, InterfaceId, Setting};
use tscap_network::recorded::link;

const PID: u32 = 77;

/// A machine with the journal of process [`PID`], which has changed RPS.
fn machine() -> (Recorded, JournalFolder) {
    let machine = Recorded::veth();
    machine.run(PID, 5);
    machine.run(std::process::id(), 6);
    let folder = JournalFolder::at(&machine.path("journals"), &machine.files);
    let mut journal = folder.journal_of(PID).unwrap();
    journal.changes.push(Change {
        interface: InterfaceId::here(&link("veth0", 5)).unwrap(),
        setting: Setting::Rps { queue: 0 },
        path: String::new(),
        old: String::new(),
        new: "1".into(),
    });
    folder.write(&journal).unwrap();
    (machine, folder)
}

fn look_for(folder: &JournalFolder, more: &str, ifindex: u32) -> Result<(), String> {
    let plan = plan_of(more);
    let looked = look(folder, &plan, &[ifindex], &mut Reporter::new(&mut nobody));
    looked.map_err(|failure| failure.to_string())
}

#[test]
fn a_running_captures_interface_is_kept_away_from() {
    let (_machine, folder) = machine();
    for changing in ["--rx-cpu 0", "--offloads off"] {
        let failure = look_for(&folder, changing, 5).unwrap_err();
        assert!(failure.contains("process 77, is running"), "{failure}");
        assert!(failure.contains("hint: "), "{failure}");
        assert_eq!(look_for(&folder, changing, 6), Ok(()), "another interface");
    }
    assert_eq!(look_for(&folder, "", 5), Ok(()), "changes nothing");
}

#[test]
fn a_killed_captures_journal_stays() {
    let (machine, folder) = machine();
    machine.end(PID);
    assert_eq!(look_for(&folder, "--rx-cpu 0", 5), Ok(()));
    assert_eq!(look_for(&folder, "", 5), Ok(()));
    assert_eq!(folder.all().unwrap().len(), 1);
}

#[test]
fn a_journal_of_another_boot_is_removed() {
    let (machine, folder) = machine();
    machine.put("proc/sys/kernel/random/boot_id", "boot-2");
    assert_eq!(look_for(&folder, "--rx-cpu 0", 5), Ok(()));
    assert!(folder.all().unwrap().is_empty());
}

#[test]
fn rubbish_stops_no_capture() {
    let (machine, folder) = machine();
    machine.put("journals/1-1.json", "rubbish");
    machine.end(PID);
    assert_eq!(look_for(&folder, "--rx-cpu 0", 5), Ok(()));
}

#[test]
fn only_a_change_needs_a_journal() {
    let machine = Recorded::veth();
    machine.run(std::process::id(), 6);
    let folder = JournalFolder::at(&machine.path("journals"), &machine.files);
    assert_eq!(look_for(&folder, "", 5), Ok(()));
    assert!(!machine.path("journals").exists());
    assert_eq!(look_for(&folder, "--rx-cpu 0", 5), Ok(()));
    assert!(folder.all().unwrap().is_empty(), "tried out and removed");

    machine.put("file", "");
    let nowhere = JournalFolder::at(&machine.path("file/journals"), &machine.files);
    let failure = look_for(&nowhere, "--offloads off", 5).unwrap_err();
    assert!(failure.contains("file/journals"), "{failure}");
    assert!(failure.contains("hint: nothing"), "{failure}");
}

#[tokio::test]
async fn only_a_change_waits_for_its_turn() {
    let harmless = plan_of("");
    let turn = turn(&harmless, &mut Reporter::new(&mut nobody)).await;
    assert!(turn.is_ok_and(|turn| turn.is_none()));
}
