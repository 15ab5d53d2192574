//! `tscap merge`, as a user runs it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;
use tscap_testkit::command::{SHORT, run, tscap_path};
use tscap_testkit::root::skip;

use crate::convert::foreign::{Foreign, numbered};
use tscap_testkit::shown::{Runner, commands};

/// A file of another program with an interface, and packets at these microseconds.
fn capture(is_big: bool, times: &[u32]) -> Vec<u8> {
    let mut file = Foreign::new(is_big, u64::MAX);
    file.interface(1, 0, &[]);
    for (index, time) in times.iter().enumerate() {
        let start = file.bytes.len();
        file.packet(0, 40, &numbered(index));
        let low = file.word(*time);
        file.bytes[start + 16..start + 20].copy_from_slice(&low);
    }
    file.bytes
}

struct Files(TempDir);

impl Files {
    fn new(contents: &[Vec<u8>]) -> Self {
        let files = Self(tempfile::tempdir().unwrap());
        for (index, content) in contents.iter().enumerate() {
            fs::write(files.path(&format!("{index}.pcapng")), content).unwrap();
        }
        files
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap().map(Result::unwrap);
        let mut names: Vec<_> = entries
            .map(|it| it.file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn merge(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("start tscap")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(tscap_path());
        command
            .current_dir(self.0.path())
            .arg("merge")
            .args(arguments);
        command
    }
}

fn two() -> Files {
    Files::new(&[capture(false, &[1, 5, 9]), capture(false, &[2, 5, 6, 11])])
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn the_summary_says_what_was_joined_in_80_columns() {
    let files = two();
    let done = files.merge(&["0.pcapng", "1.pcapng", "-w", "out.pcapng"]);
    let (reported, warned) = (text(&done.stdout), text(&done.stderr));
    assert_eq!(done.status.code(), Some(0), "{warned}");
    assert!(
        reported.starts_with("out.pcapng: 7 frames of 2 files on 2 interfaces, in order of time\n")
    );
    assert!(
        reported.contains("1.pcapng: 4 frames, without bounds"),
        "{reported}"
    );
    assert!(
        reported.contains("5 pairs of neighbours from different files"),
        "{reported}"
    );
    assert!(
        reported.contains("5 have a file without bounds"),
        "{reported}"
    );
    assert!(
        reported.lines().all(|line| line.chars().count() <= 80),
        "{reported}"
    );
    assert!(
        warned.contains("warning: 0.pcapng states no bounds"),
        "{warned}"
    );
    let mode = |name| files.path(name).metadata().unwrap().permissions().mode();
    assert_eq!(mode("out.pcapng"), mode("0.pcapng"));
    assert_eq!(files.names(), ["0.pcapng", "1.pcapng", "out.pcapng"]);

    let done = files.merge(&["0.pcapng", "1.pcapng", "--json", "-w", "again.pcapng"]);
    let json: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!((&json["event"], &json["v"]), (&"merge".into(), &1.into()));
    assert_eq!(json["packets"], 7);
    assert_eq!(json["files"][1]["packets"], 4);
    assert_eq!(json["neighbours"]["without_bounds"], 5);
    let [first, again] = ["out.pcapng", "again.pcapng"].map(|it| fs::read(files.path(it)).unwrap());
    assert!(first == again);
}

#[test]
fn it_can_be_piped() {
    let files = two();
    let piped = files.merge(&["0.pcapng", "1.pcapng", "-w", "-"]);
    assert!(text(&piped.stderr).contains("-: 7 frames of 2 files"));
    files.merge(&["0.pcapng", "1.pcapng", "-w", "out.pcapng"]);
    assert!(piped.stdout == fs::read(files.path("out.pcapng")).unwrap());
}

/// A disk that is full leaves neither a file nor half of one.
#[test]
fn what_can_not_be_written_leaves_nothing() {
    let files = two();
    let full = files.merge(&["0.pcapng", "1.pcapng", "-w", "/dev/full"]);
    assert_eq!(full.status.code(), Some(1));
    assert!(
        text(&full.stderr).contains("cannot write /dev/full"),
        "{full:?}"
    );
    fs::write(files.path("long.pcapng"), capture(false, &vec![3; 200_000])).unwrap();
    // As many blocks of 1 KiB as a file may have (bash).
    let limited = Command::new("bash")
        .current_dir(files.0.path())
        .args([
            "-c",
            "trap '' XFSZ; ulimit -f 1000; exec \"$0\" merge long.pcapng -w out.pcapng",
        ])
        .arg(tscap_path())
        .output()
        .unwrap();
    assert_eq!(limited.status.code(), Some(1), "{limited:?}");
    assert!(
        text(&limited.stderr).contains("cannot write out.pcapng"),
        "{limited:?}"
    );
    assert_eq!(files.names(), ["0.pcapng", "1.pcapng", "long.pcapng"]);
}

#[test]
fn a_reader_that_goes_is_an_error_of_the_output() {
    let files = Files::new(&[capture(false, &vec![3; 200_000])]);
    let mut child = files
        .command(&["0.pcapng", "-w", "-"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let done = child.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(1));
    assert!(text(&done.stderr).contains("cannot write -"), "{done:?}");
}

#[test]
fn what_is_wrong_is_said_with_what_to_do() {
    let big = capture(true, &[1]);
    let mut other_version = capture(false, &[1]);
    other_version[12] = 2;
    let files = Files::new(&[capture(false, &[1]), big, b"hello".to_vec(), other_version]);
    for (arguments, parts) in [
        (
            &["0.pcapng", "1.pcapng", "-w", "out"][..],
            &["byte order", "hint: `editcap"][..],
        ),
        (
            &["0.pcapng", "2.pcapng", "-w", "out"],
            &["cannot read 2.pcapng", "editcap -F pcapng"],
        ),
        (
            &["0.pcapng", "3.pcapng", "-w", "out"],
            &["3.pcapng", "pcapng 2.0", "hint: merge the other files"],
        ),
        (
            &["0.pcapng", "0.pcapng", "-w", "out"],
            &["the same file", "hint: give each"],
        ),
        (
            &["0.pcapng", "-w", "0.pcapng"],
            &["into itself", "hint: give -w another"],
        ),
        (
            &["none", "-w", "out"],
            &["cannot open none", "No such file"],
        ),
        (
            &["/dev/null", "-w", "out"],
            &["cannot merge /dev/null", "regular files"],
        ),
        (&["0.pcapng", "-w", "none/out"], &["cannot write none/out"]),
    ] {
        let done = files.merge(arguments);
        let said = text(&done.stderr);
        assert_eq!(done.status.code(), Some(1), "{arguments:?}: {said}");
        for part in parts {
            assert!(said.contains(part), "{arguments:?}: {said}");
        }
    }
    assert_eq!(files.names().len(), 4);
    for (option, part) in [
        ("-a", "mergecap -a"),
        ("-s", "editcap -s"),
        ("-I", "keeps those of others apart"),
        ("-Fpcap", "editcap -F"),
    ] {
        let done = files.merge(&[option, "0.pcapng", "-w", "out"]);
        assert_eq!(done.status.code(), Some(2), "{option}");
        assert!(text(&done.stderr).contains(part), "{option}: {done:?}");
    }
    let done = files.merge(&["-F", "pcapng", "-V", "0.pcapng", "-w", "out"]);
    assert_eq!(done.status.code(), Some(0), "{done:?}");
}

#[test]
fn files_that_are_torn_or_out_of_order_are_named() {
    let mut torn = capture(false, &[1, 2]);
    torn.pop();
    let files = Files::new(&[torn, capture(false, &[4, 3])]);
    let done = files.merge(&["0.pcapng", "1.pcapng", "-w", "out.pcapng"]);
    let said = text(&done.stderr);
    assert_eq!(done.status.code(), Some(1), "{said}");
    assert!(said.contains("0.pcapng ends within a block"), "{said}");
    assert!(
        said.contains("1.pcapng is not in order of time: 1 frame earlier"),
        "{said}"
    );
    assert!(files.path("out.pcapng").exists());
}

#[test]
fn what_can_not_be_read_is_named_and_the_rest_is_merged() {
    let mut damaged = capture(false, &[1, 2, 3]);
    let end = damaged.len();
    damaged[end - 4] = 99;
    damaged.extend([0; 4096]);
    let files = Files::new(&[damaged, capture(false, &[4, 5])]);
    let done = files.merge(&["0.pcapng", "1.pcapng", "-w", "out.pcapng"]);
    let said = text(&done.stderr);
    assert_eq!(done.status.code(), Some(1), "{said}");
    assert!(
        said.contains("warning: 0.pcapng: not in the copy: 1 part"),
        "{said}"
    );
    assert!(said.contains("99 at its end"), "{said}");
    assert!(
        text(&done.stdout).contains("4 frames of 2 files"),
        "{done:?}"
    );
}

/// As many packets on as many interfaces, in the same order as by mergecap.
#[test]
fn wireshark_and_mergecap_find_the_same() {
    let files = two();
    files.merge(&["0.pcapng", "1.pcapng", "-w", "out.pcapng"]);
    let fields = "-T fields -e frame.time_epoch -e frame.interface_id -e data.data -e eth.type";
    let read = |path: &Path| {
        let mut tshark = Command::new("tshark");
        run(tshark.arg("-r").arg(path).args(fields.split(' ')), SHORT)
    };
    let joined = Command::new("mergecap")
        .args(["-I", "none", "-w"])
        .args(["by-mergecap", "0.pcapng", "1.pcapng"].map(|it| files.path(it)))
        .status();
    if !joined.is_ok_and(|it| it.success()) {
        skip("needs mergecap and tshark");
        return;
    }
    let [ours, theirs] = ["out.pcapng", "by-mergecap"].map(|name| {
        let shown = read(&files.path(name)).stdout;
        // Those of the same time stand in another order there.
        let mut lines: Vec<_> = shown.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    });
    assert_eq!(ours.len(), 7);
    assert_eq!(ours, theirs);
    let about = run(
        Command::new("capinfos")
            .arg("-Tmc")
            .arg(files.path("out.pcapng")),
        SHORT,
    );
    assert!(about.stdout.trim_end().ends_with(",7"), "{about:?}");
}

#[test]
fn the_documented_commands_work() {
    let files = two();
    for (from, to) in [("0.pcapng", "a.pcapng"), ("1.pcapng", "b.pcapng")] {
        fs::rename(files.path(from), files.path(to)).unwrap();
    }
    for (from, to) in [("a.pcapng", "out-w0.pcapng"), ("b.pcapng", "out-w1.pcapng")] {
        fs::copy(files.path(from), files.path(to)).unwrap();
    }
    for line in commands(Runner::Merge) {
        let words: Vec<_> = line.split(' ').skip(2).collect();
        assert_eq!(files.merge(&words).status.code(), Some(0), "{line}");
    }
    assert!(files.path("all.pcapng").exists());
}
