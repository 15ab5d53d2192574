//! The process that gives settings back.

use std::fs;
use std::path::Path;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::{Capture, capture, capture_on};
use tscap_testkit::command::{SHORT, run, tscap_path};
use tscap_testkit::files;
use tscap_testkit::root::alone;
use tscap_testkit::wait;

use super::status::NOBODY;

const JOURNALS: &str = "it looks at all journals of the machine";

fn journals() -> usize {
    let entries = fs::read_dir("/run/tscap").into_iter().flatten().flatten();
    let is_journal = |path: &Path| path.extension().is_some_and(|it| it == "json");
    entries.filter(|entry| is_journal(&entry.path())).count()
}

fn changing(bench: &Bench, folder: &Path) -> Capture {
    let path = folder.join("out.pcapng");
    let plan = capture_on(&bench.rx, &path).with(["--offloads", "off", "-Z", NOBODY]);
    plan.ready()
}

/// `kill -9` of the capture leaves nothing changed.
#[test]
fn a_killed_capture_is_cleaned_up_after() {
    let Some(_lock) = alone(JOURNALS) else { return };
    let bench = Bench::new("keep-kill");
    bench.rx.offload("rx-vlan-offload", true);
    let before = bench.rx.offloads();
    let folder = files::folder();
    let capture = changing(&bench, folder.path());
    assert!(!bench.rx.offloads()["rx-vlan-offload"]);
    assert_eq!(journals(), 1);
    let keeper = capture.keeper().expect("a keeper");
    // A service manager signals all processes: the capture decides when the keeper ends.
    let signals = [
        Signal::SIGINT,
        Signal::SIGTERM,
        Signal::SIGHUP,
        Signal::SIGUSR1,
        Signal::SIGUSR2,
        Signal::SIGALRM,
        Signal::SIGPWR,
    ];
    for signal in signals {
        kill(Pid::from_raw(keeper.cast_signed()), signal).expect("signal the keeper");
    }
    capture.signal(Signal::SIGKILL);
    assert_eq!(capture.wait().signal, Some(9));
    let is_over = || !Path::new(&format!("/proc/{keeper}")).exists();
    let what = "the keeper to end";
    wait::until(what, Duration::from_secs(10), || is_over().then_some(()));
    assert_eq!(bench.rx.offloads(), before);
    assert_eq!(journals(), 0);
}

/// `kill -9` while it starts leaves nothing changed either: the keeper is there before the first
/// change.
#[test]
fn a_capture_that_is_killed_while_it_starts_is_cleaned_up_after() {
    let Some(_lock) = alone(JOURNALS) else { return };
    let bench = Bench::new("keep-early");
    // So that it starts for a while after the first change.
    let mut ports = vec![bench.rx.name.clone()];
    let pairs: Vec<_> = (1..=20).map(|number| bench.add_pair(number)).collect();
    ports.extend(pairs.iter().map(|(_, rx)| rx.name.clone()));
    let all = || pairs.iter().map(|(_, rx)| rx).chain([&bench.rx]);
    all().for_each(|rx| rx.offload("rx-vlan-offload", true));
    let offloads = || all().map(|rx| rx.offloads()).collect::<Vec<_>>();
    let before = offloads();
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let interfaces = ports.iter().flat_map(|port| ["-i", port]);
    let capture = capture(&bench.rx.netns)
        .with(interfaces)
        .with(["--offloads", "off", "-Z", NOBODY])
        .to(&path)
        .start();
    let is_changed = || (!bench.rx.offloads()["rx-vlan-offload"]).then_some(());
    wait::until("the first change", Duration::from_secs(60), is_changed);
    capture.signal(Signal::SIGKILL);
    let killed = capture.wait();
    assert_eq!(killed.signal, Some(9), "{}", killed.stderr);
    assert!(!killed.stderr.contains("ready: "), "{}", killed.stderr);
    let what = "everything to be given back";
    wait::until(what, Duration::from_secs(30), || {
        (offloads() == before && journals() == 0).then_some(())
    });
}

/// Without its keeper a capture goes on, and its end says what is to be done.
#[test]
fn a_killed_keeper_leaves_the_journal() {
    let Some(_lock) = alone(JOURNALS) else { return };
    let bench = Bench::new("keep-lost");
    bench.rx.offload("rx-vlan-offload", true);
    let before = bench.rx.offloads();
    let folder = files::folder();
    let capture = changing(&bench, folder.path());
    let keeper = capture.keeper().expect("a keeper");
    kill(Pid::from_raw(keeper.cast_signed()), Signal::SIGKILL).expect("kill the keeper");
    let reported = "tscap: the process that gives settings back (tscap-keeper) has ended";
    capture.wait_line(reported);
    let finished = capture.stop();
    finished.accounted();
    // Something is left changed.
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    let reported = [
        "warning: cannot tell whether settings were restored",
        "tscap restore",
    ];
    assert!(
        reported.iter().all(|it| finished.stderr.contains(it)),
        "{}",
        finished.stderr
    );
    assert_ne!(bench.rx.offloads(), before);
    let done = run(bench.rx.netns.command(tscap_path()).arg("restore"), SHORT);
    assert_eq!(done.status.code(), Some(0), "{}", done.stderr);
    assert_eq!((bench.rx.offloads(), journals()), (before, 0));
}

/// By hand it is of no use, and says so.
#[test]
fn nobody_else_starts_one() {
    let done = run(
        std::process::Command::new(tscap_path()).arg("keep-settings"),
        SHORT,
    );
    assert_eq!(done.status.code(), Some(1));
    let reported = "hint: tscap capture starts this command itself";
    assert!(done.stderr.contains(reported), "{}", done.stderr);
}
