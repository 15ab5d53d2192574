//! The commands of the README's section on several files, as they stand there.

use nix::sys::signal::Signal;

use crate::support::bench::Bench;
use crate::support::capture::capture;
use crate::support::files;
use crate::support::root::root_with;
use crate::together::names;

const README: &str = include_str!("../../../README.md");

#[test]
fn every_command_works() {
    let Some(_turn) = root_with("every_command_works", &["ip", "ethtool", "gzip"]) else {
        return;
    };
    let bench = Bench::new("readme");
    let lines = README.lines();
    let is_ours = |line: &&str| {
        let mut words = line.split_whitespace();
        line.starts_with("tscap capture") && words.any(|word| ["-C", "-G", "-b"].contains(&word))
    };
    let lines: Vec<_> = lines.filter(is_ours).collect();
    assert!(lines.len() >= 4, "{lines:?}");
    for line in lines {
        let folder = files::folder();
        let words = line.split_whitespace().skip(2);
        let words: Vec<String> = words
            .map(|word| match word {
                "eth0" => bench.rx.name.clone(),
                word if word.contains(".pcapng") => folder.path().join(word).display().to_string(),
                word => word.to_owned(),
            })
            .collect();
        let running = capture(&bench.rx.netns).with(words).ready();
        let finished = running.stop_with(Signal::SIGTERM);
        assert_eq!(
            finished.success().files.map(|files| files.written),
            Some(1),
            "{line}"
        );
        assert_eq!(names(folder.path()).len(), 1, "{line}");
    }
}
