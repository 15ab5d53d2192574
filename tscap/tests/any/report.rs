//! `tscap report`, which anybody may run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tscap_testkit::command::tscap_path;

fn recorded() -> PathBuf {
    data("comparison.json")
}

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name)
}

fn report(file: &Path, output: Option<&Path>) -> Output {
    beside(&[file], output)
}

fn beside(files: &[&Path], output: Option<&Path>) -> Output {
    let mut command = Command::new(tscap_path());
    command.arg("report").args(files);
    if let Some(output) = output {
        command.arg("-o").arg(output);
    }
    command.output().expect("start tscap")
}

/// What a run that must fail says, which prints nothing else.
#[track_caller]
fn failure(file: &Path, output: Option<&Path>) -> String {
    let output = report(file, output);
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    String::from_utf8(output.stderr).expect("UTF-8")
}

#[test]
fn prints_tables_and_writes_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("out.html");
    let output = report(&recorded(), Some(&page));
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stderr.is_empty());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("noisy machine: "), "{text}");
    assert!(text.contains("tsc by perf is more expensive than ktime by"));
    let page = fs::read_to_string(page).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>"));
    assert_eq!(report(&recorded(), None).stdout, text.as_bytes());
}

/// It tells a sweep of loss from a comparison by itself.
#[test]
fn draws_a_sweep_of_loss_too() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("out.html");
    let output = report(&data("sweep.json"), Some(&page));
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("tscap ktime") && text.contains("points of loss in the mean of"));
    assert!(text.contains("tcpdump version "), "{text}");
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("Where a capture loses frames") && page.contains("<svg"));
}

/// One measurement of delays, or several beside each other.
#[test]
fn draws_measurements_of_delays_too() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("out.html");
    let one = report(&data("delay.json"), None);
    assert_eq!(one.status.code(), Some(0), "{one:?}");
    let text = String::from_utf8(one.stdout).unwrap();
    assert!(
        text.contains(" entered = ") && text.contains("The slowest"),
        "{text}"
    );
    let files = [data("delay.json"), data("delay.json")];
    let files = files.each_ref().map(PathBuf::as_path);
    let output = beside(&files, Some(&page));
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("hooks 2: in0 → out0, tap ") && !text.contains("Beside the paper"),
        "{text}"
    );
    let mut command = Command::new(tscap_path());
    let whole = command.args(["report", "-v"]).args(files).output().unwrap();
    let whole = String::from_utf8(whole.stdout).unwrap();
    assert!(whole.contains("Beside the paper"), "{whole}");
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("Methods beside each other") && page.contains("<svg"));
}

#[test]
fn only_measurements_of_delays_stand_beside_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("out.html");
    let (delay, sweep) = (data("delay.json"), data("sweep.json"));
    let output = beside(&[&delay, &sweep], Some(&page));
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty() && !page.exists());
    let said = String::from_utf8(output.stderr).unwrap();
    let expected = format!(
        "tscap: cannot show {} beside others: it is a sweep of loss\nhint: give one file, ",
        sweep.display()
    );
    assert!(said.starts_with(&expected), "{said}");
    // None of them may be written over.
    fs::copy(&delay, &page).unwrap();
    let output = beside(&[&delay, &page], Some(&page));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("cannot write the report over"), "{said}");
}

#[test]
fn what_is_neither_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("out.html");
    let file = folder.path().join("in.json");
    let known = fs::read_to_string(recorded()).unwrap();
    let unknown = known.replacen("\"v\": 1", "\"v\": 7", 1);
    let cut = &known[..known.len() / 2];
    for (content, why) in [
        ("", "not a result of tscap in JSON: EOF"),
        ("<html>", "in JSON: expected value at line 1"),
        ("{}", "missing field `v`"),
        (r#"{"kind": "song", "v": 1}"#, "a song; this tscap reads"),
        (cut, "in JSON: EOF"),
        (
            &unknown,
            "a comparison of version 7; this tscap reads version 1",
        ),
    ] {
        fs::write(&file, content).unwrap();
        let said = failure(&file, Some(&page));
        let start = format!("tscap: cannot read {}: ", file.display());
        assert!(said.starts_with(&start) && said.contains(why), "{said}");
        assert!(said.contains("hint: give a file that `tscap compare --json`, "));
        assert!(!page.exists());
    }
    fs::write(&file, b"\xff\xfe").unwrap();
    assert!(failure(&file, None).contains(": it is not JSON\nhint: "));
    fs::remove_file(&file).unwrap();
    let said = failure(&file, None);
    assert!(
        said.contains("No such file") && said.contains("hint: "),
        "{said}"
    );
}

#[test]
fn a_page_that_can_not_be_written_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let nowhere = folder.path().join("none/out.html");
    let said = failure(&recorded(), Some(&nowhere));
    let start = format!("tscap: cannot write {}: No such file", nowhere.display());
    assert!(
        said.starts_with(&start) && said.contains("hint: "),
        "{said}"
    );
    let said = failure(&recorded(), Some(folder.path()));
    assert!(said.contains("directory"), "{said}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}
