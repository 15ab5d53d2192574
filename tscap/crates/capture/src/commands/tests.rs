use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use super::*;

/// A folder with a program in it.
fn program(script: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("program");
    // By another process: a child that another test starts meanwhile would have it open for
    // writing, and it could not run (ETXTBSY).
    let write = "printf '#!/bin/sh\\n%s\\n' \"$1\" >\"$0\" && chmod 755 \"$0\"";
    let mut sh = Command::new("sh");
    let wrote = sh.args(["-c", write]).arg(&path).arg(script).status();
    assert!(wrote.unwrap().success());
    (folder, path)
}

/// Runs it on some files; what became of each.
fn run_on(program: &Path, files: &[&str]) -> (Vec<(String, Option<String>)>, CommandsSummary) {
    let mut commands = Commands::start(program).unwrap();
    for file in files {
        commands.run(file.into(), None);
    }
    commands.no_more();
    let mut all = Vec::new();
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.unwrap().block_on(async {
        while let Some(ended) = commands.next().await {
            all.push((ended.file.to_str().unwrap().to_owned(), ended.failure));
        }
    });
    all.sort();
    (all, commands.summary())
}

#[test]
fn it_runs_on_each_file_at_the_lowest_priority_and_without_a_shell() {
    let (folder, path) = program("echo \"$#:$(nice):$1\" > \"$(dirname \"$0\")/$1.txt\"");
    let files = ["one", "two $HOME", "three;x"];
    let (ended, summary) = run_on(&path, &files);
    assert!(
        ended.iter().all(|(_, failure)| failure.is_none()),
        "{ended:?}"
    );
    for file in files {
        let said = fs::read_to_string(folder.path().join(format!("{file}.txt")));
        assert_eq!(said.unwrap(), format!("1:19:{file}\n"));
    }
    let expected = CommandsSummary {
        succeeded: 3,
        ..CommandsSummary::default()
    };
    assert_eq!(summary, expected);
}

#[test]
fn each_failure_is_told_with_its_file() {
    let (_folder, path) = program("case $1 in bad) exit 3;; dead) kill -9 $$;; esac");
    let (ended, summary) = run_on(&path, &["bad", "dead", "good"]);
    let [(bad, three), (dead, killed), (good, None)] = &ended[..] else {
        panic!("{ended:?}");
    };
    assert_eq!([bad, dead, good], ["bad", "dead", "good"]);
    assert_eq!(three.as_deref(), Some("exit status: 3"));
    assert!(killed.as_ref().is_some_and(|how| how.contains("SIGKILL")));
    assert_eq!((summary.succeeded, summary.failed), (1, 2));
}

#[test]
fn a_program_that_has_gone_is_a_failure() {
    let (folder, path) = program("true");
    drop(folder);
    let (ended, summary) = run_on(&path, &["one"]);
    let failure = ended[0].1.as_ref().unwrap();
    assert!(failure.contains("No such file"), "{failure}");
    assert_eq!(summary.failed, 1);
}

#[test]
fn a_program_is_looked_for_before_the_capture() {
    let (folder, path) = program("true");
    check(&path).unwrap();
    check(Path::new("sh")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let script = format!("may not execute it\nhint: chmod +x {}", path.display());
    for (refused, why) in [
        (path.as_path(), script.as_str()),
        (
            Path::new("no-such-program"),
            "there is no such program\nhint: ",
        ),
        (folder.path(), "it is a folder\nhint: "),
    ] {
        let failure = check(refused).unwrap_err().to_string();
        assert!(failure.contains(why), "{failure}");
    }
}

#[test]
fn a_file_whose_name_has_been_taken_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out0");
    fs::write(&path, "complete").unwrap();
    let id = |path: &Path| {
        let data = fs::metadata(path).unwrap();
        Some((data.dev(), data.ino()))
    };
    let (own, kept) = (id(&path), folder.path().join("kept"));
    fs::rename(&path, &kept).unwrap();
    fs::write(&path, "being written").unwrap();
    let mut commands = Commands::start(Path::new("rm")).unwrap();
    commands.run(path.clone(), own);
    commands.run(kept.clone(), own);
    commands.no_more();
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let failures = runtime.unwrap().block_on(async {
        let mut failures = Vec::new();
        while let Some(ended) = commands.next().await {
            failures.extend(ended.failure.map(|why| (ended.file, why)));
        }
        failures
    });
    assert_eq!(failures, [(path.clone(), REPLACED.to_owned())]);
    assert!(path.exists() && !kept.exists());
}
