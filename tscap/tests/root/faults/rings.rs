//! Rings that can't be made.

use tscap_testkit::bench::Bench;
use tscap_testkit::capture::capture_on;
use tscap_testkit::files;
use tscap_testkit::process;
use tscap_testkit::root::{root, root_with};

#[test]
fn sizes_that_no_ring_has_are_usage_errors() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("ring-size");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    for size in ["3M", "0", "4K", "64K", "512M", "1T", "-1", "lots"] {
        let size = format!("--ring-size={size}");
        let finished = capture_on(&bench.rx, &path).with([&size]).run();
        assert_eq!(finished.code, Some(2), "{size}: {}", finished.stderr);
        assert!(
            finished.stderr.contains("--ring-size"),
            "{size}: {}",
            finished.stderr
        );
        assert!(!path.exists(), "{size}: a file was left");
    }
}

#[test]
fn rings_that_memory_has_no_room_for() {
    let programs = ["ip", "ethtool", "prlimit"];
    let Some(_lock) = root_with(&programs) else {
        return;
    };
    let bench = Bench::new("ring-memory");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    // A little less address space than the rings take, one of each CPU: enough for all else.
    let cpus = process::cpus().len();
    let limit = format!("--as={}", cpus * (256 << 20) - 1);
    let plan = capture_on(&bench.rx, &path).with(["--ring-size", "256M"]);
    plan.through(["prlimit", &limit])
        .run()
        .failure(1, &["ring", "memory"]);
    assert!(!path.exists(), "a file was left");
    assert_eq!((bench.rx.xdp_program(), bench.rx.promiscuity()), (None, 0));
}

#[test]
fn a_cpu_that_is_not_there() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("no-cpu");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let finished = capture_on(&bench.rx, &path)
        .with(["--converter-cpu", "9999"])
        .run();
    finished.failure(1, &["9999", "CPU"]);
    assert!(!path.exists(), "a file was left");
    assert_eq!(bench.rx.xdp_program(), None);
}
