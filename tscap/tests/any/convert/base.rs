//! To other clocks than CLOCK_REALTIME.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use tscap_clock::scripted::EPOCH;
use tscap_clock::{RawStamp, StampPath, TimeBase};
use tscap_file::pcapng::{Packet, Record, records};
use tscap_testkit::recording::Recording;

use super::script::{
    LENGTH, MS, capture_by, capture_with, convert, file, headers, log, log_with, packet, packets,
    refuses_with, slewed, slewed_capture,
};

const S: u64 = 1_000_000_000;

/// A copy by these arguments.
fn converted(folder: &TempDir, bytes: &[u8], more: &[&str]) -> Vec<u8> {
    let path = folder.path().join("out.pcapng");
    let output = convert(&file(folder, bytes), &path, more);
    assert_eq!(output.status.code(), Some(0), "{more:?}: {output:?}");
    fs::read(&path).unwrap()
}

/// What its interface says.
fn time_base(bytes: &[u8]) -> TimeBase {
    let mut records = records(bytes).unwrap().map(Result::unwrap);
    let first = records.nth(1).expect("an interface");
    let Record::Interface(interface) = first else {
        panic!("{first:?}");
    };
    interface.tscap.expect("it is ours").time_base
}

/// What the last statistics call the end, ns.
fn statistics_end(folder: &TempDir, bytes: &[u8]) -> u64 {
    let recording = Recording::read(&file(folder, bytes));
    let statistics = recording.last_statistics(0);
    assert_eq!(statistics.end, Some(statistics.nanos));
    statistics.nanos
}

/// Packets but for their times.
fn contents(bytes: &[u8]) -> Vec<(Option<RawStamp>, Vec<u8>)> {
    let packets = packets(bytes).into_iter();
    let contents = packets.map(|Packet { raw, data, .. }| (raw, data));
    contents.collect()
}

#[test]
fn there_and_back_is_the_same() {
    let folder = tempfile::tempdir().unwrap();
    for keep_raw in [true, false] {
        let (real, _) = slewed_capture(keep_raw);
        for (base, name) in [(TimeBase::Tai, "tai"), (TimeBase::Monotonic, "monotonic")] {
            let there = converted(&folder, &real, &["--time-base", name]);
            assert_eq!(
                (time_base(&real), time_base(&there)),
                (TimeBase::Realtime, base)
            );
            assert!(contents(&there) == contents(&real), "{base:?}");
            let pairs = packets(&real).into_iter().zip(packets(&there));
            let mut apart: Vec<_> = pairs
                .map(|(real, there)| i128::from(real.time.0) - i128::from(there.time.0))
                .collect();
            apart.dedup();
            match base {
                TimeBase::Tai => assert_eq!(apart, [-37 * i128::from(S)]),
                // CLOCK_MONOTONIC is 0 at the start of the script.
                _ => assert!(
                    apart.len() == 1 && apart[0].abs_diff(i128::from(slewed().real(0))) < 100
                ),
            }
            let [end, moved] = [&real, &there].map(|bytes| statistics_end(&folder, bytes));
            assert_eq!(i128::from(end) - i128::from(moved), apart[0], "{base:?}");
            let text = String::from_utf8_lossy(&there).into_owned();
            assert!(text.contains("times are of CLOCK_"), "no comment");
            let back = |there| converted(&folder, there, &["--time-base", "realtime"]);
            assert!(back(&there) == real, "{base:?}");
            // Without --time-base it is stamped again, in the same clock.
            if keep_raw {
                let again = converted(&folder, &there, &[]);
                assert!(again != there && time_base(&again) == base);
                assert!(back(&again) == converted(&folder, &real, &[]), "{base:?}");
            }
        }
    }
}

/// CLOCK_REALTIME is set back by a second 30 s after the start, and the offset of TAI
/// grows by one, as when a leap second is inserted.
fn leap(t: u64) -> (i64, u64) {
    if t < 30 * S {
        (0, 37)
    } else {
        (-1_000_000_000, 38)
    }
}

#[test]
fn a_leap_second_is_none_in_tai() {
    let folder = tempfile::tempdir().unwrap();
    let (bytes, truths) = capture_with(&slewed(), true, leap);
    let real = packets(&bytes);
    assert!(real.windows(2).any(|pair| pair[1].time < pair[0].time));
    for name in ["tai", "monotonic"] {
        let there = converted(&folder, &bytes, &["--time-base", name]);
        let times: Vec<u64> = packets(&there).iter().map(|packet| packet.time.0).collect();
        // But for those taken while the clock was being set.
        let backwards = times.windows(2).filter(|pair| pair[1] < pair[0]).count();
        assert!(backwards <= 1, "{name}: {backwards}");
        let back = converted(&folder, &there, &["--time-base", "realtime"]);
        assert!(back == bytes, "{name}");
        if name == "tai" {
            let ahead = times
                .iter()
                .zip(&truths)
                .map(|(tai, real)| (tai - real + S / 2) / S);
            let ahead: Vec<u64> = ahead.collect();
            assert_eq!(ahead.iter().filter(|s| **s == 37).count(), 3 * 2990);
            assert!(ahead.is_sorted() && ahead.iter().all(|s| [37, 38].contains(s)));
        }
    }
}

/// A table that expires at a time, s since 1970.
fn table(folder: &TempDir, expires: u64) -> PathBuf {
    let path = folder.path().join("leap-seconds.list");
    let ntp = expires + 2_208_988_800;
    let text = format!("#@\t{ntp}\n3644697600\t36\t# 1 Jul 2015\n3692217600\t37\t# 1 Jan 2017\n");
    fs::write(&path, text).unwrap();
    path
}

/// The kernel's offset is 0 as long as no time daemon has set it.
#[test]
fn tai_is_told_by_a_table_where_the_kernel_has_no_offset() {
    for path in [StampPath::Ktime, StampPath::Tai] {
        let folder = tempfile::tempdir().unwrap();
        let (real, truths) = capture_by(path, &slewed(), true, |_| (0, 0), |_| 0);
        let times = packets(&real).into_iter().map(|packet| packet.time.0);
        let errors = times
            .zip(&truths)
            .map(|(time, truth)| time.abs_diff(*truth));
        assert!(errors.max() < Some(MS), "the offset of TAI moves no time");
        let day = EPOCH / S + 86_400;
        let by = table(&folder, day);
        let by = by.to_str().unwrap();
        let output = folder.path().join("out.pcapng");
        let arguments = ["--time-base", "tai", "--leap-seconds", by];
        let done = convert(&file(&folder, &real), &output, &arguments);
        let text = String::from_utf8(done.stdout).unwrap();
        assert!(
            text.contains("UTC + 37 s by the leap-second table that is good to 2023-11-15"),
            "{text}"
        );
        let there = fs::read(&output).unwrap();
        assert_eq!(time_base(&there), TimeBase::Tai);
        assert!(String::from_utf8_lossy(&there).contains("times are of TAI: UTC + 37 s by"));
        let pairs = packets(&real).into_iter().zip(packets(&there));
        let mut apart = pairs.map(|(real, there)| there.time.0 - real.time.0);
        assert!(apart.all(|apart| apart == 37 * S));
        // The way back needs no table.
        fs::remove_file(by).unwrap();
        assert!(converted(&folder, &there, &["--time-base", "realtime"]) == real);
    }
}

#[test]
fn tai_without_an_offset_of_the_kernel_or_a_table_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (bytes, _) = capture_with(&slewed(), true, |_| (0, 0));
    let path = table(&folder, EPOCH / S);
    let more = [
        "--time-base",
        "tai",
        "--leap-seconds",
        path.to_str().unwrap(),
    ];
    let parts = [
        "the kernel had no TAI offset",
        "leap-seconds.list does not give it: it expired on 2023-11-14",
        "hint: give the newest table by --leap-seconds",
    ];
    refuses_with(&folder, &bytes, &more, &parts);
    fs::remove_file(&path).unwrap();
    refuses_with(&folder, &bytes, &more, &["No such file", parts[2]]);
}

#[test]
fn what_nobody_can_tell_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let refuses = |bytes: &[u8], name: &str, parts: &[&str]| {
        refuses_with(&folder, bytes, &["--time-base", name], parts);
    };
    let (bytes, _) = capture_with(&slewed(), false, leap);
    for name in ["tai", "monotonic"] {
        let parts = [
            "cannot tell the times",
            "the clock was set meanwhile",
            "hint: capture with --keep-raw",
        ];
        refuses(&bytes, name, &parts);
    }
    let mut killed = headers().take();
    killed.extend(packet(RawStamp(1), 1, true));
    refuses(&killed, "tai", &["no statistics with the clock"]);
    let output = convert(Path::new("in"), Path::new("out"), &["--time-base", "moon"]);
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(
        text.contains("give realtime, tai, monotonic, ntp or ntp:ADDRESS"),
        "{text}"
    );
}

#[test]
fn a_log_tells_of_other_clocks_too() {
    let folder = tempfile::tempdir().unwrap();
    let (bytes, _) = slewed_capture(true);
    log(&folder, &slewed(), 0, 35_000 * MS);
    let log = log(&folder, &slewed(), 36_000 * MS, LENGTH);
    let log = log.to_str().unwrap();
    let real = converted(&folder, &bytes, &["--clock-log", log]);
    for name in ["tai", "monotonic"] {
        let there = converted(&folder, &bytes, &["--clock-log", log, "--time-base", name]);
        let back = ["--clock-log", log, "--time-base", "realtime"];
        assert!(converted(&folder, &there, &back) == real, "{name}");
        // Nor is the log needed for the way back.
        assert!(converted(&folder, &there, &back[2..]) == real, "{name}");
    }
}

/// The capture itself knows when.
#[test]
fn a_clock_may_be_set_while_nothing_is_logged() {
    let folder = tempfile::tempdir().unwrap();
    let ahead = |t| if t < 25 * S { 0 } else { 1_000_000_000 };
    let (bytes, truths) = capture_with(&slewed(), true, |t| (ahead(t), 37));
    log_with(&folder, &slewed(), 0, 20 * S, |t| Some(ahead(t)));
    let log = log_with(&folder, &slewed(), 30 * S, LENGTH, |t| Some(ahead(t)));
    let more = ["--clock-log", log.to_str().unwrap()];
    let more = [&more[..], &["--time-base", "monotonic"]].concat();
    let there = packets(&converted(&folder, &bytes, &more));
    for (packet, real) in there.iter().zip(truths) {
        // CLOCK_MONOTONIC is 0 at the start of the script.
        let since = real - slewed().real(0);
        let mono = if since < 25 * S { since } else { since - S };
        assert!(
            packet.time.0.abs_diff(mono) < MS,
            "{} {mono}",
            packet.time.0
        );
    }
}
