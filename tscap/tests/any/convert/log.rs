//! By a log that another process kept.

use std::fs;

use serde_json::Value;
use tempfile::TempDir;
use tscap_clock::scripted::Host;
use tscap_clock::{RawStamp, StampPath};
use tscap_file::pcapng::Packet;
use tscap_references::log::{Header, LogWriter};

use super::script::{
    BOOT, LENGTH, MS, capture, capture_by, convert, errors, file, headers, log, log_with, packet,
    packets, refuses_with, slewed, slewed_capture, without_times,
};

/// What was said, and the converted capture.
fn by_log(folder: &TempDir, bytes: &[u8], log: &str) -> (Value, Vec<u8>) {
    let path = folder.path().join("out.pcapng");
    let output = convert(&file(folder, bytes), &path, &["--clock-log", log, "--json"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let json = serde_json::from_slice(&output.stdout).unwrap();
    (json, fs::read(&path).unwrap())
}

#[test]
fn a_log_does_what_the_own_history_does() {
    let folder = tempfile::tempdir().unwrap();
    let (bytes, truths) = slewed_capture(true);
    let log = log(&folder, &slewed(), 0, LENGTH + 1_000 * MS);
    let log = log.to_str().unwrap();
    let (json, converted) = by_log(&folder, &bytes, log);
    assert_eq!(
        (&json["left"], &json["is_log_torn"]),
        (&0.into(), &false.into())
    );
    assert!(without_times(&bytes) == without_times(&converted));
    let (live, by_log) = (errors(&bytes, &truths), errors(&converted, &truths));
    assert!(by_log.p50 <= live.p50, "{live:?} {by_log:?}");
    assert!(
        by_log.p99.unwrap() * 2 <= live.p99.unwrap(),
        "{live:?} {by_log:?}"
    );
    let bound = json["bound_ns"]["p99"].as_i64().unwrap();
    // In each second the clock bends by up to 1,000 ppm in the 10 ms of a drain.
    assert!(
        by_log.p99.unwrap() <= bound && bound < 11_000,
        "{bound} {by_log:?}"
    );
    // Both are within some tens of ns of the truth, and so of each other.
    let own = folder.path().join("own.pcapng");
    assert!(convert(&file(&folder, &bytes), &own, &[]).status.success());
    let own = packets(&fs::read(own).unwrap());
    let pairs = own.iter().zip(packets(&converted));
    let mut apart: Vec<u64> = pairs.map(|(a, b)| a.time.0.abs_diff(b.time.0)).collect();
    apart.sort_unstable();
    assert!(apart[apart.len() * 99 / 100] <= 100, "{:?}", apart.last());
}

/// A capture that was killed before its first statistics has no clock of its own.
#[test]
fn a_log_serves_a_capture_without_statistics() {
    let folder = tempfile::tempdir().unwrap();
    let (bytes, truths) = slewed_capture(true);
    let header = headers().take().len();
    let killed = &bytes[..header + 100 * packet(RawStamp(0), 0, true).len()];
    let log = log(&folder, &slewed(), 0, 20_000 * MS);
    let (json, converted) = by_log(&folder, killed, log.to_str().unwrap());
    assert_eq!((&json["packets"], &json["left"]), (&100.into(), &0.into()));
    let (live, by_log) = (
        errors(killed, &truths[..100]),
        errors(&converted, &truths[..100]),
    );
    assert!(by_log.max <= live.max, "{live:?} {by_log:?}");
}

#[test]
fn what_the_log_does_not_tell_is_left_and_said() {
    let folder = tempfile::tempdir().unwrap();
    let (bytes, _) = slewed_capture(true);
    // Two processes, and nothing from the 20th to the 30th second, nor from the 50th on.
    let host = slewed();
    log(&folder, &host, 0, 20_000 * MS);
    let path = log(&folder, &host, 30_000 * MS, 50_000 * MS);
    let (json, converted) = by_log(&folder, &bytes, path.to_str().unwrap());
    let spans = json["left_spans"].as_array().unwrap();
    let reported: Vec<_> = spans
        .iter()
        .map(|span| {
            let time = |key: &str| span[key].as_u64().unwrap() - host.real(0);
            (time("from") / 1_000_000_000, time("until") / 1_000_000_000)
        })
        .collect();
    // Of each second there is a reading somewhere.
    let is_near = |time: u64, second: u64| time.abs_diff(second) <= 1;
    let [gap, end] = reported[..] else {
        panic!("{reported:?}");
    };
    assert!(is_near(gap.0, 20) && is_near(gap.1, 30), "{gap:?}");
    assert!(is_near(end.0, 50) && is_near(end.1, 60), "{end:?}");
    let left: u64 = spans
        .iter()
        .map(|span| span["packets"].as_u64().unwrap())
        .sum();
    assert_eq!(json["left"], left);
    let (before, after) = (packets(&bytes), packets(&converted));
    let untold = before.iter().zip(&after).filter(|(before, _)| {
        let second = (before.time.0 - host.real(0)) / 1_000_000_000;
        (22..28).contains(&second) || second >= 52
    });
    for (before, after) in untold {
        assert_eq!(before.time, after.time);
    }
    let text = convert(
        &file(&folder, &bytes),
        &folder.path().join("text.pcapng"),
        &["--clock-log", path.to_str().unwrap()],
    );
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(
        text.contains("clock.log does not tell their time better"),
        "{text}"
    );
    assert!(text.contains("Z to 20"), "{text}");
}

/// Nobody knows what the clock did meanwhile, though it is one process, and one segment.
#[test]
fn a_process_that_was_stopped_leaves_a_hole() {
    let folder = tempfile::tempdir().unwrap();
    // It leaves its line meanwhile, by a millisecond, and comes back to it.
    let slews = [(0, 0), (22_000, 500_000), (24_000, -500_000), (26_000, 0)];
    let host = Host {
        hertz: 2_596_130_000,
        slews: slews.map(|(ms, ppb)| (ms * MS, ppb)).to_vec(),
    };
    let (bytes, _) = capture(&host, true);
    let hole = 20_000 * MS..30_000 * MS;
    let path = log_with(&folder, &host, 0, LENGTH, |t| {
        (!hole.contains(&t)).then_some(0)
    });
    let (_, converted) = by_log(&folder, &bytes, path.to_str().unwrap());
    let mut within = 0;
    for (before, after) in packets(&bytes).iter().zip(packets(&converted)) {
        let second = (before.time.0 - host.real(0)) / 1_000_000_000;
        if (22..28).contains(&second) {
            within += 1;
            assert_eq!(before.time, after.time);
        }
    }
    assert!(within >= 1_700, "{within}");
}

/// The same of stamps whose offset is constant: it was set, and set back meanwhile.
#[test]
fn a_hole_is_one_for_stamps_of_the_kernels_clock_too() {
    let folder = tempfile::tempdir().unwrap();
    let host = slewed();
    let ahead = |t| {
        if (22_000 * MS..26_000 * MS).contains(&t) {
            1_000_000_000
        } else {
            0
        }
    };
    let (bytes, _) = capture_by(StampPath::Ktime, &host, true, |t| (ahead(t), 37), |_| 0);
    let hole = 20_000 * MS..30_000 * MS;
    let path = log_with(&folder, &host, 0, LENGTH, |t| {
        (!hole.contains(&t)).then_some(0)
    });
    let (json, converted) = by_log(&folder, &bytes, path.to_str().unwrap());
    let is_within = |packet: &&(Packet, Packet)| hole.contains(&packet.0.raw.unwrap().0);
    let pairs: Vec<_> = packets(&bytes)
        .into_iter()
        .zip(packets(&converted))
        .collect();
    let within: Vec<_> = pairs.iter().filter(is_within).collect();
    assert!(within.len() >= 2_990, "{}", within.len());
    assert!(
        within
            .iter()
            .all(|(before, after)| before.time == after.time)
    );
    // Each second has a reading on either side of it.
    let left = json["left"].as_u64().unwrap();
    assert!((2_990..=3_610).contains(&left), "{left}");
    assert_eq!(json["left_spans"].as_array().unwrap().len(), 1, "{json}");
}

/// A clock that was set again and again, long after the capture.
#[test]
fn segments_far_from_the_capture_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let (bytes, _) = slewed_capture(true);
    let (quiet, every) = (LENGTH + 80_000 * MS, 10_000 * MS);
    let path = log_with(&folder, &slewed(), 0, quiet + 12 * every, |t| {
        let steps = t.saturating_sub(quiet) / every;
        i64::try_from(steps * 5 * MS).ok()
    });
    let entries = fs::read_to_string(&path).unwrap();
    assert!(entries.matches("\"cause\":\"set\"").count() >= 10);
    let (json, _) = by_log(&folder, &bytes, path.to_str().unwrap());
    assert_eq!((&json["segments"], &json["left"]), (&1.into(), &0.into()));
}

#[test]
fn a_torn_log_is_used_up_to_there() {
    let folder = tempfile::tempdir().unwrap();
    let (bytes, _) = slewed_capture(true);
    let path = log(&folder, &slewed(), 0, LENGTH);
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() - 100]).unwrap();
    let (json, _) = by_log(&folder, &bytes, path.to_str().unwrap());
    assert_eq!(json["is_log_torn"], true);
    assert_eq!(json["left_spans"].as_array().unwrap().len(), 1);
}

#[test]
fn a_log_that_does_not_fit_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (bytes, _) = slewed_capture(true);
    let path = log(&folder, &slewed(), 0, 20_000 * MS);
    let name = path.to_str().unwrap();
    let refuses = |parts: &[&str]| refuses_with(&folder, &bytes, &["--clock-log", name], parts);
    refuses(&[
        "the log tells of 32 % of the capture's time",
        "hint: give a log that was kept while the capture ran",
    ]);
    fs::remove_file(&path).unwrap();
    drop(LogWriter::open(&path, "boot-2").unwrap());
    refuses(&["of another boot of the machine (boot-2) than the capture (boot-1)"]);
    let header = serde_json::to_string(&Header::new(BOOT)).unwrap();
    fs::write(&path, format!("{header}\n{{\"moon\":1}}\n")).unwrap();
    refuses(&[
        "line 2 of the clock log is damaged",
        "convert without --clock-log",
    ]);
    fs::write(&path, "hello\n").unwrap();
    refuses(&[
        "not a clock log",
        "hint: give what `tscap clock --log` wrote",
    ]);
    fs::remove_file(&path).unwrap();
    refuses(&["cannot open", "No such file"]);
}

#[test]
fn a_capture_that_names_no_boot_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (mut bytes, _) = slewed_capture(true);
    let name = b"\"boot_id\"";
    let at = bytes
        .windows(name.len())
        .position(|part| part == name)
        .unwrap();
    bytes[at + 1] = b'x';
    let path = log(&folder, &slewed(), 0, LENGTH);
    let more = ["--clock-log", path.to_str().unwrap()];
    let parts = [
        "does not say of which boot",
        "hint: convert it by its own history",
    ];
    refuses_with(&folder, &bytes, &more, &parts);
}
