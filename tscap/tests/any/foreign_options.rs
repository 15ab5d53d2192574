//! Options of tcpdump, dumpcap and tshark, as these programs list them here: `tscap capture`
//! knows each, or says what does it; `tscap merge` does so with those of mergecap.

use std::ffi::OsString;
use std::process::Command;

use tscap_cli::Cli;
use tscap_testkit::command::{SHORT, run};
use tscap_testkit::root::skip;

/// What a program says of itself, unless it is not installed.
fn help(program: &str) -> Option<String> {
    if Command::new(program).arg("--version").output().is_err() {
        skip(&format!("needs {program}"));
        return None;
    }
    let done = run(Command::new(program).arg("--help"), SHORT);
    // tcpdump's is on standard error.
    Some(done.stdout + &done.stderr)
}

/// Panics unless every one is known; `--count` and the like may lack their value.
#[track_caller]
fn are_known(program: &str, command: &[&str], options: &[String], at_least: usize) {
    assert!(options.len() >= at_least, "{program}: {options:?}");
    for option in options {
        // Alone: without an interface and a file, which are asked for later.
        let words = [&["tscap"], command, &[option]].concat();
        let answer = Cli::plan(words.into_iter().map(OsString::from)).err();
        let answer = answer.map(|error| error.to_string()).unwrap_or_default();
        assert!(
            !answer.contains("unexpected argument"),
            "{program} {option}: {answer}"
        );
    }
}

#[test]
fn tcpdumps_are_known() {
    let Some(help) = help("tcpdump") else { return };
    let usage = help.split_once("Usage: tcpdump").expect("a usage").1;
    let words = usage
        .split_whitespace()
        .map(|word| word.trim_matches(['[', ']']));
    let options: Vec<_> = words
        .filter(|word| word.starts_with('-'))
        .flat_map(|word| match word.strip_prefix("--") {
            Some(_) => vec![word.to_owned()],
            None => word[1..]
                .chars()
                .map(|letter| format!("-{letter}"))
                .collect(),
        })
        .collect();
    are_known("tcpdump", &[], &options, 45);
}

#[test]
fn those_of_wiresharks_programs_are_known() {
    for (program, command, at_least) in [
        ("dumpcap", &[][..], 40),
        ("tshark", &[], 60),
        ("mergecap", &["merge"], 8),
    ] {
        let Some(help) = help(program) else { return };
        let lines = help.lines().filter_map(|line| line.strip_prefix("  -"));
        let options: Vec<_> = lines.flat_map(|line| listed(&format!("-{line}"))).collect();
        are_known(program, command, &options, at_least);
    }
}

/// The names on a line as `-c <count>, --count <count>    what it does`.
fn listed(line: &str) -> Vec<String> {
    let names = line.split("  ").next().unwrap_or_default();
    let name = |text: &str| {
        let end = text.find([' ', '<', ',']).unwrap_or(text.len());
        text[..end].to_owned()
    };
    names.split(", ").map(name).collect()
}

#[test]
fn a_line_of_help_has_all_its_names() {
    for (line, names) in [
        ("-c <packet count>        stop after n packets", &["-c"][..]),
        (
            "-b <ringbuffer opt.> ..., --ring-buffer <ringbuffer opt.>",
            &["-b", "--ring-buffer"],
        ),
        ("-E<fieldsoption>=<value> set options", &["-E"]),
        ("-P, --print              print", &["-P", "--print"]),
    ] {
        assert_eq!(listed(line), names, "{line}");
    }
}
