//! A killed capture leaves word of what it owes.

use nix::sys::signal::Signal;
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::capture_on;
use tscap_testkit::command::{SHORT, run, tscap_path};
use tscap_testkit::files;
use tscap_testkit::root::{alone, two_cpus};

use super::JOURNALS;
use super::machine::{cpus_of, journals, make_threaded, poll_threads, restore, rps, warning};

#[test]
fn the_next_capture_warns_and_restore_gives_back() {
    let Some(_lock) = alone(JOURNALS) else {
        return;
    };
    if two_cpus().is_none() {
        return;
    }
    let bench = Bench::new("pin-kill");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let plan = || capture_on(&bench.rx, &path).with(["--hook", "generic", "--rx-cpu", "1"]);
    let killed = plan().ready().stop_with(Signal::SIGKILL);
    assert_eq!(killed.signal, Some(9));
    assert_eq!((rps(&bench.rx).as_str(), journals().len()), ("2", 1));

    // Any capture tells, none restores.
    let next = capture_on(&bench.rx, &path).ready().stop();
    next.success();
    let reported = warning(&next, "killed");
    assert!(
        reported.contains("rx0") && reported.contains("`tscap restore`"),
        "{reported}"
    );
    assert_eq!((rps(&bench.rx).as_str(), journals().len()), ("2", 1));
    // One that changes the same gives back what it found.
    let next = capture_on(&bench.rx, &path)
        .with(["--hook", "generic", "--rx-cpu", "0"])
        .ready();
    assert_eq!((rps(&bench.rx).as_str(), journals().len()), ("1", 2));
    let meanwhile = restore(&bench.rx);
    assert_eq!(meanwhile.status.code(), Some(1), "{}", meanwhile.stdout);
    let yet = format!("yet: process {} is running", next.pid());
    assert!(meanwhile.stderr.contains(&yet), "{}", meanwhile.stderr);
    assert_eq!((rps(&bench.rx).as_str(), journals().len()), ("1", 2));
    next.stop().success();
    assert_eq!((rps(&bench.rx).as_str(), journals().len()), ("2", 1));

    let outside = run(
        std::process::Command::new(tscap_path()).arg("restore"),
        SHORT,
    );
    assert_eq!(outside.status.code(), Some(1), "{}", outside.stderr);
    let inside = format!(
        "hint: ip netns exec {} tscap restore",
        bench.rx.netns.name()
    );
    assert!(outside.stderr.contains(&inside), "{}", outside.stderr);
    assert_eq!((rps(&bench.rx).as_str(), journals().len()), ("2", 1));

    let done = restore(&bench.rx);
    assert_eq!((done.status.code(), done.stderr.as_str()), (Some(0), ""));
    assert_eq!(
        done.stdout,
        "restored the RPS CPUs of rx0's queue 0: none\n"
    );
    assert_eq!((rps(&bench.rx).as_str(), journals().len()), ("0", 0));
    let done = restore(&bench.rx);
    assert_eq!(
        (done.status.code(), done.stdout.as_str()),
        (Some(0), "nothing to restore\n")
    );
}

#[test]
fn poll_threads_and_offloads_are_given_back_too() {
    let Some(_lock) = alone(JOURNALS) else {
        return;
    };
    if two_cpus().is_none() {
        return;
    }
    let bench = Bench::new("pin-all");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    make_threaded(&bench.rx);
    bench.rx.offload("rx-vlan-offload", true);
    let thread = poll_threads("rx0")[0];
    let everywhere = cpus_of(thread);
    let before = bench.rx.offloads();
    let capture = capture_on(&bench.rx, &path)
        .with(["--rx-cpu", "1", "--offloads", "off"])
        .ready();
    assert_eq!(cpus_of(thread), [1]);
    capture.stop_with(Signal::SIGKILL);
    assert_eq!(cpus_of(thread), [1]);
    assert!(!bench.rx.offloads()["rx-vlan-offload"]);
    let done = restore(&bench.rx);
    assert_eq!(done.status.code(), Some(0), "{}", done.stderr);
    for part in ["poll thread", "rx-vlan-hw-parse of rx0: on"] {
        assert!(done.stdout.contains(part), "{part}: {}", done.stdout);
    }
    assert_eq!(cpus_of(thread), everywhere);
    assert_eq!(bench.rx.offloads(), before);
    assert!(journals().is_empty());
}

#[test]
fn a_namespace_that_is_gone_owes_nothing() {
    let Some(_lock) = alone(JOURNALS) else {
        return;
    };
    if two_cpus().is_none() {
        return;
    }
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let bench = Bench::new("pin-ns");
    let plan = capture_on(&bench.rx, &path).with(["--hook", "generic", "--rx-cpu", "1"]);
    plan.ready().stop_with(Signal::SIGKILL);
    drop(bench);
    let done = run(
        std::process::Command::new(tscap_path()).arg("restore"),
        SHORT,
    );
    assert_eq!(done.status.code(), Some(0), "{}", done.stderr);
    assert!(done.stdout.contains("any more"), "{}", done.stdout);
    assert!(journals().is_empty());
}
