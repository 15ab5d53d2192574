//! The commands of the documents that capture, or look at the machine for one.

use std::fs;

use nix::sys::signal::Signal;
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::capture;
use tscap_testkit::command::{SHORT, run, tscap_path};
use tscap_testkit::files;
use tscap_testkit::root::root_with;

use crate::shown::{Runner, commands};

#[test]
fn the_documented_commands_work() {
    let programs = &["ip", "ethtool", "gzip"];
    let Some(_lock) = root_with(programs) else {
        return;
    };
    let bench = Bench::new("documents");
    let (captures, others): (Vec<_>, Vec<_>) = commands(Runner::Capture)
        .into_iter()
        .partition(|line| line.starts_with("tscap capture "));
    for line in others {
        let words = line.split(' ').skip(1).map(|word| match word {
            "eth0" => &bench.rx.name,
            word => word,
        });
        let done = run(bench.rx.netns.command(tscap_path()).args(words), SHORT);
        assert!(done.status.success(), "{line}: {}", done.stderr);
    }
    for line in captures {
        let folder = files::folder();
        let words = line.split(' ').skip(2).map(|word| match word {
            "eth0" => bench.rx.name.clone(),
            word if word.contains(".pcapng") => folder.path().join(word).display().to_string(),
            word => word.to_owned(),
        });
        let running = capture(&bench.rx.netns).with(words).ready();
        let finished = running.stop_with(Signal::SIGTERM);
        let files = finished.success().files.as_ref().map(|files| files.written);
        assert!(files.is_none_or(|files| files == 1), "{line}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "{line}");
    }
}
