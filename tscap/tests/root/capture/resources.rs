//! Memory, start-up time, wake-ups, and the ring's size in practice.

use std::time::{Duration, Instant};

use nix::unistd::Pid;
use tscap_host::process::cpu_time;
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::{Capture, capture_on};
use tscap_testkit::files;
use tscap_testkit::frame::Frame;
use tscap_testkit::live::LiveSender;
use tscap_testkit::process;
use tscap_testkit::root::{alone, root};

/// Number and size in bytes of the rings, once the capture is ready.
fn rings(capture: &Capture) -> (u64, u64) {
    let ready = capture.wait_event("ready");
    let number = |name: &str| ready[name].as_u64().expect("a number");
    (number("rings"), number("ring_bytes"))
}

#[test]
fn memory_is_the_rings_and_little_more() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("memory");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let frame = Frame::new(&bench.tx, &bench.rx, 64);
    let mut sender = LiveSender::open(&bench.tx);
    let capture = capture_on(&bench.rx, &path).start();
    let (count, bytes) = rings(&capture);
    assert_eq!(
        count,
        process::cpus().len() as u64,
        "a ring for each CPU online"
    );
    assert!((16 << 20..=64 << 20).contains(&bytes), "{bytes}");
    sender.send(&frame, 1_000_000, 0);
    let resident = process::resident_bytes(capture.pid());
    assert!(
        resident <= count * bytes + (64 << 20),
        "{resident} bytes, rings {count} × {bytes}"
    );
    capture.stop().success();
}

#[test]
fn it_is_ready_within_a_second() {
    let Some(_lock) = alone("measures times") else {
        return;
    };
    let bench = Bench::new("start");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    // The machine may be busy with something else for once: the best of five.
    let times = (0..5).map(|_| {
        let start = Instant::now();
        let capture = capture_on(&bench.rx, &path).ready();
        let took = start.elapsed();
        capture.stop().success();
        took
    });
    let best = times.min().expect("five times");
    assert!(best < Duration::from_secs(1), "{best:?}");
}

#[test]
fn an_idle_capture_hardly_wakes_up() {
    const SECONDS: u64 = 3;
    let Some(_lock) = alone("measures times") else {
        return;
    };
    let bench = Bench::new("idle");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let capture = capture_on(&bench.rx, &path).ready();
    // It settles, which nothing tells. Then count while nothing happens at all.
    std::thread::sleep(Duration::from_millis(500));
    let pid = Pid::from_raw(capture.pid().cast_signed());
    let cpu = || cpu_time(pid).expect("its CPU time");
    let before = (process::sleeps(capture.pid()), cpu());
    std::thread::sleep(Duration::from_secs(SECONDS));
    let sleeps = process::sleeps(capture.pid()) - before.0;
    let busy = cpu() - before.1;
    capture.stop().success();
    assert!(sleeps <= 150 * SECONDS, "{} a second", sleeps / SECONDS);
    assert!(busy < Duration::from_millis(100 * SECONDS), "{busy:?}");
}

#[test]
fn a_burst_of_the_rings_size_right_after_idle_loses_nothing() {
    let Some(_lock) = alone("measures times") else {
        return;
    };
    let bench = Bench::new("burst");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let mut sender = LiveSender::open(&bench.tx);
    let capture = capture_on(&bench.rx, &path).start();
    let (_, bytes) = rings(&capture);
    let mut sent = 0;
    for size in [64, 1514, 64] {
        // A block: 32 bytes around the padded frame.
        let frame = Frame::new(&bench.tx, &bench.rx, size);
        let block = (size as u64).next_multiple_of(4) + 32;
        if sent > 0 {
            capture.wait_event_with("progress", |progress| progress["written"] == sent);
        }
        // So long that the converter sleeps as long as it ever does.
        std::thread::sleep(Duration::from_millis(300));
        sent += sender.send(&frame, bytes / block, 0);
    }
    let finished = capture.stop();
    let summary = finished.success();
    assert_eq!(
        (summary.seen, summary.written),
        (sent, sent),
        "{:?}",
        summary.outcomes
    );
}

#[test]
fn the_converter_runs_where_it_is_told() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("cpu");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let cpu = process::cpus().last().copied().expect("a CPU").to_string();
    let capture = capture_on(&bench.rx, &path)
        .with(["--converter-cpu", &cpu])
        .ready();
    let folder = format!("/proc/{}/task", capture.pid());
    let pinned = std::fs::read_dir(folder).expect("threads").any(|task| {
        let status = task.expect("a thread").path().join("status");
        let status = std::fs::read_to_string(status).expect("its status");
        status.lines().any(|line| {
            line.strip_prefix("Cpus_allowed_list:")
                .is_some_and(|list| list.trim() == cpu)
        })
    });
    assert!(pinned, "no thread is pinned to CPU {cpu}");
    capture.stop().success();
}
