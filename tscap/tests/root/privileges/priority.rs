//! `--priority`: the converter alone runs in real time, and leaves its core to others at times.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tscap_host::process::thread_cpu_time;
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::capture_on;
use tscap_testkit::files;
use tscap_testkit::frame::Frame;
use tscap_testkit::live::LiveSender;
use tscap_testkit::packet_socket::PacketSocket;
use tscap_testkit::process::on_cpu;
use tscap_testkit::root::{alone, root, root_with, two_cpus};

use super::status::{self, NOBODY};

const CONVERTER: &str = "tscap-converter";
/// SCHED_FIFO (`linux/sched.h`).
const FIFO: u32 = 1;

/// Name, real-time priority and policy of each thread: fields 2, 40 and 41 of its `stat`.
fn scheduling(pid: u32) -> Vec<(String, u32, u32)> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("a running process");
    let stats = tasks.map(|task| task.expect("an entry").path().join("stat"));
    stats.map(|path| scheduling_of(&path)).collect()
}

fn scheduling_of(path: &PathBuf) -> (String, u32, u32) {
    let stat = fs::read_to_string(path).expect("a thread");
    let (start, rest) = stat.rsplit_once(')').expect("a name");
    let (_, name) = start.split_once('(').expect("a name");
    let fields: Vec<_> = rest.split_whitespace().collect();
    let number = |field: usize| fields[field - 3].parse().expect("a number");
    (name.to_owned(), number(40), number(41))
}

#[test]
fn the_converter_alone_runs_in_real_time() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("fifo");
    for words in [&["--priority=7"][..], &["--priority=7", "-Z", NOBODY]] {
        let folder = files::public_folder();
        let path = folder.path().join("out.pcapng");
        let capture = capture_on(&bench.rx, &path).with(words).start();
        assert_eq!(capture.wait_event("ready")["priority"], 7);
        for (name, priority, policy) in scheduling(capture.pid()) {
            let expected = if name == CONVERTER { (7, FIFO) } else { (0, 0) };
            assert_eq!((priority, policy), expected, "{name}");
        }
        status::wait_for(capture.pid(), |_, it| it.capabilities == 0);
        let frame = Frame::new(&bench.tx, &bench.rx, 100);
        PacketSocket::open(&bench.tx).send(&frame, 0..50, 0);
        let summary = capture.stop().success();
        assert_eq!(summary.written, 50);
        assert_eq!(summary.priority.expect("it is told").priority, 7);
    }
    let folder = files::folder();
    let capture = capture_on(&bench.rx, &folder.path().join("out.pcapng")).ready();
    let normal = scheduling(capture.pid())
        .iter()
        .all(|it| (it.1, it.2) == (0, 0));
    assert!(normal, "nobody asked for it");
    assert_eq!(capture.stop().success().priority, None);
}

#[test]
fn programs_on_its_files_do_not() {
    let Some(_lock) = root_with(&["ip", "ethtool", "sh", "cp"]) else {
        return;
    };
    let bench = Bench::new("fifo-z");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let script = folder.path().join("look");
    files::make_script(&script, "#!/bin/sh\ncp /proc/self/stat \"$1.stat\"\n");
    let script = script.display().to_string();
    let words = ["--priority", "-Z", "root", "-C", "1k", "-z", &script];
    let capture = capture_on(&bench.rx, &path).with(words).ready();
    let frame = Frame::new(&bench.tx, &bench.rx, 60);
    PacketSocket::open(&bench.tx).send(&frame, 0..50, 0);
    let summary = capture.stop().success();
    assert_eq!(summary.written, 50);
    let (_, priority, policy) = scheduling_of(&folder.path().join("out.pcapng.stat"));
    assert_eq!((priority, policy), (0, 0));
}

#[test]
fn without_the_capability_it_is_refused() {
    let Some(_lock) = root_with(&["ip", "ethtool", "setpriv"]) else {
        return;
    };
    let bench = Bench::new("fifo-no");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let finished = capture_on(&bench.rx, &path)
        .with(["--priority=50"])
        .through(["setpriv", "--bounding-set=-sys_nice"])
        .run();
    finished.failure(
        1,
        &[
            "real-time priority 50",
            "not permitted",
            "leave out --priority",
        ],
    );
    assert_eq!(bench.rx.xdp_program(), None);
}

/// A thread of the normal policy on the converter's core, while that is as busy as can be.
#[test]
fn another_thread_on_its_core_gets_on() {
    let Some(_lock) = root() else { return };
    let Some((sender, converter)) = two_cpus() else {
        return;
    };
    let bench = Bench::new("fifo-share");
    let frame = Frame::new(&bench.tx, &bench.rx, 60);
    let capture = capture_on(&bench.rx, &PathBuf::from("/dev/null"))
        .with(["--priority=99", "--converter-cpu", &converter.to_string()])
        .ready();
    let is_over = AtomicBool::new(false);
    let part = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut live = LiveSender::open(&bench.tx);
            while !is_over.load(Ordering::Relaxed) {
                live.pour(&frame, 100_000, sender);
            }
        });
        let part = on_cpu(converter, || {
            let (begun, before) = (Instant::now(), thread_cpu_time().expect("CPU time"));
            while begun.elapsed() < Duration::from_secs(2) {}
            let used = thread_cpu_time().expect("CPU time") - before;
            used.as_secs_f64() / begun.elapsed().as_secs_f64()
        });
        is_over.store(true, Ordering::Relaxed);
        part
    });
    let summary = capture.stop().success();
    println!("{:.1} % was left; {:?}", 100.0 * part, summary.priority);
    assert!(part > 0.04, "{part}");
}

/// A converter that has much to catch up with uses its core without a pause but for its rests.
#[test]
fn it_rests_while_it_catches_up() {
    const FRAMES: u64 = 2_000_000;
    let Some(_lock) = alone("fills a CPU") else {
        return;
    };
    let Some((sender, converter)) = two_cpus() else {
        return;
    };
    let bench = Bench::new("fifo-rest");
    let capture = capture_on(&bench.rx, &PathBuf::from("/dev/null"))
        .with(["--priority", "--ring-size", "256M"])
        .with(["--converter-cpu", &converter.to_string()])
        .ready();
    capture.freeze();
    let frame = Frame::new(&bench.tx, &bench.rx, 60);
    LiveSender::open(&bench.tx).send(&frame, FRAMES, sender);
    capture.thaw();
    let summary = capture.stop().success();
    assert_eq!(summary.written, FRAMES);
    let rested = summary.priority.expect("it is told");
    println!("{rested:?}");
    // Each time a twentieth of 100 ms, less what the thread left by itself.
    assert!(
        rested.rests > 0 && rested.rested_ns > 1_000_000,
        "{rested:?}"
    );
}

/// What it is for. `--nocapture` shows the frames lost without and with it.
#[test]
fn fewer_frames_are_lost_beside_busy_programs() {
    let Some(_lock) = alone("fills two CPUs, and what is lost depends on others") else {
        return;
    };
    let Some(cpus) = two_cpus() else {
        return;
    };
    let bench = Bench::new("fifo-busy");
    let [normal, real_time] =
        [&[][..], &["--priority"]].map(|words| lost_beside_others(&bench, words, cpus));
    println!("lost of {BESIDE_OTHERS} frames: {normal}, with --priority {real_time}");
    // On a machine that is busy anyway the frames may come too slowly to be lost.
    assert!(real_time <= normal, "{real_time} and {normal}");
}

/// Frames sent flat out beside others: for about a second.
const BESIDE_OTHERS: u64 = 1_000_000;
/// Threads of the normal policy on the converter's core.
const OTHERS: usize = 4;

/// How many frames a capture loses while others want the converter's core all the time.
fn lost_beside_others(bench: &Bench, words: &[&str], (sender, converter): (usize, usize)) -> u64 {
    let capture = capture_on(&bench.rx, &PathBuf::from("/dev/null"))
        .with(["--ring-size", "256K", "--converter-cpu"])
        .with([converter.to_string()])
        .with(words)
        .ready();
    let frame = Frame::new(&bench.tx, &bench.rx, 60);
    let mut live = LiveSender::open(&bench.tx);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..OTHERS {
            scope.spawn(|| {
                on_cpu(converter, || {
                    while !is_over.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                });
            });
        }
        scope.spawn(|| {
            live.send(&frame, BESIDE_OTHERS, sender);
            is_over.store(true, Ordering::Relaxed);
        });
    });
    let summary = capture.stop().accounted();
    summary.seen - summary.written
}
