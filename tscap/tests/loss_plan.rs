//! `tscap loss --plan` by an earlier sweep, which anybody may ask.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tscap_testkit::command::tscap_path;

/// On the machine on which tests/data/sweep.json was recorded.
fn plan(arguments: &[&str]) -> Output {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/sweep.json");
    let mut command = Command::new(tscap_path());
    command.args(["loss", "--plan"]).args(arguments);
    command
        .arg("--from")
        .arg(file)
        .output()
        .expect("start tscap")
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
        text.contains("is not predicted: give --file-rate"),
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
