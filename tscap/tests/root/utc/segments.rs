//! Files in the places of ClockBound's segment and of VMClock's page.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use nix::time::{ClockId, clock_gettime};
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::{capture_on, clock, qos_on};
use tscap_testkit::command::{SHORT, run, tscap_path};
use tscap_testkit::files;
use tscap_testkit::frame::Frame;
use tscap_testkit::packet_socket::PacketSocket;
use tscap_testkit::recording::Recording;
use tscap_testkit::root::{alone, root};
use tscap_utc::UtcSource;

use super::{by, utc_of};

/// Words that start a program with other files below /run or /dev.
fn with_files(script: &str) -> Vec<String> {
    let script = format!("set -e; {script}; exec \"$@\"");
    let words = [
        "unshare",
        "--mount",
        "--propagation",
        "private",
        "sh",
        "-c",
        &script,
        "sh",
    ];
    words.map(str::to_owned).to_vec()
}

/// ClockBound's segment of version 1, from `file`.
fn with_segment(file: &Path) -> Vec<String> {
    with_files(&format!(
        "mount -t tmpfs tmpfs /run; mkdir /run/clockbound; cp {} /run/clockbound/shm",
        file.display()
    ))
}

/// VMClock's page, which is `file` itself.
fn with_page(file: &Path, folder: &Path) -> Vec<String> {
    let (file, folder) = (file.display(), folder.display());
    with_files(&format!(
        "mount -t tmpfs tmpfs {folder}; \
         cp -a /dev/null /dev/zero /dev/full /dev/random /dev/urandom {folder}; \
         touch {folder}/vmclock0; mount --bind {file} {folder}/vmclock0; \
         mount --move {folder} /dev"
    ))
}

fn octets(length: usize, fields: &[(usize, &[u8])]) -> Vec<u8> {
    let mut octets = vec![0; length];
    for (at, field) in fields {
        octets[*at..at + field.len()].copy_from_slice(field);
    }
    octets
}

fn segment(bound_ns: u64) -> Vec<u8> {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC)
        .expect("a clock")
        .tv_sec();
    octets(
        72,
        &[
            (0, &0x414d_5a4e_u32.to_ne_bytes()),
            (4, &0x4342_0200_u32.to_ne_bytes()),
            (8, &72_u32.to_ne_bytes()),
            (12, &1_u16.to_ne_bytes()),
            (14, &2_u16.to_ne_bytes()),
            (16, &now.to_ne_bytes()),
            (32, &(now + 1_000).to_ne_bytes()),
            (48, &bound_ns.to_ne_bytes()),
            (64, &1_u32.to_ne_bytes()),
        ],
    )
}

/// A page whose UTC stands at `seconds`, good to 50 s, or which has no time.
fn page(seconds: Option<u64>) -> Vec<u8> {
    let flags = if seconds.is_some() { 0x50_u64 } else { 0 };
    octets(
        4096,
        &[
            (0, b"VCLK"),
            (8, &1_u16.to_le_bytes()),
            (10, &[tscap_arch::VMCLOCK_COUNTER]),
            (16, &41_u64.to_le_bytes()),
            (24, &flags.to_le_bytes()),
            (34, &[2]),
            (72, &seconds.unwrap_or(0).to_le_bytes()),
            (96, &50_000_000_000_u64.to_le_bytes()),
        ],
    )
}

fn now_s() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_REALTIME).expect("a clock");
    now.tv_sec().unsigned_abs()
}

#[test]
fn the_bound_of_clockbound_is_in_the_file_and_everywhere() {
    let Some(_lock) = root() else {
        return;
    };
    let bench = Bench::new("utc-files");
    let folder = files::folder();
    let (file, path) = (
        folder.path().join("segment"),
        folder.path().join("out.pcapng"),
    );
    std::fs::write(&file, segment(1_234)).expect("a file");
    let through = with_segment(&file);
    let finished = capture_on(&bench.rx, &path)
        .through(&through)
        .with(["--duration", "0.5"])
        .run();
    let summary = finished.success();
    let utc = summary.clock.utc.as_ref().expect("sources");
    assert_eq!(
        (utc.source, utc.bound_ns),
        (Some(UtcSource::ClockBound), Some(1_234))
    );
    assert_eq!(summary.clock.utc_bound_ns, Some(1_234));
    assert!(summary.clock.synchronised);
    let recording = Recording::read(&path);
    let last = &recording.statistics.last().expect("statistics").custom["clock"];
    assert_eq!(last["utc_bound_ns"], 1_234);
    assert_eq!(last["utc"], serde_json::to_value(utc).expect("JSON"));
    // For people.
    let finished = capture_on(&bench.rx, &path)
        .through(&through)
        .with(["--duration", "0.2", "-v"])
        .human()
        .run();
    let words = "this host's clock within ±1.2 µs of UTC, as ClockBound says";
    assert!(finished.stderr.contains(words), "{}", finished.stderr);
    assert!(
        finished.stderr.contains("published 1.2 µs"),
        "{}",
        finished.stderr
    );
    let finished = clock(&bench.rx.netns)
        .through(&through)
        .with(["--duration", "0.2", "--interval", "0.1"])
        .human()
        .run();
    assert!(
        finished.stdout.contains("as ClockBound says"),
        "{}",
        finished.stdout
    );
    let mut doctor = bench.rx.netns.command(&through[0]);
    let arguments = [tscap_path(), "doctor", "--json"];
    let done = run(doctor.args(&through[1..]).args(arguments), SHORT);
    let report: serde_json::Value = serde_json::from_str(&done.stdout).expect("JSON");
    let checks = report["checks"].as_array().expect("checks");
    let check = checks
        .iter()
        .find(|it| it["id"] == "utc_sources")
        .expect("a check");
    let found = check["found"].as_str().expect("words");
    assert!(
        found.starts_with("±1.2 µs by ClockBound; the kernel"),
        "{found}"
    );
}

#[test]
fn a_host_that_contradicts_vmclock_is_told_so() {
    let Some(_lock) = root() else {
        return;
    };
    let bench = Bench::new("utc-against");
    let folder = files::folder();
    let (file, dev) = (folder.path().join("page"), folder.path().join("dev"));
    std::fs::create_dir(&dev).expect("a folder");
    std::fs::write(folder.path().join("segment"), segment(1_000)).expect("a file");
    // A thousand seconds ahead of the host.
    std::fs::write(&file, page(Some(now_s() + 1_000))).expect("a file");
    let mut through = with_segment(&folder.path().join("segment"));
    // The folder of /run is hidden by then.
    through.extend(with_page(&file, &dev));
    let utc = utc_of(&bench.rx.netns, &through);
    assert_eq!(utc["source"], serde_json::Value::Null, "{utc}");
    let pairs = utc["contradictions"].as_array().expect("pairs");
    assert!(
        pairs.contains(&serde_json::json!(["clockbound", "vmclock"])),
        "{utc}"
    );
    let bound_s = utc["bound_ns"].as_u64().expect("a bound") / 1_000_000_000;
    assert!((1_000..=1_060).contains(&bound_s), "{utc}");
    assert_eq!(by(&utc, "vmclock")["disruption_marker"], 41);
}

/// Why it runs alone.
const TIMED: &str = "stamps of a moment that a busy machine stretches";

#[test]
fn a_disruption_that_vmclock_tells_makes_stamps_ambiguous() {
    let Some(_lock) = alone(TIMED) else {
        return;
    };
    let bench = Bench::new("utc-moved");
    let folder = files::folder();
    let (file, dev) = (folder.path().join("page"), folder.path().join("dev"));
    std::fs::create_dir(&dev).expect("a folder");
    std::fs::write(&file, page(None)).expect("a file");
    let frame = Frame::new(&bench.tx, &bench.rx, 64);
    let socket = PacketSocket::open(&bench.tx);
    let capture = capture_on(&bench.rx, &folder.path().join("out.pcapng"))
        .through(with_page(&file, &dev))
        .ready();
    capture.wait_event("progress");
    let device = OpenOptions::new().write(true).open(&file).expect("a file");
    // While the converter stands, so that frames wait for it that may be of either side.
    capture.freeze();
    assert_eq!(socket.send(&frame, 0..10, 0), 10);
    device
        .write_all_at(&42_u64.to_le_bytes(), 16)
        .expect("a write");
    assert_eq!(socket.send(&frame, 10..20, 0), 10);
    capture.thaw();
    capture.wait_event("disruption");
    let finished = capture.stop();
    let summary = finished.success();
    assert_eq!(summary.written, 20);
    assert_eq!(summary.clock.ambiguous, 20, "{:?}", summary.clock);
    let said = &finished.stderr;
    assert!(
        said.contains("the hypervisor says that the counter was disrupted"),
        "{said}"
    );
}

#[test]
fn a_live_measurement_hears_of_a_disruption_and_names_all_sources() {
    let Some(_lock) = root() else {
        return;
    };
    let bench = Bench::new("utc-live");
    let folder = files::folder();
    let (file, dev) = (folder.path().join("page"), folder.path().join("dev"));
    std::fs::create_dir(&dev).expect("a folder");
    std::fs::write(&file, page(None)).expect("a file");
    let measuring = qos_on(&bench.rx).through(with_page(&file, &dev)).ready();
    let device = OpenOptions::new().write(true).open(&file).expect("a file");
    device
        .write_all_at(&42_u64.to_le_bytes(), 16)
        .expect("a write");
    measuring.wait_line("warning: the hypervisor says that the counter was disrupted");
    let finished = measuring.stop();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let result = finished
        .stdout
        .lines()
        .rfind(|line| line.contains("\"machine\""));
    let result: serde_json::Value = serde_json::from_str(result.expect("a result")).expect("JSON");
    let utc = &result["machine"]["utc"];
    assert_eq!(by(utc, "vmclock")["disruption_marker"], 42);
    assert!(by(utc, "kernel")["max_error_ns"].is_u64(), "{utc}");
}
