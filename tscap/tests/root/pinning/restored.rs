//! However a capture ends, it gives everything back.

use aya::programs::XdpMode;
use nix::sys::signal::Signal;
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::{Plan, capture_on};
use tscap_testkit::files;
use tscap_testkit::port::Port;
use tscap_testkit::probes::Attached;
use tscap_testkit::root::{alone, two_cpus};

use super::JOURNALS;
use super::machine::{journals, rps, set_rps, warning};

fn pinned<'a>(port: &'a Port, folder: &tempfile::TempDir) -> Plan<'a> {
    let path = folder.path().join("out.pcapng");
    capture_on(port, &path).with(["--hook", "generic", "--rx-cpu", "0"])
}

#[test]
fn after_every_kind_of_end() {
    let Some(_lock) = alone(JOURNALS) else {
        return;
    };
    if two_cpus().is_none() {
        return;
    }
    let bench = Bench::new("pin-end");
    let folder = files::folder();
    set_rps(&bench.rx, "2");
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        let capture = pinned(&bench.rx, &folder).ready();
        assert_eq!((rps(&bench.rx).as_str(), journals().len()), ("1", 1));
        capture.stop_with(signal).success();
        assert_eq!((rps(&bench.rx).as_str(), journals().len()), ("2", 0));
    }
    let finished = pinned(&bench.rx, &folder).with(["--duration", "0.1"]).run();
    finished.success();
    assert_eq!((rps(&bench.rx).as_str(), journals().len()), ("2", 0));
}

#[test]
fn after_a_start_that_fails() {
    let Some(_lock) = alone(JOURNALS) else {
        return;
    };
    let bench = Bench::new("pin-fail");
    let folder = files::folder();
    let (_tx1, rx1) = bench.add_pair(1);
    // The second interface is taken: by then the first has been steered.
    let _program = Attached::pass(&rx1, XdpMode::Skb);
    bench.rx.offload("rx-vlan-offload", true);
    let finished = pinned(&bench.rx, &folder)
        .on(&rx1)
        .with(["--offloads", "off", "-v"])
        .run();
    finished.failure(1, &["rx1", "already has XDP program"]);
    let reported = "RPS CPUs of rx0's queue 0: 0 instead of none";
    assert!(finished.stderr.contains(reported), "{}", finished.stderr);
    assert_eq!((rps(&bench.rx).as_str(), journals().len()), ("0", 0));
    assert!(bench.rx.offloads()["rx-vlan-offload"]);
}

#[test]
fn what_somebody_else_has_set_stays() {
    let Some(_lock) = alone(JOURNALS) else {
        return;
    };
    if two_cpus().is_none() {
        return;
    }
    let bench = Bench::new("pin-else");
    let folder = files::folder();
    let capture = pinned(&bench.rx, &folder).ready();
    set_rps(&bench.rx, "3");
    let finished = capture.stop();
    finished.success();
    let warning = warning(&finished, "RPS CPUs of rx0's queue 0");
    assert!(
        warning.contains("0-1 now, not 0 as tscap set it"),
        "{warning}"
    );
    assert_eq!((rps(&bench.rx).as_str(), journals().len()), ("3", 0));
}

#[test]
fn an_interface_that_goes_away_takes_its_settings_along() {
    let Some(_lock) = alone(JOURNALS) else {
        return;
    };
    let bench = Bench::new("pin-gone");
    let folder = files::folder();
    let capture = pinned(&bench.rx, &folder).ready();
    bench.rx.netns.ip(&["link", "delete", "rx0"]);
    let finished = capture.wait();
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    finished.accounted();
    assert!(journals().is_empty());
}
