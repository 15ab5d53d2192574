//! The commands of docs/qos.md, while the patterns of the paper arrive.

use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::{LIMIT, capture_on, generate_on};
use tscap_testkit::command::{SHORT, finish, run, tscap_path};
use tscap_testkit::files;
use tscap_testkit::root::root;

use tscap_testkit::shown::{Runner, commands};

/// A busy loop for each of two CPUs; they end by themselves if this test can't end them.
fn busy() -> Vec<Child> {
    let start = |_| {
        let mut command = Command::new("timeout");
        command
            .args(["20", "sh", "-c", "while :; do :; done"])
            .spawn()
    };
    (0..2)
        .map(start)
        .collect::<Result<_, _>>()
        .expect("start a loop")
}

fn end(mut child: Child) {
    // timeout(1) hands it on to the loop.
    let pid = Pid::from_raw(child.id().cast_signed());
    kill(pid, Signal::SIGTERM).expect("end a loop");
    child.wait().expect("end a loop");
}

#[test]
fn every_command_works() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("qos-docs");
    let folder = files::folder();
    // What the commands read.
    let calls = folder.path().join("calls.pcapng");
    let capture = capture_on(&bench.rx, &calls).with(["--keep-raw"]).ready();
    let pattern = |name: &str, more: &[&str]| {
        generate_on(&bench.tx)
            .with(["--pattern", name])
            .with(more)
            .start()
    };
    pattern("hd", &["-c", "100"]).wait();
    capture.stop().success();
    let (reports, measured): (Vec<_>, Vec<_>) = commands(Runner::Qos)
        .into_iter()
        .partition(|line| line.starts_with("tscap report"));
    assert!(measured.len() >= 5 && reports.len() == 1, "{measured:?}");
    for line in &measured {
        let words = line.split(' ').map(|word| match word {
            "tscap" => tscap_path(),
            "eth0" => bench.rx.name.as_str(),
            word => word,
        });
        let command = words.collect::<Vec<_>>().join(" ");
        let mut shell = bench.rx.netns.command("sh");
        let shell = shell.args(["-c", &command]).current_dir(folder.path());
        shell.stdin(Stdio::null()).stdout(Stdio::piped());
        let child = shell.stderr(Stdio::piped()).spawn().expect("start a shell");
        let name = if line.contains("voip") { "voip" } else { "hd" };
        let sender = pattern(name, &[]);
        // The last of the paper's patterns is that under load.
        let load = line.contains("hd.html").then(busy);
        let done = finish(child, line, LIMIT);
        drop(sender);
        load.into_iter().flatten().for_each(end);
        assert!(done.status.success(), "{line}: {}", done.stderr);
        if !line.contains("--json") {
            let said = if line.contains("--layers") {
                "cost ns"
            } else {
                " packets = "
            };
            assert!(done.stdout.contains(said), "{line}: {}", done.stdout);
        }
    }
    for line in &reports {
        let words = line.split(' ').skip(1);
        let mut tscap = Command::new(tscap_path());
        let done = run(tscap.args(words).current_dir(folder.path()), SHORT);
        assert!(done.status.success(), "{line}: {}", done.stderr);
        assert!(done.stdout.contains("run "), "{}", done.stdout);
    }
    assert!(folder.path().join("voip.html").exists());
}
