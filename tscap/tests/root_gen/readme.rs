//! The commands of the README's section on sending, as they stand there.

use crate::support::bench::Bench;
use crate::support::capture::{TSCAP, capture_on};
use crate::support::command::{SHORT, run};
use crate::support::files;
use crate::support::root::root;

const README: &str = include_str!("../../../README.md");

#[test]
fn every_command_works() {
    let Some(_turn) = root("every_command_works") else {
        return;
    };
    let bench = Bench::new("readme");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let capture = capture_on(&bench.rx, &path).with(["-s", "96"]).ready();
    let run_line = |line: &str| {
        let words = line.split_whitespace().skip(1).map(|word| match word {
            "veth0" => bench.tx.name.as_str(),
            word => word,
        });
        let mut tscap = bench.tx.netns.command(TSCAP);
        let done = run(tscap.args(words).current_dir(folder.path()), SHORT);
        assert!(done.status.success(), "{line}: {}", done.stderr);
        assert!(!done.stderr.contains("note: "), "{line}: {}", done.stderr);
        done.stdout
    };
    let lines = README.lines().filter(|line| line.starts_with("tscap gen "));
    let (read, send): (Vec<_>, Vec<_>) = lines.partition(|line| line.contains("--read"));
    assert!(send.len() >= 5 && read.len() == 1, "{send:?} {read:?}");
    for line in send {
        run_line(line);
    }
    capture.stop().success();
    let report = run_line(read[0]);
    assert!(report.contains("path delay"), "{report}");
}
