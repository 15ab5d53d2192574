//! `tscap loss --plan` by an earlier sweep, which anybody may ask.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tscap_testkit::command::{SHORT, finish, tscap_path};
use tscap_testkit::terminal::{check_width, ctrl_c, in_a_group, wait_for_text};

/// On the machine on which tests/data/sweep.json was recorded.
fn command(arguments: &[&str]) -> Command {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/sweep.json");
    let mut command = Command::new(tscap_path());
    command.args(["loss", "--plan"]).args(arguments);
    command.arg("--from").arg(file);
    command
}

fn in_folder(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = command(arguments);
    command.arg("--folder").arg(folder);
    command
}

fn plan(arguments: &[&str]) -> Output {
    command(arguments).output().expect("start tscap")
}

/// A folder on a disk: that of the build.
fn on_disk() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder beside the build")
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn the_exit_code_tells_whether_it_fits() {
    let fits = plan(&["--rate", "100k", "--size", "512", "--for", "10s"]);
    assert_eq!(fits.status.code(), Some(0), "{fits:?}");
    let text = String::from_utf8(fits.stdout).unwrap();
    assert!(text.starts_with("100,000 frames of 512 bytes a second for 10 s, 512 bytes"));
    assert!(text.contains("it fits: nothing is lost\n") && text.contains("a ring of "));

    let too_many = plan(&["--rate", "50Mpps", "--size", "64", "--for", "1m"]);
    assert_eq!(too_many.status.code(), Some(1));
    let text = String::from_utf8(too_many.stdout).unwrap();
    assert!(text.contains("it does not fit: 9"), "{text}");
    assert!(text.contains("no ring suffices"), "{text}");
    assert!(too_many.stderr.is_empty());
}

#[test]
fn machines_are_told_the_same() {
    let load = ["--rate", "1Gbit", "--size", "1250", "--for", "2s", "--json"];
    let done = plan(&[&load[..], &["--snaplen", "96", "--ring-size", "1M"]].concat());
    let answer: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(
        (&answer["kind"], &answer["v"]),
        (&"loss_plan".into(), &1.into())
    );
    let question = &answer["question"];
    assert_eq!(question["rate"], 100_000.0);
    assert_eq!(
        (&question["caplen"], &question["ring_bytes"]),
        (&96.into(), &(1 << 20).into())
    );
    assert_eq!(answer["file_bytes"], 200_000.0 * 128.0);
    assert!(answer["ring_needed"].as_u64() >= Some(128 << 10));
}

/// 100,000 blocks of 544 bytes a second.
#[test]
fn a_slow_file_is_predicted() {
    let load = ["--rate", "100k", "--size", "512", "--for", "10s"];
    let asked = |more: &[&str]| {
        let done = plan(&[&load[..], more].concat());
        (done.status.code(), String::from_utf8(done.stdout).unwrap())
    };
    let (code, text) = asked(&[]);
    assert_eq!(code, Some(0), "{text}");
    assert!(
        text.contains("is not predicted: give\n  --folder to"),
        "{text}"
    );
    let (code, text) = asked(&["--file-rate", "55M"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("\n  storage takes 55.0 MB/s\n"), "{text}");
    let (code, text) = asked(&["--file-rate", "27.2M"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("0.0 % before the program and 3"), "{text}");
    // 1.4 MB a second too many: 14 MB.
    let slow = ["--file-rate", "53M", "--json"];
    let (code, text) = asked(&[&slow[..], &["--ring-size", "1M"]].concat());
    let answer: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (code, &answer["ring_needed"]),
        (Some(1), &(16 << 20).into())
    );
    assert_eq!(answer["file_bytes_per_s"], 53e6);
    assert_eq!(
        asked(&[&slow[..], &["--ring-size", "16M"]].concat()).0,
        Some(0)
    );
}

#[test]
fn what_tells_no_costs_is_refused() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/comparison.json");
    let mut command = Command::new(tscap_path());
    command.args([
        "loss", "--plan", "--rate", "1M", "--size", "64", "--for", "1s", "--from",
    ]);
    let output = command.arg(data).output().expect("start tscap");
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("it is a comparison, not a sweep of loss"),
        "{said}"
    );
    assert!(said.contains("hint: "), "{said}");
}

#[test]
fn the_limits_of_each_stage_fit_a_terminal() {
    let done = plan(&["--port", "100G", "--file-rate", "1G"]);
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    let text = String::from_utf8(done.stdout).unwrap();
    let lines: Vec<_> = text.lines().map(str::to_owned).collect();
    check_width(&lines, 80);
    for part in [
        "loses first",
        "142.05 M",
        "\n1500  1500 ",
        "the disk takes 1.00 GB/s",
    ] {
        assert!(text.contains(part), "{part}:\n{text}");
    }
}

#[test]
fn machines_are_told_the_limits() {
    let sizes = ["--size", "64,1500", "--snaplen", "96,whole", "--json"];
    let done = plan(&[&sizes[..], &["--port", "10G", "--file-rate", "96M"]].concat());
    let limits = json(&done);
    assert_eq!(limits["kind"], "loss_limits");
    assert_eq!(
        (&limits["v"], &limits["port"]),
        (&1.into(), &10_000_000_000_u64.into())
    );
    let frames = limits["frames"].as_array().expect("rows");
    let kept: Vec<_> = frames.iter().map(|it| it["caplen"].as_u64()).collect();
    assert_eq!(kept, [Some(64), Some(96), Some(1500)]);
    // 96 bytes of each in the file.
    assert_eq!(
        (&frames[0]["disk"], &frames[0]["first"]),
        (&1e6.into(), &"disk".into())
    );
    let needs = &frames[0]["needs"];
    assert_eq!(needs["rate"], 1e10 / (88.0 * 8.0));
    let disks = needs["disks"].as_f64().expect("a number");
    assert!((disks - needs["rate"].as_f64().unwrap() / 1e6).abs() < 1e-6);
}

/// What is written has no name, and is gone.
#[test]
fn a_disk_is_measured_alone() {
    let folder = on_disk();
    let arguments = ["--size", "64", "--duration", "0.3", "--json"];
    let mut command = in_folder(folder.path(), &arguments);
    let done = command.output().expect("start tscap");
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    let limits = json(&done);
    let disk = &limits["disk"];
    let number = |name: &str| disk[name].as_f64().expect(name);
    assert!(
        number("bytes") > 0.0 && number("write_seconds") >= 0.3,
        "{disk}"
    );
    let seconds = number("write_seconds") + number("sync_seconds");
    assert!((number("bytes") / seconds / number("bytes_per_s") - 1.0).abs() < 1e-6);
    let direct = &disk["direct_bytes"];
    match disk["io"].as_str() {
        // Some of it at least, up to the file's end.
        Some("direct") => assert!(direct.as_u64() <= disk["bytes"].as_u64()),
        way => assert_eq!((way, direct), (Some("buffered"), &0.into())),
    }
    // Rounded down to whole bytes a second.
    let rate = limits["frames"][0]["disk"].as_f64().expect("a rate");
    assert!((rate * 96.0 / number("bytes_per_s") - 1.0).abs() < 1e-3);
    assert!(
        said(&done).contains("\"disk_seconds\":0."),
        "{}",
        said(&done)
    );
    assert_eq!(std::fs::read_dir(&folder).expect("the folder").count(), 0);
}

#[test]
fn a_disk_is_written_to_as_it_is_asked_for() {
    let folder = on_disk();
    let arguments = ["--size", "64", "--duration", "0.1", "--json", "--io"];
    let asked = |way: &str| {
        let mut command = command(&[&arguments[..], &[way]].concat());
        command.arg("--folder").arg(folder.path());
        command.output().expect("start tscap")
    };
    let disk = &json(&asked("buffered"))["disk"];
    assert_eq!(
        (&disk["io"], &disk["direct_bytes"]),
        (&"buffered".into(), &0.into())
    );
    let direct = asked("direct");
    if !direct.status.success() {
        let said = said(&direct);
        assert!(
            said.contains("can't be written past the page cache"),
            "{said}"
        );
        return;
    }
    let disk = &json(&direct)["disk"];
    assert_eq!(disk["io"], "direct");
    // All but what is no whole block of the disk, and the last pieces.
    let of = |name: &str| disk[name].as_f64().expect(name);
    assert!(of("bytes") - of("direct_bytes") < 1e6, "{disk}");
}

#[test]
fn a_load_is_held_against_the_disk() {
    let folder = on_disk();
    let load = ["--rate", "1", "--size", "64", "--for", "1s"];
    let mut command = in_folder(folder.path(), &load);
    let done = command
        .args(["--duration", "0.1"])
        .output()
        .expect("start tscap");
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    let text = String::from_utf8(done.stdout).unwrap();
    assert!(text.contains("the disk under "), "{text}");
    assert!(text.contains("alone, receiving takes "), "{text}");
}

#[test]
fn ctrl_c_leaves_nothing_of_a_disk_that_is_written_to() {
    let folder = on_disk();
    let mut child = in_a_group(&mut in_folder(
        folder.path(),
        &["--json", "--duration", "60"],
    ));
    let stderr = wait_for_text(&mut child, "\"disk_seconds\":0.", SHORT);
    let names = std::fs::read_dir(&folder).expect("the folder").count();
    ctrl_c(&child);
    let done = finish(child, "tscap loss", SHORT);
    let stderr = stderr.join().expect("reader");
    assert_eq!(done.status.code(), Some(1), "{stderr}");
    assert!(
        stderr.contains("ended before it was known what the disk"),
        "{stderr}"
    );
    assert_eq!(names, 0, "it has no name while it is written either");
}

#[test]
fn a_folder_that_can_not_be_measured_is_named() {
    for (folder, why) in [
        ("/nonexistent", "No such file or directory"),
        ("/proc/self", "cannot write captures in /proc/self: "),
        ("/dev/null", "Not a directory"),
    ] {
        let done = plan(&["--folder", folder]);
        assert_eq!(done.status.code(), Some(1), "{folder}: {done:?}");
        let said = said(&done);
        assert!(
            said.contains(why) && said.contains("hint: "),
            "{folder}: {said}"
        );
        assert!(done.stdout.is_empty());
    }
    let memory = tempfile::tempdir_in("/dev/shm").expect("a folder");
    let mut command = in_folder(memory.path(), &["--size", "64"]);
    let done = command.output().expect("start tscap");
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    assert!(
        said(&done).contains("is in memory: there is no disk"),
        "{}",
        said(&done)
    );
}
