use std::process::{Child, Stdio};

use super::*;

/// A run of tests whose journals and namespaces are in a folder of its own.
fn run() -> (tempfile::TempDir, Leftovers) {
    let folder = tempfile::tempdir().unwrap();
    for name in ["journals", "namespaces"] {
        fs::create_dir(folder.path().join(name)).unwrap();
    }
    let record = folder.path().join("record");
    fs::write(&record, "process 77\nnamespace tscap-pin-77-0\n").unwrap();
    let run = Leftovers {
        record,
        journals: folder.path().join("journals"),
        namespaces: folder.path().join("namespaces"),
        programs: BTreeSet::new(),
    };
    (folder, run)
}

/// A process that waits for input, with the mark of `run`.
struct Waiting(Child);

impl Waiting {
    fn of(run: &Leftovers) -> Self {
        let mut cat = Command::new("cat");
        run.mark(&mut cat);
        cat.stdin(Stdio::piped()).stdout(Stdio::piped());
        // Once `spawn` returns the child has its environment.
        Self(cat.spawn().unwrap())
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        self.0.wait().unwrap();
    }
}

#[test]
fn what_the_tests_made_is_found() {
    let (folder, run) = run();
    assert_eq!(run.made_and_there().unwrap(), [""; 0]);
    fs::write(folder.path().join("journals/77-5.json"), "").unwrap();
    fs::write(folder.path().join("namespaces/tscap-pin-77-0"), "").unwrap();
    let process = Waiting::of(&run);
    let found = run.made_and_there().unwrap();
    assert_eq!(found.len(), 3, "{found:?}");
    assert_eq!(found[0], format!("process {} (cat)", process.0.id()));
    assert_eq!(found[1], "network namespace tscap-pin-77-0");
    assert!(found[2].starts_with("journal ") && found[2].ends_with("/77-5.json"));
    drop(process);
    assert_eq!(run.made_and_there().unwrap().len(), 2);
}

#[test]
fn what_others_made_is_not() {
    let (folder, first) = run();
    let (_folder, other) = run();
    let _capture = Waiting::of(&other);
    for name in ["78-5.json", "778-5.json", "lock"] {
        fs::write(folder.path().join("journals").join(name), "").unwrap();
    }
    for name in ["tscap-pin-78-0", "tscap-demo-a-77", "else"] {
        fs::write(folder.path().join("namespaces").join(name), "").unwrap();
    }
    assert_eq!(first.made_and_there().unwrap(), [""; 0]);
}

#[test]
fn a_program_is_left_behind_if_it_stays_without_a_process() {
    let program = |id, pinned: &[&str]| Program {
        id,
        kind: "xdp".into(),
        name: "tscap_ktime".into(),
        pinned: pinned.iter().map(ToString::to_string).collect(),
    };
    let left = |program, attached: &[u32], held: &[u32]| {
        let set = |ids: &[u32]| ids.iter().copied().collect();
        !held_by_no_process(vec![program], &set(attached), &set(held)).is_empty()
    };
    assert!(left(program(3, &[]), &[3], &[]));
    assert!(left(program(3, &["/sys/fs/bpf/x"]), &[], &[]));
    assert!(!left(program(3, &[]), &[3], &[3]), "a running capture's");
    assert!(!left(program(3, &[]), &[4], &[]), "in another namespace");
}
