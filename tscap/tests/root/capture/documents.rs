//! The commands of the documents that capture, or look at the machine for one.

use std::fs;

use nix::sys::signal::Signal;
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::capture;
use tscap_testkit::command::{SHORT, run, tscap_path};
use tscap_testkit::files;
use tscap_testkit::root::root_with;

use tscap_testkit::shown::{Runner, commands};

#[test]
fn the_documented_commands_work() {
    let programs = &["ip", "ethtool", "gzip", "tcpdump"];
    let Some(_lock) = root_with(programs) else {
        return;
    };
    let bench = Bench::new("documents");
    let (captures, others): (Vec<_>, Vec<_>) = commands(Runner::Capture)
        .into_iter()
        .partition(|line| line.starts_with("tscap capture "));
    // Where one command finds what another one has made.
    let made = files::folder();
    for line in others {
        let line = line.replace("eth0", &bench.rx.name);
        let line = line.replace("tscap ", &format!("{} ", tscap_path()));
        let mut shell = bench.rx.netns.command("sh");
        let shell = shell.args(["-ec", &line]).current_dir(made.path());
        let done = run(shell, SHORT);
        assert!(done.status.success(), "{line}: {}", done.stderr);
    }
    for line in captures {
        let folder = files::folder();
        let words = words(&line).into_iter().skip(2).map(|word| match word {
            "eth0" => bench.rx.name.clone(),
            "blue" => bench.rx.netns.name().to_owned(),
            word if word.contains(".pcapng") => folder.path().join(word).display().to_string(),
            word if word.ends_with(".bpf") || word.ends_with(".prom") => {
                made.path().join(word).display().to_string()
            }
            word => word.to_owned(),
        });
        let running = capture(&bench.rx.netns).with(words).ready();
        let finished = running.stop_with(Signal::SIGTERM);
        let files = finished.success().files.as_ref().map(|files| files.written);
        assert!(files.is_none_or(|files| files == 1), "{line}");
        let written = if line.contains("--writers 2") { 2 } else { 1 };
        let there = fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(there, written, "{line}");
    }
}

/// The words of a command line, in which single quotes keep some together.
fn words(line: &str) -> Vec<&str> {
    let parts = line.split('\'').enumerate();
    let words = parts.flat_map(|(number, part)| match number % 2 {
        0 => part.split_whitespace().collect(),
        _ => vec![part],
    });
    words.collect()
}
