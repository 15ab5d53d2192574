//! Journals as files.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use super::*;

#[test]
fn journals_are_private_files_that_people_can_read() {
    let machine = Machine::new();
    let mut changes = machine.changes();
    changes.make(vec![machine.irq(38, 0, "1")]).unwrap();
    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(machine.path("journals")), 0o700);
    let path = machine.folder.file(&machine.journals()[0]);
    assert_eq!(mode(path.clone()), 0o600);
    let json: serde_json::Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    assert_eq!(
        (&json["v"], &json["is_lasting"]),
        (&4.into(), &false.into())
    );
    assert_eq!(json["boot_id"], "boot-1");
    let change = &json["changes"][0];
    assert_eq!(change["kind"], "irq_affinity");
    let interface = &change["interface"];
    assert_eq!(interface["name"], "eth0");
    assert_eq!(interface["mac"], "02:00:00:00:00:02");
    assert!(interface["netns"].is_u64() && interface["netns_cookie"].is_u64());
    assert_eq!(
        (&change["old"], &change["new"]),
        (&"0-1".into(), &"1".into())
    );
    assert_eq!(fs::read_dir(machine.path("journals")).unwrap().count(), 1);
}

/// As tscap wrote it before it knew addresses and cookies.
#[test]
fn a_journal_of_version_1_is_read() {
    let machine = Machine::new();
    let inode = machine.interface().netns.inode;
    machine.put(
        "journals/77-5.json",
        &format!(
            r#"{{"v": 1, "boot_id": "boot-1", "pid": 77, "started": 5, "changes": [{{"interface":
        {{"name": "eth0", "ifindex": 2, "netns": {inode}}}, "kind": "rps", "queue": 0,
        "path": "", "old": "", "new": "1"}}]}}"#
        ),
    );
    let private = fs::Permissions::from_mode(0o700);
    fs::set_permissions(machine.path("journals"), private).unwrap();
    machine.put(RPS, "2");
    let journal = machine.journals().remove(0);
    let mut became = Vec::new();
    let done = journal.give_back(&machine.folder, &machine.files, &[], |_, it| {
        became.push(it)
    });
    done.unwrap();
    assert!(
        matches!(became[..], [RestoreOutcome::Restored]),
        "{became:?}"
    );
    assert_eq!(machine.get(RPS), "00000000");
    assert!(machine.journals().is_empty());
}

#[test]
fn only_regular_files_of_this_user_are_journals() {
    use nix::sys::stat::Mode;
    let machine = Machine::new();
    machine.run(77, 5);
    let journal = machine.folder.journal_of(77).unwrap();
    machine.folder.write(&journal).unwrap();
    let place = |name: &str| machine.path("journals").join(name);
    nix::unistd::mkfifo(&place("1-1.json"), Mode::S_IRWXU).unwrap();
    fs::create_dir(place("2-2.json")).unwrap();
    std::os::unix::fs::symlink(machine.folder.file(&journal), place("3-3.json")).unwrap();
    std::os::unix::net::UnixListener::bind(place("4-4.json")).unwrap();
    let all = machine.folder.all().unwrap();
    assert_eq!(all.iter().flatten().count(), 1);
    let errors: Vec<_> = all.into_iter().filter_map(Result::err).collect();
    assert_eq!(errors.len(), 4, "{errors:?}");
    for error in errors {
        assert!(matches!(error, JournalError::NotAFile { .. }), "{error:?}");
        assert!(error.remedy().contains("rm /"), "{}", error.remedy());
    }
    nix::unistd::mkfifo(&place("lock"), Mode::S_IRWXU).unwrap();
    let refused = machine.folder.try_lock().unwrap_err();
    assert!(
        matches!(refused, JournalError::NotAFile { .. }),
        "{refused:?}"
    );
    // What is in the way of a journal to be written is replaced.
    let new = machine.folder.file(&journal).with_extension("new");
    nix::unistd::mkfifo(&new, Mode::S_IRWXU).unwrap();
    machine.folder.write(&journal).unwrap();
    assert!(machine.folder.file(&journal).is_file() && !new.exists());
}

#[test]
fn roots_journals_are_not_to_be_removed_by_others() {
    if nix::unistd::geteuid().is_root() {
        return; // tests/root/pinning has a user without privileges for this.
    }
    let machine = Machine::new();
    let folder = JournalFolder::at(std::path::Path::new("/etc"), &machine.files);
    let error = folder.try_lock().unwrap_err();
    assert!(matches!(error, JournalError::RootOnly { .. }), "{error:?}");
}

#[test]
fn a_journal_is_live_left_or_of_another_boot() {
    let machine = Machine::new();
    machine.run(77, 5);
    let journal = machine.folder.journal_of(77).unwrap();
    machine.folder.write(&journal).unwrap();
    let state = || machine.folder.state(&journal).unwrap();
    assert_eq!(state(), State::Live);
    machine.run(77, 6);
    assert_eq!(state(), State::Stale, "the number was used again");
    machine.end(77);
    assert_eq!(state(), State::Stale);
    machine.put("proc/sys/kernel/random/boot_id", "boot-2");
    assert_eq!(state(), State::OtherBoot);
    machine.folder.remove(&journal).unwrap();
    machine.folder.remove(&journal).unwrap();
    assert!(machine.journals().is_empty());
    let error = machine.folder.journal_of(77).unwrap_err();
    assert!(matches!(error, JournalError::NoProcess));
}

#[test]
fn the_latest_journal_comes_first_and_rubbish_is_named() {
    let machine = Machine::new();
    for (pid, started) in [(10, 500), (20, 300), (30, 400)] {
        machine.run(pid, started);
        let journal = machine.folder.journal_of(pid).unwrap();
        machine.folder.write(&journal).unwrap();
    }
    let pids = |all: &[Result<Journal, JournalError>]| {
        let journals = all.iter().flatten().map(|journal| journal.pid);
        journals.collect::<Vec<_>>()
    };
    assert_eq!(pids(&machine.folder.all().unwrap()), [10, 30, 20]);
    machine.put("journals/9-9.json", "{\"v\":1");
    let future = fs::read_to_string(machine.path("journals/10-500.json")).unwrap();
    let future = future.replace("\"v\": 4", "\"v\": 5");
    machine.put("journals/10-500.json", &future);
    machine.put("journals/10-500.new", "half");
    let all = machine.folder.all().unwrap();
    assert_eq!(pids(&all), [30, 20]);
    let errors = all.iter().filter_map(|journal| journal.as_ref().err());
    let mut names: Vec<_> = errors.map(ToString::to_string).collect();
    names.sort();
    assert!(names[0].contains("10-500.json") && names[1].contains("9-9.json"));
}

#[test]
fn nothing_is_changed_without_a_journal() {
    let machine = Machine::new();
    let change = machine.irq(38, 0, "1");
    // A file where the folder should be.
    machine.put("journals", "");
    let error = machine.changes().make(vec![change.clone()]).unwrap_err();
    assert!(matches!(error, JournalError::NotPrivate { .. }), "{error}");
    assert_eq!(machine.get(AFFINITY), "0-1");
    fs::remove_file(machine.path("journals")).unwrap();
    // A folder that others can write to.
    fs::create_dir(machine.path("journals")).unwrap();
    let open = fs::Permissions::from_mode(0o777);
    fs::set_permissions(machine.path("journals"), open).unwrap();
    let error = machine.changes().make(vec![change.clone()]).unwrap_err();
    assert!(matches!(error, JournalError::NotPrivate { .. }), "{error}");
    assert!(machine.folder.all().is_err(), "not to be trusted either");
    // No place for the folder.
    let nowhere = JournalFolder::at(&machine.path("none/journals"), &machine.files);
    let mut changes = SettingsGuard::new(nowhere, machine.files.clone());
    let error = changes.make(vec![change]).unwrap_err();
    assert!(error.to_string().contains("none/journals"), "{error}");
    assert_eq!(machine.get(AFFINITY), "0-1");
}
