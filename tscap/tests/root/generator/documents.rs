//! The commands of the documents that send frames and read streams.

use tscap_testkit::bench::Bench;
use tscap_testkit::capture::capture_on;
use tscap_testkit::command::{SHORT, run, tscap_path};
use tscap_testkit::files;
use tscap_testkit::root::root;

use tscap_testkit::shown::{Runner, commands};

#[test]
fn every_command_works() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("documents");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let capture = capture_on(&bench.rx, &path).with(["-s", "96"]).ready();
    let run_line = |line: &str| {
        let words = line.split_whitespace().skip(1).map(|word| match word {
            "veth0" => bench.tx.name.as_str(),
            word => word,
        });
        let mut tscap = bench.tx.netns.command(tscap_path());
        let done = run(tscap.args(words).current_dir(folder.path()), SHORT);
        assert!(done.status.success(), "{line}: {}", done.stderr);
        assert!(!done.stderr.contains("note: "), "{line}: {}", done.stderr);
        done.stdout
    };
    let lines = commands(Runner::Generator).into_iter();
    let (read, send): (Vec<_>, Vec<_>) = lines.partition(|line| line.starts_with("tscap qos"));
    assert!(send.len() >= 5 && read.len() == 1, "{send:?} {read:?}");
    for line in send {
        run_line(&line);
    }
    capture.stop().success();
    let report = run_line(&read[0]);
    assert!(report.contains("flow 0\n"), "{report}");
}
