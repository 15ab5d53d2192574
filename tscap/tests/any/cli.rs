//! What any user can do without privileges: help, and being told what is wrong
//! with the arguments.

use std::process::{Command, Output};

use tscap_testkit::command::tscap_path;
use tscap_testkit::libpcap::libpcap;
use tscap_testkit::terminal::{check_width, shown};

fn tscap(arguments: &[&str]) -> Output {
    let mut command = Command::new(tscap_path());
    command.args(arguments).output().expect("start tscap")
}

/// Standard output of a run that must succeed.
#[track_caller]
fn prints(arguments: &[&str]) -> String {
    let output = tscap(arguments);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {stderr}");
    assert_eq!(stderr, "", "{arguments:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// A run that must end as a usage error which names `parts`.
#[track_caller]
fn refuses(arguments: &[&str], parts: &[&str]) {
    let output = tscap(arguments);
    let stderr = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
    assert!(output.stdout.is_empty(), "{arguments:?}");
    assert!(!stderr.contains("panicked"), "{stderr}");
    for part in parts {
        assert!(
            stderr.contains(part),
            "{arguments:?}: {part:?} is not in\n{stderr}"
        );
    }
}

/// A complete capture with more arguments. The file is in a folder that does
/// not exist: were the arguments taken, it would still not be written.
fn capture<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [
        &["capture", "-i", "lo", "-w", "/nonexistent/out.pcapng"],
        more,
    ]
    .concat()
}

#[test]
fn help_says_where_frames_are_stamped() {
    let help = prints(&["capture", "--help"]);
    let words = help.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "stamped in the driver's receive path",
        "before the queueing discipline",
        "PACKET_QDISC_BYPASS",
    ] {
        assert!(words.contains(part), "{part}: {help}");
    }
    for option in [
        "--interface",
        "--write",
        "--snaplen",
        "--count",
        "--duration",
        "-C, --file-size",
        "-G, --rotate-seconds",
        "-W, --file-count",
        "-b, --ring-buffer",
        "-z, --postrotate-command",
        "--no-promiscuous-mode",
        "--quiet",
        "--verbose",
        "--json",
        "--clock",
        "--hook",
        "--offloads",
        "--packet-meta",
        "--ring-size",
        "--converter-cpu",
        "--rx-cpu",
        "--list-interfaces",
    ] {
        assert!(help.contains(option), "{option} is not in\n{help}");
    }
    for short in ["-i", "-D", "-w", "-s", "-c", "-p", "-q", "-v"] {
        assert!(
            help.contains(&format!("{short},")),
            "{short} is not in\n{help}"
        );
    }
    assert!(!help.contains('\x1b'), "colours where no terminal is");
}

#[test]
fn short_help_and_version() {
    let help = prints(&["--help"]);
    assert!(help.contains("capture") && help.contains("restore"));
    assert!(prints(&["report", "--help"]).contains("--output <OUT.html>"));
    assert!(prints(&["restore", "--help"]).contains("/run/tscap"));
    assert!(prints(&["capture", "-h"]).contains("Capture frames"));
    let version = prints(&["--version"]);
    assert_eq!(version.trim(), concat!("tscap ", env!("CARGO_PKG_VERSION")));
}

#[test]
fn what_is_missing_is_named() {
    refuses(&[], &["Usage"]);
    refuses(&["capture"], &["--interface"]);
    refuses(&["capture", "-w", "f"], &["--interface"]);
    refuses(&["capture", "-i", "lo"], &["--write", "-w - | tshark -r -"]);
    refuses(&["capture", "-i"], &["--interface"]);
    refuses(&["record"], &["record"]);
    refuses(&["restore", "eth0"], &["eth0"]);
    refuses(&["report"], &["<FILE>"]);
    refuses(
        &["report", "--paper", "a.json", "b.json", "c.json"],
        &["c.json"],
    );
    refuses(&["compare", "--quick", "--paper"], &["--paper"]);
    refuses(&["compare", "--timeout", "0"], &["greater than 0"]);
    refuses(&["gen"], &["--interface"]);
    refuses(&["gen", "-i", "lo"], &["--rate", "--flat-out"]);
    refuses(&["gen", "-i", "lo", "--gap", "1"], &["12 byte times"]);
}

#[test]
fn bad_values_are_named() {
    for (more, parts) in [
        (&["-s", "-1"][..], &["-1"][..]),
        (&["--snapshot-length=-1"], &["--snaplen", "-1"]),
        (&["-s", "262145"], &["--snaplen", "262145"]),
        (&["--snaplen", "99999999999999999999"], &["--snaplen"]),
        (&["-s", "many"], &["--snaplen", "many"]),
        (&["-c", "0"], &["--count", "1 or more"]),
        (&["-c", "99999999999999999999"], &["--count", "too large"]),
        (&["--count=-5"], &["--count", "-5"]),
        (&["--duration", "0"], &["--duration"]),
        (&["--duration=-1"], &["--duration"]),
        (&["--duration", "soon"], &["--duration", "soon"]),
        (
            &["--clock", "sundial"],
            &["--clock", "sundial", "ktime", "tai"],
        ),
        (
            &["--hook", "offload"],
            &["--hook", "xdp", "generic", "auto"],
        ),
        (&["--offloads", "maybe"], &["--offloads", "keep", "off"]),
        (&["--ring-size", "3M"], &["--ring-size", "power of two"]),
        (&["--ring-size", "100000"], &["--ring-size", "power of two"]),
        (&["--ring-size", "64K"], &["--ring-size", "128 KiB"]),
        (&["--ring-size", "1T"], &["--ring-size"]),
        (&["--ring-size", "512M"], &["--ring-size", "256 MiB"]),
        (&["--converter-cpu=-1"], &["--converter-cpu"]),
        (&["--rx-cpu", "3-2"], &["--rx-cpu", "backwards"]),
        (&["--rx-cpu", "0,0"], &["--rx-cpu", "CPU 0 is given twice"]),
        (&["--rx-cpu", "all"], &["--rx-cpu", "0,2"]),
        (&["--rx-cpu="], &["--rx-cpu"]),
        (&["-q", "-v"], &["--quiet", "--verbose"]),
        (
            &["--metrics-file", "tscap.txt"],
            &["--metrics-file", ".prom"],
        ),
        (&["-i", "lo"], &["lo"]),
        (&["--no-such-option"], &["--no-such-option"]),
        (&["-F", "f", "port", "80"], &["-F", "EXPRESSION"]),
        (&["-d", "--dump-ebpf", "udp"], &["-d", "--dump-ebpf"]),
    ] {
        refuses(&capture(more), parts);
    }
}

#[test]
fn everybody_may_look_at_a_filter() {
    let Some(_libpcap) = libpcap() else { return };
    let listing = prints(&["-d", "udp", "port", "53"]);
    assert!(listing.starts_with("(000) ldh      [12]\n"), "{listing}");
    assert!(prints(&["-dd", "udp"]).starts_with("{ 0x28, 0, 0, 0x0000000c },\n"));
    assert!(prints(&["-ddd"]).starts_with("1\n6 0 0 262144\n"));
    let ebpf = prints(&["--dump-ebpf", "udp"]);
    assert!(ebpf.starts_with("   0: r3 = *(u32 *)(r1 +0)\n"), "{ebpf}");
    let output = tscap(&["-d", "udp and prot 7"]);
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(error.contains("from character 9, \"prot 7\""), "{error}");
}

#[test]
fn everybody_may_ask_the_doctor() {
    let output = tscap(&["doctor", "--json", "-i", "lo"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&json["event"], &json["v"]), (&"doctor".into(), &1.into()));
    let is_bad = json["bad"].as_u64().expect("a number") > 0;
    assert_eq!(output.status.code(), Some(i32::from(is_bad)));
    assert!(output.stderr.is_empty());

    let output = tscap(&["doctor", "-v"]);
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    for part in ["\ngood ", " kernel ", " stamp_ktime ", " good, "] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    assert!(!text.contains('\x1b'), "colours where no terminal is");
    assert!(!text.contains(" link "), "no interface was given");
}

#[test]
fn lines_fit_a_terminal_of_any_usual_width() {
    for columns in [40, 80, 200] {
        let mut command = Command::new(tscap_path());
        let lines = shown(command.args(["doctor", "-v", "-i", "lo"]), columns);
        check_width(&lines, columns);
        assert!(
            lines.iter().any(|line| line.contains("kernel")),
            "{lines:#?}"
        );
        if tscap_time::tsc::check().is_ok() {
            let mut command = Command::new(tscap_path());
            let lines = shown(command.args(["clock", "--duration", "1"]), columns);
            check_width(&lines, columns);
            assert!(lines[0].contains("TSC, Hz"), "{lines:#?}");
            assert_eq!(lines[0].contains("rejected"), columns == 200, "{lines:#?}");
        }
    }
}

#[test]
fn what_is_good_is_listed_by_v() {
    let of = |arguments| String::from_utf8(tscap(arguments).stdout).expect("UTF-8");
    let (short, long) = (of(&["doctor"]), of(&["doctor", "-v"]));
    assert!(long.contains("\ngood "), "{long}");
    assert!(
        !short.contains("\ngood ") && short.contains("good (listed by -v)"),
        "{short}"
    );
    assert!(short.len() < long.len());
}

#[test]
fn the_doctor_wants_an_interface_that_is_there() {
    refuses(&["doctor", "-i"], &["--interface"]);
    refuses(&["doctor", "eth0"], &["eth0"]);
    refuses(&["doctor", "--fix"], &["--interface"]);
    refuses(&["doctor", "-i", "eth0", "--yes"], &["--fix"]);
    let output = tscap(&["doctor", "-i", "no such name"]);
    let stderr = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(
        stderr.contains("no such interface") && stderr.contains("hint: "),
        "{stderr}"
    );
    let help = prints(&["doctor", "--help"]);
    for part in [
        "--interface",
        "--json",
        "\"v\": 1",
        "Exit codes: 0 nothing is bad",
    ] {
        assert!(help.contains(part), "{part} is not in\n{help}");
    }
}

#[test]
fn interfaces_are_listed_for_everybody() {
    let list = prints(&["capture", "-D"]);
    assert!(list.lines().any(|line| line.contains("lo")), "{list}");
}

#[test]
fn a_reader_of_the_list_may_go_away() {
    let mut command = Command::new(tscap_path());
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let output = command
        .args(["capture", "-D"])
        .stdout(writer)
        .output()
        .expect("start tscap");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), stderr.as_ref()), (Some(0), ""));
}

#[test]
fn a_file_that_cannot_be_read_is_a_failure_with_a_hint() {
    let output = tscap(&["report", tscap_path()]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(
        stderr.contains("it is not JSON") && stderr.contains("hint: "),
        "{stderr}"
    );
}

/// The host's own clock, which is only read.
#[test]
fn the_clock_is_watched() {
    if tscap_time::tsc::check().is_err() {
        let output = tscap(&["clock"]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.contains("no clock to watch"), "{stderr}");
        return;
    }
    let json = prints(&["clock", "--interval", "200ms", "--duration", "1", "--json"]);
    let lines: Vec<serde_json::Value> = json
        .lines()
        .map(|line| serde_json::from_str(line).expect("one object a line"))
        .collect();
    assert!(lines.len() >= 2, "{json}");
    for line in &lines {
        assert_eq!((&line["event"], &line["v"]), (&"clock".into(), &1.into()));
        assert!(line["host_bound_ns"].as_u64() > Some(0), "{line}");
        assert!(line["readings"]["used"].as_u64() > Some(1_000), "{line}");
    }
    let real = |line: &serde_json::Value| line["real"].as_u64().expect("ns");
    assert!(lines.windows(2).all(|pair| real(&pair[0]) < real(&pair[1])));
    let table = prints(&["clock", "--duration", "1"]);
    assert!(
        table.contains("TSC, Hz") && table.contains("\n\nConclusion after 1.0 s:\n"),
        "{table}"
    );
    refuses(&["clock", "--interval", "1ms"], &["100ms"]);
}
